/* Requests to the page's server. */

const PATIENCE_MS = 15_000;
/** Seconds by which clocks may seem to differ because replies take their time. */
const SAME_S = 30;

// Seconds by which this clock is ahead of the server's, by its last reply.
let ahead = 0;

/** Return the time by the server's clock, POSIX seconds: that of a phone or laptop may be hours off. */
export const now = () => Date.now() / 1000 - ahead;

/** A request without the wished reply; `reason` says more than `error` where it is given. */
class Failed extends Error {
  constructor(status, { error = `status ${status}`, reason = null, what = "" } = {}) {
    super(what || error);
    this.status = status;
    this.error = error;
    this.reason = reason;
  }
}

/** The server cannot be reached, or cannot answer at the moment: worth a retry later. */
export class Unreachable extends Failed {
  constructor(status, reply, afterS = null) {
    super(status, reply);
    this.afterS = afterS;
  }
}

/** The server has refused a request, and would refuse it again. */
export class Refused extends Failed {
  /** Whether the invite is not, or no longer, valid for this page, or belongs to another annotator. */
  get isStranger() {
    return this.status === 401 || this.error === "other_person";
  }
}

let name = null;

/** Send this name with every request: the server refuses answers that another person left behind. */
export function requestAs(annotator) {
  name = annotator;
}

/** Send a request and return the decoded reply. */
export async function request(method, path, body = undefined) {
  const headers = { Accept: "application/json", "X-Streamgp": "1" };
  if (name !== null) headers["X-Streamgp-As"] = encodeURIComponent(name);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await reached(path, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
    credentials: "same-origin",
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const found = (Date.now() - Date.parse(answer.headers.get("Date"))) / 1000;
  // A proxy that does not reach the server may send no date.
  if (!Number.isNaN(found)) ahead = Math.abs(found) > SAME_S ? found : 0;
  const reply = await decoded(answer);
  if (answer.ok) return reply;
  // Also of a proxy, which would refuse as much again.
  if (answer.status === 413) throw new Refused(413, { error: "too_large" });
  // Without `error` it is not our server that replied, but a proxy that does not reach it at the moment.
  const isOurs = typeof reply?.error === "string";
  if (!isOurs || answer.status === 429 || answer.status === 408 || answer.status >= 500) {
    const after = Number(answer.headers.get("Retry-After"));
    throw new Unreachable(answer.status, isOurs ? reply : { error: "unreachable" }, after || null);
  }
  throw new Refused(answer.status, reply ?? {});
}

async function reached(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    throw new Unreachable(0, { error: "unreachable", what: String(error) });
  }
}

async function decoded(answer) {
  try {
    return await answer.json();
  } catch (error) {
    // A truncated reply is useless, and a proxy's error page is not JSON.
    if (answer.ok) throw new Unreachable(0, { error: "unreachable", what: String(error) });
    return null;
  }
}

export const get = (path) => request("GET", path);
export const post = (path, body) => request("POST", path, body);
export const put = (path, body) => request("PUT", path, body);

/** Return a path with its parts percent-encoded. */
export const pathOf = (...names) => `/api/${names.map(encodeURIComponent).join("/")}`;

/**
 * Listen to the server's events, and reconnect after every interruption.
 *
 * `take` is called with the kind of an event and its data, `changed` with whether the server is
 * reachable. Returns a function that stops listening.
 */
export function listen(kinds, take, changed) {
  let source = null;
  let timer = null;
  let wait = 1000;
  const open = () => {
    source = new EventSource("/api/stream");
    source.onopen = () => {
      wait = 1000;
      changed(true);
    };
    source.onerror = () => {
      changed(false);
      // The browser itself reconnects after an interruption, but not after a refusal.
      if (source.readyState === EventSource.CLOSED) {
        timer = setTimeout(open, wait);
        wait = Math.min(2 * wait, 30_000);
      }
    };
    for (const kind of kinds) {
      source.addEventListener(kind, (event) => take(kind, data(event.data)));
    }
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
  };
}

function data(received) {
  try {
    return JSON.parse(received);
  } catch {
    return null;
  }
}
