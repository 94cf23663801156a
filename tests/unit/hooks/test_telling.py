"""From what lies in the spool to sessions and events in an outbox."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ledger.client.outbox import Outbox
from ledger.events.content import payload_object
from ledger.events.model import END_SEQ, OPENING_SEQ
from ledger.events.times import format_instant
from ledger.hooks.spool import TICK_NS
from ledger.hooks.telling import EVENTS_OF_RECORD_MAX, HOLD_S, BadRecord, Teller
from tests.unit.hooks.hooked import TICK, S, bash, claude, record


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    outbox = Outbox(tmp_path / "outbox.db")
    yield outbox
    outbox.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def teller(outbox: Outbox, clock: Clock) -> Teller:
    return Teller(outbox, host="forge", now=clock)


def kept(outbox: Outbox, session_id: str = f"{S}.hook") -> list[tuple[int, str, dict[str, Any]]]:
    with closing(sqlite3.connect(outbox.path)) as db:
        rows = db.execute(
            "SELECT seq, kind, payload FROM events JOIN streams USING (stream_n) WHERE stream = ? ORDER BY seq",
            (session_id,),
        ).fetchall()
    return [(seq, kind, payload_object(payload)) for seq, kind, payload in rows]


def opening(outbox: Outbox, session_id: str = f"{S}.hook") -> dict[str, Any]:
    [(seq, _, fields)] = kept(outbox, session_id)[:1]
    assert seq == OPENING_SEQ
    return fields


def kinds(outbox: Outbox, session_id: str = f"{S}.hook") -> list[str]:
    return [f"{kind} {payload.get('state', '')}".strip() for _, kind, payload in kept(outbox, session_id)[1:]]


def test_secrets_are_taken_out_before_anything_is_kept(teller: Teller, outbox: Outbox) -> None:
    token = "ghp_" + "a1B2" * 9
    teller.tell(record(claude("UserPromptSubmit", prompt=f"Push with {token}")))
    teller.tell(record(bash("PreToolUse", f"curl -H 'Authorization: Bearer {token}' https://example.org"), 1))
    assert opening(outbox)["task"]["title"] == "Push with [REDACTED]"
    assert token not in str(kept(outbox))
    assert "[REDACTED]" in str(kept(outbox)[-2:])


def test_a_session_is_opened_on_the_task_that_its_transcript_would_get(teller: Teller, outbox: Outbox) -> None:
    teller.tell(record(claude("UserPromptSubmit", prompt="Fix the parser\nand soon")))
    assert opening(outbox) == {
        "task": {"id": f"cc-{S}", "title": "Fix the parser", "project_id": "my-app"},
        "same_run_as": S,
        "agent": "claude-code",
        "cwd": "/srv/My App",
        "host": "forge",
        "at": format_instant(TICK * TICK_NS),
    }


def test_keys_are_made_of_the_time_alone(teller: Teller, outbox: Outbox) -> None:
    teller.tell(record(claude("UserPromptSubmit", prompt="Fix it"), 7))
    first = (TICK + 7) * EVENTS_OF_RECORD_MAX
    assert [seq for seq, _, _ in kept(outbox)[1:]] == [first, first + 1]
    assert first < 2**53


def test_told_again_after_a_crash_nothing_is_new(outbox: Outbox) -> None:
    records = [
        record(claude("SessionStart", source="startup", model="opus"), 0),
        record(claude("UserPromptSubmit", prompt="Fix it"), 1),
        record(bash("PreToolUse"), 2),
        record(claude("Notification", message="Claude needs your permission"), 3),
        record(bash("PostToolUse", tool_response="ok"), 4),
        record(claude("SubagentStop", agent_id="x"), 5),
    ]
    for told in (records, records):
        teller = Teller(outbox, host="forge")
        for one in told:
            teller.tell(one)
    assert len({seq for seq, _, _ in kept(outbox)}) == len(kept(outbox))
    assert kinds(outbox)[:3] == ["claude-code.SessionStart", "message", "result working"]
    with closing(sqlite3.connect(outbox.path)) as db:
        assert db.execute("SELECT count(*) FROM dead_letters").fetchone() == (0,)


def test_the_start_of_a_session_waits_for_the_prompt_that_names_its_task(teller: Teller, outbox: Outbox) -> None:
    teller.tell(record(claude("SessionStart", source="startup", model="opus"), 0))
    assert teller.is_holding
    assert not outbox.has_session(f"{S}.hook")
    teller.tell(record(claude("UserPromptSubmit", prompt="Fix it"), 5))
    assert not teller.is_holding
    assert opening(outbox)["task"]["title"] == "Fix it"
    assert opening(outbox)["model"] == "opus"
    assert opening(outbox)["at"] == format_instant(TICK * TICK_NS)


def test_a_start_that_no_prompt_follows_is_told_all_the_same(teller: Teller, outbox: Outbox, clock: Clock) -> None:
    teller.tell(record(claude("SessionStart", source="startup")))
    teller.release()
    assert teller.is_holding
    clock.now += HOLD_S
    teller.release()
    assert not teller.is_holding
    assert opening(outbox)["task"]["title"] == "Claude Code in my-app"
    assert kinds(outbox) == ["claude-code.SessionStart"]


def test_a_state_is_told_where_it_is_news(teller: Teller, outbox: Outbox) -> None:
    permission = claude("Notification", message="Claude needs your permission")
    hooks = [
        claude("UserPromptSubmit", prompt="Fix it"),
        bash("PreToolUse"),
        permission,
        permission,
        bash("PostToolUse", tool_response="ok"),
        claude("Stop", last_assistant_message="Done."),
        claude("Notification", message="Claude is waiting for your input", notification_type="idle_prompt"),
    ]
    for n, hook in enumerate(hooks):
        teller.tell(record(hook, n))
    assert kinds(outbox) == [
        "message",
        "result working",
        "tool_call",
        "waiting",
        "tool_result",
        "result working",
        "waiting",
    ]


def test_a_subagent_works_below_its_parent(teller: Teller, outbox: Outbox) -> None:
    teller.tell(record(claude("UserPromptSubmit", prompt="Fix it"), 0))
    teller.tell(record(bash("PreToolUse", agent_id="x"), 1))
    teller.tell(record(claude("SubagentStop", agent_id="x", last_assistant_message="Found"), 2))
    child = f"{S}.agent-x.hook"
    fields = opening(outbox, child)
    assert (fields["parent_session_id"], fields["same_run_as"]) == (f"{S}.hook", f"{S}.agent-x")
    assert "task" not in fields
    assert kept(outbox, child)[-1] == (END_SEQ, "result", {"state": "done", "summary": "Found"})


def test_inside_a_run_the_session_reports_that_run(teller: Teller, outbox: Outbox) -> None:
    outbox.open_session("run-1", {"task_id": "12"})
    teller.tell(record(claude("UserPromptSubmit", prompt="Fix it"), within="run-1"))
    assert opening(outbox)["same_run_as"] == "run-1"
    assert "task" not in opening(outbox)


def test_a_run_that_this_outbox_does_not_know_is_passed_over(teller: Teller, outbox: Outbox) -> None:
    teller.tell(record(claude("UserPromptSubmit", prompt="Fix it"), within="elsewhere"))
    assert opening(outbox)["same_run_as"] == S


@pytest.mark.parametrize(
    "hook", [b"no json", b"[1]", b'{"session_id": "', {}, {"session_id": "@goal/7"}, {"session_id": "x" * 500}]
)
def test_what_names_no_session_is_refused(teller: Teller, hook: Any) -> None:
    with pytest.raises(BadRecord):
        teller.tell(record(hook))


def test_what_strict_json_refuses_is_mended(teller: Teller, outbox: Outbox) -> None:
    body = b'{"session_id": "aaaa-1", "hook_event_name": "UserPromptSubmit", "prompt": "half \\ud83d", "n": NaN}'
    teller.tell(record(body))
    assert kept(outbox)[1][2]["text"] == "half �"


def test_an_output_that_is_too_large_is_cut(teller: Teller, outbox: Outbox) -> None:
    teller.tell(record(bash("PostToolUse", tool_response="x" * 5 * 2**20)))
    assert kept(outbox)[1][2]["truncated_bytes"] > 0
