// Keeps a page current: hears from the server that the page's root has moved, and takes over what is new.

import { tellTimes } from "./times.js";

const REFRESH_MS_MIN = 1000;
const AGES_MS = 10_000;
const HELD = "news waits while you select or type";
const root = document.body.dataset.root;

let refreshing = false; // a fetch is on its way
let wanted = false; // something moved since the last fetch began
let refreshedAt = 0;
let timer = null;

tellTimes(document);
setInterval(() => tellTimes(document), AGES_MS);
if (root !== undefined) listen();

function listen() {
  const query = new URLSearchParams();
  if (root) query.set("root", root);
  if (document.body.dataset.cursor) query.set("after", document.body.dataset.cursor);
  const source = new EventSource(`/api/live?${query}`);
  let away = false;
  source.addEventListener("hello", () => {
    say("live");
    want(); // the page names no cursor: something may have moved before the server began to listen
  });
  source.addEventListener("moved", want);
  source.addEventListener("caught-up", (message) => {
    const { roots, all, events } = JSON.parse(message.data);
    say("live", away ? `reconnected, ${events} ${events === 1 ? "event" : "events"} caught up` : "live");
    away = false;
    if (all || roots.length) want();
  });
  source.addEventListener("error", () => {
    away = true;
    if (source.readyState === EventSource.CLOSED) say("lost", "not live; load the page again");
    else say("away", "reconnecting …");
  });
}

function say(state, text = "live") {
  const live = document.getElementById("live");
  if (!live) return;
  live.hidden = false;
  live.className = state;
  live.textContent = text;
}

function want() {
  wanted = true;
  if (refreshing || timer !== null) return;
  timer = setTimeout(refresh, Math.max(0, refreshedAt + REFRESH_MS_MIN - Date.now()));
}

async function refresh() {
  timer = null;
  if (busy()) {
    say("live", HELD);
    timer = setTimeout(refresh, REFRESH_MS_MIN);
    return;
  }
  if (document.getElementById("live")?.textContent === HELD) say("live");
  wanted = false;
  refreshing = true;
  refreshedAt = Date.now();
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.redirected) location.reload(); // the login has run out
    else if (response.ok) replace(new DOMParser().parseFromString(await response.text(), "text/html"));
  } catch {
    wanted = true; // the network broke; the event source says so
  } finally {
    refreshing = false;
    if (wanted) want();
  }
}

// Nothing is taken from under somebody who is selecting text or filling in a form.
function busy() {
  const main = document.querySelector("main");
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && main.contains(selection.anchorNode)) return true;
  return [...main.querySelectorAll("input")].some((input) => input.value !== input.defaultValue);
}

function replace(fresh) {
  const old = document.querySelector("main");
  const main = fresh.querySelector("main");
  if (!main) return;
  tellTimes(fresh);
  const toggled = new Map([...old.querySelectorAll("details[id]")].map((details) => [details.id, details.open]));
  for (const details of main.querySelectorAll("details[id]")) {
    if (toggled.has(details.id)) details.open = toggled.get(details.id);
  }
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  const held = anchor(old);
  old.replaceWith(document.adoptNode(main));
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  if (held) hold(held);
  document.title = fresh.title;
  for (const selector of ["#facts", 'link[rel="icon"]']) {
    document.querySelector(selector)?.replaceWith(document.adoptNode(fresh.querySelector(selector)));
  }
}

// The first thing in view that has a name, and how far down it stands: what must not move when rows come above it.
function anchor(main) {
  if (window.scrollY === 0) return null;
  for (const element of main.querySelectorAll("[id]")) {
    const { top, bottom, height } = element.getBoundingClientRect();
    if (height && bottom > 0) return { id: element.id, top };
  }
  return null;
}

function hold({ id, top }) {
  const element = document.getElementById(id);
  if (element) window.scrollBy({ top: element.getBoundingClientRect().top - top, behavior: "instant" });
}
