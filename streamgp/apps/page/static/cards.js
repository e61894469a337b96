/* The current card: one class for each kind of question, which creates its element and handles keys. */

import { button, byId, drawn, element, isTyping, printable } from "./dom.js";
import { secondsLeft } from "./desk.js";
import { FEW, gridOf, keysOf, labelNode, nearDuplicate, recentLabels, search, shownLabel, typedLabel } from "./labels.js";
import { ago, budgetShown, dayOf, decimalSign, hasText, likelihood, number, parts, span, text, timeOfDay } from "./texts.js";
import { shownValue } from "./charts.js";

const MOST_SHOWN = 400;
const MOST_ELSEWHERE = 12;
const COMPOSING = 229;
const WHY_NOT = ["unclear", "not_applicable", "bad_data"];

/** Return the element and the keys of a card. */
export function cardView(card, desk) {
  if (card.kind === "challenge") return new ChallengeView(card, desk);
  return card.kind === "number" ? new NumberView(card, desk) : new LabelView(card, desk);
}

/** Return why a question is asked, as texts and nodes; labels are included only where allowed. */
export function why(card, revealed) {
  const reason = card.why;
  if (revealed && "first" in reason) {
    const values = { first: labelNode(reason.first), first_share: likelihood(reason.first_share) };
    if (!("second" in reason)) return parts("why.shares.one", values);
    Object.assign(values, { second: labelNode(reason.second), second_share: likelihood(reason.second_share) });
    return parts("why.shares", values);
  }
  const name = `why.${reason.code}`;
  return hasText(name) ? parts(name, reason) : [reason.text ?? text("why.rule")];
}

// Is 1,234 in English, or 1.234 in German, a thousand times as much as it would be in the other language?
const isAmbiguous = (bare) => /^[-+]?[1-9]\d{0,2}[.,]\d{3}$/.test(bare) && !bare.includes(decimalSign());

/** Return a typed number in ASCII: keyboards of Japanese type wide digits, those of Arabic and Persian their own. */
const inAscii = (written) =>
  written
    .trim()
    .replace(/[\uff01-\uff5e]/g, (c) => String.fromCharCode(c.charCodeAt(0) - 0xfee0))
    .replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (c) => String(c.charCodeAt(0) % 16))
    .replace(/\u2212/g, "-")
    .replace("\u066b", ".");

/**
 * Parse a number typed by a person; null if it is not valid. Point and comma both separate decimals,
 * but the one that separates thousands in the page's language not where it may mean them.
 */
export function typedNumber(written) {
  const typed = inAscii(written);
  if (isAmbiguous(typed)) return null;
  const bare = typed.replace(",", ".");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(bare)) return null;
  const value = Number(bare);
  return Number.isFinite(value) ? value : null;
}

/** Return why a typed text is no number. */
export function whyNoNumber(written) {
  const typed = inAscii(written);
  if (!isAmbiguous(typed)) return text("number.none");
  const [whole, decimals] = typed.split(/[.,]/);
  return text("number.ambiguous", { whole: whole + decimals, fraction: whole + decimalSign() + decimals });
}

/**
 * A card: its head, the controls for answering, and the commands below.
 *
 * `body` is the part that changes while a person answers, `back` closes what was opened in it.
 */
class View {
  // mode  what is open in the body: null for the choice itself
  mode = null;

  constructor(card, desk) {
    this.card = card;
    this.desk = desk;
    this.state = desk.stateOf(card);
    this.body = element("div", { class: "answers" });
    this.commands = element("div", { class: "commands" });
    this.node = element(
      "article",
      {
        id: "card",
        class: `card kind-${card.kind}`,
        "aria-labelledby": "question",
        data: { card: card.id, kind: card.kind },
      },
      this.head(),
      this.body,
      this.commands,
    );
    this.choose();
  }

  /** Whether the annotator has started to answer, so that the card must not change. */
  get isTouched() {
    return this.mode !== null || this.state.flag || isTyping(document.activeElement);
  }

  head() {
    const { card } = this;
    const whose = card.key === null || card.key === undefined ? [] : [" · ", element("bdi", { class: "whose label" }, printable(card.key))];
    this.when = element("span", {});
    this.limit = element("p", { class: "limit" });
    this.renew();
    this.reason = element("p", { class: "why" }, why(card, false));
    this.question = element("h2", { id: "question", tabindex: "-1" }, this.asks());
    return element(
      "header",
      { class: "head" },
      element("p", { class: "when" }, this.when, whose),
      this.question,
      card.supersedes ? element("p", { class: "again" }, text("card.again")) : null,
      this.reason,
      this.limit,
      this.truth(),
    );
  }

  /** Show how long ago the event was and how long the question remains open, as it is now. */
  renew() {
    const at = this.card.occurred_at ?? this.card.asked_at;
    this.when.textContent = [dayOf(at), timeOfDay(at), ago(at)].join(" · ");
    const said = this.limits();
    this.limit.replaceChildren(...said);
    this.limit.hidden = said.length === 0;
  }

  /** Show the right answer, which only the demo's server sends. */
  truth() {
    const { truth, kind } = this.card;
    if (truth === null || truth === undefined) return null;
    return element("p", { class: "truth" }, parts(`truth.${kind}`, { label: labelNode(truth) }));
  }

  /** Return how long the question remains open, if not for long, and how many questions a budget leaves. */
  limits() {
    const left = secondsLeft(this.card);
    const budget = this.card.budget_left;
    const waits = left > 3600 ? null : element("span", { class: left < 120 ? "urgent" : null }, text("card.waits", { span: span(left) }));
    const said = [waits, budget ? budgetShown(budget) : null].filter(Boolean);
    return said.flatMap((one, i) => (i === 0 ? [one] : [" · ", one]));
  }

  asks() {
    const { question } = this.desk.me;
    return question && this.card.kind !== "challenge" ? element("bdi", {}, question) : text(`ask.${this.card.kind}`);
  }

  /** Show the controls for answering. */
  choose() {
    this.mode = null;
    this.commands.hidden = false;
    this.body.replaceChildren(...[this.choices()].flat());
    this.commands.replaceChildren(...this.commandButtons(), this.note());
  }

  /** Open something in the body; Esc leads back. */
  open(mode, ...children) {
    this.mode = mode;
    this.commands.hidden = true;
    const back = button(text("back"), { key: "Esc", class: "quiet", on: () => this.leave() });
    this.body.replaceChildren(element("div", { class: `opened ${mode}` }, ...children, back));
    // Never focus a button that answers: a stray Enter must not answer. Without a field to type into, a screen
    // reader says by the focus what is asked now.
    const front = this.body.querySelector("input") ?? this.body.querySelector("p");
    if (front.matches("p")) front.tabIndex = -1;
    front.focus();
  }

  leave() {
    this.choose();
    this.question.focus();
  }

  commandButtons() {
    return [
      button(text("skip"), { key: "s", class: "command", on: () => this.desk.skip() }),
      button(text("flag"), { key: "f", class: "command", "aria-pressed": String(this.state.flag), on: () => this.askNote() }),
    ];
  }

  note() {
    const { flag, note } = this.state;
    return flag ? element("p", { class: "flagged" }, text("flag.set"), note === "" ? "" : `: ${note}`) : "";
  }

  decline() {
    this.desk.answer({ action: "decline" });
  }

  askNote() {
    const field = element("input", { type: "text", dir: "auto", id: "note", maxlength: "500", autocomplete: "off", value: this.state.note });
    const keep = (flag) => {
      Object.assign(this.state, { flag, note: flag ? field.value.trim() : "" });
      this.leave();
    };
    this.open(
      "flagging",
      element(
        "form",
        { class: "row", on: { submit: (event) => (event.preventDefault(), keep(true)) } },
        element("label", { for: "note" }, text("flag.note")),
        field,
        element("button", { class: "primary" }, text("flag.keep")),
      ),
      this.state.flag ? button(text("flag.drop"), { class: "quiet", on: () => keep(false) }) : null,
    );
  }

  /** Ask for a label that is not in the list; `written` is what was typed so far. */
  askNew(written) {
    const field = element("input", { type: "text", dir: "auto", id: "new-label", autocomplete: "off", maxlength: "1000", value: written });
    const said = element("div", { class: "did-you-mean", role: "status" });
    const submit = (event) => {
      event.preventDefault();
      this.submitNew(field.value, said);
    };
    this.open(
      "new",
      element(
        "form",
        { class: "row", on: { submit } },
        element("label", { for: "new-label" }, text("new.ask")),
        field,
        element("button", { class: "primary" }, text("new.add")),
      ),
      said,
    );
    field.setSelectionRange(written.length, written.length);
    if (written !== "") this.submitNew(written, said);
  }

  /** Give a typed label; ask back if it is probably a slip for a known one. */
  submitNew(written, said) {
    const labels = known(this.card);
    const { label, flaw } = typedLabel(written, labels);
    if (flaw !== undefined) {
      said.replaceChildren(flaw);
      return;
    }
    const near = labels.includes(label) ? null : nearDuplicate(label, labels);
    if (near === null) {
      this.give(label);
      return;
    }
    const instead = button(parts("new.instead", { label: labelNode(near) }), {
      class: "choice",
      on: () => this.give(near),
    });
    said.replaceChildren(
      element("p", {}, ...parts("new.mean", { label: labelNode(near) })),
      instead,
      button(parts("new.anyway", { label: labelNode(label) }), {
        class: "quiet",
        on: () => this.give(label),
      }),
    );
    instead.focus();
  }

  newButton(look) {
    return button(text("new"), { ...look, on: () => this.askNew("") });
  }

  /** Send a reply; if the deployment wants it, first ask for the annotator's confidence. */
  reply(reply) {
    if (!this.desk.me.asks_confidence) {
      this.desk.answer(reply);
      return;
    }
    this.pending = reply;
    const shown = reply.label ?? reply.number ?? (reply.action === "keep" ? this.card.given : this.card.suggested);
    this.open(
      "confidence",
      element("p", {}, ...parts("confidence.ask", { label: labelNode(shown) })),
      element(
        "div",
        { class: "scale" },
        [1, 2, 3, 4, 5].map((sure) =>
          button(text(`confidence.${sure}`), { key: String(sure), class: "choice", on: () => this.sure(sure) }),
        ),
      ),
      button(text("confidence.none"), { key: "↵", class: "quiet", on: () => this.sure(null) }),
    );
  }

  sure(confidence) {
    this.desk.answer(this.pending, confidence === null ? {} : { confidence });
  }

  /** Handle a key pressed outside of fields; returns whether it had a meaning. */
  press(key) {
    if (key === "Escape" && this.mode !== null) return this.taken(() => this.leave());
    if (this.mode === "confidence" && "12345".includes(key)) return this.taken(() => this.sure(Number(key)));
    if (this.mode === "confidence" && key === "Enter") return this.taken(() => this.sure(null));
    return this.mode === null && this.pressed(key);
  }

  taken(task) {
    task();
    return true;
  }

  /** Handle a command that every card has; none of them answers. */
  pressed(key) {
    if (key === "s") return this.taken(() => this.desk.skip());
    if (key === "f") return this.taken(() => this.askNote());
    return false;
  }
}

/** Return all labels that a card offers: those of its key, then those that only others have. */
const known = (card) => [...(card.labels ?? []), ...(card.labels_elsewhere ?? [])];

/** Label buttons with a field that searches these labels and those known for other keys. */
class Picker {
  constructor(labels, { elsewhere = [], keys = new Map(), recent = [], pick, create = null, leave }) {
    Object.assign(this, { elsewhere, keys, recent, pick, create, leave, here: labels });
    this.labels = [...labels, ...elsewhere];
    this.list = element("div", { class: "choices", id: "choices", role: "group", "aria-label": text("labels") });
    this.field = this.labels.length > FEW ? this.searchField() : null;
    this.node = element("div", { class: "picker" }, this.field?.parentNode, this.list);
    this.fill();
  }

  searchField() {
    const field = element("input", {
      type: "search",
      dir: "auto",
      id: "search",
      autocomplete: "off",
      autocapitalize: "none",
      spellcheck: "false",
      enterkeyhint: "go",
      "aria-controls": "choices",
      "aria-describedby": "found",
      placeholder: text("search.hint", { n: this.labels.length }),
      "aria-label": text("search"),
      on: {
        input: () => this.fill(),
        keydown: (event) => {
          // Safari ends a composition before the Enter that ends it; its key code still tells.
          if (event.isComposing || event.keyCode === COMPOSING) return;
          if (event.key === "Enter" && !event.repeat) {
            event.preventDefault();
            this.list.querySelector(".best")?.click();
          } else if (event.key === "Escape") {
            event.preventDefault();
            event.stopPropagation();
            if (field.value === "") this.leave();
            field.value = "";
            this.fill();
            // Not nowhere, as a blur would.
            byId("question").focus();
          }
        },
      },
    });
    this.found = element("p", { id: "found", class: "unseen", "aria-live": "polite" });
    element("div", { class: "search" }, field, element("kbd", { "aria-hidden": "true" }, "/"), this.found);
    return field;
  }

  fill() {
    const written = this.field?.value ?? "";
    const isSearching = written.trim() !== "";
    const found = isSearching ? search(written, this.labels) : this.here;
    const shown = found.slice(0, MOST_SHOWN);
    this.shown = isSearching ? shown : [...shown, ...this.elsewhere];
    const children = [];
    if (!isSearching && this.recent.length > 0) {
      children.push(
        element("h3", { class: "row-title" }, text("recent")),
        this.grid(this.recent, { name: "recent" }),
        element("h3", { class: "row-title" }, text("all_labels")),
      );
    }
    if (shown.length > 0) children.push(this.grid(shown, { best: isSearching }));
    if (found.length > shown.length) children.push(element("p", { class: "quiet" }, text("search.more", { n: found.length - shown.length })));
    if (!isSearching && this.elsewhere.length > 0) {
      children.push(
        element("h3", { class: "row-title" }, text("elsewhere_labels")),
        this.grid(this.elsewhere.slice(0, MOST_ELSEWHERE), { name: "elsewhere" }),
      );
    }
    if (isSearching && this.create !== null && !this.labels.includes(written.trim())) {
      const best = found.length === 0;
      children.push(
        button(parts("new.named", { label: labelNode(written.trim()) }), {
          key: best ? "↵" : null,
          class: best ? "choice best" : "quiet",
          on: () => this.create(written.trim()),
        }),
      );
    } else if (isSearching && found.length === 0 && this.labels.length > 0) {
      children.push(element("p", { class: "quiet" }, text("search.none")));
    }
    this.list.replaceChildren(...children);
    if (this.found) this.found.textContent = isSearching ? this.spoken(found, written.trim()) : "";
  }

  /** What a screen reader says about a search: what Enter takes, too. */
  spoken(found, written) {
    if (found.length > 0) return text("search.found", { n: found.length, label: shownLabel(found[0]) });
    return this.create === null ? text("search.none") : text("search.create", { label: written });
  }

  grid(labels, { name = "", best = false } = {}) {
    return element("div", { class: `${gridOf(labels)} ${name}` }, labels.map((label, i) => this.labelButton(label, best && i === 0)));
  }

  labelButton(label, best = false) {
    return button(labelNode(label), {
      key: best ? "↵" : (this.keys.get(label) ?? null),
      class: best ? "choice best" : "choice",
      title: shownLabel(label).length > 40 ? shownLabel(label).slice(0, 500) : null,
      on: () => this.pick(label),
    });
  }

  focus() {
    (this.field ?? this.list.querySelector("button"))?.focus();
  }
}

/** A card that asks for a label or a number; the suggestion is hidden until requested. */
class RequestView extends View {
  commandButtons() {
    return [this.declineButtons(), ...super.commandButtons(), ...this.hintButton(), this.undoButton()];
  }

  /** One button in two parts: "don't know", and the reason. */
  declineButtons() {
    const arrow = drawn("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, drawn("path", { d: "M7 10l5 5 5-5" }));
    return element(
      "span",
      { class: "split" },
      button(text("decline"), { key: "d", class: "command", on: () => this.decline() }),
      button(arrow, { name: text("decline.why"), title: `${text("decline.why")} (D)`, class: "command", on: () => this.askWhyNot() }),
    );
  }

  askWhyNot() {
    this.open(
      "reasons",
      element("p", {}, text("decline.ask")),
      WHY_NOT.map((reason, i) =>
        button(text(`decline.${reason}`), { key: String(i + 1), class: "choice", on: () => this.declineBecause(reason) }),
      ),
    );
  }

  declineBecause(reason) {
    this.desk.answer({ action: "decline", why_not: reason });
  }

  undoButton() {
    this.undone = element("span", {});
    this.undoing = button(this.undone, { key: "u", class: "command undo", on: () => this.desk.undo() });
    this.renewUndo();
    return this.undoing;
  }

  /** Show on the button which answer it takes back, if there is one. */
  renewUndo() {
    const last = this.desk.past().find((one) => one.can_change);
    this.undoing.hidden = last === undefined;
    if (last === undefined) return;
    const label = (last.label ?? null) === null ? text("declined") : labelNode(last.label);
    this.undone.replaceChildren(...parts("undo", { label }));
  }

  /** Whether there is a suggestion, and it is still hidden. */
  get isHiding() {
    return (this.card.suggested ?? null) !== null && !this.state.shown.has("suggestion");
  }

  suggestion() {
    return this.state.shown.has("suggestion") ? element("p", { class: "suggestion", tabindex: "-1" }, suggestionOf(this.card)) : null;
  }

  hintButton() {
    return this.isHiding ? [button(text("hint"), { key: "h", class: "command", on: () => this.reveal() })] : [];
  }

  reveal() {
    if (!this.isHiding) return;
    this.state.shown.add("suggestion");
    this.reason.replaceChildren(...why(this.card, true));
    this.choose();
    // Its button is gone, and a screen reader says what has the focus.
    this.body.querySelector(".suggestion").focus();
  }

  press(key) {
    if (this.mode === "reasons" && "123".includes(key)) return this.taken(() => this.declineBecause(WHY_NOT[key - 1]));
    return super.press(key);
  }

  pressed(key) {
    if (key === "d") return this.taken(() => this.decline());
    if (key === "D") return this.taken(() => this.askWhyNot());
    if (key === "h") return this.taken(() => this.reveal());
    if (key === "u") return this.taken(() => this.desk.undo());
    return super.pressed(key);
  }
}

/** Asks for a label. */
class LabelView extends RequestView {
  choices() {
    const { card } = this;
    const { labels = [], labels_elsewhere: elsewhere = [] } = card;
    // No key answers with a label that only a search would show.
    this.keys = keysOf(card.key, [...labels, ...elsewhere.slice(0, MOST_ELSEWHERE)]);
    this.picker = new Picker(labels, {
      elsewhere,
      keys: this.keys,
      recent: labels.length > FEW ? recentLabels(card.key, labels) : [],
      pick: (label) => this.give(label),
      create: (written) => this.askNew(written),
      leave: () => this.question.focus(),
    });
    if (!this.isFirst) return [this.suggestion(), this.picker.node].filter(Boolean);
    return [element("p", { class: "first quiet" }, text("label.first")), this.newButton({ key: "n", class: "primary" })];
  }

  /** Whether there is no label to choose. */
  get isFirst() {
    return known(this.card).length === 0;
  }

  give(label) {
    this.reply({ action: "label", label });
  }

  commandButtons() {
    const add = this.isFirst ? [] : [this.newButton({ key: "n", class: "command" })];
    return [...add, ...super.commandButtons()];
  }

  pressed(key) {
    const label = [...this.keys].find(([, known]) => known === key);
    // A search may have hidden it.
    if (label !== undefined && this.picker.shown.includes(label[0])) return this.taken(() => this.give(label[0]));
    if (key === "n") return this.taken(() => this.askNew(""));
    if (key === "/" && this.picker.field !== null) return this.taken(() => this.picker.focus());
    return super.pressed(key);
  }
}

/** Return the suggested label as an element; a number without digits finer than its deviation. */
function suggestedNode({ suggested, std }, properties = {}) {
  const certain = typeof suggested === "number" && std ? Math.floor(Math.log10(Math.abs(suggested) / std)) + 3 : 12;
  return labelNode(certain < 12 && suggested ? Number(suggested.toPrecision(Math.max(1, certain))) : suggested, properties);
}

function suggestionOf(card) {
  const { suggested_share: share, std } = card;
  const label = suggestedNode(card);
  if (typeof std === "number") return parts("suggestion.number", { label, std: number(std, 3) });
  return typeof share === "number" ? parts("suggestion.share", { label, share: likelihood(share) }) : parts("suggestion", { label });
}

/** Fields for a number and its precision, and a slider if a range is given. */
class NumberForm {
  constructor(card, send) {
    this.card = card;
    this.send = send;
    // "Send": with several fields, the keyboard of a phone would otherwise go on to the next one.
    const typing = { type: "text", inputmode: "decimal", enterkeyhint: "send", autocomplete: "off" };
    this.value = element("input", { id: "value", ...typing, "aria-describedby": "unit number-said", class: "value" });
    this.std = element("input", { id: "std", ...typing, class: "std" });
    this.said = element("p", { id: "number-said", class: "said", role: "status" });
    const submit = (event) => {
      event.preventDefault();
      this.submit();
    };
    this.node = element(
      "form",
      { class: "number-form", on: { submit } },
      element("div", { class: "field" }, element("label", { for: "value" }, text("number.value")), element("span", { class: "with-unit" }, this.signButton(), this.value, card.unit ? element("bdi", { id: "unit", class: "unit" }, card.unit) : null)),
      element("div", { class: "field narrow" }, element("label", { for: "std" }, text("number.std")), element("span", { class: "with-unit" }, element("span", { class: "sign", "aria-hidden": "true" }, "±"), this.std)),
      this.slider(),
      this.said,
      element("button", { class: "primary" }, element("span", { class: "text" }, text("number.send")), element("kbd", { "aria-hidden": "true" }, "↵")),
    );
  }

  /** A button for the sign, which the number pads of some phones lack; not where no number is negative. */
  signButton() {
    if (this.card.range?.[0] >= 0) return null;
    const change = () => {
      const { value } = this.value;
      this.value.value = /^[-\u2212]/.test(value) ? value.slice(1) : `-${value}`;
      this.value.focus();
    };
    return button("+/\u2212", { name: text("number.sign"), class: "quiet by-touch", on: change });
  }

  slider() {
    if (!Array.isArray(this.card.range)) return null;
    const [low, high] = this.card.range;
    const step = (high - low) / 200;
    // One more than the steps have, which are often a quarter of something.
    const decimals = Math.min(100, Math.max(0, 1 + Math.ceil(-Math.log10(step))));
    const slider = element("input", { type: "range", id: "slider", min: low, max: high, step, value: (low + high) / 2, class: "unset", "aria-label": text("number.slider"), "aria-valuetext": text("number.unset") });
    const show = () => {
      slider.classList.remove("unset");
      slider.setAttribute("aria-valuetext", slider.value);
    };
    slider.addEventListener("input", () => {
      this.value.value = String(Number(Number(slider.value).toFixed(decimals))).replace(".", decimalSign());
      show();
    });
    this.value.addEventListener("input", () => {
      const typed = typedNumber(this.value.value);
      if (typed === null) return;
      slider.value = typed;
      show();
    });
    return element("div", { class: "slider" }, slider, element("span", { class: "ends" }, element("span", {}, shownValue(low, this.card.unit)), element("span", {}, shownValue(high, this.card.unit))));
  }

  /** Send the contents of the fields; `21.5 +- 0.5` in the first one fills both. */
  submit() {
    const [written, exactness] = this.value.value.split(/\+-|\u00b1|\+\/-/);
    const value = typedNumber(written);
    const typedStd = exactness ?? this.std.value;
    const std = typedStd.trim() === "" ? undefined : typedNumber(typedStd);
    if (value === null) this.complain(whyNoNumber(written), this.value);
    else if (std === null || std <= 0) this.complain(text("number.bad_std"), this.std);
    else this.send({ number: value, ...(std === undefined ? {} : { std }) });
  }

  /** Take over what was typed into another form. */
  takeOver({ value, std }) {
    [this.value.value, this.std.value] = [value.value, std.value];
    this.value.dispatchEvent(new Event("input")); // for the slider
  }

  complain(why, field) {
    this.said.textContent = why;
    field.focus();
  }
}

/** Asks for a number. */
class NumberView extends RequestView {
  choices() {
    const before = this.form;
    this.form = new NumberForm(this.card, (reply) => this.reply({ action: "number", ...reply }));
    // What was typed stays when a suggestion is shown, or a note is written.
    if (before !== undefined) this.form.takeOver(before);
    return [this.suggestion(), this.form.node].filter(Boolean);
  }

  pressed(key) {
    if (/^[-+.,0-9]$/.test(key)) {
      // The key itself is typed into the field, which has the focus by then.
      this.form.value.focus();
      return false;
    }
    return super.pressed(key);
  }
}

/** Asks to reconsider a label: different from a label request, with its own words and keys. */
class ChallengeView extends View {
  asks() {
    return text(this.card.why?.code === "doubtful_since" ? "ask.challenge.still" : "ask.challenge");
  }

  head() {
    const head = super.head();
    const { card } = this;
    const given = labelNode(card.given, { class: "label given" });
    const when = typeof card.given_at === "number" ? ago(card.given_at) : "";
    const by = card.given_by === null || card.given_by === undefined ? "event" : card.given_by === "you" ? "you" : "other";
    const name = element("bdi", {}, printable(card.given_by ?? ""));
    const said = element("p", { class: "said" }, parts(`challenge.said.${by}`, { label: given, name, when }), " ", this.speaksFor());
    this.reason.replaceWith(said);
    return head;
  }

  speaksFor() {
    const { card } = this;
    const label = suggestedNode(card, { class: "label suggested" });
    if (typeof card.std === "number") return parts("challenge.number", { label, std: number(card.std, 3) });
    if (typeof card.suggested_share !== "number") return parts("challenge.earlier", { label });
    // Below one half, "earlier examples were" would contradict the number beside it.
    const words = card.suggested_share < 0.5 ? "challenge.perhaps.share" : "challenge.earlier.share";
    return parts(words, { label, share: likelihood(card.suggested_share) });
  }

  get isOfNumbers() {
    return this.card.of_numbers ?? this.desk.me.of_numbers;
  }

  choices() {
    const { given, suggested } = this.card;
    const twoSides = element(
      "div",
      { class: "sides" },
      this.side("keep", labelNode(given), "k", () => this.reply({ action: "keep" })),
      this.side("change", suggestedNode(this.card), "c", () => this.reply({ action: "change", ...this.valued(suggested) })),
    );
    const others = element(
      "div",
      { class: "elsewise" },
      button(text(this.isOfNumbers ? "another.number" : "another"), { class: "choice other", on: () => this.askAnother() }),
      button(text("i_dont_know"), { class: "choice other", on: () => this.decline() }),
    );
    return [twoSides, others];
  }

  valued(value) {
    return this.isOfNumbers ? { number: value } : { label: value };
  }

  side(action, label, key, on) {
    return button(parts(action, { label }), { key, class: `choice side ${action}`, on });
  }

  askAnother() {
    const { given, suggested, labels = [], labels_elsewhere: elsewhere = [] } = this.card;
    if (this.isOfNumbers) {
      const form = new NumberForm(this.card, (reply) => this.reply({ action: "change", ...reply }));
      this.open("another", form.node);
      return;
    }
    const isOther = (label) => label !== given && label !== suggested;
    const picker = new Picker(labels.filter(isOther), {
      elsewhere: elsewhere.filter(isOther),
      pick: (label) => this.give(label),
      create: (written) => this.askNew(written),
      leave: () => this.leave(),
    });
    const none = picker.labels.length === 0 ? element("p", { class: "quiet" }, text("another.none")) : null;
    this.open("another", element("p", {}, text("another.ask")), none, picker.node, this.newButton({ class: "quiet" }));
  }

  give(label) {
    this.reply({ action: "change", label });
  }

  pressed(key) {
    if (key === "k") return this.taken(() => this.reply({ action: "keep" }));
    if (key === "c") return this.taken(() => this.reply({ action: "change", ...this.valued(this.card.suggested) }));
    return super.pressed(key);
  }
}
