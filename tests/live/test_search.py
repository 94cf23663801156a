"""Searching a server: what was said is found soon, once, under its filters, and after a restart too."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.serving import (
    OWNER_TOKEN,
    Server,
    acted,
    assert_problem,
    created,
    event,
    fresh,
    opened,
    push,
    result,
    running,
    seen,
)

TAKEN_IN_S_MAX = 60.0


def search(reader: httpx.Client, q: str = "", **filters: Any) -> dict[str, Any]:
    """The answer once the index has taken in all that there is."""
    deadline = time.monotonic() + TAKEN_IN_S_MAX
    while True:
        answer = seen(reader, "/api/search", q=q, **filters)
        if answer["behind"] == 0:
            return answer
        assert time.monotonic() < deadline, f"{answer['behind']} events are not taken in"
        time.sleep(0.05)


def comment(seq: int, body: str) -> dict[str, Any]:
    return event(seq, "comment", {"body": body})


def test_a_remark_is_found_with_where_it_was_said(reader: httpx.Client, saddle: httpx.Client) -> None:
    session_id, task_id = opened(saddle, agent="codex", host="mole", task={"title": "Weld it"})
    push(saddle, session_id, [comment(3, "The flange weld holds.")])
    [item] = search(reader, "flange weld")["items"]
    assert item["excerpt"][:3] == [
        {"text": "The ", "hit": False},
        {"text": "flange", "hit": True},
        {"text": " ", "hit": False},
    ]
    named = {"kind": "remark", "session_id": session_id, "task_id": task_id, "goal_id": None, "seq": 3, "copies": 1}
    assert (
        item.items() >= {**named, "agent": "codex", "host": "mole", "title": "Weld it", "status": "working"}.items()
    )


def test_what_is_delivered_again_under_other_sessions_is_found_once(
    reader: httpx.Client, saddle: httpx.Client
) -> None:
    first, task_id = opened(saddle)
    others = [opened(saddle, task_id=task_id)[0] for _ in range(2)]
    for session_id in (first, first, *others):
        push(saddle, session_id, [comment(1, "Churned thoroughly.")])
    [item] = search(reader, "churned")["items"]
    assert (item["session_id"], item["copies"]) == (first, 3)


def test_the_status_is_that_of_now(reader: httpx.Client, saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    push(saddle, session_id, [comment(1, "Unsteady state.")])
    assert search(reader, "unsteady", status="failed")["items"] == []
    result(saddle, session_id, "failed", summary="gave up")
    assert len(search(reader, "unsteady", status="failed")["items"]) == 1
    assert search(reader, "unsteady", status="working")["items"] == []


def test_a_goal_is_found_by_its_brief_and_its_project(reader: httpx.Client, owner: httpx.Client) -> None:
    project_id = created(owner, "projects")["id"]
    goal = created(owner, "goals", title="Port", brief="Quicksilver grammar", project_id=project_id)
    acted(owner, goal, "start")
    [item] = search(reader, "quicksilv", project_id=project_id)["items"]
    assert (item["kind"], item["goal_id"], item["session_id"], item["status"]) == (
        "prompt",
        goal["id"],
        None,
        "running",
    )
    assert search(reader, "quicksilv", project_id="none")["items"] == []
    assert len(search(reader, "quicksilv", goal_id=goal["id"], status="running")["items"]) == 1


def test_pages_follow_each_other(reader: httpx.Client, saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    push(saddle, session_id, [comment(seq, f"Pageful number {seq}") for seq in range(7)])
    seqs, after = [], None
    while True:
        page = search(reader, "pageful", limit=3, **({"after": after} if after else {}))
        seqs += [item["seq"] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seqs == [6, 5, 4, 3, 2, 1, 0]


def test_times_narrow_a_search(reader: httpx.Client, saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    when = "2024-02-29T23:59:59.5Z"
    push(saddle, session_id, [{**comment(1, "Leapling."), "at": when}])
    assert len(search(reader, "leapling", since="2024-02-29", until="2024-02-29")["items"]) == 1
    assert search(reader, "leapling", since="2024-03-01")["items"] == []
    assert search(reader, "leapling", until="2024-02-29T23:59:59Z")["items"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"kind": "poem"}, "kind"),
        ({"status": "asleep"}, "status"),
        ({"since": "yesterday"}, "since"),
        ({"q": "x" * 501}, "q"),
        ({"after": "x"}, "after"),
        ({"limit": "201"}, "limit"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(reader: httpx.Client, query: dict[str, str], field: str) -> None:
    problem = assert_problem(reader.get("/api/search", params=query), 422)
    assert problem["field"] == field


def test_searching_takes_a_token(nobody: httpx.Client, saddle: httpx.Client) -> None:
    assert_problem(nobody.get("/api/search"), 401)
    assert_problem(saddle.get("/api/search"), 403)
    assert nobody.get("/search", headers={"Accept": "text/html"}).status_code == 303


def test_the_page_links_to_the_place_and_shows_no_markup(reader: httpx.Client, saddle: httpx.Client) -> None:
    session_id = fresh("odd/session")
    push(saddle, session_id, [comment(4, "<b>Gallimaufry</b>")], open={"task": {"title": "<i>x</i>"}})
    search(reader, "gallimaufry")
    html = reader.get("/search", params={"q": "gallimaufry"}, headers={"Accept": "text/html"}).text
    assert f'href="/sessions/{session_id.replace("/", "%2F")}?from=4#e-4"' in html
    assert "&lt;b&gt;<mark>Gallimaufry</mark>&lt;/b&gt;" in html
    assert "<b>G" not in html
    assert "<i>x" not in html


@pytest.mark.parametrize("loss", ["none", "deleted", "damaged"])
def test_an_index_outlives_a_crash_and_is_made_anew_where_it_is_lost(tmp_path: Path, loss: str) -> None:
    with running(tmp_path) as server:
        session_id, _ = opened(server.saddle("anvil"))
        saddle = server.saddle("anvil")
        push(saddle, session_id, [comment(seq, f"Durable {seq}") for seq in range(500)])
        server.kill()
        index = server.store.with_name(server.store.name + ".search")
        if loss == "deleted":
            index.unlink()
        elif loss == "damaged":
            index.write_bytes(b"x" * 5000)
        server.start()
        push(server.saddle("anvil"), session_id, [comment(500, "Durable 500")])
        items = search(server.client(OWNER_TOKEN), "durable", limit=200)["items"]
        assert [item["seq"] for item in items] == list(range(500, 300, -1))
        assert {item["copies"] for item in items} == {1}


def test_a_server_whose_index_cannot_be_made_serves_all_else(tmp_path: Path) -> None:
    server = Server(tmp_path)
    (tmp_path / "ledger.db.search").mkdir()
    server.start()
    try:
        owner = server.client()
        assert_problem(owner.get("/api/search"), 503)
        session_id, _ = opened(server.saddle("anvil"))
        assert push(server.saddle("anvil"), session_id, [event(0)])["stored"] == 1
        assert "no search index" in server.stderr
    finally:
        assert server.stop() == 0
