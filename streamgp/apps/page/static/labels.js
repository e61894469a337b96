/* Labels: their text, their keys, search among hundreds, and near-duplicates. */

import { element, printable, remember, remembered } from "./dom.js";
import { number, text } from "./texts.js";

/** Keys of labels; the missing letters are commands, on this card or on challenges. */
export const KEYS = [..."123456789abegijlmoqrtvwxyz"];

/** With more labels than this, there is a search field, and a separate row of recent ones. */
export const FEW = 9;
const LONG = 40;
const LONG_WORD = /[^\s-]{13}/; // which a narrow button would break
const RECENT = 6;
const MOST_TABLES = 50;
const NUMBER_LIKE = /^\s*([+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|true|false|nan|[+-]?inf(inity)?)\s*$/i;

/** Return a label as text, in which all can be seen; text that looks like a number is quoted. */
export function shownLabel(label) {
  if (typeof label === "number") return number(label, 12);
  if (typeof label !== "string") return String(label);
  return label.trim() === "" || NUMBER_LIKE.test(label) ? `"${printable(label)}"` : printable(label);
}

/** Return a label as an element that confines any direction marks inside it. */
export const labelNode = (label, properties = {}) =>
  element("bdi", { class: "label", ...properties }, shownLabel(label));

/** Return the class of a grid of label buttons: wide ones if a label takes more than three lines of a narrow one, or has a long word. */
export function gridOf(labels) {
  const shown = labels.map(shownLabel);
  if (shown.some((label) => label.length > LONG)) return "grid long";
  return shown.some((label) => LONG_WORD.test(label)) ? "grid wide" : "grid";
}

// As in connectors/annotation/timeline.py: a card whose labels are in another order would be drawn again.
const inOrder = (label) => label.toLowerCase().replace(/[0-9]+/g, (digits) => digits.padStart(20, "0"));

/** Return the labels with one more inserted, unless the server may read it as another type. */
export function withLabel(labels, label) {
  const isPlain = typeof label === "string" && shownLabel(label) === label && !label.startsWith('"');
  if (!isPlain || labels.includes(label)) return labels;
  const place = labels.findIndex((one) => typeof one === "string" && inOrder(one) > inOrder(label));
  return place < 0 ? [...labels, label] : [...labels.slice(0, place), label, ...labels.slice(place)];
}

// Of Latin, Greek and Cyrillic letters, and the points of Hebrew and Arabic; elsewhere marks make other letters.
const ACCENTS = /[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]/g;

/** Return text without case and accents, and with single spaces. */
export function plain(written) {
  return String(written)
    .toUpperCase() // turns ß into ss
    .toLowerCase()
    .normalize("NFKD")
    .replace(ACCENTS, "")
    .replace(/[\s_./-]+/gu, " ")
    .trim();
}

/** Return the number of edits between two texts, at most `most` + 1. */
export function distance(one, other, most = Infinity) {
  const a = [...one];
  const b = [...other];
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let row = b.map((_, j) => j + 1);
  let before = [];
  for (let i = 0; i < a.length; i += 1) {
    const next = [];
    for (let j = 0; j < b.length; j += 1) {
      const diagonal = j === 0 ? i : row[j - 1];
      let cost = Math.min(diagonal + (a[i] === b[j] ? 0 : 1), row[j] + 1, (j === 0 ? i + 1 : next[j - 1]) + 1);
      // Two swapped letters are one error.
      if (i > 0 && j > 0 && a[i] === b[j - 1] && a[i - 1] === b[j]) {
        cost = Math.min(cost, (j === 1 ? i - 1 : before[j - 2]) + 1);
      }
      next.push(cost);
    }
    if (Math.min(i + 1, ...next) > most) return most + 1;
    before = row;
    row = next;
  }
  return b.length === 0 ? a.length : row[b.length - 1];
}

// As in connectors/annotation/label_text.py: one error per four letters, at most two.
const LETTERS_PER_SLIP = 4;
const MOST_SLIPS = 2;
const meantOf = (written) => written.replace(/[^\p{Nd}\p{Script=Han}]/gu, "");

/**
 * Return the existing label that a new one was probably meant to be, null if there is none.
 *
 * Near-duplicates differ in case, accents and separators, or by few typing errors; labels that
 * differ in a digit or a Chinese character are meant to differ.
 */
export function nearDuplicate(written, labels) {
  const wanted = plain(written).replaceAll(" ", "");
  let best = null;
  let least = Infinity;
  for (const label of labels) {
    const known = plain(shownLabel(label)).replaceAll(" ", "");
    if (meantOf(known) !== meantOf(wanted)) continue;
    const shorter = Math.min(known.length, wanted.length);
    const most = Math.min(MOST_SLIPS, Math.floor(shorter / LETTERS_PER_SLIP));
    const slips = distance(wanted, known, most);
    if (slips <= most && slips < least) [best, least] = [label, slips];
  }
  return wanted === "" ? null : best;
}

/** Return the labels that match the typed text, the best first; ties keep their order. */
export function search(written, labels) {
  const bare = written.trim();
  if (bare === "") return [...labels];
  const wanted = plain(written);
  const ranked = [];
  for (const label of labels) {
    const known = plain(shownLabel(label));
    // Without signs and accents, -5 would be as good as 5.
    const rank = isWritten(label, bare) ? -1 : rankOf(wanted, known);
    if (rank !== null) ranked.push([rank, label]);
  }
  return ranked.sort(([one], [other]) => one - other).map(([, label]) => label);
}

/** Whether a label is written so, with its signs and accents; a number also without the page's format, text also without quotes. */
const isWritten = (label, bare) => shownLabel(label) === bare || String(label) === bare;

function rankOf(wanted, known) {
  if (known === wanted) return 0;
  if (known.startsWith(wanted)) return 1;
  if (known.split(" ").some((word) => word.startsWith(wanted))) return 2;
  if (known.includes(wanted)) return 3;
  return isSubsequence(wanted, known) ? 4 : null;
}

function isSubsequence(wanted, known) {
  const letters = wanted.replaceAll(" ", "");
  let at = 0;
  for (const letter of known) if (letter === letters[at]) at += 1;
  return at === letters.length;
}

/**
 * Return the key of every label.
 *
 * A label keeps its key as long as this browser remembers it, whatever labels are added later. A
 * label that is written like a key, such as 2, gets that key if it is free.
 */
export function keysOf(group, labels) {
  const tables = remembered("keys", []);
  const name = String(group ?? "");
  const table = new Map(tables.find(([known]) => known === name)?.[1] ?? []);
  const idOf = (label) => JSON.stringify(label);
  const wanted = new Set(labels.map(idOf));
  for (const id of [...table.keys()]) if (!wanted.has(id)) table.delete(id);
  const before = table.size;
  for (const label of labels) give(table, idOf(label), shownLabel(label));
  if (table.size !== before) {
    const others = tables.filter(([known]) => known !== name).slice(-MOST_TABLES);
    remember("keys", [...others, [name, [...table]]]);
  }
  return new Map(labels.map((label) => [label, table.get(idOf(label)) ?? null]));
}

function give(table, id, written) {
  if (table.has(id)) return;
  const taken = new Set(table.values());
  const key = KEYS.includes(written) && !taken.has(written) ? written : KEYS.find((one) => !taken.has(one));
  if (key !== undefined) table.set(id, key);
}

// A map, as a group may have the name of something that every object has, such as "constructor".
const recentByGroup = () => new Map(Object.entries(remembered("recent", {})));

// Not the bare name: an object has numbers in their order, and not in that in which they were added.
const nameOf = (group) => `of ${group ?? ""}`;

/** Return the labels last given for a group, the latest first. */
export function recentLabels(group, labels) {
  const recent = recentByGroup().get(nameOf(group)) ?? [];
  return recent.filter((label) => labels.includes(label)).slice(0, RECENT);
}

/** Record a label that was given. */
export function noteRecent(group, label) {
  const all = recentByGroup();
  const name = nameOf(group);
  const recent = [label, ...(all.get(name) ?? []).filter((one) => one !== label)].slice(0, 2 * RECENT);
  all.delete(name);
  remember("recent", Object.fromEntries([...[...all].slice(-MOST_TABLES), [name, recent]]));
}

/**
 * Parse a typed label: returns it as `label`, a known one or the text for the server to parse, or as
 * `flaw` why it cannot be one, in words for people.
 *
 * In double quotes it is text even if it looks like a number.
 */
export function typedLabel(written, labels) {
  const bare = written.trim();
  const known = labels.find((label) => isWritten(label, bare));
  if (known !== undefined) return { label: known };
  if (bare === "" || bare === '""') return { flaw: text("label.empty") };
  if (/\p{Cc}/u.test(bare)) return { flaw: text("label.control") };
  return { label: bare };
}
