/* Service worker: caches the page's files for use without a network. API responses are never cached. */

const SHELL = "streamgp-shell-1";
const PAGE_PATIENCE_MS = 3000;
// A file that comes slowly is better than one of another version.
const FILE_PATIENCE_MS = 15_000;
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
  if (event.request.method === "GET" && isShell) event.respondWith(shell(event));
});

// Pages that come from the cache, by client: their files do, too, as those of the server may be of another version.
const cached = new Set();

/** Return a file: of the server, or of the cache for a page that did not arrive in time. */
async function shell({ request, clientId, resultingClientId }) {
  const isPage = request.mode === "navigate";
  const kept = () => caches.match(request, { cacheName: SHELL, ignoreSearch: true });
  if (!isPage && cached.has(clientId)) return (await kept()) ?? fetch(request);
  try {
    return await fresh(request, isPage ? PAGE_PATIENCE_MS : FILE_PATIENCE_MS);
  } catch (error) {
    const answer = await kept();
    if (answer === undefined) throw error;
    if (isPage) cached.add(resultingClientId);
    return answer;
  }
}

/** Return the server's file, and cache it. */
async function fresh(request, patience) {
  const answer = await fetch(request, { signal: AbortSignal.timeout(patience) });
  // If the server is down, its proxy may answer instead.
  if (answer.status >= 500) throw new Error(`status ${answer.status}`);
  if (!answer.ok || answer.redirected) return answer;
  const whole = await answer.blob();
  const copy = () => new Response(whole, answer);
  // A full disk takes nothing away from the page.
  await caches.open(SHELL).then((cache) => cache.put(request, copy())).catch(() => {});
  return copy();
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
