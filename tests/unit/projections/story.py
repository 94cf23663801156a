"""Given, when, then for projections: a log written line by line, folded, and looked at."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ledger.events.content import content_digest
from ledger.events.model import END_SEQ, OPENING_SEQ, Recorded
from projections.catalog import CATALOG, Catalog
from projections.fold import fold
from projections.goal import ROOT, Integrity, Root, goal_view, session_view, task_view
from projections.narrative import Row, all_rows
from projections.session import StreamFacts

START_NS = 1_700_000_000 * 10**9
SECOND_NS = 10**9


class Story:
    """A log of one or more roots. Each line takes the next position, a second after the one before."""

    def __init__(self) -> None:
        self.events: list[Recorded] = []
        self._scopes: dict[str, tuple[str | None, str]] = {}
        self._own_seqs: dict[str, int] = {}

    # What the ledger decides

    def goal(self, goal_id: str = "7", **fields: Any) -> Story:
        self._scopes[f"@goal/{goal_id}"] = (None, f"goal/{goal_id}")
        payload = {"id": goal_id, "project_id": "1", "title": f"Goal {goal_id}", "brief": "", "branch_name": "work"}
        return self.decided(f"@goal/{goal_id}", "goal.created", payload | fields)

    def project(self, project_id: str) -> Story:
        self._scopes[f"@project/{project_id}"] = (None, f"project/{project_id}")
        payload = {"id": project_id, "title": f"Project {project_id}"}
        return self.decided(f"@project/{project_id}", "project.created", payload)

    def task(self, task_id: str, goal_id: str | None = None, kind: str = "task", **fields: Any) -> Story:
        root = f"task/{task_id}" if goal_id is None else f"goal/{goal_id}"
        self._scopes[f"@task/{task_id}"] = (task_id, root)
        payload = {"id": task_id, "kind": kind, "title": f"Task {task_id}", "brief": "", "goal_id": goal_id}
        return self.decided(f"@task/{task_id}", "task.created", payload | fields)

    def started_goal(self, goal_id: str = "7", run_task_id: str = "1") -> Story:
        self.goal(goal_id)
        self.decided(f"@goal/{goal_id}", "goal.started", {"run_task_id": run_task_id})
        return self.task(run_task_id, goal_id, kind="goal_run")

    def decided(self, stream: str, kind: str, payload: dict[str, Any] | None = None, actor: str = "owner") -> Story:
        seq = self._own_seqs[stream] = self._own_seqs.get(stream, -1) + 1
        return self._add(stream, seq, kind, payload or {}, actor)

    def requeued(self, task_id: str) -> Story:
        return self.decided(f"@task/{task_id}", "task.requeued")

    # What saddles do

    def opened(self, session_id: str, task_id: str, saddle: str = "anvil", **fields: Any) -> Story:
        self._scopes[session_id] = (task_id, self._scopes[f"@task/{task_id}"][1])
        payload = {"task_id": task_id, "saddle": saddle} | fields
        return self._add(session_id, OPENING_SEQ, "session.opened", payload, saddle)

    def said(
        self,
        session_id: str,
        seq: int,
        kind: str,
        payload: dict[str, Any] | None = None,
        actor: str = "model",
        at: int | None = None,
    ) -> Story:
        return self._add(session_id, seq, kind, payload or {}, actor, at)

    def comment(self, session_id: str, seq: int, body: str, at: int | None = None) -> Story:
        return self.said(session_id, seq, "comment", {"body": body}, at=at)

    def command(self, session_id: str, seq: int, command: str) -> Story:
        return self.said(session_id, seq, "tool_call", {"tool": "run_command", "args": {"command": command}})

    def result(
        self, session_id: str, state: str, summary: str | None = None, seq: int = END_SEQ, at: int | None = None
    ) -> Story:
        return self.said(session_id, seq, "result", {"state": state, "summary": summary}, actor="anvil", at=at)

    def _add(
        self, stream: str, seq: int, kind: str, payload: dict[str, Any], actor: str, at: int | None = None
    ) -> Story:
        task_id, root = self._scopes[stream]
        text = json.dumps(payload).encode()
        position = len(self.events) + 1
        recorded_at = START_NS + position * SECOND_NS
        digest = content_digest(kind, actor, text)
        self.events.append(
            Recorded(position, 0, stream, seq, kind, actor, at, recorded_at, task_id, root, text, digest)
        )
        return self

    # What is seen

    def root(self, name: str = "goal/7") -> Root:
        return fold(ROOT, ROOT.initial, (event for event in self.events if event.root == name))

    def catalog(self) -> Catalog:
        return fold(CATALOG, CATALOG.initial, self.events)

    def goal_json(self, **paging: Any) -> dict[str, Any]:
        found = goal_view(self.root(), integrity=Integrity(), cursor="c1", **paging)
        assert found is not None
        return found

    def task_json(self, task_id: str, **paging: Any) -> dict[str, Any]:
        root = self.root(self._scopes[f"@task/{task_id}"][1])
        found = task_view(root, task_id, integrity=Integrity(), cursor="c1", **paging)
        assert found is not None
        return found

    def session_json(self, session_id: str, facts: StreamFacts | None = None) -> dict[str, Any]:
        root = self.root(self._scopes[session_id][1])
        found = session_view(root, session_id, facts=facts or StreamFacts(), cursor="c1")
        assert found is not None
        return found

    def rows(self, name: str = "goal/7") -> list[Row]:
        return list(all_rows(self.root(name).narrative))


def kinds_of(rows: Iterable[Row]) -> list[str]:
    return [row.kind for row in rows]


def texts_of(rows: Iterable[Row], kind: str) -> list[str]:
    return [row.text for row in rows if row.kind == kind]
