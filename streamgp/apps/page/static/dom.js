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

// Characters that may be invisible, or turn the direction of writing.
const DOUBTFUL = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{M}\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]/u;
const WIDE = /[\u3001-\ud7ff\uf900-\ufaff\uff01-\uff60\u{1f300}-\u{1faff}\u{20000}-\u{3ffff}]/u;
const FLAG = /\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}/gu;
// The signs after which Indic scripts join letters, and letters that are joined in writing.
const VIRAMA =
  /[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u0e3a\u0eba\u0f84\u1039\u103a\u1714\u1715\u1734\u17d2\u1a60\u1b44\u1baa\u1bab\u1bf2\u1bf3\u2d7f\ua806\ua82c\ua8c4\ua953\ua9c0\uaaf6\uabed]/;
const CURSIVE = /(?=\p{Lo})[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Nko}\p{Script=Mongolian}]/u;

const SHORT = { 9: "\\t", 10: "\\n", 13: "\\r" };

/** Return a label, a key or a name with invisible characters escaped, as in streamgp/common/printable.py. */
export function printable(written) {
  const text = String(written);
  if (!DOUBTFUL.test(text)) return text;
  const inFlag = new Set();
  for (const { 0: flag, index } of text.matchAll(FLAG)) for (let i = 0; i < flag.length; i += 1) inFlag.add(index + i);
  let before = ""; // the visible character before
  let at = 0;
  let shown = "";
  for (const c of text) {
    const [after = ""] = text.slice(at + c.length, at + c.length + 2);
    const isShown = inFlag.has(at) || isVisible(c, before, after);
    shown += isShown ? c : escaped(c.codePointAt(0));
    before = isShown ? c : "";
    at += c.length;
  }
  return shown;
}

function isVisible(c, before, after) {
  if (!DOUBTFUL.test(c)) return true;
  if (/[\u200c\u200d]/.test(c)) return joins(c, before, after);
  if (/[\ufe0e\ufe0f]/.test(c)) {
    const isKey = /[0-9#*]/.test(before) && after === "\u20e3";
    return isKey || /[\p{So}\p{Sm}]/u.test(before) || (c === "\ufe0f" && /[\u203c\u2049\u2139\u3030\u303d]/.test(before));
  }
  if (c === "\u3000") return WIDE.test(before) && /\S/.test(after);
  // An accent needs a letter before it.
  return /\p{M}/u.test(c) && !/\p{Default_Ignorable_Code_Point}/u.test(c) && before !== "" && before !== " ";
}

function joins(c, before, after) {
  if (before === "" || after === "") return false;
  if (VIRAMA.test(before)) return true;
  if (c === "\u200c") return CURSIVE.test(before) && CURSIVE.test(after);
  return /[\p{So}\p{Sk}\ufe0e\ufe0f]/u.test(before) && /[\p{So}\p{Sm}]/u.test(after);
}

function escaped(code) {
  if (code in SHORT) return SHORT[code];
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

/** Remove what this browser has stored about its annotator; how the page looks stays. */
export function forgetAnnotator() {
  try {
    for (const name of ["me", "guidelines", "keys", "recent"]) localStorage.removeItem(`streamgp.${name}`);
  } catch {
    /* Where storage is forbidden, there is nothing. */
  }
}
