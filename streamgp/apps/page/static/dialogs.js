/* Dialogs: help, preferences, changing an answer, renaming a label. */

import { get, post, put } from "./api.js";
import { typedNumber, whyNoNumber } from "./cards.js";
import { button, byId, element, printable, remember, remembered } from "./dom.js";
import { FEW, gridOf, labelNode, nearDuplicate, search, shownLabel, typedLabel } from "./labels.js";
import { dayOf, LANGUAGES, language, parts, text, timeOfDay, whyRefused } from "./texts.js";

const MOST_SHOWN = 200;

/** Show a dialog until it is closed. */
function show(name, ...children) {
  const before = document.activeElement;
  const dialog = element(
    "dialog",
    { class: "dialog", "aria-labelledby": "dialog-title" },
    // Not a <header>, which would be a second banner beside the page's.
    element(
      "div",
      { class: "dialog-top" },
      element("h2", { id: "dialog-title" }, text(`${name}.title`)),
      button("×", { class: "close", name: text("close"), on: () => dialog.close() }),
    ),
    children,
  );
  // Not a click inside its edge, nor one that has selected text to beyond it.
  let isPressedBeside = false;
  const isBeside = ({ target, clientX: x, clientY: y }) => {
    const { left, right, top, bottom } = dialog.getBoundingClientRect();
    return target === dialog && (x < left || x > right || y < top || y > bottom);
  };
  dialog.addEventListener("pointerdown", (event) => {
    isPressedBeside = isBeside(event);
  });
  dialog.addEventListener("click", (event) => {
    if (isPressedBeside && isBeside(event) && event.detail < 2) dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    // What opened it may have been renewed since.
    (before?.isConnected ? before : (document.getElementById("question") ?? byId("main"))).focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Return whether a dialog is open. */
export const isDialogOpen = () => document.querySelector("dialog[open]") !== null;

// Keys, what they do, and the button with these words, if it needs explaining where there are no keys.
const HELP = [
  ["1–9 a–z", "help.label"],
  ["/", "help.search"],
  ["n", "help.new"],
  ["d", "help.decline"],
  ["D", "help.reason"],
  ["s", "help.skip", "skip"],
  ["u", "help.undo", "undo.button"],
  ["h", "help.hint", "hint"],
  ["f", "help.flag", "flag"],
  ["k  c", "help.challenge"],
  ["p", "help.pause", "pause"],
  ["?", "help.help"],
  ["Esc", "help.back"],
];

const prose = (words, properties = {}) => element("p", { class: "prose", dir: "auto", ...properties }, words);

/** Show the guidelines until the annotator goes on, who need not read the same ones again in this browser. */
export async function readGuidelines({ name, guidelines }) {
  const read = JSON.stringify([name, guidelines]);
  if (!guidelines || remembered("guidelines", null) === read) return;
  const words = prose(guidelines, { tabindex: "-1" });
  const dialog = show("guidelines", words, button(text("guidelines.go_on"), { class: "primary", on: () => dialog.close() }));
  // With the focus, a screen reader begins with them, and a key that was meant for a card closes nothing.
  words.focus({ preventScroll: true });
  await new Promise((resolve) => dialog.addEventListener("close", resolve));
  remember("guidelines", read);
}

/** Show the guidelines again, and explain the keys; on a touch screen, the buttons. */
export function showHelp({ guidelines }) {
  show(
    "help",
    guidelines ? [element("h3", {}, text("guidelines.title")), prose(guidelines), element("h3", {}, text("help.page"))] : null,
    element("p", {}, text("help.words")),
    element(
      "dl",
      { class: "keys" },
      HELP.map(([keys, name, named]) =>
        element(
          "div",
          { class: named === undefined ? "by-key" : null },
          element("dt", {}, keys.split("  ").map((key) => element("kbd", {}, key)), named === undefined ? null : element("span", { class: "by-touch" }, text(named))),
          element("dd", {}, text(name)),
        ),
      ),
    ),
    element("p", { class: "quiet by-key" }, text("help.off")),
  );
}

/** Let the annotator change an answer to another label or number. */
export function changeAnswer(past, desk) {
  const isNumber = desk.me.of_numbers || past.kind === "number";
  const now = past.label === null || past.label === undefined ? text("declined") : labelNode(past.label);
  const when = typeof (past.at ?? past.when) === "number" ? `(${timeOfDay(past.at ?? past.when)})` : "";
  const dialog = show(
    "change",
    element("p", {}, ...parts("change.now", { label: now, when })),
    isNumber ? numberField((value) => send({ number: value })) : labelChoice(past, (label) => send({ label })),
    past.event_id !== undefined && desk.past().some((one) => one.answer_id === past.answer_id)
      ? button(text("change.undo"), { class: "quiet", on: () => finish(() => desk.undo(past.answer_id)) })
      : null,
  );
  const finish = (task) => {
    dialog.close();
    task();
  };
  const send = (reply) => finish(() => desk.revise(past.answer_id, reply));
}

function numberField(send) {
  const field = element("input", { type: "text", inputmode: "decimal", id: "other-number", autocomplete: "off", autofocus: true });
  const said = element("p", { class: "said", role: "status" });
  const submit = (event) => {
    event.preventDefault();
    const value = typedNumber(field.value);
    if (value === null) said.textContent = whyNoNumber(field.value);
    else send(value);
  };
  return element(
    "form",
    { class: "row", on: { submit } },
    element("label", { for: "other-number" }, text("number.value")),
    field,
    element("button", { class: "primary" }, text("number.send")),
    said,
  );
}

function labelChoice({ labels = [], label: current }, pick) {
  const others = (labels ?? []).filter((label) => label !== current);
  const list = element("div", { class: gridOf(others) });
  // With few labels to choose from, the keyboard of a phone would only hide them.
  const field = element("input", { type: "search", dir: "auto", id: "other-label", autocomplete: "off", autofocus: others.length > FEW });
  const found = () => {
    const matching = search(field.value, others);
    const near = matching.length === 0 ? nearDuplicate(field.value, others) : null;
    return near === null ? matching : [near];
  };
  const typed = () => typedLabel(field.value, others).label ?? null;
  const fill = () => {
    const label = typed();
    const isNew = label !== null && label !== current && !others.includes(label);
    list.replaceChildren(
      ...found().slice(0, MOST_SHOWN).map((one) => button(labelNode(one), { class: "choice", on: () => pick(one) })),
      ...(isNew ? [button(parts("new.named", { label: labelNode(label) }), { class: "quiet", on: () => pick(label) })] : []),
    );
  };
  const submit = (event) => {
    event.preventDefault();
    const label = field.value.trim() === "" ? null : (found()[0] ?? typed());
    if (label !== null) pick(label);
  };
  field.addEventListener("input", fill);
  fill();
  return element(
    "form",
    { class: "choose", on: { submit } },
    element("label", { for: "other-label" }, text("change.field")),
    field,
    list,
  );
}

/** Rename a label, or merge it into another one. */
function renameLabel(key, labels, desk) {
  const old = element("select", { id: "old-label" }, labels.map((label, i) => element("option", { value: String(i) }, shownLabel(label))));
  const field = element("input", { type: "text", dir: "auto", id: "renamed", autocomplete: "off", maxlength: "1000", list: "known-labels" });
  const said = element("p", { class: "said", role: "status" });
  const submit = (event) => {
    event.preventDefault();
    const chosen = labels[Number(old.value)];
    const { label, flaw } = typedLabel(field.value, labels);
    if (flaw !== undefined) {
      said.textContent = flaw;
      return;
    }
    if (label === chosen) return;
    const near = labels.includes(label) ? null : nearDuplicate(label, labels.filter((one) => one !== chosen));
    if (near !== null && said.dataset.near !== String(near)) {
      said.dataset.near = String(near);
      said.replaceChildren(...parts("new.mean", { label: labelNode(near) }), " ", text("rename.again"));
      return;
    }
    dialog.close();
    desk.rename(key, chosen, label);
  };
  const dialog = show(
    "rename",
    element("p", {}, text("rename.words")),
    element(
      "form",
      { class: "stack", on: { submit } },
      element("label", { for: "old-label" }, text("rename.old")),
      old,
      element("label", { for: "renamed" }, text("rename.new")),
      field,
      element("datalist", { id: "known-labels" }, labels.map((label) => element("option", { value: shownLabel(label) }))),
      said,
      element("button", { class: "primary" }, text("rename.do")),
    ),
  );
}

/** Show a supervisor the last answers of others; each that still can be is taken back by a button. */
export async function showOthers() {
  const list = element("ul", { class: "others-list" });
  const said = element("p", { class: "said", role: "status" }, text("others.loading"));
  show("others", element("p", {}, text("others.words")), list, said);
  try {
    const { answers } = await get("/api/others");
    list.replaceChildren(...answers.map(otherAnswer));
    said.textContent = answers.length === 0 ? text("others.none") : "";
  } catch (error) {
    said.textContent = text("others.failed", { why: whyRefused(error) });
  }
}

function otherAnswer(one) {
  const name = element("bdi", {}, printable(one.annotator));
  const whose = one.key === null || one.key === undefined ? [] : [" · ", element("bdi", {}, printable(one.key))];
  const what = element("span", { class: "what", tabindex: "-1" }, labelNode(one.label), element("span", { class: "quiet" }, name, ...whose, ` · ${dayOf(one.at)}, ${timeOfDay(one.at)}`));
  const takeBack = async () => {
    undo.disabled = true;
    try {
      await post("/api/others/undo", { annotator: one.annotator, answer_id: one.answer_id });
      undo.replaceWith(element("span", { class: "quiet", role: "status" }, text("others.taken")));
    } catch (error) {
      undo.replaceWith(element("span", { class: "quiet", role: "status" }, whyRefused(error)));
    }
    what.focus();
  };
  const undo = one.can_change
    ? button(text("others.undo"), { name: text("others.undo.name", { label: shownLabel(one.label), name: name.textContent }), class: "quiet small", on: takeBack })
    : element("span", { class: "quiet" }, whyRefused({ error: one.why_not.code }));
  return element("li", {}, what, undo);
}

// --- Preferences

const THEMES = ["auto", "light", "dark"];

/** Use the chosen colour theme, or that of the system; show keys unless they are off. */
export function useTheme() {
  document.documentElement.dataset.keys = remembered("single_keys", true) ? "on" : "off";
  const theme = remembered("theme", "auto");
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Let the annotator set when and how often to be asked; `changed` is called with the language. */
export function showPreferences(desk, changed) {
  const now = desk.me.preferences ?? {};
  const { labels = [], key = desk.me.key ?? null } = desk.current ?? {};
  const field = (name, properties) => element("input", { id: name, name, ...properties });
  const row = (name, control) => element("div", { class: "preference" }, element("label", { for: name }, text(`preferences.${name}`)), control);
  const select = (name, options, chosen) =>
    element("select", { id: name, name }, options.map(([value, shown]) => element("option", { value, selected: value === chosen }, shown)));
  const said = element("p", { class: "said", role: "status" });
  const form = element(
    "form",
    { class: "preferences-form" },
    // An annotator who has used another's link answers in that name from then on.
    element("p", { class: "quiet" }, parts("preferences.name", { name: element("bdi", {}, printable(desk.me.name)) })),
    element("h3", {}, text("preferences.asked")),
    row("quiet_from", field("quiet_from", { type: "time", value: now.quiet_from ?? "" })),
    row("quiet_to", field("quiet_to", { type: "time", value: now.quiet_to ?? "" })),
    row("per_day", field("per_day", { type: "number", min: 1, max: 100000, step: 1, value: now.per_day ?? "" })),
    row("least_gap", field("least_gap", { type: "number", min: 0, max: 1440, step: "any", value: now.gap_s ? now.gap_s / 60 : "" })),
    element("p", { class: "quiet" }, text("preferences.zone", { zone: ownZone() })),
    element("h3", {}, text("preferences.here")),
    row("language", select("language", Object.entries(LANGUAGES), language)),
    row("theme", select("theme", THEMES.map((theme) => [theme, text(`theme.${theme}`)]), remembered("theme", "auto"))),
    "Notification" in window ? row("notify", element("input", { type: "checkbox", id: "notify", name: "notify", checked: remembered("notify", false) })) : null,
    // Annotators who dictate, or press keys by chance, need to be able to turn them off (WCAG 2.1.4).
    row("single_keys", element("input", { type: "checkbox", id: "single_keys", name: "single_keys", checked: remembered("single_keys", true) })),
    said,
    element(
      "div",
      { class: "ends" },
      button(text("preferences.rename"), { class: "quiet", disabled: labels.length === 0, on: () => (dialog.close(), renameLabel(key, labels, desk)) }),
      element("button", { class: "primary" }, text("preferences.save")),
    ),
  );
  const dialog = show("preferences", form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    remember("theme", values.theme);
    remember("single_keys", values.single_keys === "on");
    useTheme();
    remember("notify", values.notify === "on" && (await mayNotify()));
    const preferences = preferencesOf(values);
    try {
      if (Object.keys(preferences).some((name) => preferences[name] !== (now[name] ?? null))) {
        await put("/api/preferences", preferences);
        desk.me.preferences = preferences;
      }
    } catch (error) {
      said.textContent = text("preferences.failed", { why: whyRefused(error) });
      return;
    }
    dialog.close();
    changed(values.language);
  });
}

/** Return the time zone of this browser. */
export const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

function preferencesOf(values) {
  const numberOf = (written) => (written === "" ? null : Number(written));
  const gap = numberOf(values.least_gap);
  return {
    quiet_from: values.quiet_from || null,
    quiet_to: values.quiet_to || null,
    per_day: numberOf(values.per_day),
    gap_s: gap === null ? null : 60 * gap,
    time_zone: ownZone(),
  };
}

const mayNotify = async () => (await Notification.requestPermission()) === "granted";
