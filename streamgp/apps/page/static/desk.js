/*
 * The annotator's side of the conversation: the current question, the next one, and the answers.
 *
 * This module knows no elements of the page: `told` is called with every change.
 */

import { get, now, pathOf, Refused, requestAs } from "./api.js";
import { noteRecent, withLabel } from "./labels.js";
import { Outbox } from "./outbox.js";
import { Stopwatch } from "./stopwatch.js";
import { whyRefused } from "./texts.js";

/** Milliseconds during which a card answered here is not shown as open again. */
const ANSWERED_MS = 30_000;
/** Milliseconds to wait for the server's choice of a card if others answer too. */
const TOGETHER_MS = 60;
const STALE_MS = 150;
/** Milliseconds in which an event may follow what a reply has already shown. */
const EVENT_MS = 400;
const READING_MS = 1000;
const RENEW_MS = 25_000;
const RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;
const SETTLED_MS = 700;
const MOST_PAST = 10;
/** Milliseconds between two requests for a reserve of cards, if few are left and otherwise. */
const RESERVE_MS = 10_000;
const FULL_RESERVE_MS = 60_000;
const FEW_LEFT = 4;
/** Milliseconds to wait for the next card before one of the reserve is shown. */
const PATIENCE_MS = 1500;

/**
 * The questions and answers of one annotator in one tab.
 *
 * `told` is called with the kind of a change and its details: `card` `{vanished, why, values}`, `wait` (for
 * the next card), `progress`, `history`, `connection`, `notice` `{name, values}`, `stranger`.
 */
export class Desk {
  // current   the current card; null if there is none
  // ahead     the next card, loaded but not leased
  // restPeriod why the annotator is not to be asked at the moment, and until when, by the preferences; or null
  // reading   number of records that a starting server has read so far, null once it is ready
  // progress  what the server has counted: questions waiting, answers today, ...
  // others    names of all annotators who have the page open
  // paused    whether the annotator has paused; only automatic requests respect it
  // isKnown   whether the server has said what is open since it was last unreachable; until then nothing is
  // #reserve  cards to go on with while the server cannot be reached; requested at #reservedAt
  // #leased   whether the server has leased us the current card, or we went on to it ourselves
  // #answered cards answered here, with the time on a monotonic clock: a reply in flight may still contain them
  // #local    answers that the server's history may not have yet, by id
  // #undone   ids of answers that were taken back, and whether the server has confirmed that
  // #states   what was shown with a card, and its flag, by id
  // #isStalled whether the previous card is still shown while the next one is loading; #details are
  //           the details of that change
  // #labels   the labels to choose from, by key, as on the key's last card or in the history since
  // #skips    number of skips that the server has confirmed
  current = null;
  ahead = null;
  restPeriod = null;
  reading = null;
  progress = {};
  others = [];
  online = true;
  paused = false;
  isKnown = false;
  #reserve = [];
  #reservedAt = -Infinity;
  #leased = false;
  #answered = new Map();
  #history = [];
  #local = new Map();
  #undone = new Map();
  #states = new Map();
  #labels = new Map();
  #isStalled = false;
  #details = {};
  #skips = 0;
  #refilling = false;
  #again = false;
  #outbox = null;
  #waiting = null;
  #historyTimer = null;
  #historyTurn = 0;
  #retryTimer = null;
  #staleTimer = null;
  #patienceTimer = null;
  #retryWait = RETRY_MS;

  constructor(me, told) {
    this.me = me;
    this.told = told;
    this.watch = new Stopwatch();
    requestAs(me.name);
  }

  async start() {
    this.#outbox = await Outbox.open(this.me.name, {
      told: (news) => this.#hear(news),
      reachable: (online) => this.reachable(online),
    });
    for (const entry of this.#outbox.pending) if (entry.kind === "answer") this.#keep(entry);
    this.told("history");
    this.#outbox.send();
    setInterval(() => {
      // If the annotator does not look at the card, leave it to others.
      if (!document.hidden && !this.paused) this.refill();
    }, RENEW_MS);
    await Promise.all([this.refill(), this.refreshHistory()]);
  }

  /** Number of answers waiting to be sent. */
  get unsent() {
    return this.#outbox === null ? 0 : this.#outbox.pending.filter((entry) => entry.kind !== "skip").length;
  }

  /** Whether answers would be lost if the page were closed now. */
  get wouldLose() {
    return this.unsent > 0 && !this.#outbox.isKept;
  }

  /** What was shown with the current card, and what is to be sent with its answer. */
  stateOf(card) {
    if (!this.#states.has(card.id)) {
      const shown = card.kind === "challenge" && (card.examples ?? []).length > 0 ? ["examples"] : [];
      this.#states.set(card.id, { shown: new Set(shown), flag: false, note: "" });
      if (this.#states.size > 100) this.#states.delete(this.#states.keys().next().value);
    }
    return this.#states.get(card.id);
  }

  // --- actions of the annotator

  /** Answer the current card, and go on. */
  async answer(reply, touched = {}) {
    const card = this.current;
    if (card === null) return;
    this.current = null;
    const state = this.stateOf(card);
    const body = { card: card.id, ...reply, ...touched };
    if (this.me.notes_response_time) body.response_s = this.watch.seconds(card.id);
    if (state.shown.size > 0) body.shown = [...state.shown];
    if (state.flag) body.flag = true;
    if (state.note !== "") body.note = state.note;
    this.watch.stop(card.id);
    this.#leave(card);
    // Before the answer is written, while a reply of the server may already bring the next card.
    const label = labelOf(reply, card);
    if (label !== null && card.kind !== "number") {
      noteRecent(card.key, label);
      // The next cards were loaded before the label existed.
      if (this.ahead !== null) this.ahead = cardWithLabel(this.ahead, label, card.key);
      this.#reserve = this.#reserve.map((one) => cardWithLabel(one, label, card.key));
    }
    const entry = await this.#outbox.add("answer", body, card);
    this.#keep(entry);
    this.told("history");
    this.#refreshHistoryLater();
    if (this.others.length > 0 && this.online) await this.#confirmed(entry.id);
    if (this.current === null) this.#advance();
  }

  /** Move the current card behind all others. */
  async skip() {
    const card = this.current;
    if (card === null) return;
    this.current = null;
    this.#leave(card);
    await this.#outbox.add("skip", { card: card.id }, card);
    if (this.current === null) this.#advance();
  }

  /** Take back an answer, by default the last one. */
  async undo(id = null) {
    const found = id === null ? this.past().find((one) => one.can_change) : { answer_id: id };
    if (found === undefined) {
      this.told("notice", { name: "undo.nothing" });
      return;
    }
    // Before anything is written: a second press takes back the answer before.
    this.#undone.set(found.answer_id, false);
    this.told("history");
    const waiting = this.#outbox.pending.find((entry) => entry.id === found.answer_id);
    if (waiting !== undefined && (await this.#outbox.withdraw(waiting.id))) {
      this.#open(waiting.card);
      return;
    }
    await this.#outbox.add("undo", { answer_id: found.answer_id });
  }

  /** Change the label of an answered event. */
  async revise(id, reply) {
    await this.#outbox.add("revise", { answer_id: id, reply });
  }

  /** Rename a label, or merge it into another. */
  rename(key, old, label) {
    return this.#outbox.add("rename", { key, old, new: label });
  }

  /** The last answers, the newest first. */
  past() {
    const known = new Set(this.#history.map((one) => one.answer_id));
    const local = [...this.#local.values()].filter((one) => !known.has(one.answer_id)).reverse();
    const unsent = new Set(this.#outbox === null ? [] : this.#outbox.pending.map((entry) => entry.id));
    return [...local, ...this.#history]
      .filter((one) => !this.#undone.has(one.answer_id))
      .slice(0, MOST_PAST)
      .map((one) => ({ ...one, labels: this.#labels.get(one.key) ?? [], unsent: unsent.has(one.answer_id) }));
  }

  /** One of them as it is now. */
  pastOf(one) {
    return this.past().find((other) => other.answer_id === one.answer_id) ?? one;
  }

  // --- messages of the server

  /** Request the next card, and renew the lease of the current one. */
  async refill() {
    if (this.#refilling) {
      this.#again = true;
      return;
    }
    this.#refilling = true;
    do {
      this.#again = false;
      await this.#guarded(async () => {
        const skips = this.#skips;
        const reply = await get("/api/next");
        this.reachable(true);
        // In a reply from before a skip, the skipped card is still the next one.
        if (skips !== this.#skips) this.#again = true;
        else await this.#take(reply, reply.card);
      });
    } while (this.#again);
    this.#refilling = false;
  }

  /** Handle an event of the server's stream. */
  hear(kind, data) {
    if (kind === "gone" && data?.id !== undefined) this.#gone(data.id, whyGone(data), data);
    else if (kind === "card") this.refill();
    else if (kind === "progress" && data !== null) this.#progress(data);
    else if (kind === "others" && Array.isArray(data)) {
      this.others = data;
      this.told("progress");
    }
  }

  /** Record whether the server answers. */
  reachable(online) {
    const was = this.online;
    this.online = online;
    clearTimeout(this.#retryTimer);
    if (!online) {
      this.isKnown = false;
      this.#retryTimer = setTimeout(() => this.refill(), this.#retryWait);
      this.#retryWait = Math.min(2 * this.#retryWait, LONGEST_RETRY_MS);
    }
    if (was === online) return;
    this.#retryWait = RETRY_MS;
    if (!online && this.#isStalled) this.#showReserve();
    this.told("connection");
    if (online) {
      this.#outbox?.send();
      this.refill();
      this.#refreshHistoryLater();
    }
  }

  /** Retry now: the network is back, or the page is visible again. */
  wake() {
    this.#outbox?.send();
    this.refill();
  }

  async refreshHistory() {
    await this.#guarded(async () => {
      const pending = new Set(this.#outbox.pending.map((entry) => entry.id));
      // What is answered or changed while the request is under way is not in its reply.
      const known = [...this.#local.keys()].filter((id) => !pending.has(id));
      const undone = [...this.#undone.keys()].filter((id) => this.#undone.get(id));
      const turn = (this.#historyTurn += 1);
      const { history } = await get("/api/history");
      if (turn !== this.#historyTurn) return; // a later request knows more
      this.#history = history ?? [];
      for (const one of this.#history) this.#labels.set(one.key, one.labels);
      for (const id of known) this.#local.delete(id);
      // "Don't know" once more is the same answer, which stands again.
      const standing = new Set(this.#history.map((one) => one.answer_id));
      for (const id of undone) if (standing.has(id)) this.#undone.delete(id);
      this.told("history");
    });
  }

  // --- internal

  #refreshHistoryLater() {
    clearTimeout(this.#historyTimer);
    this.#historyTimer = setTimeout(() => this.refreshHistory(), SETTLED_MS);
  }

  async #guarded(task) {
    try {
      await task();
    } catch (error) {
      if (error instanceof Refused && error.isStranger) this.told("stranger", error);
      else this.reachable(false);
    }
  }

  /** Keep an answer for the history until the server has it. */
  #keep(entry) {
    const { card, body } = entry;
    // After a reload without a network, nothing else says what there is to choose from.
    if (!this.#labels.has(card.key)) this.#labels.set(card.key, card.labels ?? []);
    this.#local.set(entry.id, past(entry, labelOf(body, card)));
  }

  async #refillReserve() {
    await this.#guarded(async () => {
      this.#reservedAt = performance.now();
      const { cards = [] } = await get("/api/reserve");
      // Answered here in the meantime: the reply is older.
      this.#reserve = cards.filter((card) => this.#isOpen(card));
    });
  }

  /** Show a card of the reserve, if there is one. */
  #showReserve(details = this.#details) {
    const card = this.#reserve.find((one) => this.#isOpen(one) && one.id !== this.current?.id) ?? null;
    this.#show(card, false, details);
  }

  /** Record that a card has been dealt with here. */
  #leave(card) {
    this.#reserve = this.#reserve.filter((one) => one.id !== card.id);
    this.#answered.set(card.id, performance.now());
    if (this.#answered.size > 500) this.#answered.delete(this.#answered.keys().next().value);
  }

  #isOpen(card) {
    const at = this.#answered.get(card.id);
    const isDone = at !== undefined && performance.now() - at < ANSWERED_MS;
    // Whether a question has expired is for the server to say, as long as it can.
    const isExpired = !this.online && secondsLeft(card) <= 0;
    return !isDone && !isExpired && !this.#outbox.cards.has(card.id);
  }

  #advance() {
    const next = this.ahead !== null && this.#isOpen(this.ahead) ? this.ahead : null;
    this.ahead = null;
    if (next !== null) this.#show(next, false);
    else {
      this.#stall();
      this.refill();
    }
  }

  #show(card, leased, details = {}) {
    this.current = card;
    this.#isStalled = false;
    this.#details = {};
    this.#leased = leased;
    if (card?.labels?.length > 0) this.#labels.set(card.key, card.labels);
    this.told("card", details);
  }

  /** Show a reopened card; the current one comes after it. */
  #open(card, details = {}) {
    this.#answered.delete(card.id);
    if (this.current !== null) {
      if (this.current.id === card.id) return;
      this.ahead = this.current;
    }
    this.#show(card, true, details);
  }

  async #take(reply, next) {
    const offered = [next, reply.ahead].filter((card) => card && this.#isOpen(card));
    // Answered here in the meantime: the reply is older.
    const isOlder = this.current === null && next && offered.length === 0;
    this.isKnown = !isOlder;
    this.restPeriod = reply.pause ?? null;
    this.reading = reply.reading ?? null;
    if (this.reading !== null) setTimeout(() => this.refill(), READING_MS);
    if (reply.progress) this.#progress(reply.progress);
    if (isOlder) {
      clearTimeout(this.#staleTimer);
      this.#staleTimer = setTimeout(() => this.refill(), STALE_MS);
    } else if (this.current === null) {
      const [card = null] = offered;
      this.#show(card, card !== null && card.id === next?.id, this.#details);
    } else if (next && next.id === this.current.id) {
      this.#leased = true;
      // A label was renamed or added, by another annotator or after this card was requested.
      if (choices(next) !== choices(this.current) && !this.touched?.()) this.#show(next, true);
    } else if (next && this.#isOpen(next) && !this.#leased && !this.touched?.() && this.#goesFirst(next)) {
      this.#show(next, true, { vanished: true, why: next.kind === "challenge" ? "challenge" : "other" });
    } else {
      await this.#check(this.current);
    }
    this.ahead = offered.find((card) => card.id !== this.current?.id) ?? null;
    const wait = this.#reserve.length > FEW_LEFT ? FULL_RESERVE_MS : RESERVE_MS;
    if (performance.now() - this.#reservedAt > wait) this.#refillReserve();
  }

  /** Whether a card replaces the current one: a challenge, or what is ours if others may have got the current one. */
  #goesFirst(card) {
    return card.kind === "challenge" || this.others.length > 0;
  }

  /** Remove a card that is no longer open, although no event has said so. */
  async #check(card) {
    try {
      await get(pathOf("card", card.id));
    } catch (error) {
      if (!(error instanceof Refused && [404, 409, 410].includes(error.status))) return;
      // The event, if there is one, says why.
      setTimeout(() => this.#gone(card.id, "gone"), EVENT_MS);
    }
  }

  #gone(id, why, values = {}) {
    this.#reserve = this.#reserve.filter((one) => one.id !== id);
    if (this.ahead?.id === id) {
      this.ahead = null;
      this.refill();
    }
    if (this.current?.id !== id) return;
    this.current = null;
    const next = this.ahead;
    this.ahead = null;
    if (next !== null) this.#show(next, false, { vanished: true, why, values });
    else this.#stall({ vanished: true, why, values });
    this.refill();
  }

  /** Keep showing the previous card until the server has said whether there is another one. */
  #stall(details = {}) {
    this.#details = details;
    if (!this.online) {
      this.#showReserve();
      return;
    }
    this.#isStalled = true;
    this.told("wait");
    clearTimeout(this.#patienceTimer);
    this.#patienceTimer = setTimeout(() => {
      if (this.#isStalled && this.#reserve.length > 0) this.#showReserve();
    }, PATIENCE_MS);
  }

  #progress(progress) {
    this.progress = { ...this.progress, ...progress };
    this.told("progress");
  }

  /** Wait a little until the server has accepted an answer. */
  #confirmed(id) {
    return new Promise((resolve) => {
      this.#waiting = { id, resolve };
      setTimeout(resolve, TOGETHER_MS);
    });
  }

  async #hear(news) {
    const { type, entry, here } = news;
    if (type === "stranger") {
      this.told("stranger", news.error);
      return;
    }
    if (!here) this.#hearOther(news);
    if (type === "sent") await this.#sent(entry, news.reply);
    if (type === "refused") this.#refused(entry, news.error);
    if (type === "withdrawn") {
      this.#local.delete(entry.id);
      this.told("history");
    }
    this.told("connection");
  }

  /** Record what another tab of this annotator has done. */
  #hearOther({ type, entry }) {
    if (type === "queued" && entry.kind === "answer") {
      this.#leave(entry.card);
      this.#gone(entry.card.id, "elsewhere");
    }
    if (type === "withdrawn") this.#answered.delete(entry.card.id);
    this.#refreshHistoryLater();
  }

  async #sent(entry, reply) {
    if (entry.kind === "skip") {
      this.#answered.delete(entry.card.id);
      this.#skips += 1;
    }
    if (reply === null || reply === undefined) {
      this.refill();
      return;
    }
    if (entry.kind === "undo") this.#undone.set(entry.body.answer_id, true);
    // Answers are kept here; of what has changed them, only the server's history tells.
    if (["undo", "revise", "rename"].includes(entry.kind)) this.#refreshHistoryLater();
    if (entry.kind === "undo" && reply.next) {
      this.#open(reply.next);
      return;
    }
    if (entry.kind === "revise") this.told("notice", { name: "revise.done" });
    if (entry.kind === "rename") this.told("notice", { name: reply.changed ? "rename.done" : "rename.none" });
    if ("next" in reply) await this.#take(reply, reply.next);
    if (this.#waiting?.id === entry.id) this.#waiting.resolve();
  }

  #refused(entry, refusal) {
    const { card, kind } = entry;
    if (kind === "undo") this.#undone.delete(entry.body.answer_id);
    this.#local.delete(entry.id);
    this.told("history");
    if (kind === "answer" && refusal.status !== 409) {
      // The card still waits: it comes back, unless the next one is being answered.
      if (this.touched?.()) this.#answered.delete(card.id);
      else this.#open(card, { vanished: true });
    }
    const isLate = refusal.status === 409 && kind === "answer" && refusal.error !== "different_body";
    this.told("notice", isLate ? { name: "late" } : { name: `refused.${kind}`, values: { why: whyRefused(refusal) } });
    this.refill();
  }
}

/** Return for how many seconds the question of a card remains open. */
export function secondsLeft({ expires_at: at, supersedes }) {
  return at === null || at === undefined || supersedes ? Infinity : at - now();
}

/** Return the name of the text about a card that is gone: its question was settled or withdrawn. */
const whyGone = ({ why, code }) => (code === undefined ? (why === undefined ? "gone" : "cancelled") : `cancelled.${code}`);

/** Return the labels to choose from on a card as text, for comparison. */
const choices = ({ labels, labels_elsewhere: elsewhere }) => JSON.stringify([labels, elsewhere]);

/** Return a card with one more label to choose from, which was given for an event of `key`. */
function cardWithLabel(card, label, key) {
  const { labels: here = [], labels_elsewhere: elsewhere = [] } = card;
  if (key !== card.key) return here.includes(label) ? card : { ...card, labels_elsewhere: withLabel(elsewhere, label) };
  const labels = withLabel(here, label);
  return { ...card, labels, labels_elsewhere: elsewhere.filter((one) => !labels.includes(one)) };
}

/** Return the label or number of a reply, null for none. */
function labelOf(reply, card) {
  if (reply.action === "keep") return card.given;
  if (reply.action === "change") return reply.label ?? reply.number ?? card.suggested;
  return reply.label ?? reply.number ?? null;
}

/** Return an answer as shown in the history. */
function past(entry, label) {
  return {
    answer_id: entry.id,
    card_id: entry.card.id,
    event_id: entry.card.event_id,
    key: entry.card.key,
    kind: entry.card.kind,
    label,
    at: entry.at,
    can_change: true,
    why_not: null,
  };
}
