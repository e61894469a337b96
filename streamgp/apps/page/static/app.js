/* Entry point of the page: connects the desk, the current card and its surroundings, and handles keys. */

import { get, listen, now, put, Refused } from "./api.js";
import { cardView } from "./cards.js";
import { Desk } from "./desk.js";
import { changeAnswer, isDialogOpen, ownZone, readGuidelines, showHelp, showOthers, showPreferences, useTheme } from "./dialogs.js";
import { button, byId, drawn, element, forgetAnnotator, isTyping, keyOf, printable, remember, remembered } from "./dom.js";
import { accuracyPanel, fillDay, lastAnswers, progressPanel, whatHappened } from "./panels.js";
import { chosenLanguage, count, dayOf, isoDay, language, parts, text, timeOfDay, useLanguage, whyRefused } from "./texts.js";

/** Milliseconds during which keys and clicks are ignored after a card vanished by itself. */
const OFF_MS = 700;
const NOTICE_MS = 6000;
const DAY_MS = 350;
/** Milliseconds after which the page says that the next card is still loading. */
const WAIT_MS = 1000;
const WAITING = "rest.loading.title";
const RETRY_MS = 2000;
const RENEW_MS = 5000;
/** Names of other annotators in the bar; the rest are counted. */
const OTHERS = 3;

const canTouch = matchMedia("(hover: none) and (pointer: coarse)");

let desk = null;
let view = null;
let offUntil = 0;
let wasTyping = false;
let accuracy = [];
let dayTimer = null;
let waitTimer = null;
let noticeTimer = null;
let noticed = null;
let refusal = null;

// --- the current card

function showCard({ vanished = false, why = null, values = {} } = {}) {
  const hadFocus = document.activeElement === document.body || byId("main").contains(document.activeElement);
  if (vanished) {
    offUntil = performance.now() + OFF_MS;
    wasTyping = isTyping(document.activeElement);
    if (why !== null) notice(`vanished.${why}`, values);
  }
  clearTimeout(dayTimer);
  clearTimeout(waitTimer);
  if (noticed === WAITING) byId("notice").hidden = true;
  const card = desk.paused ? null : desk.current;
  desk.watch.look(card?.id ?? null);
  view = card === null ? null : cardView(card, desk);
  const main = byId("main");
  const before = [...main.children];
  const goesOn = typesOnTouch();
  const made = view === null ? [rest()] : [view.node, whatHappened(card, desk)];
  // A screen reader would say again what it has said when the focus goes to a copy of it.
  const isSaid = view === null && before.length === 1 && made[0].isEqualNode(before[0]);
  if (!isSaid) main.prepend(...made);
  // The keyboard of a phone stays open only if the next field has the focus before the last one is gone.
  if (goesOn && card?.kind === "number") view.node.querySelector("#value").focus();
  if (!isSaid) for (const node of before) node.remove();
  document.body.dataset.kind = card?.kind ?? "rest";
  document.title = card === null ? "streamgp" : `${view.question.textContent} · streamgp`;
  if (hadFocus && !isDialogOpen() && !isTyping(document.activeElement)) main.querySelector("h2").focus({ preventScroll: true });
  if (card !== null) {
    scrollTo({ top: 0 });
    byId("live").textContent = announcement(card);
    dayTimer = setTimeout(() => showDay(card), DAY_MS);
  }
}

/** Whether a number is being typed on a touch screen, where a keyboard that closes takes a tap to open. */
const typesOnTouch = () => canTouch.matches && document.activeElement?.matches("#value") === true;

/** What a screen reader says about a new card, after the focused heading. */
function announcement(card) {
  const said = (name) => view.node.querySelector(name)?.textContent;
  return card.kind === "challenge" ? said(".said") : [said(".again"), `${said(".when")}.`, said(".why")].filter(Boolean).join(" ");
}

async function showDay(card) {
  const at = card.occurred_at ?? card.asked_at;
  const key = card.key ?? null;
  const asked = new URLSearchParams({ day: isoDay(at), tz: ownZone() });
  if (key !== null) asked.set("key", key);
  let moments = [];
  try {
    ({ moments } = await get(`/api/timeline?${asked}`));
  } catch {
    /* The day only helps the memory; the card works without it. */
  }
  const place = byId("main").querySelector(".day-place");
  if (place !== null && desk.current?.id === card.id) fillDay(place, moments ?? [], card);
}

/** What is shown instead of a card: why there is none. */
function rest() {
  const go = desk.paused ? button(text("pause.end"), { key: "p", class: "primary", on: togglePause }) : null;
  return resting(...whyNone(), go);
}

function resting(name, values = {}, below = null) {
  return element(
    "section",
    { class: `rest ${name}` },
    restDrawing(name),
    element("h2", { tabindex: "-1" }, text(`rest.${name}.title`, values)),
    element("p", {}, text(`rest.${name}`, values)),
    below,
  );
}

function whyNone() {
  if (refusal !== null) return ["stranger", {}];
  if (desk.paused) return ["paused", { n: desk.progress.waiting ?? 0 }];
  if (desk.reading !== null) return ["reading", { n: count(desk.reading) }];
  if (desk.restPeriod !== null) {
    const { why, until } = desk.restPeriod;
    const days = isoDay(until) === isoDay(now()) ? [] : [dayOf(until)];
    const when = [...days, timeOfDay(until)].join(", ");
    return [["quiet_hours", "per_day", "gap"].includes(why) ? why : "quiet_hours", { until: when }];
  }
  if (!desk.online) return ["offline", {}];
  if (desk.progress.set_aside?.mine === "all") return ["set_aside", {}];
  return [desk.isKnown ? "done" : "loading", {}];
}

function restDrawing(name) {
  const shape = {
    done: "M20 34l9 9 18-20",
    paused: "M25 21v24M41 21v24",
    offline: "M20 46l26-26M22 30a18 18 0 0 1 22 0M27 36a10 10 0 0 1 12 0M33 44v.1",
    stranger: "M33 22v14M33 44v.1",
  }[name] ?? "M33 20v14l9 6";
  return drawn("svg", { viewBox: "0 0 66 66", class: "rest-drawing", "aria-hidden": "true" }, drawn("circle", { cx: 33, cy: 33, r: 31 }), drawn("path", { d: shape }));
}

// --- around the card

function showBar() {
  const { waiting = 0, today = 0 } = desk.progress;
  // Before the server has said how many there are, a 0 would be wrong.
  const counts = Object.entries({ waiting, today }).filter(([name]) => name in desk.progress);
  byId("counts").replaceChildren(
    ...counts.map(([name, n]) => element("span", {}, element("b", {}, count(n)), ` ${text(`count.${name}`, { n })}`)),
  );
  const share = today + waiting > 0 ? today / (today + waiting) : 0;
  byId("meter").replaceChildren(
    drawn("svg", { viewBox: "0 0 100 1", preserveAspectRatio: "none" }, drawn("rect", { width: 100 * share, height: 1 })),
  );
  const others = desk.others.filter((name) => name !== desk.me.name).map(printable);
  const shownOthers = others.slice(0, OTHERS);
  showSetAside();
  byId("others").replaceChildren(
    ...(others.length === 0 ? [] : [text("others"), " ", element("bdi", {}, shownOthers.join(", ")), others.length > shownOthers.length ? ` +${others.length - shownOthers.length}` : ""]),
  );
  byId("others").title = others.join(", ");
}

/** Show whose answers are set aside for now, to these people and to supervisors. */
function showSetAside() {
  const { mine = null, of = [] } = desk.progress.set_aside ?? {};
  const names = of.filter((name) => name !== desk.me.name).map(printable).join(", ");
  const said = [
    mine === null ? null : element("p", {}, text(`set_aside.${mine}`)),
    names === "" ? null : element("p", {}, parts("set_aside.of", { names: element("bdi", {}, names) })),
  ].filter(Boolean);
  const bar = byId("set-aside");
  bar.hidden = said.length === 0;
  // Set only once: a screen reader announces every change.
  if (bar.textContent !== said.map((one) => one.textContent).join("")) bar.replaceChildren(...said);
}

function showTools() {
  const icon = (shape) => drawn("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, drawn("path", { d: shape }));
  const tool = (name, shape, on) =>
    element("button", { type: "button", class: "tool", "aria-label": text(name), title: text(name), on: { click: on } }, icon(shape));
  byId("tools").setAttribute("aria-label", text("tools"));
  byId("tools").replaceChildren(
    tool(desk.paused ? "pause.end" : "pause", desk.paused ? "M8 5l11 7-11 7z" : "M8 5v14M16 5v14", togglePause),
    tool("preferences.title", "M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4", openPreferences),
    desk.me.supervisor ? tool("others.title", "M9 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM3 20c0-4 3-6 6-6s6 2 6 6M16 5a3 3 0 0 1 0 6M18 14c2 1 3 3 3 6", showOthers) : "",
    tool("help.title", "M9 9a3 3 0 1 1 4 2.8c-.7.3-1 .8-1 1.7M12 17v.01", () => showHelp(desk.me)),
  );
}

function showAside() {
  const panels = [lastAnswers(desk), progressPanel(desk), accuracyPanel(accuracy)].filter(Boolean);
  const aside = byId("aside");
  aside.hidden = panels.length === 0;
  const focused = [...aside.querySelectorAll("button")].indexOf(document.activeElement);
  // A panel that has not changed stays, so as not to disturb an annotator who reads or clicks there.
  panels.forEach((panel, i) => {
    if (i >= aside.children.length) aside.append(panel);
    else if (!aside.children[i].isEqualNode(panel)) aside.children[i].replaceWith(panel);
  });
  while (aside.children.length > panels.length) aside.lastElementChild.remove();
  if (focused >= 0) (aside.querySelectorAll("button")[focused] ?? byId("main").querySelector("h2"))?.focus();
}

function showConnection() {
  const bar = byId("connection");
  bar.hidden = desk.online;
  if (!desk.online) bar.textContent = desk.unsent > 0 ? text("offline.waiting", { n: desk.unsent }) : text("offline");
  if (view === null && !desk.paused) showCard();
}

function notice(name, values = {}) {
  const bar = byId("notice");
  noticed = name;
  bar.textContent = text(name, values);
  bar.hidden = false;
  clearTimeout(noticeTimer);
  // The next card ends the wait.
  if (name === WAITING) return;
  noticeTimer = setTimeout(() => {
    bar.hidden = true;
  }, NOTICE_MS);
}

function togglePause() {
  desk.paused = !desk.paused;
  showTools();
  showCard();
  if (!desk.paused) desk.refill();
}

function openPreferences() {
  showPreferences(desk, async (code) => {
    remember("language", code);
    if (code !== language) await loadLanguage(code);
    showAll();
    desk.refill();
  });
}

function showAll() {
  showTools();
  showBar();
  showCard();
  showAside();
  showConnection();
}

// --- keys

function pressed(event) {
  // A button takes a held Enter for one click after the other.
  if (event.repeat && event.key === "Enter" && document.activeElement?.matches("button")) event.preventDefault();
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
  if (isDialogOpen() || desk === null) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape" && view?.press("Escape")) event.preventDefault();
    return;
  }
  // Enter and the space bar belong to the focused button.
  if (!remembered("single_keys", true) && event.key !== "Escape") return;
  if (event.target instanceof HTMLElement && event.target.closest("button, summary, a") && [" ", "Enter"].includes(event.key)) return;
  if (performance.now() < offUntil) {
    // An annotator who was typing into the card may go on for a while before looking up.
    if (wasTyping) offUntil = performance.now() + OFF_MS;
    return;
  }
  const key = keyOf(event);
  if (key === "?") showHelp(desk.me);
  else if (key === "p") togglePause();
  else if (view === null && key === "u" && !desk.paused) desk.undo();
  else if (view === null || desk.current === null || !view.press(key)) return;
  event.preventDefault();
}

/** Ignore a click that was meant for the card that has just vanished. */
function clicked(event) {
  if (performance.now() >= offUntil) return;
  event.preventDefault();
  event.stopPropagation();
}

// --- start

function told(kind, details = {}) {
  if (kind === "wait") {
    // Without its focus, the keyboard of a phone would close.
    if (view !== null && !typesOnTouch()) view.node.inert = true;
    waitTimer = setTimeout(() => notice(WAITING), WAIT_MS);
  } else if (kind === "card") {
    refusal = null;
    showCard(details);
    if (!desk.paused && details.vanished !== true) announceHidden();
  } else if (kind === "progress") {
    showBar();
    if (view === null && byId("main").querySelector(`.rest.${whyNone()[0]}`) === null) showCard();
    showAside();
  } else if (kind === "history") {
    showAside();
    view?.renewUndo?.();
  } else if (kind === "connection") showConnection();
  else if (kind === "notice") notice(details.name, details.values);
  else if (kind === "revise") changeAnswer(details, desk);
  else if (kind === "stranger") {
    // The invite of this browser now belongs to another annotator: start again as that one.
    if (details.error === "other_person") {
      location.reload();
      return;
    }
    forgetAnnotator();
    refusal = details;
    desk.current = null;
    showCard();
  }
}

/** Notify of a question that has arrived while the page is open in the background. */
async function announceHidden() {
  if (desk.current === null || !document.hidden || !remembered("notify", false)) return;
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const words = { body: text("notification"), icon: "/static/icon.svg", tag: "streamgp", lang: language };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker) worker.showNotification("streamgp", words);
  else new Notification("streamgp", words);
}

async function refreshStats() {
  try {
    accuracy = (await get("/api/stats")).accuracy ?? [];
    showAside();
  } catch {
    /* Only a curve; the next event brings it again. */
  }
}

/** Find out who the annotator is, with a request that is under way, or from what was known the last time. */
async function whoAmI(asked) {
  const known = remembered("me", null);
  for (;; asked = get("/api/me")) {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof Refused) throw error;
      if (known !== null) return known;
      byId("connection").textContent = text("offline");
      byId("connection").hidden = false;
      await retryTime();
    }
  }
}

/** Let days begin where this browser is, unless limits were set in the time zone of another one. */
function followZone({ preferences = {} }) {
  const { quiet_from: quiet, per_day: most, time_zone: zone } = preferences;
  if (quiet !== null || most !== null || zone === ownZone()) return;
  const following = { ...preferences, time_zone: ownZone() };
  put("/api/preferences", following).then(() => Object.assign(preferences, following), () => {});
}

/** Learn what a server that was started again says differently, such as the question; cards to come show it. */
async function renewMe() {
  try {
    desk.me = await get("/api/me");
    remember("me", desk.me);
  } catch {
    /* The next connection asks again. */
  }
}

const retryTime = () => new Promise((resolve) => setTimeout(resolve, RETRY_MS));

/** Load the texts of a language; nothing can be said without them, so this goes on until it works. */
async function loadLanguage(code) {
  for (;;) {
    try {
      await useLanguage(code);
      return;
    } catch {
      await retryTime();
    }
  }
}

/** Say that an invite is needed, or why else the page does not open. */
function showShut(error) {
  const why = error.isStranger ? null : element("p", { class: "quiet" }, text("refused.page", { why: whyRefused(error) }));
  byId("main").replaceChildren(resting("stranger", {}, why));
}

async function start() {
  useTheme();
  const asked = get("/api/me");
  // Read below, as there are no texts yet to say what is wrong.
  asked.catch(() => {});
  await loadLanguage(chosenLanguage([remembered("language", null), ...navigator.languages]));
  byId("main").replaceChildren(resting("loading"));
  let me;
  try {
    me = await whoAmI(asked);
  } catch (error) {
    if (error.isStranger) forgetAnnotator();
    showShut(error);
    return;
  }
  if (me.name !== remembered("me", null)?.name) forgetAnnotator();
  remember("me", me);
  followZone(me);
  byId("connection").hidden = true;
  await readGuidelines(me);
  desk = new Desk(me, told);
  desk.touched = () => view !== null && view.isTouched;
  showAll();
  document.addEventListener("keydown", pressed);
  byId("main").addEventListener("click", clicked, { capture: true });
  addEventListener("beforeunload", (event) => {
    if (desk.wouldLose) event.preventDefault();
  });
  addEventListener("online", () => desk.wake());
  addEventListener("offline", () => desk.reachable(false));
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) desk.wake();
  });
  setInterval(() => view?.renew(), RENEW_MS);
  await desk.start();
  let wasAway = false;
  listen(["card", "gone", "progress", "others", "stats"], heard, (there) => {
    if (there) desk.wake();
    else desk.refill();
    if (there && wasAway) renewMe();
    wasAway = !there;
  });
  refreshStats();
}

function heard(kind, data) {
  if (kind === "stats") refreshStats();
  else desk.hear(kind, data);
}

// Where cookies are blocked, Firefox throws at its mere name.
(async () => navigator.serviceWorker?.register("/sw.js"))().catch(() => {});
start();
