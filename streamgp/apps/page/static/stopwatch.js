/* Response times: how long a question was in front of the annotator, and the page with it. */

const MOST_KEPT = 1000;

/** Measures how long each question is shown; it stands still while the page is hidden. */
export class Stopwatch {
  #spent = new Map();
  #front = null;
  #lookedAt = performance.now();
  #stands = document.hidden;

  constructor() {
    const look = () => {
      this.#count();
      this.#stands = document.hidden;
    };
    document.addEventListener("visibilitychange", look);
    // A computer that sleeps may count on: no annotator looks at a page longer than its last sign of life.
    setInterval(() => this.#count(), 1000);
  }

  /** Take note of the question that is shown from now on; null for none. */
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
    // The look is taken once a second; far more than that is a time in which the page was asleep.
    if (this.#front === null || this.#stands || passed > 5000) return;
    const spent = this.#spent.get(this.#front) ?? 0;
    this.#spent.delete(this.#front);
    this.#spent.set(this.#front, spent + passed);
    if (this.#spent.size > MOST_KEPT) this.#spent.delete(this.#spent.keys().next().value);
  }
}
