"""How fast pages are, for a reader of a small goal and of one a thousand times as long, and for eyes at a browser.

- the page of a goal, asked for after each of its remarks, so that nothing is rendered beforehand: 1,000 events and
  1,000,000;
- the first load of the home page with 200 sessions at work, nothing in the browser's cache;
- the time from an acknowledged push until its row stands in a Chromium that has the goal's page open.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import httpx
from playwright.sync_api import Browser, Page

from tests.bench.processes import BenchFailed
from tests.bench.results import Ratio, Report, Sample, ratio, row, spread
from tests.bench.servers import Server, ledgerd
from tests.bench.workload import Workload
from tests.browser.driving import chromium

ROUNDS = 5
LOOKS = 60  # at each goal's page, in each round
SMALL, LARGE = 1_000, 1_000_000
CHUNK = 10_000
SESSIONS_AT_WORK = 200
MARKS = 60

SLOWER_MAX = 1.5  # the large goal's page against the small one's
FIRST_LOAD_BYTES_MAX = 150_000
SEEN_MS_MAX = 300.0

_TRANSFERRED = """() => performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource"))
  .reduce((sum, entry) => sum + entry.transferSize, 0)"""
_WATCH = """text => { window.seen = new Promise(resolve => {
  const look = () => document.querySelector(".narrative")?.textContent.includes(text) && resolve(Date.now());
  const all = {subtree: true, childList: true, characterData: true};
  new MutationObserver(look).observe(document.querySelector("main"), all);
}) }"""


def run(folder: Path, progress: Callable[[str], None]) -> Report:
    """Measures in `folder`. Raises BenchFailed where a page does not show what was pushed."""
    with ledgerd(folder / "pages.db") as server, _client(server) as http:
        small, large = [], []
        progress(f"pages: a goal of {SMALL:,} events")
        goals = {SMALL: _goal(http, "small", SMALL)}
        progress(f"pages: a goal of {LARGE:,} events")
        goals[LARGE] = _goal(http, "large", LARGE)
        for number in range(ROUNDS):
            progress(f"pages, round {number + 1} of {ROUNDS}")
            small.append(_looks(server, http, goals[SMALL], "small", SMALL + number * LOOKS))
            large.append(_looks(server, http, goals[LARGE], "large", LARGE + number * LOOKS))
        progress("pages: in a browser")
        with chromium() as browser:
            seen_ms = _seen_ms(browser, server, http, goals[SMALL], SMALL + ROUNDS * LOOKS)
            loaded_bytes = _first_load_bytes(browser, server, http)
    p95 = quantiles(seen_ms, n=20)[-1]
    return Report(
        "Pages",
        ROUNDS,
        [row(f"goal of {SMALL:,} events", small), row(f"goal of {LARGE:,} events", large)],
        [
            ratio(f"goal of {LARGE:,} events / of {SMALL:,}", large, small, 1 / SLOWER_MAX),
            Ratio(f"{SEEN_MS_MAX:g} ms / p95 of {p95:.0f} ms from push to row", spread([SEEN_MS_MAX / p95]), 1),
            Ratio(
                f"{FIRST_LOAD_BYTES_MAX:,} bytes / home page of {loaded_bytes:,}",
                spread([FIRST_LOAD_BYTES_MAX / loaded_bytes]),
                1,
            ),
        ],
    )


def _client(server: Server) -> httpx.Client:
    headers = {"Authorization": f"Bearer {server.token}", "Accept": "text/html"}
    return httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=headers, timeout=120, trust_env=False)


def _goal(http: httpx.Client, session_id: str, events: int) -> str:
    """A started goal on whose run a session has pushed so many events; its page has been read once."""
    goal_id = str(_post(http, "/api/goals", {"title": f"Bench {session_id}"})["id"])
    _post(http, f"/api/goals/{goal_id}/start", {})
    run = http.get(f"/api/goals/{goal_id}").raise_for_status().json()["run_task_id"]
    _post(http, "/api/saddle/sessions", {"session_id": session_id, "task_id": run})
    chunk = min(CHUNK, events)
    for body in Workload(session_id, 1, events // chunk, chunk).bodies(session_id):
        http.post("/api/saddle/chunks", content=body).raise_for_status()
    http.get(f"/goals/{goal_id}").raise_for_status()
    return goal_id


def _looks(server: Server, http: httpx.Client, goal_id: str, session_id: str, seq: int) -> Sample:
    took = []
    cpu_s = server.child.cpu_s()
    for number in range(seq, seq + LOOKS):
        _remark(http, session_id, number)
        began = time.perf_counter()
        html = http.get(f"/goals/{goal_id}").raise_for_status().text
        took.append(time.perf_counter() - began)
        if _mark(number) not in html:
            raise BenchFailed(f"the page of goal {goal_id} does not show its newest remark")
    spread_ms = quantiles([one * 1000 for one in took], n=100)
    return Sample(
        events=LOOKS,
        requests=LOOKS,
        seconds=sum(took),
        cpu_s=server.child.cpu_s() - cpu_s,
        peak_mib=server.child.peak_mib(),
        latency_p50_ms=spread_ms[49],
        latency_p99_ms=spread_ms[98],
    )


def _seen_ms(browser: Browser, server: Server, http: httpx.Client, goal_id: str, seq: int) -> list[float]:
    """From the receipt of each push to the moment at which its row stands in the page."""
    page = _logged_in(browser, server, f"/goals/{goal_id}")
    page.wait_for_selector("#live.live")
    found = []
    for number in range(seq, seq + MARKS):
        page.evaluate(_WATCH, _mark(number))
        _remark(http, "small", number)
        acknowledged = time.time()
        found.append(max(0.0, page.evaluate("window.seen") - acknowledged * 1000))
        page.wait_for_timeout(100 + 37 * (number % 11))  # not in step with the page's own rests
    page.context.close()
    return found


def _first_load_bytes(browser: Browser, server: Server, http: httpx.Client) -> int:
    for number in range(SESSIONS_AT_WORK):
        opening = {"session_id": f"at-work-{number}", "task": {"title": f"Task {number} of many that run at once"}}
        _post(http, "/api/saddle/sessions", opening)
        _remark(http, f"at-work-{number}", 0)
    page = _logged_in(browser, server, "/")
    page.wait_for_selector("#live.live")
    transferred = int(page.evaluate(_TRANSFERRED))
    page.context.close()
    return transferred


def _logged_in(browser: Browser, server: Server, path: str) -> Page:
    """A page at `path`, the first that its browser loads."""
    url = f"http://127.0.0.1:{server.port}"
    context = browser.new_context()
    context.request.post(f"{url}/login", form={"token": server.token, "next": "/healthz"})
    page = context.new_page()
    page.goto(f"{url}{path}")
    return page


def _mark(number: int) -> str:
    return f"Remark {number} of the bench."


def _remark(http: httpx.Client, session_id: str, seq: int) -> None:
    event = {"seq": seq, "kind": "comment", "actor": "model", "payload": {"body": _mark(seq)}}
    _post(http, "/api/saddle/chunks", {"session_id": session_id, "events": [event]})


def _post(http: httpx.Client, path: str, body: dict[str, object]) -> dict[str, object]:
    return dict(http.post(path, json=body).raise_for_status().json())
