// Keeps a page current: hears from the server that the page's root has moved, and patches what is new into place.

import { patch } from "./patch.js";
import { slidePast } from "./past.js";
import { tellTimes } from "./times.js";
import { readWhole } from "./whole.js";

const REST_MS_MIN = 200; // between two looks at the server,
const REST_PER_COST = 2; // and this many times as long as the last one took
const AGES_MS = 10_000;
const NOTICE_MS = 30_000;
const root = document.body.dataset.root;

let looking = false; // a fetch is on its way
let wanted = false; // something moved since the last fetch began
let restUntil = 0;
let timer = null;
let pointer = null;

tellTimes(document);
setInterval(() => tellTimes(document), AGES_MS);
slidePast(document);
readWhole(document);
if (root !== undefined) listen();

function listen() {
  const query = new URLSearchParams();
  if (root) query.set("root", root);
  if (document.body.dataset.cursor) query.set("after", document.body.dataset.cursor);
  const source = new EventSource(`/api/live?${query}`);
  let away = 0;
  source.addEventListener("hello", () => {
    say("live");
    want(); // the page names no cursor: something may have moved before the server began to listen
  });
  source.addEventListener("moved", want);
  source.addEventListener("caught-up", (message) => {
    const { roots, all, events } = JSON.parse(message.data);
    say("live");
    if (away) notify(`Connected again: ${events === 1 ? "one event" : `${events} events`} caught up.`);
    away = 0;
    if (all || roots.length) want();
  });
  source.addEventListener("error", () => {
    away ||= Date.now();
    if (source.readyState === EventSource.CLOSED) say("lost", "not live; load the page again");
    else say("away", "reconnecting …");
  });
  document.addEventListener("visibilitychange", () => wanted && want());
  document.addEventListener("pointermove", ({ clientX, clientY }) => (pointer = [clientX, clientY]), { passive: true });
  document.documentElement.addEventListener("pointerleave", () => (pointer = null));
}

function say(state, text = "live") {
  const live = document.getElementById("live");
  if (!live) return;
  live.hidden = false;
  live.className = state;
  live.textContent = text;
}

function notify(text) {
  const notice = document.getElementById("notice");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  close.addEventListener("click", () => (notice.hidden = true));
  notice.replaceChildren(text, close);
  notice.hidden = false;
  setTimeout(() => (notice.hidden = true), NOTICE_MS);
}

function want() {
  wanted = true;
  if (looking || timer !== null || document.hidden) return;
  timer = setTimeout(look, Math.max(0, restUntil - performance.now()));
}

async function look() {
  timer = null;
  wanted = false;
  looking = true;
  const started = performance.now();
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.redirected) location.reload(); // the login has run out
    else if (response.ok) take(new DOMParser().parseFromString(await response.text(), "text/html"));
  } catch {
    wanted = true; // the network broke; the event source says so
  } finally {
    looking = false;
    const now = performance.now();
    restUntil = now + Math.max(REST_MS_MIN, REST_PER_COST * (now - started));
    if (wanted) want();
  }
}

function take(fresh) {
  if (!fresh.querySelector("main")) return;
  tellTimes(fresh);
  slidePast(fresh);
  const anchor = heldInPlace();
  for (const selector of ["main", "#facts"]) {
    const [old, next] = [document.querySelector(selector), fresh.querySelector(selector)];
    if (old && next) patch(old, next);
  }
  if (anchor) hold(anchor);
  document.title = fresh.title;
  const icon = document.querySelector('link[rel="icon"]');
  const href = fresh.querySelector('link[rel="icon"]').getAttribute("href");
  if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
}

// What must not move when rows come above it: the row under the pointer, else the first thing in view of a page that
// has been scrolled.
function heldInPlace() {
  const main = document.querySelector("main");
  const pointed = pointer && document.elementFromPoint(...pointer)?.closest("main [id]");
  const held = pointed || (window.scrollY > 0 && [...main.querySelectorAll("[id]")].find(inView));
  return held ? { id: held.id, top: held.getBoundingClientRect().top } : null;
}

function inView(element) {
  const { bottom, height } = element.getBoundingClientRect();
  return height > 0 && bottom > 0;
}

function hold({ id, top }) {
  const element = document.getElementById(id);
  if (element) window.scrollBy({ top: element.getBoundingClientRect().top - top, behavior: "instant" });
}
