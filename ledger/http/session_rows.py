"""What the page of a session shows of each of its events, before it is markup."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ledger.events import kinds
from ledger.events.model import END_SEQ
from ledger.http.diffs import edit_of, is_diff
from ledger.http.page_words import seconds_between
from projections.activity import command_line
from projections.doing import result_failed

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What a tool gave back: its exit code as text ("" where none was said), its non-empty outputs as
    (name, text, is a diff), and how long it took, in seconds, where both times are known."""

    seq: int
    at: str
    exit_code: str
    failed: bool
    outputs: tuple[tuple[str, str, bool], ...]
    took_s: float | None = None


@dataclass(frozen=True)
class Turn:
    """What followed a message of a person, as far as it is on the page."""

    calls: int
    failed: int
    took_s: float | None


@dataclass(frozen=True)
class Entry:
    """One event of a session, or a tool call with its result. `shape` picks how it is drawn: message, prompt,
    exchange, remark, state, error, usage or other. `line` is a tool call in one line; `body` has its arguments where
    the line does not say them all, as a diff if `edits`. `also` are the seqs of earlier reports of the same usage.
    `turn` is what a prompt led to."""

    shape: str
    seq: int
    kind: str
    actor: str
    at: str
    head: str
    body: str
    line: str = ""
    carries_remark: bool = False
    edits: bool = False
    result: Result | None = None
    also: tuple[int, ...] = ()
    turn: Turn | None = None


def session_entries(events: Sequence[Json]) -> list[Entry]:
    """The events of a session in seq order, each tool result folded into its call where that is on the page: the
    call of the same `call_id`, or for a result without one the last call before it that has no result yet. Of
    several reports on the usage of one message the last is shown."""
    results = _results_of_calls(events)
    repeated = _repeated_reports(events)
    folded = {result["seq"] for result in results.values()} | {seq for seqs in repeated.values() for seq in seqs}
    return _with_turns(
        [
            replace(_entry(event, results.get(event["seq"])), also=tuple(repeated.get(event["seq"], ())))
            for event in events
            if event["seq"] not in folded
        ]
    )


def is_end_slot(seq: int) -> bool:
    """True for the slot of a terminal result that was pushed without a seq."""
    return seq == END_SEQ


def text_of(value: object) -> str:
    """Any JSON value as text for people: a string as it is, null as nothing, the rest as indented JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _results_of_calls(events: Sequence[Json]) -> dict[int, Json]:
    """By the seq of each tool call the event of its result."""
    results: dict[int, Json] = {}
    open_calls: list[Json] = []
    for event in events:
        if event["kind"] == kinds.TOOL_CALL:
            open_calls.append(event)
        elif event["kind"] == kinds.TOOL_RESULT:
            call_id = text_of(_object(event).get("call_id"))
            for call in reversed(open_calls):
                if not call_id or text_of(_object(call).get("call_id")) == call_id:
                    results[call["seq"]] = event
                    open_calls.remove(call)
                    break
    return results


def _repeated_reports(events: Sequence[Json]) -> dict[int, list[int]]:
    """By the seq of the last report on a message the seqs of those before it."""
    by_message: dict[str, list[int]] = {}
    for event in events:
        if event["kind"] == kinds.USAGE and (message := text_of(_object(event).get("message_id"))):
            by_message.setdefault(message, []).append(event["seq"])
    return {seqs[-1]: seqs[:-1] for seqs in by_message.values() if len(seqs) > 1}


def _with_turns(entries: list[Entry]) -> list[Entry]:
    """The entries with what each prompt led to: all up to the next."""
    starts = [place for place, entry in enumerate(entries) if entry.shape == "prompt"]
    for start, end in pairwise([*starts, len(entries)]):
        led_to = entries[start + 1 : end]
        results = [entry.result for entry in led_to if entry.shape == "exchange" and entry.result]
        entries[start] = replace(
            entries[start],
            turn=Turn(
                calls=sum(entry.shape == "exchange" for entry in led_to),
                failed=sum(result.failed for result in results),
                took_s=seconds_between(entries[start].at, max((_last_at(entry) for entry in led_to), default="")),
            ),
        )
    return entries


def _last_at(entry: Entry) -> str:
    return entry.at if entry.result is None else max(entry.at, entry.result.at)


def _entry(event: Json, result: Json | None) -> Entry:
    shape, head, body = _shape_of(event)
    entry = Entry(
        shape=shape,
        seq=event["seq"],
        kind=event["kind"],
        actor=event["actor"],
        at=event["at"] or event["recorded_at"],
        head=head,
        body=body,
    )
    if event["kind"] == kinds.TOOL_RESULT:
        return replace(entry, result=_result(event))
    if event["kind"] == kinds.TOOL_CALL:
        return _called(entry, _object(event), None if result is None else _answer(event, result))
    return entry


def _answer(call: Json, event: Json) -> Result:
    """The result of a call; a time is taken only from two times of the same clock."""
    both = call["at"], event["at"]
    recorded = call["recorded_at"], event["recorded_at"]
    return replace(_result(event), took_s=seconds_between(*both) if all(both) else seconds_between(*recorded))


def _called(entry: Entry, payload: Json, result: Result | None) -> Entry:
    line = command_line(payload)
    if line is None:
        return replace(entry, carries_remark=True, result=result)
    args = payload.get("args")
    line = line.removeprefix(entry.head).removeprefix(": ")
    if change := edit_of(args):
        return replace(entry, line=line, body=change, edits=True, result=result)
    all_said = isinstance(args, dict) and list(args.values()) == [line]
    return replace(entry, line=line, body="" if all_said or not args else entry.body, result=result)


def _shape_of(event: Json) -> tuple[str, str, str]:
    """(shape, head, body) of an event by its kind."""
    kind, payload = event["kind"], _object(event)
    if kind == kinds.MESSAGE:
        role = text_of(payload.get("role"))
        return "prompt" if role == "user" else "message", role, text_of(payload.get("text"))
    if kind == kinds.COMMENT:
        return "remark", "", text_of(payload.get("body"))
    if kind == kinds.TOOL_CALL:
        return "exchange", text_of(payload.get("tool")) or "tool", text_of(payload.get("args"))
    if kind == kinds.TOOL_RESULT:
        return "exchange", text_of(payload.get("tool")) or "Result of an earlier call", ""
    if kind == kinds.ERROR:
        return "error", "An error", text_of(payload.get("message"))
    if kind == kinds.WAITING:
        return "state", "Waits for a person", text_of(payload.get("question"))
    if kind == kinds.RESULT:
        return "state", text_of(payload.get("state")).capitalize(), text_of(payload.get("summary"))
    if kind == kinds.USAGE:
        return "usage", _usage_sentence(payload), ""
    if kind == kinds.SESSION_OPENED:
        return "other", "Opened", text_of(payload)
    return "other", kind, text_of(event["payload"])


def _usage_sentence(payload: Json) -> str:
    named = (("input_tokens", "in"), ("output_tokens", "out"), ("cache_read_tokens", "read from the cache"))
    counts = ((payload.get(name), word) for name, word in named)
    parts = [f"{count:,} {word}" for count, word in counts if isinstance(count, int)]
    return "Tokens: " + ", ".join(parts) if parts else "Tokens"


def _result(event: Json) -> Result:
    payload = _object(event)
    named = ((name, text_of(payload.get(name))) for name in ("output", "stdout", "stderr"))
    exit_code = text_of(payload.get("exit_code"))
    return Result(
        seq=event["seq"],
        at=event["at"] or event["recorded_at"],
        exit_code=exit_code,
        failed=result_failed(payload.get("exit_code"), payload.get("is_error")),
        outputs=tuple((name, text, is_diff(text)) for name, text in named if text),
    )


def _object(event: Json) -> Json:
    payload = event["payload"]
    return payload if isinstance(payload, dict) else {}
