"""What a page shows of each narrative row and of each event of a session, before it is markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ledger.events import kinds
from ledger.events.model import END_SEQ
from ledger.http.agent_text import first_sentence, plain
from projections.activity import command_line

Json = Mapping[str, Any]

_TONES = {"failed": "failed", "error": "failed", "done": "done", "waiting": "waiting", "suspended": "waiting"}


@dataclass(frozen=True)
class Row:
    """A narrative row. `head` says it in a sentence, `body` is what was written with it, `footnote` the number
    under which the whole of a longer remark stands (0: none)."""

    kind: str
    tone: str
    head: str
    body: str
    footnote: int
    copies: int
    at: str
    actor: str
    session_id: str
    seq: int
    position: int


def narrative_rows(rows: Iterable[Json], titles: Mapping[str, str]) -> list[Row]:
    """The rows of a goal or task, oldest first, as their pages say them. `titles` names the tasks that a row
    must name: the further tasks of a goal, by id."""
    shown = []
    footnotes = 0
    for row in rows:
        head, body = _head_and_body(row, titles.get(str(row["task_id"]), ""))
        footnote = 0
        if row["kind"] == kinds.COMMENT and body:
            footnotes = footnote = footnotes + 1
        shown.append(
            Row(
                kind=row["kind"],
                tone="remark" if row["kind"] == kinds.COMMENT else _TONES.get(row["kind"].split("-")[-1], ""),
                head=head,
                body=body,
                footnote=footnote,
                copies=row["copies"],
                at=row["at"],
                actor=row["actor"],
                session_id=row["session_id"],
                seq=row["seq"],
                position=row["position"],
            )
        )
    return shown


def _head_and_body(row: Json, title: str) -> tuple[str, str]:
    kind, text = row["kind"], row["text"] or ""
    whose = f"{title}: " if title else ""
    if kind == kinds.COMMENT:
        return _remark(text)
    if kind == "goal-created":
        return f"Created by {row['actor']}." if row["actor"] else "Created.", ""
    if kind == "goal-started":
        return text or "Started", ""
    if kind == "task-started":
        return f"{whose}started" if title else "Started", ""
    plain_heads = {"waiting": "waits for you", "suspended": "suspended", "resumed": "went on", "error": "an error"}
    if kind in plain_heads:
        return _capital(whose + plain_heads[kind]), text
    subject, _, ending = kind.partition("-")
    if subject in ("goal", "task") and ending in kinds.TERMINAL_STATES:
        said = {"done": "is done", "failed": "failed", "cancelled": "was cancelled"}[ending]
        return f"{title or f'The {subject}'} {said}.", text
    return kind, text


def _remark(text: str) -> tuple[str, str]:
    whole = plain(text).strip()
    head = first_sentence(whole)
    return head, "" if head == whole else text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Result:
    """What a tool gave back: its exit code as text ("" where none was said) and its non-empty outputs."""

    seq: int
    at: str
    exit_code: str
    failed: bool
    outputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Entry:
    """One event of a session, or a tool call with its result. `shape` picks how it is drawn: message, exchange,
    remark, state, error, usage or other. `line` is a tool call in one line; `body` has its arguments where the line
    does not say them all."""

    shape: str
    seq: int
    kind: str
    actor: str
    at: str
    head: str
    body: str
    line: str = ""
    carries_remark: bool = False
    result: Result | None = None


def session_entries(events: Sequence[Json]) -> list[Entry]:
    """The events of a session in seq order, each tool result folded into its call where that is on the page: the
    call of the same `call_id`, or for a result without one the last call before it that has no result yet."""
    results = _results_of_calls(events)
    folded = {result["seq"] for result in results.values()}
    return [_entry(event, results.get(event["seq"])) for event in events if event["seq"] not in folded]


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
        return _called(entry, _object(event), None if result is None else _result(result))
    return entry


def _called(entry: Entry, payload: Json, result: Result | None) -> Entry:
    line = command_line(payload)
    if line is None:
        return replace(entry, carries_remark=True, result=result)
    args = payload.get("args")
    all_said = isinstance(args, dict) and list(args.values()) == [line]
    line = line.removeprefix(entry.head).removeprefix(": ")
    return replace(entry, line=line, body="" if all_said or not args else entry.body, result=result)


def _shape_of(event: Json) -> tuple[str, str, str]:
    """(shape, head, body) of an event by its kind."""
    kind, payload = event["kind"], _object(event)
    if kind == kinds.MESSAGE:
        return "message", text_of(payload.get("role")), text_of(payload.get("text"))
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
        return "state", _capital(text_of(payload.get("state"))), text_of(payload.get("summary"))
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
        failed=exit_code not in ("", "0") or payload.get("is_error") is True,
        outputs=tuple((name, text) for name, text in named if text),
    )


def _object(event: Json) -> Json:
    payload = event["payload"]
    return payload if isinstance(payload, dict) else {}
