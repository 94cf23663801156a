"""What readers are given: the projections as JSON, the log itself, and cursors that hold while writers commit."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from ledger.store import cursors
from tests.live.serving import (
    Server,
    acted,
    assert_problem,
    created,
    event,
    opened,
    push,
    result,
    seen,
    token_of,
)

ROW = {"kind", "text", "at", "actor", "task_id", "session_id", "seq", "position", "copies"}
EVENT = {"position", "session_id", "seq", "kind", "actor", "at", "recorded_at", "task_id", "payload"}
TOKENS = {"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"}
USAGE = TOKENS | {"cost_usd", "cost_estimated", "unpriced_models"}


@pytest.fixture(scope="module")
def goal(owner: httpx.Client, saddle: httpx.Client) -> dict[str, Any]:
    """A goal that has run and failed, with all that a saddle pushes on the way."""
    project_id = created(owner, "projects")["id"]
    made = created(owner, "goals", project_id=project_id, brief="Do it well", branch_name="work/7")
    acted(owner, made, "start")
    asked = saddle.post("/api/saddle/ask", json={}).json()
    session_id = asked["session_id"]
    call = {"tool": "run_command", "args": {"command": "make test"}}
    usage = {"message_id": "m1", "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25}
    push(saddle, session_id, [event(0), event(1, "comment", {"body": "Half way."}), event(2, "tool_call", call)])
    push(saddle, session_id, [event(3, "usage", usage), event(4, "usage", usage)])
    result(saddle, session_id, "failed", summary="Out of ideas")
    return seen(owner, f"/api/goals/{made['id']}") | {"session_id": session_id}


def pages(reader: httpx.Client, path: str, **query: Any) -> list[dict[str, Any]]:
    """All items of a list, page by page."""
    items: list[dict[str, Any]] = []
    page = seen(reader, path, **query)
    while True:
        assert set(page) == {"items", "next"}
        items += page["items"]
        if page["next"] is None:
            return items
        page = seen(reader, path, after=page["next"], **query)


# Goals, tasks, sessions, the fleet


def test_a_goal_says_all_there_is_to_know(goal: dict[str, Any]) -> None:
    named = {"id", "project_id", "title", "brief", "branch_name", "status", "run_task_id", "attempt", "summary"}
    told = {"current_command", "current_since", "tasks", "events", "older", "usage", "integrity", "blocks", "actions"}
    assert set(goal) >= named | told | {"cursor", "digest", "created_at", "ended_at"}
    assert (goal["status"], goal["summary"], goal["brief"]) == ("failed", "Out of ideas", "Do it well")
    [run] = goal["tasks"]
    assert set(run) >= {"id", "kind", "title", "status", "attempt", "summary"}
    assert all(set(row) >= ROW for row in goal["events"])
    assert goal["events"][-1]["deliveries"] == 1
    kinds = [row["kind"] for row in goal["events"]]
    assert kinds == ["goal-created", "goal-started", "comment", "goal-failed"]
    assert goal["current_command"] == "make test"
    assert set(goal["integrity"]) >= {"deliveries", "duplicates", "conflicts", "missing", "skew"}
    assert goal["usage"].keys() >= USAGE
    assert (goal["usage"]["input_tokens"], goal["usage"]["cost_usd"]) == (10, 0.25)
    assert goal["actions"] == {"reopen": {"method": "POST", "href": f"/api/goals/{goal['id']}/reopen"}}


def test_a_task_says_all_there_is_to_know(reader: httpx.Client, goal: dict[str, Any]) -> None:
    task = seen(reader, f"/api/tasks/{goal['run_task_id']}")
    named = {"id", "kind", "title", "brief", "project_id", "goal_id", "status", "attempt", "summary", "created_at"}
    told = {"attempts", "sessions", "current_command", "current_since", "events", "older", "usage", "integrity"}
    assert set(task) >= named | told | {"blocks", "actions", "cursor", "digest"}
    [attempt] = task["attempts"]
    assert set(attempt) >= {"attempt", "status", "started_at", "ended_at", "summary", "sessions"}
    assert attempt["sessions"] == [goal["session_id"]]
    assert [session["saddle"] for session in task["sessions"]] == ["anvil"]
    assert task["usage"] == goal["usage"]


def test_a_session_says_all_there_is_to_know(reader: httpx.Client, goal: dict[str, Any]) -> None:
    session = seen(reader, f"/api/sessions/{goal['session_id']}")
    named = {"session_id", "task_id", "goal_id", "attempt", "state", "saddle", "agent", "model", "cwd", "host"}
    told = {"opened_at", "last_at", "events", "high_seq", "missing", "conflicts", "usage", "deliveries", "cursor"}
    assert set(session) >= named | told | {"resumed_from", "parent_session_id", "children"}
    assert (session["state"], session["events"], session["high_seq"]) == ("failed", 7, 4)


def test_the_fleet_says_who_is_there_and_what_needs_a_person(
    owner: httpx.Client, saddle: httpx.Client, goal: dict[str, Any]
) -> None:
    session_id, task_id = opened(saddle, task={"title": "Which colour?"})
    push(saddle, session_id, [event(0, "waiting", {"question": "Red or green?"})])
    fleet = seen(owner, "/api/fleet")
    assert set(fleet) >= {"saddles", "needs_you", "failed", "silent", "running", "ended", "counts", "at"}
    assert all(
        set(one) >= {"name", "host", "version", "last_contact", "working", "sessions"} for one in fleet["saddles"]
    )
    [waiting] = [one for one in fleet["needs_you"] if one["task_id"] == task_id]
    assert (waiting["question"], waiting["saddle"], waiting["goal_id"]) == ("Red or green?", "anvil", None)
    assert goal["run_task_id"] in [one["task_id"] for one in fleet["failed"]]
    assert set(fleet["counts"]) >= {"goals", "tasks", "sessions"}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/goals/none", "unknown_goal"),
        ("/api/tasks/none", "unknown_task"),
        ("/api/sessions/none", "unknown_session"),
        ("/api/sessions/none/events", "unknown_session"),
        ("/api/sessions/@goal/none", "unknown_session"),
    ],
)
def test_what_there_is_not_is_a_404_with_its_name(reader: httpx.Client, path: str, code: str) -> None:
    assert_problem(reader.get(path), 404, code)


# Lists


def test_lists_are_paged_with_the_newest_first(owner: httpx.Client, reader: httpx.Client) -> None:
    project_id = created(owner, "projects")["id"]
    for what in ("goals", "tasks"):
        made = [created(owner, what, project_id=project_id)["id"] for _ in range(7)]
        found = pages(reader, f"/api/{what}", project_id=project_id, limit=3)
        assert [item["id"] for item in found] == made[::-1]
    assert project_id in [item["id"] for item in pages(reader, "/api/projects", limit=1)]


def test_a_page_that_is_just_full_says_whether_more_follows(owner: httpx.Client, reader: httpx.Client) -> None:
    project_id = created(owner, "projects")["id"]
    for _ in range(2):
        created(owner, "tasks", project_id=project_id)
    assert seen(reader, "/api/tasks", project_id=project_id, limit=2)["next"] is None


def test_lists_are_filtered_by_status(owner: httpx.Client, saddle: httpx.Client, reader: httpx.Client) -> None:
    project_id = created(owner, "projects")["id"]
    queued = created(owner, "tasks", project_id=project_id)["id"]
    session_id, failed = opened(saddle, task_id=created(owner, "tasks", project_id=project_id)["id"])
    result(saddle, session_id, "failed")

    def found(status: str) -> list[str]:
        return [item["id"] for item in pages(reader, "/api/tasks", project_id=project_id, status=status)]

    assert (found("queued"), found("failed"), found("done")) == ([queued], [failed], [])


def test_list_items_say_what_a_list_needs(reader: httpx.Client, goal: dict[str, Any]) -> None:
    [item] = [one for one in pages(reader, "/api/goals") if one["id"] == goal["id"]]
    shared = {"id", "project_id", "title", "status", "attempt", "summary", "created_at", "updated_at"}
    assert set(item) >= shared | {"run_task_id", "tasks"}
    assert (item["status"], item["tasks"]) == ("failed", 1)
    assert all(set(one) >= shared | {"kind", "goal_id"} for one in pages(reader, "/api/tasks"))


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=many", "limit=-1", "limit=1.5", "after=none", "limit=" + "9" * 30],
)
def test_a_list_is_not_asked_in_riddles(reader: httpx.Client, query: str) -> None:
    problem = assert_problem(reader.get(f"/api/tasks?{query}"), 422, "invalid_field")
    assert problem["field"] == query.partition("=")[0]


# A narrative, in parts and as it stood


def test_a_long_narrative_gives_the_newest_rows_and_a_way_to_older_ones(
    saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, task_id = opened(saddle)
    push(saddle, session_id, [event(seq, "comment", {"body": f"remark {seq}"}) for seq in range(450)])
    task, rows = seen(reader, f"/api/tasks/{task_id}"), []
    assert len(task["events"]) == 200
    rows = task["events"]
    while task["older"] is not None:
        task = seen(reader, f"/api/tasks/{task_id}", before=task["older"])
        rows = task["events"] + rows
    assert [row["seq"] for row in rows if row["kind"] == "comment"] == list(range(450))


def test_a_goal_can_be_read_as_it_stood_at_a_cursor(owner: httpx.Client, saddle: httpx.Client) -> None:
    goal = acted(owner, created(owner, "goals"), "start")
    task_id = goal["run_task_id"]
    session_id, _ = opened(saddle, task_id=task_id)
    push(saddle, session_id, [event(0, "comment", {"body": "then"})])
    then = seen(owner, f"/api/goals/{goal['id']}")
    push(saddle, session_id, [event(1, "comment", {"body": "now"})])
    result(saddle, session_id, "done", summary="All is well")
    now = seen(owner, f"/api/goals/{goal['id']}")
    assert (now["status"], now["current_command"]) == ("done", "now")
    counted = {"integrity", "arrivals"}  # beside the log, so they know no past
    again = seen(owner, f"/api/goals/{goal['id']}", at=then["cursor"])
    assert {key: again[key] for key in again.keys() - counted} == {key: then[key] for key in then.keys() - counted}
    task_then = seen(owner, f"/api/tasks/{task_id}", at=then["cursor"])
    assert (task_then["status"], task_then["summary"]) == ("working", None)


def test_a_goal_that_was_not_there_yet_is_unknown_then(owner: httpx.Client) -> None:
    before = seen(owner, "/api/events")["cursor"]
    goal_id = created(owner, "goals")["id"]
    assert_problem(owner.get(f"/api/goals/{goal_id}", params={"at": before}), 404, "unknown_goal")


# The log itself


def test_the_log_can_be_read_in_position_order(reader: httpx.Client, goal: dict[str, Any]) -> None:
    feed = seen(reader, "/api/events", limit=5000)
    assert set(feed) == {"events", "cursor"}
    assert [one["position"] for one in feed["events"]] == list(range(1, len(feed["events"]) + 1))
    assert all(set(one) == EVENT for one in feed["events"])
    rest = seen(reader, "/api/events", after=feed["cursor"])
    assert rest == {"events": [], "cursor": feed["cursor"]}


def test_the_log_is_also_given_as_one_json_object_a_line(reader: httpx.Client, goal: dict[str, Any]) -> None:
    whole = seen(reader, "/api/events", limit=20)
    answer = reader.get("/api/events", params={"limit": 20}, headers={"Accept": "application/x-ndjson"})
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["ledgerd-cursor"] == whole["cursor"]
    assert answer.text.endswith("\n")
    assert [json.loads(line) for line in answer.text.splitlines()] == whole["events"]


def test_a_payload_of_several_lines_is_one_line_of_the_log(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    text = b'{"session_id": "%s", "events": [{"seq": 0, "kind": "x", "payload":' % session_id.encode()
    saddle.post("/api/saddle/chunks", content=text + b'{\r\n"a":\n[1,\n2]}}]}')
    path, accept = f"/api/sessions/{session_id}/events", {"Accept": "application/x-ndjson"}
    lines = reader.get(path, headers=accept).content.splitlines()
    assert [json.loads(line)["payload"] for line in lines][1] == {"a": [1, 2]}


def test_a_session_is_read_forward_and_backward_by_seq(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(seq) for seq in range(0, 50, 5)])
    result(saddle, session_id, "done")
    path = f"/api/sessions/{session_id}/events"
    wanted = [-1, *range(0, 50, 5), 2**63 - 1]
    page, forward = seen(reader, path, limit=4), []
    assert set(page) == {"events", "next", "previous", "cursor"}
    forward = page["events"]
    while page["next"] is not None:
        page = seen(reader, path, limit=4, **{"from": page["next"]})
        forward += page["events"]
    assert [one["seq"] for one in forward] == wanted
    backward = page["events"]
    while page["previous"] is not None:
        page = seen(reader, path, limit=4, before=page["previous"])
        backward = page["events"] + backward
    assert [one["seq"] for one in backward] == wanted


@pytest.mark.parametrize("query", ["from=9999999999999999999", "before=9999999999999999999", "from=-2", "limit=5001"])
def test_a_seq_beyond_all_seqs_is_refused(saddle: httpx.Client, reader: httpx.Client, query: str) -> None:
    session_id, _ = opened(saddle)
    assert_problem(reader.get(f"/api/sessions/{session_id}/events?{query}"), 422, "invalid_field")


def test_the_ledgers_own_streams_can_be_read(owner: httpx.Client) -> None:
    goal = acted(owner, created(owner, "goals"), "start")
    events = seen(owner, f"/api/sessions/@goal/{goal['id']}/events")["events"]
    assert [(one["seq"], one["kind"], one["task_id"]) for one in events] == [
        (0, "goal.created", None),
        (1, "goal.started", None),
    ]


def test_a_reader_that_pages_while_four_writers_commit_sees_each_event_once(
    server: Server, saddle: httpx.Client, reader: httpx.Client
) -> None:
    token = token_of(saddle)
    writers, chunks, size = 4, 25, 10
    sessions = [opened(saddle)[0] for _ in range(writers)]
    start = seen(reader, "/api/events", limit=5000)["cursor"]
    written = threading.Event()

    def write(session_id: str) -> None:
        client = server.client(token)
        for chunk in range(chunks):
            push(client, session_id, [event(chunk * size + one) for one in range(size)])

    def read() -> list[dict[str, Any]]:
        client, found, cursor = server.client(), [], start
        while True:
            last_round = written.is_set()
            page = seen(client, "/api/events", after=cursor, limit=17)
            found += page["events"]
            cursor = page["cursor"]
            if last_round and not page["events"]:
                return found

    with ThreadPoolExecutor(writers + 1) as pool:
        reading = pool.submit(read)
        list(pool.map(write, sessions))
        written.set()
        found = reading.result(30)
    positions = [one["position"] for one in found]
    assert positions == list(range(positions[0], positions[0] + writers * chunks * size))
    keys = {(one["session_id"], one["seq"]) for one in found}
    assert keys == {(session_id, seq) for session_id in sessions for seq in range(chunks * size)}


@pytest.mark.parametrize(
    "path", ["/api/events?after={cursor}", "/api/live?after={cursor}", "/api/goals/any?at={cursor}"]
)
def test_a_cursor_of_another_ledger_is_refused(reader: httpx.Client, goal: dict[str, Any], path: str) -> None:
    foreign = cursors.encode("00112233445566ff", (3,))
    problem = assert_problem(reader.get(path.format(cursor=foreign)), 422, "foreign_cursor")
    assert "00112233445566ff" in problem["detail"]


@pytest.mark.parametrize("path", ["/api/events?after={}", "/api/live?after={}", "/api/goals/{id}?at={}"])
def test_a_cursor_ahead_of_the_log_is_refused_for_its_reader_would_miss_what_comes(
    reader: httpx.Client, goal: dict[str, Any], path: str
) -> None:
    ahead = cursors.encode(seen(reader, "/readyz")["ledger_id"], (10**9,))
    assert_problem(reader.get(path.format(ahead, id=goal["id"])), 422, "foreign_cursor")


@pytest.mark.parametrize("cursor", ["", "0", "nonsense", "AAAA", "💥", "' OR 1=1"])
def test_what_is_no_cursor_is_refused(reader: httpx.Client, cursor: str) -> None:
    assert_problem(reader.get("/api/events", params={"after": cursor}), 422, "foreign_cursor")


def test_a_cursor_that_was_cut_is_refused(reader: httpx.Client) -> None:
    cursor = seen(reader, "/api/events")["cursor"]
    assert_problem(reader.get("/api/events", params={"after": cursor[:-1]}), 422, "foreign_cursor")


# For operators


def test_a_server_says_that_it_is_alive_and_ready(nobody: httpx.Client) -> None:
    assert seen(nobody, "/healthz")["ok"] is True
    assert set(seen(nobody, "/readyz")) == {"ok", "ledger_id"}


def test_metrics_count_what_came_in(server: Server, saddle: httpx.Client, reader: httpx.Client) -> None:
    def count(outcome: str) -> float:
        text = reader.get("/metrics").text
        start = f'ledgerd_events_total{{outcome="{outcome}"}} '
        [line] = [line for line in text.splitlines() if line.startswith(start)]
        return float(line.removeprefix(start))

    outcomes = ("stored", "duplicate", "conflict", "rejected", "repaired")
    before = {outcome: count(outcome) for outcome in outcomes}
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(0), event(1), event(1), event(1, payload={"x": 1}), event("no")])
    push(saddle, session_id, [event(2, at="never")])
    grown = {outcome: count(outcome) - before[outcome] for outcome in outcomes}
    assert grown == {"stored": 3, "duplicate": 1, "conflict": 1, "rejected": 1, "repaired": 1}
    position = seen(reader, "/api/events", limit=5000)["events"][-1]["position"]
    assert f'ledgerd_position{{bucket="0"}} {float(position)}' in reader.get("/metrics").text
