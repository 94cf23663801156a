"""What can be found by its words, and what is said across the interface of a search index.

An index is a cache beside a ledger, fed from its log: dropping it costs only the time to read the log again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ledger.store.base import Heads

REMARK, SUMMARY, PROMPT, COMMAND, QUESTION, ERROR = "remark", "summary", "prompt", "command", "question", "error"
SORTS = (REMARK, SUMMARY, PROMPT, COMMAND, QUESTION, ERROR)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One thing that was said. `task_id` is None for what was said of a goal; `at` is in ns; `digest` is that of the
    event: the same task, seq and digest under another session is a copy."""

    root: str
    task_id: str | None
    session_id: str
    seq: int
    position: int
    sort: str
    actor: str
    at: int
    text: str
    digest: bytes


class Batch(msgspec.Struct, frozen=True):
    """What a stretch of the log adds: entries; (session, agent, host) of sessions opened; (root, project) of goals
    and tasks created."""

    entries: Sequence[Entry]
    sessions: Sequence[tuple[str, str | None, str | None]]
    projects: Sequence[tuple[str, str]]


class Wanted(msgspec.Struct, frozen=True):
    """What to find. `words` is plain text: every word must occur, "words in quotes" side by side, and the last word
    may be the beginning of one; without words, whatever fits the rest. `since` and `until` are in ns, both included;
    `tasks` and `goals`, if given, are the only ones to look in; `before` is where the page before this one ended."""

    words: str = ""
    sort: str | None = None
    project_id: str | None = None
    goal_id: str | None = None
    agent: str | None = None
    host: str | None = None
    since: int | None = None
    until: int | None = None
    tasks: Sequence[str] | None = None
    goals: Sequence[str] | None = None
    before: int | None = None
    limit: int = 50


class Found(msgspec.Struct, frozen=True):
    """An entry as it was said first. `excerpt` are stretches of its text, each with whether it is what was looked
    for; `copies` counts the sessions that said it."""

    number: int
    root: str
    task_id: str | None
    session_id: str
    seq: int
    position: int
    sort: str
    actor: str
    at: int
    project_id: str | None
    agent: str | None
    host: str | None
    copies: int
    excerpt: tuple[tuple[str, bool], ...]


class SearchIndex(Protocol):
    """All methods raise StorageError (or a subclass) where the index fails."""

    async def heads(self) -> Heads:
        """How far the log has been taken in."""
        ...

    async def add(self, batch: Batch, heads: Heads) -> None:
        """Takes in a stretch of the log that ends at `heads`: both in one transaction, so nothing counts twice."""
        ...

    async def find(self, wanted: Wanted) -> tuple[list[Found], int | None]:
        """The newest that fit, and what to give as `before` for those that follow (None: there are no more).

        Raises InvalidField where looking takes too long."""
        ...

    async def close(self) -> None: ...
