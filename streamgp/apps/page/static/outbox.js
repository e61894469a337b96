/*
 * Outbox: the annotator's replies that the server has not confirmed, as a queue in IndexedDB.
 *
 * An entry is written before the next question is shown, and removed when the server has confirmed
 * it. Its id is chosen here, so that sending it twice is harmless. All tabs share one queue; one of
 * them sends at a time, in order, and tells the others.
 */

import { newId, remember, remembered } from "./dom.js";
import { now, pathOf, post, Refused, Unreachable } from "./api.js";

const DATABASE = "streamgp";
const ENTRIES = "outbox";
const LOCK = "streamgp.outbox";
const LOCK_S = 20;
const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 10_000;

const promised = (asked) =>
  new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });

const finished = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });

/** The entries, in the order of their creation. */
class Entries {
  static async open() {
    const asked = indexedDB.open(DATABASE, 1);
    asked.onupgradeneeded = () =>
      asked.result.createObjectStore(ENTRIES, { keyPath: "n", autoIncrement: true });
    const entries = new Entries();
    entries.database = await promised(asked);
    return entries;
  }

  /** Run a function in one transaction, and return its result once it is committed. */
  async change(task) {
    const transaction = this.database.transaction(ENTRIES, "readwrite");
    const [result] = await Promise.all([task(transaction.objectStore(ENTRIES)), finished(transaction)]);
    return result;
  }

  add(entry) {
    return this.change((store) => promised(store.add(entry)));
  }

  all() {
    const store = this.database.transaction(ENTRIES, "readonly").objectStore(ENTRIES);
    return promised(store.getAll());
  }

  remove(n) {
    return this.change((store) => promised(store.delete(n)));
  }
}

/** Entries of a browser without storage, as in some private windows: they last as long as the page. */
class Unkept {
  #entries;
  #last;

  constructor(entries = []) {
    this.#entries = new Map(entries.map((entry) => [entry.n, entry]));
    this.#last = Math.max(0, ...this.#entries.keys());
  }

  async add(entry) {
    this.#last += 1;
    this.#entries.set(this.#last, { ...entry, n: this.#last });
    return this.#last;
  }

  async all() {
    return [...this.#entries.values()];
  }

  async remove(n) {
    this.#entries.delete(n);
  }

  async change(task) {
    const requested = (result) => {
      const asked = {};
      queueMicrotask(() => {
        asked.result = result;
        asked.onsuccess();
      });
      return asked;
    };
    return task({
      get: (n) => requested(this.#entries.get(n)),
      put: (entry) => requested(this.#entries.set(entry.n, entry)),
      delete: (n) => requested(this.#entries.delete(n)),
    });
  }
}

/** Whether the tabs have locks: browsers have them only on HTTPS and localhost, and not where cookies are blocked. */
const haveLocks = (async () => navigator.locks?.query())().then(Boolean, () => false);

/**
 * Run a task in one tab at a time.
 *
 * Without locks, a note in the tabs' shared storage replaces them. It is no real lock, and need not
 * be: an entry that two tabs send counts once.
 */
async function exclusively(task) {
  if (await haveLocks) return navigator.locks.request(LOCK, task);
  const own = newId();
  for (;;) {
    const holder = remembered(LOCK, null);
    // No end is that far ahead, unless the clock was set back since.
    if (holder === null || holder.until < Date.now() || holder.until > Date.now() + 1000 * LOCK_S) {
      remember(LOCK, { own, until: Date.now() + 1000 * LOCK_S });
      if (remembered(LOCK, { own }).own === own) break;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  try {
    return await task();
  } finally {
    remember(LOCK, null);
  }
}

/** Return the request of an entry: its path and body. */
function requestOf(entry) {
  const { kind, body } = entry;
  if (kind === "answer") return ["/api/answers", { ...body, answer_id: entry.id }];
  if (kind === "skip") return ["/api/skip", body];
  if (kind === "rename") return ["/api/labels/rename", body];
  return [pathOf("answers", body.answer_id, kind), kind === "revise" ? body.reply : {}];
}

/**
 * The queue and its sender.
 *
 * `told` is called with what happens, in this tab or in another: `{type, entry, reply, error}`,
 * type one of queued, sent, refused, withdrawn. `reachable` is called with whether the server
 * answers.
 */
export class Outbox {
  #entries;
  #tabs = null;
  #running = false;
  #again = false;
  #timer = null;
  #wait = FIRST_WAIT_MS;

  constructor(entries, annotator, { told, reachable }) {
    this.#entries = entries;
    this.annotator = annotator;
    this.told = told;
    this.reachable = reachable;
    this.pending = [];
    try {
      this.#tabs = new BroadcastChannel(LOCK);
    } catch {
      /* Firefox has none where cookies are blocked: other tabs hear of an answer from the server. */
    }
    if (this.#tabs !== null) {
      this.#tabs.onmessage = async ({ data }) => {
        if (data.entry.annotator !== this.annotator) return;
        await this.#look();
        this.told({ ...data, here: false });
      };
    }
  }

  static async open(annotator, listeners) {
    const entries = await Entries.open().catch(() => new Unkept());
    const outbox = new Outbox(entries, annotator, listeners);
    await outbox.#look();
    return outbox;
  }

  /** Whether entries outlast the page. */
  get isKept() {
    return this.#entries instanceof Entries;
  }

  /** Cards that were answered or skipped here and must not be shown again. */
  get cards() {
    return new Set(this.pending.map((entry) => entry.card?.id).filter(Boolean));
  }

  /** Queue a reply of the annotator; returns the entry once it is written. */
  async add(kind, body, card = null) {
    const entry = {
      id: newId(),
      annotator: this.annotator,
      kind,
      body,
      card,
      at: now(),
      tries: 0,
    };
    entry.n = await this.#stored((entries) => entries.add(entry));
    this.pending.push(entry);
    this.#tell({ type: "queued", entry });
    this.send();
    return entry;
  }

  /** Take back an answer that was never sent; returns whether it could be. */
  async withdraw(id) {
    const entry = this.pending.find((one) => one.id === id);
    if (entry === undefined) return false;
    const withdrawn = await this.#change(async (store) => {
      const found = await promised(store.get(entry.n));
      if (found === undefined || found.tries > 0) return false;
      await promised(store.delete(entry.n));
      return true;
    });
    if (withdrawn) {
      await this.#look();
      this.#tell({ type: "withdrawn", entry });
    }
    return withdrawn;
  }

  /** Send waiting entries now. */
  send() {
    clearTimeout(this.#timer);
    if (this.#running) {
      this.#again = true;
      return;
    }
    this.#running = true;
    this.#sendAll();
  }

  async #sendAll() {
    let wait = null;
    do {
      this.#again = false;
      wait = await exclusively(() => this.#drain());
    } while (this.#again && wait === null);
    this.#running = false;
    if (wait !== null) {
      // Spread out a little, as many pages come back at the same time.
      this.#timer = setTimeout(() => this.send(), wait * (0.75 + Math.random() / 2));
    }
  }

  /** Send until nothing is waiting; returns how long to wait before a retry, null if none is needed. */
  async #drain() {
    for (;;) {
      await this.#look();
      const [entry] = this.pending;
      if (entry === undefined) return null;
      try {
        const reply = await this.#attempt(entry);
        if (reply !== null) await this.#finish({ type: "sent", entry, reply });
        this.#wait = FIRST_WAIT_MS;
      } catch (error) {
        const wait = await this.#failed(entry, error);
        if (wait !== null) return wait;
      }
    }
  }

  /** Send an entry, unless it was withdrawn in the meantime. */
  async #attempt(entry) {
    const tried = await this.#change(async (store) => {
      const found = await promised(store.get(entry.n));
      if (found === undefined) return false;
      await promised(store.put({ ...found, tries: found.tries + 1 }));
      return true;
    });
    return tried ? post(...requestOf(entry)) : null;
  }

  async #failed(entry, error) {
    if (error instanceof Unreachable) {
      this.reachable(false);
      this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT_MS);
      return error.afterS === null ? this.#wait : 1000 * error.afterS;
    }
    if (!(error instanceof Refused)) throw error;
    if (error.isStranger) {
      // Kept: it is sent once this annotator has access again.
      this.told({ type: "stranger", entry, error, here: true });
      return LONGEST_WAIT_MS;
    }
    const { status, error: code, reason } = error;
    await this.#finish({ type: "refused", entry, error: { status, error: code, reason } });
    return null;
  }

  async #finish(news) {
    // Before the news: what the page shows next depends on whether the server answers.
    this.reachable(true);
    // Report it before removing it, as the next card is waiting; if it is not removed, it is sent again.
    this.pending = this.pending.filter((entry) => entry.n !== news.entry.n);
    this.told({ ...news, here: true });
    await this.#stored((entries) => entries.remove(news.entry.n));
    await this.#look();
    this.#tellTabs(news);
  }

  #tell(news) {
    this.#tellTabs(news);
    this.told({ ...news, here: true });
  }

  #tellTabs(news) {
    this.#tabs?.postMessage({ ...news, reply: null });
  }

  async #look() {
    const all = await this.#stored((entries) => entries.all());
    this.pending = all.filter((entry) => entry.annotator === this.annotator);
  }

  #change(task) {
    return this.#stored((entries) => entries.change(task));
  }

  /** Run a task on the entries; where the browser stores none any more, on those that are known here. */
  async #stored(task) {
    const entries = this.#entries;
    try {
      return await task(entries);
    } catch (error) {
      if (entries instanceof Unkept) throw error;
      // The disk is full, or the data of the page were cleared while it was open.
      if (this.#entries === entries) this.#entries = new Unkept(this.pending);
      return task(this.#entries);
    }
  }
}
