"""Gemini CLI chats: `~/.gemini/tmp/PROJECT/chats/session-TIME-ID.json`, one document that is written over, and in
later versions `.jsonl`, to which records are added: metadata, messages (again whenever one changes), `$set`,
`$rewindTo`.

Sessions. A file is one session, its `sessionId`. Resuming an old `.json` writes its history to a `.jsonl` beside it:
the same messages, and here the same keys. A subagent's file lies in a folder named after its parent.

Keys. Messages have a time and no number, and a rewind or a compression takes some away. So seq = (the message's time
in ms after the session's start, and at least one more than the message before) × 1000 + a place within the message.
Each is read once it has settled: a tool's result when the tool has ended, tokens when they are known. What has been
read once stands; the CLI masks old tool outputs in place.

`input_tokens` are those that were not cached, `output_tokens` include thoughts. A chat does not say how its work
ended, so no terminal result is made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from ledger.events import kinds
from ledger.events.times import parse_instant
from ledger.transcripts.batches import Gathered, gathered
from ledger.transcripts.bounding import bounded
from ledger.transcripts.model import (
    HARNESS,
    MODEL,
    USER,
    Batch,
    Mark,
    NoSession,
    Report,
    Row,
    Said,
    TranscriptSession,
    checked_id,
    given,
    title_of,
)
from ledger.transcripts.reading import LineReader

AGENT = "gemini"
DOCUMENT_BYTES_MAX = 256 * 2**20

_PLACES = 1000
_TEXT, _USAGE, _TOOLS = 400, 402, 410  # thoughts come before them, from 0
_THOUGHTS_MAX = 400
_TOOLS_MAX = (_PLACES - _TOOLS) // 2
_ENDED = frozenset({"success", "error", "cancelled"})
_SLACK_MS = 86_400_000  # a message may be older than its session's start by a clock's skew

Placed = tuple[int, Said]


def open_transcript(
    path: Path, report: Report, start: Mark | None = None, *, growing: bool = False
) -> GeminiTranscript:
    """The chat at `path`, as a whole. Raises NoSession where it is none, and OSError where it cannot be read."""
    about, messages = _read_lines(path, report, growing) if path.suffix == ".jsonl" else _read_document(path, report)
    return GeminiTranscript(path, about, messages, report)


class GeminiTranscript:
    """One chat. `versions` of a message are its records in the order in which they were written."""

    def __init__(self, path: Path, about: Row, versions: dict[str, list[Row]], report: Report) -> None:
        session_id = about.get("sessionId")
        if not isinstance(session_id, str):
            raise NoSession(f"{path}: no record names a session")
        self._path = path
        self._about = about
        self._versions = versions
        self._report = report
        self.session = self._session(checked_id(session_id, path))

    @property
    def is_child(self) -> bool:
        return self.session.parent_session_id is not None

    @property
    def mark(self) -> None:
        return None

    def batches(self) -> Iterator[Batch]:
        return gathered(self._parts())

    def _session(self, session_id: str) -> TranscriptSession:
        newest = [versions[-1] for versions in self._versions.values()]
        prompts = (_content(message) for message in newest if message.get("type") == "user")
        models = (message.get("model") for message in newest)
        directories = self._about.get("directories")
        parent = self._path.parent.name if self._about.get("kind") == "subagent" else None
        return TranscriptSession(
            session_id=session_id,
            thread_id=parent or session_id,
            title=title_of(next(filter(str.strip, prompts), "")) or f"Gemini session {session_id[:8]}",
            agent=AGENT,
            cwd=next((d for d in directories if isinstance(d, str)), None) if isinstance(directories, list) else None,
            model=next((model for model in models if isinstance(model, str)), None),
            parent_session_id=parent,
            started_at=self._about.get("startTime"),
        )

    def _parts(self) -> Iterator[Gathered]:
        start_ms = _ms(self._about.get("startTime")) or 0
        place = 0
        for versions in self._versions.values():
            at = versions[0].get("timestamp")
            ms = _ms(at)
            place = max(place + 1, 0 if ms is None else ms - start_ms + _SLACK_MS)
            said: dict[int, Said] = {}
            for version in versions:
                for slot, one in _said_by(version):
                    said.setdefault(slot, one)
            for slot, (kind, actor, payload) in sorted(said.items()):
                payload, size = bounded(payload)
                event = {"seq": place * _PLACES + slot, "kind": kind, "actor": actor, "payload": payload}
                yield self.session, [event if at is None else {**event, "at": at}], size, 0


# Reading


def _read_document(path: Path, report: Report) -> tuple[Row, dict[str, list[Row]]]:
    if path.stat().st_size > DOCUMENT_BYTES_MAX:
        raise NoSession(f"{path}: larger than {DOCUMENT_BYTES_MAX:,} bytes")
    try:
        document = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:  # being written over just now, or cut short
        report.bad_line(path, error.lineno, f"not JSON: {error.msg}")
        raise NoSession(f"{path}: no whole document") from error
    if not isinstance(document, dict):
        raise NoSession(f"{path}: no chat")
    versions: dict[str, list[Row]] = {}
    _add(versions, document.get("messages"))
    return document, versions


def _read_lines(path: Path, report: Report, growing: bool) -> tuple[Row, dict[str, list[Row]]]:
    """A rewind takes nothing away here: what was said has been said."""
    about: Row = {}
    versions: dict[str, list[Row]] = {}
    for line in LineReader(path, report, growing=growing):
        for row in line.rows:
            changes = row.get("$set")
            if isinstance(changes, dict):
                _add(versions, changes.get("messages"))
                about.update(
                    {name: value for name, value in changes.items() if name not in ("messages", "sessionId")}
                )
            elif isinstance(row.get("id"), str):
                _add(versions, [row])
            elif "sessionId" in row:
                about = {**row, **about}
                _add(versions, row.get("messages"))
            elif "$rewindTo" not in row:
                report.skip("record of an unknown shape")
    return about, versions


def _add(versions: dict[str, list[Row]], messages: Any) -> None:
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and isinstance(message.get("id"), str):
            versions.setdefault(message["id"], []).append(message)


# What a message says


def _said_by(message: Row) -> Iterator[Placed]:
    """The settled events of one version of a message, each with its place."""
    type_, text = message.get("type"), _content(message)
    if type_ == "gemini":
        yield from _said_by_model(message, text)
    elif not text.strip():
        return
    elif type_ == "user":
        yield _TEXT, (kinds.MESSAGE, USER, {"role": "user", "text": text})
        yield _TEXT + 1, (kinds.RESULT, HARNESS, {"state": kinds.WORKING})
    elif type_ == "error":
        yield _TEXT, (kinds.ERROR, HARNESS, {"message": text})
    elif type_ in ("info", "warning"):
        yield _TEXT, (kinds.MESSAGE, HARNESS, {"role": HARNESS, "text": text})
    else:
        payload = {name: value for name, value in message.items() if name not in ("id", "timestamp", "type")}
        yield _TEXT, (f"gemini.{str(type_)[:100]}", HARNESS, payload)


def _said_by_model(message: Row, text: str) -> Iterator[Placed]:
    source = given({"message_id": message.get("id"), "model": message.get("model")})
    for index, thought in enumerate(_rows(message.get("thoughts"))[:_THOUGHTS_MAX]):
        words = "\n".join(filter(None, [str(thought.get("subject") or ""), str(thought.get("description") or "")]))
        if words.strip():
            yield index, (kinds.MESSAGE, MODEL, {"role": "thinking", "text": words, **source})
    if text.strip():
        yield _TEXT, (kinds.MESSAGE, MODEL, {"role": "assistant", "text": text, **source})
    tokens = message.get("tokens")
    if isinstance(tokens, dict):
        yield _USAGE, (kinds.USAGE, MODEL, {**source, **_usage(tokens)})
    for index, call in enumerate(_rows(message.get("toolCalls"))[:_TOOLS_MAX]):
        place = _TOOLS + 2 * index
        payload = {"tool": call.get("name"), "args": call.get("args"), "call_id": call.get("id")}
        yield place, (kinds.TOOL_CALL, MODEL, given(payload))
        if call.get("status") in _ENDED:
            yield place + 1, (kinds.TOOL_RESULT, HARNESS, _tool_result(call))


def _usage(tokens: Row) -> dict[str, int]:
    def count(name: str) -> int:
        value = tokens.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    return {
        "input_tokens": max(count("input") - count("cached"), 0) + count("tool"),
        "output_tokens": count("output") + count("thoughts"),
        "cache_read_tokens": count("cached"),
    }


def _tool_result(call: Row) -> dict[str, Any]:
    texts, failed = [], call.get("status") != "success"
    for part in _rows(call.get("result")):
        response = part.get("functionResponse")
        answer = response.get("response") if isinstance(response, dict) else None
        if isinstance(answer, dict):
            failed = failed or "error" in answer
            words = answer.get("output", answer.get("error", answer))
            texts.append(words if isinstance(words, str) else orjson.dumps(words).decode())
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    payload = {"call_id": call.get("id"), "tool": call.get("name"), "output": "\n".join(texts)}
    return {**payload, "is_error": True} if failed else payload


def _content(message: Row) -> str:
    """The text of a message: a string, or a list of strings and parts."""
    content = message.get("content")
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    texts = [part.get("text") if isinstance(part, dict) else part for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))


def _rows(value: Any) -> list[Row]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _ms(at: Any) -> int | None:
    ns = parse_instant(at)
    return None if ns is None else ns // 10**6
