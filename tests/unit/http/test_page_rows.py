from __future__ import annotations

from ledger.events.model import END_SEQ
from ledger.http.page_rows import is_end_slot, narrative_rows, session_entries
from tests.unit.http.page_samples import event, row


def call(seq: int, command: str, call_id: str | None = None) -> dict[str, object]:
    return event(seq, "tool_call", {"tool": "shell", "args": {"command": command}, "call_id": call_id})


def result(seq: int, output: str, call_id: str | None = None) -> dict[str, object]:
    return event(seq, "tool_result", {"output": output, "call_id": call_id})


def outputs(*events: dict[str, object]) -> list[tuple[int, str]]:
    """Of each entry its seq and what its result put out."""
    return [(entry.seq, entry.result.outputs[0][1] if entry.result else "") for entry in session_entries(events)]


def test_results_are_folded_into_the_calls_of_their_ids() -> None:
    found = outputs(call(0, "a", "x"), call(1, "b", "y"), result(2, "of b", "y"), result(3, "of a", "x"))
    assert found == [(0, "of a"), (1, "of b")]


def test_a_result_without_an_id_belongs_to_the_last_open_call() -> None:
    assert outputs(call(0, "a"), result(1, "of a"), call(2, "b"), result(3, "of b")) == [(0, "of a"), (2, "of b")]


def test_a_result_whose_call_is_not_on_the_page_stands_alone() -> None:
    assert outputs(result(7, "late", "gone"), call(8, "a", "x")) == [(7, "late"), (8, "")]


def test_arguments_are_repeated_only_where_the_line_does_not_say_them_all() -> None:
    short, long = session_entries([call(0, "make"), call(1, "make\nmake test")])
    assert (short.line, short.body) == ("make", "")
    assert long.line == "make make test"
    assert "make\\nmake test" in long.body


def test_payloads_of_any_shape_make_an_entry() -> None:
    odd = [None, "text", 5, [1], {"tool": {"x": 1}, "args": [1], "text": [2], "exit_code": "nine"}]
    kinds = ["tool_call", "tool_result", "message", "comment", "error", "usage", "result", "waiting", "x"]
    events = [
        event(seq, kind, payload) for kind in kinds for seq, payload in enumerate(odd, len(odd) * kinds.index(kind))
    ]
    assert session_entries(events)[0].shape == "exchange"


def test_an_event_without_a_time_stands_at_its_recording() -> None:
    assert session_entries([event(0, "x", {}, at=None, recorded_at="2025-01-01T00:00:00Z")])[0].at.startswith("2025")


def test_the_end_slot_is_told_from_other_places() -> None:
    assert is_end_slot(END_SEQ)
    assert not is_end_slot(END_SEQ - 1)


def test_every_kind_of_row_is_told_in_words() -> None:
    kinds = "goal-started task-started waiting suspended resumed error task-done goal-failed goal-cancelled"
    told = [shown.head for shown in narrative_rows([row(kind, "") for kind in kinds.split()], {})]
    assert told == [
        "Started",
        "Started",
        "Waits for you",
        "Suspended",
        "Went on",
        "An error",
        "The task is done.",
        "The goal failed.",
        "The goal was cancelled.",
    ]


def test_a_further_attempt_says_so() -> None:
    (shown,) = narrative_rows([row("goal-started", "Started again, attempt 2")], {})
    assert shown.head == "Started again, attempt 2"


def test_only_remarks_and_endings_carry_a_tone() -> None:
    rows = [row(kind, "") for kind in ("comment", "task-failed", "goal-done", "waiting", "goal-created")]
    assert [shown.tone for shown in narrative_rows(rows, {})] == ["remark", "failed", "done", "waiting", ""]
