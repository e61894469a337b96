/* Charts: inline SVG, styled only by classes of the style sheet, with a text for screen readers. */

import { drawn, element, printable } from "./dom.js";
import { labelNode, shownLabel } from "./labels.js";
import { count, midnight, number, percent, text, timeOfDay } from "./texts.js";

/** Number of classes with their own colour in the style sheet. */
const COLOURS = 8;

/** Return the style class that colours a label, by its place in the stable order. */
export const colourOf = (label, labels) => `colour-${Math.max(0, labels.indexOf(label)) % COLOURS}`;

/**
 * Return the labels in the order of their colours.
 *
 * All of them if there are enough colours; otherwise those shown, so that few colours repeat.
 */
export const paletteOf = (labels, shown) => (labels.length <= COLOURS ? labels : [...new Set(shown)]);

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

function box(width, height, properties, ...children) {
  return drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", ...properties }, ...children);
}

/** Return the class averages of a feature as pairs of a label and a number. */
export function averagesOf(feature) {
  return (feature.mean_by_class ?? []).filter(([, mean]) => isNumber(mean));
}

/** Format the value of a feature. */
export function shownValue(value, unit = null, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return text(value ? "value.yes" : "value.no");
  const written = typeof value === "number" ? number(value, digits) : String(value);
  return unit ? `${written}\u202f${unit}` : written;
}

/** Draw a feature: its value among the averages of the classes. */
export function featureBar(feature, shown, labels) {
  const averages = averagesOf(feature).filter(([label]) => shown.includes(label));
  const value = isNumber(feature.value) ? feature.value : null;
  const all = averages.map(([, mean]) => mean).concat(value === null ? [] : [value]);
  if (value === null || averages.length === 0) return null;
  const low = Math.min(...all);
  const high = Math.max(...all);
  const x = (at) => `${high === low ? 50 : 3 + (94 * (at - low)) / (high - low)}%`;
  const said = averages.map(([label, mean]) => `${shownLabel(label)} ${number(mean)}`).join(", ");
  return drawn(
    "svg",
    { class: "feature-bar", role: "img", "aria-label": text("feature.among", { value: number(value), averages: said }) },
    drawn("line", { class: "rail", x1: "0", x2: "100%", y1: 11, y2: 11 }),
    averages.map(([label, mean]) => tick(label, labels, { x: x(mean), y: 3, height: 16, words: number(mean) })),
    drawn("circle", { class: "here", cx: x(value), cy: 11, r: 6 }),
  );
}

/** Draw a mark in the colour of a label. */
function tick(label, labels, { x, y, height, words }) {
  const properties = { class: `tick ${colourOf(label, labels)}`, x1: x, x2: x, y1: y + 2, y2: y + height - 2 };
  return drawn("line", properties, drawn("title", {}, `${shownLabel(label)} ${words}`));
}

/** Explain the colours of the class averages. */
export function legend(shown, labels) {
  return element(
    "ul",
    { class: "legend" },
    element("li", {}, swatch("here"), text("feature.here")),
    shown.map((label) => element("li", {}, swatch(colourOf(label, labels)), labelNode(label))),
  );
}

const swatch = (colour) =>
  drawn(
    "svg",
    { viewBox: "0 0 10 10", class: "swatch", "aria-hidden": "true" },
    colour === "here"
      ? drawn("circle", { class: "here", cx: 5, cy: 5, r: 4 })
      : drawn("line", { class: `tick ${colour}`, x1: 5, x2: 5, y1: 2, y2: 8 }),
  );

/** Draw one channel of the raw excerpt. */
export function lineChart(name, values) {
  const known = values.filter(isNumber);
  if (known.length < 2) return null;
  const low = Math.min(...known);
  const high = Math.max(...known);
  const y = (value) => (high === low ? 30 : 56 - (52 * (value - low)) / (high - low));
  const step = 300 / (values.length - 1);
  const pieces = [];
  let pen = "M";
  values.forEach((value, i) => {
    // A line of no length after a gap: a value between two gaps is a dot.
    if (isNumber(value)) pieces.push(`${pen}${(i * step).toFixed(1)} ${y(value).toFixed(1)}${pen === "M" ? "h0" : ""}`);
    pen = isNumber(value) ? "L" : "M";
  });
  const spoken = text("excerpt.spoken", { name: printable(name), n: known.length, low: number(low), high: number(high) });
  return element(
    "figure",
    { class: "channel" },
    element(
      "figcaption",
      {},
      element("bdi", { class: "name" }, printable(name)),
      element("span", { class: "range" }, `${number(low)} … ${number(high)}`),
    ),
    box(
      300,
      60,
      { class: "line-chart", preserveAspectRatio: "none", "aria-label": spoken },
      low < 0 && high > 0 ? drawn("path", { class: "zero", d: `M0 ${y(0)}L300 ${y(0)}` }) : null,
      drawn("path", { class: "line", d: pieces.join("") }),
    ),
  );
}

const EARTH_M = 6_371_000;
const radians = (degrees) => (degrees * Math.PI) / 180;

/** Draw a track of positions in degrees, north up, without a map. */
export function track(points) {
  const known = points.filter(([latitude, longitude]) => isNumber(latitude) && isNumber(longitude));
  if (known.length < 2) return null;
  const [[latitude0, longitude0]] = known;
  // Across the date line, take the shorter way.
  const east = (longitude) => ((((longitude - longitude0) % 360) + 540) % 360) - 180;
  const narrow = Math.cos(radians(latitude0));
  const metres = known.map(([latitude, longitude]) => [
    EARTH_M * radians(east(longitude)) * narrow,
    -EARTH_M * radians(latitude - latitude0),
  ]);
  const xs = metres.map(([x]) => x);
  const ys = metres.map(([, y]) => y);
  const left = Math.min(...xs);
  const top = Math.min(...ys);
  const width = Math.max(...xs) - left;
  const height = Math.max(...ys) - top;
  const scale = 1 / Math.max(width / 270, height / 130, 1e-9);
  const place = ([x, y]) => [
    150 + (x - left - width / 2) * scale,
    75 + (y - top - height / 2) * scale,
  ];
  const way = metres.map(place);
  const extent = number(Math.max(width, height), 2);
  const length = metres.slice(1).reduce((sum, [x, y], i) => sum + Math.hypot(x - metres[i][0], y - metres[i][1]), 0);
  const [start] = way;
  const end = way[way.length - 1];
  return box(
    300,
    150,
    { class: "way-drawing", "aria-label": text("track.spoken", { length: metresShown(length), extent }) },
    drawn("polyline", { class: "way", points: way.map((at) => at.map((one) => one.toFixed(1)).join(",")).join(" ") }),
    drawn("circle", { class: "start", cx: start[0], cy: start[1], r: 5 }),
    drawn("circle", { class: "end", cx: end[0], cy: end[1], r: 5 }),
    scaleBar(scale),
  );
}

/** Draw a scale bar of a round length in metres. */
function scaleBar(scale) {
  const most = 80 / scale;
  const power = 10 ** Math.floor(Math.log10(most));
  const length = [5, 2, 1].map((one) => one * power).find((one) => one <= most);
  if (!isNumber(length) || length < 0.1) return null;
  const wide = length * scale;
  return drawn(
    "g",
    { class: "scale", "aria-hidden": "true" },
    drawn("path", { d: `M${290 - wide} 138v4h${wide}v-4` }),
    drawn("text", { x: 290, y: 132, "text-anchor": "end" }, metresShown(length)),
  );
}

const metresShown = (metres) =>
  metres >= 1000 ? `${number(metres / 1000, 2)}\u202fkm` : `${number(metres, 2)}\u202fm`;

/** Draw hours of a day: the labels over time, and the time in question. */
export function dayBand(moments, at, labels, hours) {
  const day = midnight(at);
  const end = midnight(at, 24); // the day has 23 or 25 hours when clocks change
  const length = hours === 24 ? end - day : 3600 * hours;
  // Centred on the time, but within the day.
  const start = Math.min(end - length, Math.max(day, at - length / 2));
  const x = (moment) => `${Math.min(100, Math.max(0, (100 * (moment - start)) / length))}%`;
  return drawn(
    "svg",
    { class: "day-band", role: "img", "aria-label": text("day.spoken", { n: moments.length, time: timeOfDay(at) }) },
    drawn("rect", { class: "band", x: 0, y: 8, width: "100%", height: 20, rx: 6 }),
    moments
      .filter((moment) => moment.at >= start && moment.at <= start + length)
      .map((moment) =>
        tick(moment.label, labels, { x: x(moment.at), y: 9, height: 18, words: timeOfDay(moment.at) }),
      ),
    drawn("svg", { x: x(at), class: "now" }, drawn("path", { d: "M-5 0h10l-4 6v24h-2V6z" })),
    marksOf(start, length, hours).map(([mark, shown]) => {
      const share = (mark - start) / length;
      // If moved inwards, a time with minutes would overlap the next one.
      if (hours <= 1 && (share < 0.04 || share > 0.96)) return null;
      const anchor = share < 0.04 ? "start" : share > 0.96 ? "end" : "middle";
      return drawn("text", { x: `${100 * share}%`, y: 44, "text-anchor": anchor }, String(shown));
    }),
  );
}

/** Return round times within a span as shown: every six hours of a day, every hour or every quarter of an hour. */
function marksOf(start, length, hours) {
  const isWithin = ([mark]) => mark >= start && mark <= start + length;
  if (hours > 1) {
    const step = hours === 24 ? 6 : 1;
    const marks = Array.from({ length: 24 / step + 1 }, (_, i) => [midnight(start, i * step), i * step]);
    // An hour that the clock leaves out in spring has no mark.
    return marks.filter(([mark, hour]) => new Date(1000 * mark).getHours() === hour % 24).filter(isWithin);
  }
  const first = Math.ceil(start / 900 - 1e-9) * 900;
  return Array.from({ length: 4 * hours + 1 }, (_, i) => [first + 900 * i, timeOfDay(first + 900 * i)]).filter(isWithin);
}

/** Draw the accuracy over time. */
export function accuracyCurve(points) {
  const known = points.filter(([n, share]) => isNumber(n) && isNumber(share));
  if (known.length < 2) return null;
  const last = known[known.length - 1];
  const first = known[0][0];
  const x = (n) => 30 + (260 * (n - first)) / Math.max(1, last[0] - first);
  const y = (share) => 96 - 88 * share;
  const way = known.map(([n, share], i) => `${i === 0 ? "M" : "L"}${x(n).toFixed(1)} ${y(share).toFixed(1)}`).join("");
  return box(
    300,
    112,
    { class: "curve", "aria-label": text("accuracy.spoken", { share: percent(last[1]), n: last[0] }) },
    [0, 0.5, 1].map((share) => [
      drawn("path", { class: "grid", d: `M30 ${y(share)}H290` }),
      drawn("text", { x: 26, y: y(share) + 3, "text-anchor": "end" }, String(100 * share)),
    ]),
    drawn("path", { class: "area", d: `${way}L${x(last[0])} 96L30 96z` }),
    drawn("path", { class: "line", d: way }),
    drawn("circle", { class: "here", cx: x(last[0]), cy: y(last[1]), r: 4 }),
    drawn("text", { x: 30, y: 110 }, count(first)),
    drawn("text", { x: 290, y: 110, "text-anchor": "end" }, count(last[0])),
  );
}
