"""Feeds the search index from the log: which events can be found, and by what words.

Found are remarks, summaries, prompts (a message of a user, the brief of a goal or a task), commands, questions and
errors. A command that carries a remark is not: the remark is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import Recorded
from ledger.store import search_base
from ledger.store.base import Heads
from ledger.store.search_base import Batch, Entry, SearchIndex
from projections.activity import command_line
from projections.payloads import identifier, text, text_or_none
from projections.session import time_of

Payload = Mapping[str, Any]


class Indexing:
    """The consumer of a follower that keeps a search index up to date."""

    name = "search index"

    def __init__(self, index: SearchIndex) -> None:
        self._index = index

    async def heads(self) -> Heads:
        return await self._index.heads()

    async def take(self, events: Sequence[Recorded], heads: Heads) -> None:
        await self._index.add(batch_of(events), heads)


def batch_of(events: Sequence[Recorded]) -> Batch:
    """What a stretch of the log adds to an index."""
    entries: list[Entry] = []
    sessions: list[tuple[str, str | None, str | None]] = []
    projects: list[tuple[str, str]] = []
    for event in events:
        own = kinds.is_own_stream(event.session_id)
        saying = (_DECIDED if own else _SAID).get(event.kind)
        if saying is None and event.kind != kinds.SESSION_OPENED:
            continue
        payload = payload_object(event.payload)
        if not own and event.kind == kinds.SESSION_OPENED:
            sessions.append((event.session_id, text_or_none(payload, "agent"), text_or_none(payload, "host")))
        if own and (project_id := identifier(payload, "project_id")) is not None:
            projects.append((event.root, project_id))
        if saying is not None and (words := saying[1](payload)):
            entries.append(_entry(event, saying[0], words))
    return Batch(entries, sessions, projects)


def _entry(event: Recorded, sort: str, words: str) -> Entry:
    return Entry(
        event.root,
        event.task_id,
        event.session_id,
        event.seq,
        event.position,
        sort,
        event.actor,
        time_of(event),
        words,
        event.digest,
    )


def _prompt(payload: Payload) -> str:
    return text(payload, "text") if payload.get("role") == "user" else ""


def _title_and_brief(payload: Payload) -> str:
    return "\n".join(part for name in ("title", "brief") if (part := text(payload, name)))


def _brief_of_task(payload: Payload) -> str:
    """The run of a goal repeats the goal's brief."""
    return "" if payload.get("kind") == "goal_run" else _title_and_brief(payload)


def _command(payload: Payload) -> str:
    """The command in full where it is one text, else the line that pages show of the call."""
    line = command_line(payload)
    if line is None:
        return ""
    args = payload.get("args")
    named = (args.get(name) for name in ("command", "cmd", "script")) if isinstance(args, dict) else ()
    return next((value for value in named if isinstance(value, str) and value), line)


_Sayings = dict[str, tuple[str, Callable[[Payload], str]]]
_SAID: _Sayings = {
    kinds.COMMENT: (search_base.REMARK, lambda payload: text(payload, "body")),
    kinds.RESULT: (search_base.SUMMARY, lambda payload: text(payload, "summary")),
    kinds.MESSAGE: (search_base.PROMPT, _prompt),
    kinds.TOOL_CALL: (search_base.COMMAND, _command),
    kinds.WAITING: (search_base.QUESTION, lambda payload: text(payload, "question")),
    kinds.ERROR: (search_base.ERROR, lambda payload: text(payload, "message")),
}
_DECIDED: _Sayings = {
    kinds.GOAL_CREATED: (search_base.PROMPT, _title_and_brief),
    kinds.TASK_CREATED: (search_base.PROMPT, _brief_of_task),
}
