/* Service worker: caches the page's files for use without a network. API responses are never cached. */

const SHELL = "streamgp-shell-1";
const PATIENCE_MS = 3000;
const FILES = [
  "/",
  "/manifest.webmanifest",
  ...[
    "api.js", "app.js", "cards.js", "charts.js", "desk.js", "dialogs.js", "dom.js", "icon.svg", "labels.js",
    "outbox.js", "panels.js", "stopwatch.js", "style.css", "texts.js", "texts/de.json", "texts/en.json",
  ].map((name) => `/static/${name}`),
];

self.addEventListener("install", (event) => {
  event.waitUntil(
    (async () => {
      const cache = await caches.open(SHELL);
      await cache.addAll(FILES.map((path) => new Request(path, { cache: "no-cache" })));
      await self.skipWaiting();
    })(),
  );
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) if (name !== SHELL) await caches.delete(name);
      await self.clients.claim();
    })(),
  );
});

self.addEventListener("fetch", (event) => {
  const address = new URL(event.request.url);
  const isShell = address.origin === self.location.origin && FILES.includes(address.pathname);
  if (event.request.method === "GET" && isShell) event.respondWith(fresh(event.request));
});

/** Return the server's file, or the cached one if it does not arrive in time. */
async function fresh(request) {
  const cache = await caches.open(SHELL);
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(PATIENCE_MS) });
    // If the server is down, its proxy may answer instead.
    if (answer.status >= 500) throw new Error(`status ${answer.status}`);
    if (answer.ok && !answer.redirected) await cache.put(request, answer.clone());
    return answer;
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true });
    if (kept === undefined) throw error;
    return kept;
  }
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(
    (async () => {
      const [page] = await self.clients.matchAll({ type: "window" });
      await (page === undefined ? self.clients.openWindow("/") : page.focus());
    })(),
  );
});
