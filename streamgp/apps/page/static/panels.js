/* Panels beside the card: what happened, earlier examples, the last answers, progress. */

import { accuracyCurve, averagesOf, colourOf, dayBand, featureBar, legend, lineChart, paletteOf, shownValue, track } from "./charts.js";
import { button, element, nameNode, printable } from "./dom.js";
import { labelNode, shownLabel } from "./labels.js";
import { ago, count, number, parts, percent, span, text, timeOfDay, whyRefused } from "./texts.js";

const FEATURES = 6;
const MOMENTS = 8;
/** Characters of a text that fit beside its name, and those shown of one below it until more are asked for. */
const SHORT_TEXT = 18;
const SHOWN_TEXT = 800;
const CELL_TEXT = 80;

const panel = (name, ...children) =>
  element("section", { class: `panel panel-${name}` }, element("h3", {}, text(`panel.${name}`)), ...children);

/** Return everything that describes the event. */
export function whatHappened(card, desk) {
  const both = [around(card), features(card)];
  return element(
    "div",
    { class: "evidence" },
    card.kind === "challenge" ? examples(card, desk) : null,
    (card.x ?? []).some(isProse) ? both.reverse() : both,
    excerpt(card),
    trackPanel(card),
    experts(card),
  );
}

/** Whether a feature is a text to be read. */
const isProse = ({ value }) => typeof value === "string" && (value.length > SHORT_TEXT || value.includes("\n"));

/** The features: texts to be read, then those that best distinguish classes. */
function features(card) {
  const all = [...(card.x ?? [])].sort((one, other) => isProse(other) - isProse(one));
  if (all.length === 0) return null;
  const averaged = averagesOf(all.find((one) => !isProse(one)) ?? all[0]).map(([label]) => label);
  const labels = card.labels?.length > 0 ? card.labels : [...averaged];
  const classes = averaged.sort((one, other) => labels.indexOf(one) - labels.indexOf(other));
  const colours = paletteOf(labels, classes);
  // A button instead of one or two rows would save nothing.
  const first = all.length <= FEATURES + 2 ? all.length : FEATURES;
  const rows = element("ul", { class: "features" }, all.slice(0, first).map((one) => featureRow(one, classes, colours)));
  const left = all.slice(first);
  const more = button(text("features.more", { n: left.length }), {
    class: "quiet more",
    on: () => {
      const [shown] = left.map((one) => rows.appendChild(featureRow(one, classes, colours)));
      shown.tabIndex = -1;
      shown.focus();
      more.remove();
    },
  });
  return panel("features", classes.length > 0 ? legend(classes, colours) : null, rows, left.length > 0 ? more : null);
}

const featureRow = (feature, classes, labels) =>
  isProse(feature)
    ? element("li", { class: "text" }, nameNode(feature.name), prose(feature.value))
    : element(
        "li",
        { class: "feature" },
        nameNode(feature.name),
        element("span", { class: "value" }, element("bdi", {}, shownValue(feature.value, feature.unit))),
        featureBar(feature, classes, labels),
      );

/** A text to be read, with its lines; a very long one in two parts. */
function prose(written) {
  const place = element("p", { class: "prose", dir: "auto", tabindex: "-1" }, written.slice(0, SHOWN_TEXT));
  if (written.length <= SHOWN_TEXT) return place;
  const all = button(text("text.more", { n: written.length - SHOWN_TEXT }), {
    class: "quiet more",
    on: () => {
      place.textContent = written;
      place.focus();
      all.remove();
    },
  });
  place.append("…");
  return [place, all];
}

const PLACE = /^(lat|latitude|lon|lng|longitude)$/i;

function excerpt(card) {
  // The location is drawn as a track.
  const channels = Object.entries(card.excerpt ?? {}).filter(([name]) => !card.track || !PLACE.test(name));
  const charts = channels.map(([name, values]) => lineChart(name, values)).filter(Boolean);
  return charts.length === 0 ? null : panel("excerpt", element("div", { class: "channels" }, charts));
}

function trackPanel(card) {
  const drawing = card.track ? track(card.track) : null;
  return drawing === null ? null : panel("track", drawing);
}

/** The labels before and after, and a band for the day, which is filled once known. */
function around(card) {
  const { previous, following } = card;
  const beside = (name, one) =>
    one ? element("div", {}, element("dt", {}, text(`around.${name}`)), element("dd", {}, labelNode(one.label), element("span", { class: "quiet" }, ` ${timeOfDay(one.at)}`))) : null;
  const both = [beside("before", previous), beside("after", following)].filter(Boolean);
  const list = both.length === 0 ? null : element("dl", { class: "around" }, both);
  return panel("day", list, element("div", { class: "day-place" }));
}

// Possible lengths of the band around the event, in hours.
const SPANS = [24, 6, 1];

/** Return the initial length of the band: the shortest one with most of the day's answers. */
function zoomOf(moments, at) {
  const within = (hours) => moments.filter((one) => Math.abs(one.at - at) <= 1800 * hours).length;
  return [...SPANS].reverse().find((hours) => within(hours) >= Math.min(moments.length, MOMENTS)) ?? SPANS[0];
}

/** Fill in the day of a card; a day without answers is not shown. */
export function fillDay(place, moments, card) {
  const at = card.occurred_at ?? card.asked_at;
  if (moments.length === 0) {
    if (place.previousElementSibling?.matches("dl") !== true) place.closest(".panel")?.remove();
    return;
  }
  const nearest = [...moments].sort((one, other) => Math.abs(one.at - at) - Math.abs(other.at - at));
  const near = nearest.slice(0, MOMENTS).sort((one, other) => one.at - other.at);
  const colours = paletteOf(card.labels ?? [], nearest.map((one) => one.label));
  const band = element("div", { class: "day-zoom" });
  const show = (hours) => {
    const spans = element("div", { class: "spans", role: "group", "aria-label": text("day.zoom") }, SPANS.map((one) =>
      button(text("span.h", { n: one }), { class: "quiet", "aria-pressed": String(one === hours), on: () => (show(one), band.querySelector("[aria-pressed=true]").focus()) }),
    ));
    band.replaceChildren(dayBand(moments, at, colours, hours), spans);
  };
  show(zoomOf(moments, at));
  place.replaceChildren(
    band,
    element(
      "details",
      { class: "diary" },
      element("summary", {}, text("day.list", { n: moments.length }), near.length < moments.length ? ` · ${text("day.nearest", { n: near.length })}` : null),
      element("ol", {}, near.map((one) => element("li", {}, element("span", { class: "quiet" }, timeOfDay(one.at)), " ", element("span", { class: `dot ${colourOf(one.label, colours)}` }), labelNode(one.label)))),
    ),
  );
}

/** The rule and its numbers, for experts. */
function experts(card) {
  const { expert } = card;
  const rows = [
    ["expert.event", card.event_id],
    ["expert.key", card.key],
    ["expert.rule", expert?.reason],
    ["expert.score", expert?.score > expert?.threshold ? `${number(expert.score)} > ${number(expert.threshold)}` : null],
  ].filter(([, value]) => value !== null && value !== undefined);
  return element(
    "details",
    { class: "experts" },
    element("summary", {}, text("expert")),
    element("dl", {}, rows.map(([name, value]) => element("div", {}, element("dt", {}, text(name)), element("dd", {}, element("bdi", {}, printable(value)))))),
  );
}

// --- Earlier examples beside the event

/** The closest earlier examples side by side, without features that are equal in all. */
function examples(card, desk) {
  const near = (card.examples ?? []).slice(0, 3);
  if (near.length === 0) return null;
  const here = new Map((card.x ?? []).map((one) => [one.name, one.value]));
  // The same features in each, those in which at least one differs.
  const differing = near[0].x.slice(0, 2 * FEATURES).map((one) => one.name);
  const corrections = near.map((example) => correction(example, card, desk));
  const heading = (words, label) => element("th", { scope: "col", role: "columnheader" }, element("span", { class: "quiet" }, words), labelNode(label));
  const table = element(
    "table",
    { class: "examples", role: "table" },
    rowGroup("thead", row(
      cell("corner"),
      heading(text("examples.this"), card.given),
      near.map((example) => heading(example.when ? ago(example.when) : text("examples.earlier"), example.label)),
    )),
    rowGroup("tbody", differing.map((name) => row(
      element("th", { scope: "row", role: "rowheader" }, nameNode(name)),
      exampleCell("here", here.get(name)),
      near.map((example) => differenceCell(example.x.find((one) => one.name === name), here.get(name))),
    ))),
    corrections.some(Boolean) ? rowGroup("tfoot", row(cell("corner"), cell("here"), corrections.map((one) => cell(null, one)))) : null,
  );
  return panel("examples", table);
}

const rowGroup = (tag, ...children) => element(tag, { role: "rowgroup" }, children);
const row = (...cells) => element("tr", { role: "row" }, cells);
const cell = (name, ...children) => element("td", { role: "cell", class: name }, children);

/** A value among those of other examples; of a text, which the features show whole, the beginning. */
function exampleCell(name, value, ...before) {
  const isText = typeof value === "string";
  const shown = isText && value.length > CELL_TEXT ? `${value.slice(0, CELL_TEXT)}…` : shownValue(value, null, 3);
  return cell(name, before, element("bdi", {}, shown));
}

function differenceCell({ value, differs }, here) {
  if (!differs) return cell("same", "=");
  const bothNumbers = typeof value === "number" && typeof here === "number";
  const sign = bothNumbers ? (value > here ? "▲" : "▼") : "≠";
  const word = bothNumbers ? text(value > here ? "examples.more" : "examples.less") : text("examples.other");
  const before = [element("span", { class: "sign", "aria-hidden": "true" }, sign), element("span", { class: "unseen" }, word), " "];
  return exampleCell("differs", value, before);
}

function correction(example, card, desk) {
  // Check the last answers first: they include corrections made since the card arrived.
  const last = desk.past().find((one) => one.event_id === example.event_id && one.key === card.key);
  const named = example.answer_id ? { ...example, key: card.key, labels: card.labels, at: example.when } : undefined;
  const past = last?.can_change ? last : named;
  if (past === undefined) return null;
  return button(text("examples.correct"), {
    class: "quiet small",
    name: text("examples.correct.name", { label: shownLabel(example.label) }),
    on: () => desk.told("revise", past),
  });
}

// --- The last answers and progress

/** The last ten answers; each can be changed while the loop remembers its event. */
export function lastAnswers(desk) {
  const past = desk.past();
  if (past.length === 0) return null;
  return panel(
    "last",
    element(
      "ol",
      { class: "past" },
      past.map((one) => {
        const isDeclined = one.label === null || one.label === undefined;
        const named = isDeclined ? element("span", { class: "label declined" }, text("declined")) : labelNode(one.label);
        const reason = one.can_change ? null : whyRefused({ error: one.why_not.code });
        return element(
          "li",
          {},
          element(
            "button",
            {
              type: "button",
              class: one.unsent ? "past-answer unsent" : "past-answer",
              "aria-disabled": one.can_change ? null : "true",
              title: reason,
              data: { answer: one.answer_id },
              // The labels to choose from may have changed since.
              on: { click: () => desk.told(one.can_change ? "revise" : "notice", one.can_change ? desk.pastOf(one) : { name: "past.why_not", values: { why: reason } }) },
            },
            named,
            element("span", { class: "quiet" }, one.unsent ? text("past.unsent") : timeOfDay(one.at)),
          ),
        );
      }),
    ),
  );
}

/** The annotator's progress. */
export function progressPanel(desk) {
  const { progress } = desk;
  const tiles = [
    ["waiting", known(progress.waiting, count)],
    ["oldest", progress.waiting ? known(progress.oldest_s, span) : null],
    ["today", known(progress.today, count)],
    ["pace", known(progress.seconds_per_question, span)],
    ["challenges", (progress.kept ?? 0) + (progress.changed ?? 0) > 0 ? `${count(progress.kept ?? 0)} / ${count(progress.changed ?? 0)}` : null],
    ["budget", progress.budget_left ? `${count(progress.budget_left.left)} / ${count(progress.budget_left.of)}` : null],
  ].filter(([, value]) => value !== null);
  if (tiles.length === 0) return null;
  const most = desk.me.open_at_most ?? Infinity;
  return panel(
    "progress",
    progress.waiting >= most ? element("p", { class: "quiet" }, text("progress.most", { n: most })) : null,
    element("dl", { class: "tiles" }, tiles.map(([name, value]) => element("div", {}, element("dt", {}, text(`progress.${name}`)), element("dd", {}, value)))),
  );
}

const known = (value, write) => (typeof value === "number" ? write(value) : null);

/** The accuracy so far, if the truth is known. */
export function accuracyPanel(points) {
  const drawing = accuracyCurve(points);
  if (drawing === null) return null;
  const [n, share] = points[points.length - 1];
  return panel("accuracy", element("p", { class: "quiet" }, ...parts("accuracy.said", { share: percent(share), n })), drawing);
}
