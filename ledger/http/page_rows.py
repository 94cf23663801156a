"""What a page shows of each narrative row and of each session of a task, before it is markup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.events import kinds
from ledger.http.agent_text import first_sentence, plain
from ledger.http.page_words import capital

Json = Mapping[str, Any]

_TONES = {"failed": "failed", "error": "failed", "done": "done", "waiting": "waiting", "suspended": "waiting"}


@dataclass(frozen=True)
class Row:
    """A narrative row. `head` says it in a sentence, `body` is what was written with it, `footnote` the number
    under which the whole of a longer remark stands (0: none). `deliveries` counts how often an ending was delivered,
    by all of its `copies`; `said_by` names the first of them."""

    kind: str
    tone: str
    head: str
    body: str
    footnote: int
    copies: int
    deliveries: int
    said_by: tuple[str, ...]
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
                deliveries=row.get("deliveries", 0),
                said_by=tuple(row.get("said_by", ())),
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
        return capital(whose + plain_heads[kind]), text
    subject, _, ending = kind.partition("-")
    if subject in ("goal", "task") and ending in kinds.TERMINAL_STATES:
        said = {"done": "is done", "failed": "failed", "cancelled": "was cancelled"}[ending]
        if row.get("tried_again"):
            return f"{whose}{'attempt' if title else 'Attempt'} {row['attempt']} {said}.", text
        return f"{title or f'The {subject}'} {said}.", text
    return kind, text


def _remark(text: str) -> tuple[str, str]:
    whole = plain(text).strip()
    head = first_sentence(whole)
    return head, "" if head == whole else text


DEPTH_MAX = 6


def session_tree(sessions: Sequence[Json]) -> list[tuple[int, Json]]:
    """The sessions of a task, each child after its parent: (depth, session), the depth at most DEPTH_MAX. A session
    whose parent is not among them stands at depth 0."""
    names = {session["session_id"] for session in sessions}
    children: dict[str | None, list[Json]] = {}
    for session in sessions:
        parent = session["parent_session_id"]
        children.setdefault(parent if parent in names else None, []).append(session)
    found: list[tuple[int, Json]] = []
    waiting = [(0, session) for session in reversed(children.pop(None, []))]
    while waiting:
        depth, session = waiting.pop()
        found.append((min(depth, DEPTH_MAX), session))
        waiting += [(depth + 1, child) for child in reversed(children.pop(session["session_id"], []))]
    # What is left are sessions that name each other as parents.
    return found + [(0, session) for ring in children.values() for session in ring]
