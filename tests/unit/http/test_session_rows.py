from __future__ import annotations

from ledger.events.model import END_SEQ
from ledger.http.session_rows import is_end_slot, session_entries
from tests.unit.http.page_samples import event


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


def at(second: int) -> str:
    return f"2026-02-03T04:05:{second:02}Z"


def test_a_call_says_how_long_it_took() -> None:
    (entry,) = session_entries([{**call(0, "make"), "at": at(1)}, {**result(1, "ok"), "at": at(31)}])
    assert entry.result is not None
    assert entry.result.took_s == 30


def test_a_call_and_a_result_of_different_clocks_are_timed_by_their_recording() -> None:
    events = [{**call(0, "make"), "at": None, "recorded_at": at(1)}, {**result(1, "ok"), "recorded_at": at(3)}]
    (entry,) = session_entries(events)
    assert entry.result is not None
    assert entry.result.took_s == 2


def test_a_result_from_before_its_call_took_no_time_that_can_be_told() -> None:
    (entry,) = session_entries([{**call(0, "make"), "at": at(9)}, {**result(1, "ok"), "at": at(1)}])
    assert entry.result is not None
    assert entry.result.took_s is None


def test_a_prompt_says_what_it_led_to() -> None:
    prompts = [event(seq, "message", {"role": "user", "text": "go"}, at=at(seq)) for seq in (0, 5)]
    work = [call(1, "make"), result(2, "ok"), call(3, "test"), event(4, "tool_result", {"exit_code": 1}, at=at(4))]
    first, *_, second = session_entries([prompts[0], *work, prompts[1]])
    assert first.turn is not None
    assert (first.turn.calls, first.turn.failed) == (2, 1)
    assert second.turn is not None
    assert (second.turn.calls, second.turn.took_s) == (0, None)


def test_of_repeated_reports_on_one_message_the_last_is_shown_and_links_to_the_others_hold() -> None:
    reports = [event(seq, "usage", {"message_id": "m", "output_tokens": seq}) for seq in (1, 3, 4)]
    (entry,) = session_entries(reports)
    assert (entry.seq, entry.also, entry.head) == (4, (1, 3), "Tokens: 4 out")


def test_an_edit_is_shown_as_the_lines_it_changed() -> None:
    args = {"file_path": "a.py", "old_string": "one\ntwo", "new_string": "one\nthree"}
    (entry,) = session_entries([event(0, "tool_call", {"tool": "Edit", "args": args})])
    assert entry.edits
    assert entry.body.splitlines()[-2:] == ["-two", "+three"]
