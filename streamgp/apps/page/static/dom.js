/* Elements of the page. Data from outside enters the document as text, never as markup. */

const SVG = "http://www.w3.org/2000/svg";

/** Return an element of index.html by its id. */
export const byId = (id) => document.getElementById(id);

/**
 * Create an element.
 *
 * `properties`: `class`, `on` (listeners by event), `data`, and attributes; one that is null,
 * undefined or false is left out. `children`: nodes and texts, nested as you like; null is left out.
 */
export function element(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** Create an SVG element; like `element`. */
export function drawn(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(made, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (name === "data") {
      Object.assign(made.dataset, value);
    } else {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

// Characters that cannot be seen or turn the direction of writing, but for line breaks, and those that may.
const DOUBTFUL = /[^\P{C}\t\n\r]|[\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{M}\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]/gu;
const WIDE = /[\u3001-\ud7ff\uf900-\ufaff\uff01-\uff60\u{1f300}-\u{1faff}\u{20000}-\u{3ffff}]/u;
const JOINED = /[\p{M}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}\p{Extended_Pictographic}\p{Emoji_Modifier}]/u;

/** Return a label, a key or a name with invisible characters escaped, as in streamgp/common/printable.py. */
export function printable(written) {
  return String(written).replace(DOUBTFUL, (c, at, whole) => {
    const before = [...whole.slice(Math.max(0, at - 2), at)].pop() ?? "";
    const after = [...whole.slice(at + c.length, at + c.length + 2)][0] ?? "";
    return isVisible(c, before, after, whole) ? c : escaped(c.codePointAt(0));
  });
}

function isVisible(c, before, after, whole) {
  if (c === "\u3000") return WIDE.test(before);
  if (/[\u200c\u200d]/.test(c)) return JOINED.test(before) && /[\p{L}\p{M}\p{Extended_Pictographic}]/u.test(after);
  if (/[\ufe0e\ufe0f]/.test(c)) return /\p{Extended_Pictographic}/u.test(before) || (/[0-9#*]/.test(before) && after === "\u20e3");
  if (/[\u{e0020}-\u{e007f}]/u.test(c)) return whole.includes("\u{1f3f4}"); // flags of a part of a country
  return /(?!\p{Default_Ignorable_Code_Point})\p{M}/u.test(c) && /[^\p{C}\p{Z}]/u.test(before);
}

function escaped(code) {
  const digits = code.toString(16);
  if (code > 0xffff) return `\\U${digits.padStart(8, "0")}`;
  return code > 0xff ? `\\u${digits.padStart(4, "0")}` : `\\x${digits.padStart(2, "0")}`;
}

/** Return the name of a feature, in which lines may break after underscores. */
export function nameNode(name) {
  const pieces = printable(name).match(/[^_./-]*[_./-]|[^_./-]+/g) ?? [];
  return element("bdi", { class: "name" }, pieces.map((piece, i) => [i === 0 ? null : element("wbr"), piece]));
}

/**
 * Create a button; `key` is printed on it, but is not part of its accessible name.
 *
 * The second click of a double click belongs to what was there before, and does nothing.
 */
export function button(text, { key = null, name = null, on, ...properties } = {}) {
  const hint = key === null ? null : element("kbd", { "aria-hidden": "true" }, key);
  return element(
    "button",
    {
      type: "button",
      "aria-label": name,
      "aria-keyshortcuts": key === null ? null : key.length === 1 ? key : null,
      on: { click: (event) => event.detail < 2 && on(event) },
      ...properties,
    },
    element("span", { class: "text" }, text),
    hint,
  );
}

/** Return whether the focused element takes typed text. */
export function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.matches("textarea, select")) return true;
  return target.matches("input:not([type=checkbox], [type=radio], [type=button], [type=range])");
}

/** Return the key of a command: what it types or, in other scripts and for the digits of French, what is usually at its place. */
export function keyOf({ key, code, shiftKey }) {
  const place = /^(?:Key(.)|Digit(.)|Slash)$/.exec(code);
  if (place === null || key.length !== 1 || /[a-z0-9/?+.,-]/i.test(key)) return key;
  const [, letter, digit] = place;
  if (digit !== undefined) return shiftKey ? key : digit;
  if (/[ -~]/.test(key)) return key;
  const [low, high] = letter === undefined ? "/?" : [letter.toLowerCase(), letter];
  return shiftKey ? high : low;
}

/** Return a unique id; `crypto.randomUUID` exists only on HTTPS and localhost. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Read a setting of this browser; `otherwise` if there is none or it cannot be read. */
export function remembered(name, otherwise) {
  try {
    const stored = localStorage.getItem(`streamgp.${name}`);
    return stored === null ? otherwise : JSON.parse(stored);
  } catch {
    return otherwise;
  }
}

/** Store a setting in this browser, if possible. */
export function remember(name, value) {
  try {
    localStorage.setItem(`streamgp.${name}`, JSON.stringify(value));
  } catch {
    /* If storage is full or forbidden, only the setting is lost. */
  }
}
