"""A ledger in a few lines, behind a mock transport: what a sender is tested against."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import zstandard

from ledger.client.api import Api
from ledger.events.model import END_SEQ

Trouble = httpx.Response | Exception | None


def problem(status: int, code: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": f"it was {code}"}, headers=headers)


class Ledger:
    """Keeps sessions as {seq: event}; `before` and `after` may answer in its place, or raise, instead of storing or
    after having stored."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[int, dict[str, Any]]] = {}
        self.opened: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.before: Callable[[str, dict[str, Any]], Trouble] = lambda path, body: None
        self.after: Callable[[str, dict[str, Any]], Trouble] = lambda path, body: None
        self.bytes: list[int] = []

    def api(self) -> Api:
        return Api("http://ledger.test", "t", transport=httpx.MockTransport(self), attempts_max=1)

    def seqs(self, session_id: str) -> list[int]:
        return sorted(self.sessions[session_id])

    def bodies(self) -> list[Any]:
        return [body for _, body in self.requests]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        content = request.content
        if request.headers.get("Content-Encoding") == "zstd":
            content = zstandard.decompress(content)
        self.bytes.append(len(content))
        path, body = request.url.path, json.loads(content or b"{}")
        self.requests.append((path, body))
        for trouble in (self.before(path, body), None):
            if isinstance(trouble, Exception):
                raise trouble
            if trouble is not None:
                return trouble
        answer = self._answer(path, body)
        late = self.after(path, body)
        if isinstance(late, Exception):
            raise late
        return late or answer

    def _answer(self, path: str, body: dict[str, Any]) -> httpx.Response:
        if path == "/api/saddle/heartbeat":
            return httpx.Response(204)
        session_id = body["session_id"]
        if "open" in body:
            self.opened.setdefault(session_id, body["open"])
            self.sessions.setdefault(session_id, {})
        if session_id not in self.sessions:
            return problem(404, "unknown_session")
        held = self.sessions[session_id]
        if path == "/api/saddle/results":
            stored, conflicts = self._store(held, [{"seq": END_SEQ, "state": body["state"]}])
            return httpx.Response(200, json={"stored": stored, "duplicate": not stored, "conflict": bool(conflicts)})
        stored, conflicts = self._store(held, body["events"])
        pushed = [seq for seq in held if seq != END_SEQ]
        receipt: dict[str, Any] = {
            "stored": stored,
            "duplicates": len(body["events"]) - stored - len(conflicts),
            "conflicts": [{"seq": seq} for seq in conflicts],
            "rejected": [],
            "high_seq": max(pushed, default=None),
        }
        if self.opened.get(session_id, {}).get("contiguous"):
            receipt["missing"] = [[seq, seq] for seq in range(max(pushed, default=-1)) if seq not in held]
        return httpx.Response(200, json=receipt)

    def _store(self, held: dict[int, dict[str, Any]], events: list[dict[str, Any]]) -> tuple[int, list[int]]:
        conflicts = [e["seq"] for e in events if e["seq"] in held and not same(held[e["seq"]], e)]
        new = [event for event in events if event["seq"] not in held]
        held.update({event["seq"]: event for event in new})
        return len(new), conflicts


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return {**one, "at": None} == {**other, "at": None}
