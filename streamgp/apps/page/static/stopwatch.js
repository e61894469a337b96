/* Response times: how long a question was shown while the page was visible. */

const MOST_KEPT = 1000;

/** Measures how long each question is shown; stopped while the page is hidden. */
export class Stopwatch {
  #spent = new Map();
  #front = null;
  #lookedAt = performance.now();
  #isHidden = document.hidden;

  constructor() {
    const look = () => {
      this.#count();
      this.#isHidden = document.hidden;
    };
    document.addEventListener("visibilitychange", look);
    // The clock of a sleeping computer may go on, but no one looks at the page then.
    setInterval(() => this.#count(), 1000);
  }

  /** Record the question that is shown from now on; null for none. */
  look(id) {
    this.#count();
    this.#front = id;
  }

  /** Return how long a question was shown, in seconds. */
  seconds(id) {
    this.#count();
    return Math.round(this.#spent.get(id) ?? 0) / 1000;
  }

  /** Forget a question: it is answered. */
  stop(id) {
    this.#spent.delete(id);
    if (this.#front === id) this.#front = null;
  }

  #count() {
    const now = performance.now();
    const passed = now - this.#lookedAt;
    this.#lookedAt = now;
    // This runs once a second; a much longer interval means that the page was suspended.
    if (this.#front === null || this.#isHidden || passed > 5000) return;
    const spent = this.#spent.get(this.#front) ?? 0;
    this.#spent.delete(this.#front);
    this.#spent.set(this.#front, spent + passed);
    if (this.#spent.size > MOST_KEPT) this.#spent.delete(this.#spent.keys().next().value);
  }
}
