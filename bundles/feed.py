"""Reading the log page by page while others write: each event once, and a cursor holds for ever."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec

from bundles.rig.saddle import Saddle
from bundles.runner import Scenario

NAME = "feed"
TITLE = "a reader that pages while writers commit sees every event exactly once, in the order of each session"
RESTARTS = True

WRITERS = 4
CHUNKS = 40
CHUNK_EVENTS = 5
PAGE_EVENTS = 7


def run(scenario: Scenario) -> None:
    saddles = [scenario.saddle(f"saddle-{number}") for number in range(WRITERS)]
    for saddle in saddles:
        saddle.open(saddle.name, scenario.create("tasks", title=f"Work of {saddle.name}"))
    before = [event for page in scenario.reader.feed() for event in page["events"]]
    read, cursor = _read_while_written(scenario, saddles)
    counts = Counter((event["session_id"], event["seq"]) for event in before + read)
    doubled = [key for key, count in counts.items() if count > 1]
    scenario.equal("no event is seen twice", doubled, [])
    expected = {(saddle.name, seq) for saddle in saddles for seq in range(CHUNKS * CHUNK_EVENTS)}
    scenario.equal("none is skipped", len(expected - counts.keys()), 0)
    order = {saddle.name: [e["seq"] for e in read if e["session_id"] == saddle.name] for saddle in saddles}
    in_order = all(seqs == sorted(seqs) for seqs in order.values())
    scenario.check("each session's events come in its order", in_order)

    scenario.restart()
    whole = [event for page in scenario.reader.feed(limit=97) for event in page["events"]]
    same = sorted(map(_place, whole)) == sorted(map(_place, before + read))
    scenario.check("in other pages, after a restart, it is the same log", same, len(whole))
    saddles[0].push(saddles[0].name, [_note(10_000)])
    late = [event["seq"] for page in scenario.reader.feed(cursor) for event in page["events"]]
    scenario.equal("a cursor from before the restart reads on behind it", late, [10_000])
    _as_lines(scenario, whole)
    answer = scenario.reader.get("/api/events?after=bm90IGEgY3Vyc29y")
    scenario.equal("a cursor of no ledger is refused", (answer.status, answer.code), (422, "foreign_cursor"))


def _read_while_written(scenario: Scenario, saddles: list[Saddle]) -> tuple[list[dict[str, Any]], str]:
    """Pages on from the log's end until the writers are through and nothing more comes."""
    *_, last = scenario.reader.feed()
    cursor = str(last["cursor"])
    read: list[dict[str, Any]] = []
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(_write, saddle) for saddle in saddles]
        through = False
        while not through:
            through = all(map(Future.done, writing))  # asked before the read, so that the last one sees the end
            for page in scenario.reader.feed(cursor, limit=PAGE_EVENTS):
                cursor = page["cursor"]
                read += page["events"]
        for written in writing:
            written.result()
    return read, cursor


def _write(saddle: Saddle) -> None:
    for chunk in range(CHUNKS):
        saddle.push(saddle.name, [_note(chunk * CHUNK_EVENTS + n) for n in range(CHUNK_EVENTS)])


def _as_lines(scenario: Scenario, whole: list[dict[str, Any]]) -> None:
    answer = scenario.reader.get("/api/events?limit=50", headers={"Accept": "application/x-ndjson"})
    lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]
    scenario.check("as lines it says the same", lines == whole[:50], answer.headers.get("content-type", ""))


def _note(seq: int) -> dict[str, Any]:
    return {"seq": seq, "kind": "note", "actor": "model", "payload": {"n": seq}}


def _place(event: dict[str, Any]) -> tuple[int, str, int]:
    return event["position"], event["session_id"], event["seq"]
