/* Texts of the page: one file per language, and the formats of numbers and times. */

import { now } from "./api.js";

/** The available languages, each by its own name. */
export const LANGUAGES = { en: "English", de: "Deutsch" };

const PLACE = /\{(\w+)\}/;

let texts = {};
let plural = new Intl.PluralRules("en");

/** The language in use. */
export let language = "en";
// The language in the browser's regional variant, for numbers and times.
let locale = "en";

/** Return the first requested language that is available, otherwise English. */
export function chosenLanguage(wanted) {
  const known = wanted.map((code) => String(code).toLowerCase().split("-")[0]);
  return known.find((code) => code in LANGUAGES) ?? "en";
}

/** Load a language, and use it from now on. */
export async function useLanguage(code) {
  const answer = await fetch(`/static/texts/${code}.json`);
  if (!answer.ok) throw new Error(`no texts for ${code}: ${answer.status}`);
  texts = await answer.json();
  language = code;
  locale = navigator.languages.find((one) => one.toLowerCase().split("-")[0] === code) ?? code;
  plural = new Intl.PluralRules(code);
  document.documentElement.lang = code;
}

/** Return whether there is a text. */
export const hasText = (name) => name in texts;

function pattern(name, values) {
  const found = texts[name] ?? name;
  if (typeof found === "string") return found;
  return found[plural.select(values.n)] ?? found.other;
}

/** Return a text with its placeholders filled, numbers as counts; `n` selects singular or plural. */
export function text(name, values = {}) {
  return parts(name, values).map(String).join("");
}

/** Return a text as a list of texts and nodes, for placeholders that are filled with nodes. */
export function parts(name, values = {}) {
  return pattern(name, values)
    .split(/(\{\w+\})/)
    .filter((part) => part !== "")
    .map((part) => {
      const place = PLACE.exec(part);
      if (place === null || !(place[1] in values)) return part;
      const value = values[place[1]];
      return typeof value === "number" ? count(value) : value;
    });
}

/** Return why a request was refused, in words for anyone; what only a programmer can act on, by its code. */
export function whyRefused({ error, reason = null }) {
  const code = reason ?? error;
  const name = `because.${code}`;
  return hasText(name) ? text(name) : text("because.other", { code });
}

/** Format a number with its significant digits. */
export function number(value, digits = 4) {
  if (!Number.isFinite(value)) return String(value);
  const wide = Math.abs(value) >= 1e7 || (value !== 0 && Math.abs(value) < 1e-4);
  return new Intl.NumberFormat(locale, {
    maximumSignificantDigits: digits,
    notation: wide ? "scientific" : "standard",
    useGrouping: Math.abs(value) >= 10_000,
  }).format(value);
}

/** Return the sign between a number's whole part and its decimals. */
export const decimalSign = () => new Intl.NumberFormat(locale).formatToParts(1.5).find((part) => part.type === "decimal").value;

/** Format a whole number. */
export const count = (value) => new Intl.NumberFormat(locale).format(value);

/** Format a share as a percentage, with a space before the sign. */
export const percent = (share) => `${new Intl.NumberFormat(locale).format(Math.round(100 * share))}\u202f%`;

/** Format a probability, never as 0 or 100 % for what is not certain. */
export const likelihood = (share) => percent(Math.min(0.99, Math.max(0.01, share)));

/** Format a duration in one unit, or in two if one would be too coarse. */
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 100) return text("span.s", { n: whole });
  if (whole < 59.5 * 60) return text("span.min", { n: Math.round(whole / 60) });
  if (whole < 36 * 3600) return text("span.h", { n: Math.round(whole / 3600) });
  if (whole < 731 * 86400) return text("span.d", { n: Math.round(whole / 86400) });
  return text("span.y", { n: Math.floor(whole / 31_557_600) });
}

/** Format the number of questions that a budget leaves. */
export function budgetShown({ left, of, span_s: within }) {
  const name = within === null || within === undefined ? "budget.left" : "budget.left.within";
  return text(name, { n: left, of, span: span(within ?? 0) });
}

/** Format how long ago a time was. */
export function ago(at, then = now()) {
  return then - at < 2 ? text("just_now") : text("ago", { span: span(then - at) });
}

/** Format the time of day, in this time zone. */
export function timeOfDay(at) {
  return new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" }).format(at * 1000);
}

/** Format the day of a time, with words for today and yesterday. */
export function dayOf(at) {
  const days = Math.round((midnight(now()) - midnight(at)) / 86400);
  if (days === 0) return text("today");
  if (days === 1) return text("yesterday");
  const options = { weekday: "long", day: "numeric", month: "long" };
  if (days > 300) options.year = "numeric";
  return new Intl.DateTimeFormat(locale, options).format(at * 1000);
}

/** Return when an hour of the day of a time begins, by default the day, in this time zone, POSIX seconds. */
export function midnight(at, hour = 0) {
  const day = new Date(at * 1000);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate(), hour).getTime() / 1000;
}

/** Return the day of a time as YYYY-MM-DD, in this time zone. */
export function isoDay(at) {
  const day = new Date(at * 1000);
  const two = (value) => String(value).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}
