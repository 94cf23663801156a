"""A client that sends each request once and hands back whatever came: what a scenario judges by.

`ledger.client.api.Api` would retry and raise; here a refusal is an answer like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from bundles.rig.deadline import Deadline

REQUEST_S_MAX = 30.0

LostAnswer = httpx.TransportError  # no answer came: whether the server did its part is not known


def new_client() -> httpx.Client:
    """A pool of connections that many wires and threads may share. Proxies of the environment are not used."""
    return httpx.Client(trust_env=False, limits=httpx.Limits(max_connections=100, keepalive_expiry=30))


def segment(text: str) -> str:
    """An id as one segment of a path."""
    return quote(text, safe="")


@dataclass(frozen=True)
class Answer:
    """What came back. `json` raises where the body is none."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.content)

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def code(self) -> str | None:
        """The problem's code, None where the body is no problem."""
        if "problem+json" not in self.headers.get("content-type", ""):
            return None
        return str(self.json.get("code"))

    def __str__(self) -> str:
        return f"{self.status} {self.content[:300].decode(errors='replace')}"


@dataclass(frozen=True)
class LiveMessage:
    """One server-sent event."""

    event: str
    id: str
    data: dict[str, Any]


class Wire:
    """Requests with one token. `url` is asked before each request, so a server that moved is found again."""

    def __init__(self, client: httpx.Client, url: Callable[[], str], token: str | None, deadline: Deadline) -> None:
        self._client = client
        self._url = url
        self._deadline = deadline
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> Answer:
        return self._send("GET", path, None, headers or {})

    def post(self, path: str, body: Any = None) -> Answer:
        content = b"" if body is None else msgspec.json.encode(body)
        return self._send("POST", path, content, {"Content-Type": "application/json"})

    def post_raw(self, path: str, content: bytes, *, encoding: str | None = None) -> Answer:
        headers = {"Content-Type": "application/json"}
        if encoding is not None:
            headers["Content-Encoding"] = encoding
        return self._send("POST", path, content, headers)

    def delete(self, path: str) -> Answer:
        return self._send("DELETE", path, None, {})

    def call(self, action: Mapping[str, str]) -> Answer:
        """Follows an action as the JSON of a goal or task offers it: `{method, href}`."""
        return self._send(action["method"], action["href"], b"{}", {"Content-Type": "application/json"})

    def feed(self, after: str | None = None, *, limit: int = 1000) -> Iterator[dict[str, Any]]:
        """Pages of the log, `{events, cursor}`, until one comes that is empty."""
        while True:
            query = f"limit={limit}" + (f"&after={quote(after)}" if after else "")
            page = self.get(f"/api/events?{query}").json
            yield page
            if not page["events"]:
                return
            after = page["cursor"]

    @contextmanager
    def live(self, last_id: str | None = None) -> Iterator[Iterator[LiveMessage]]:
        """Server-sent events of /api/live, from behind `last_id` if it is given, until the server says that nothing
        moves; while the block lasts."""
        headers = self._headers if last_id is None else {**self._headers, "Last-Event-ID": last_id}
        timeout = self._deadline.limit(REQUEST_S_MAX)
        with self._client.stream("GET", self._url() + "/api/live", headers=headers, timeout=timeout) as response:
            if response.status_code != 200:
                raise AssertionError(f"/api/live answered {response.status_code} {response.read()!r}")
            yield _messages(response.iter_lines())

    def _send(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> Answer:
        response = self._client.request(
            method,
            self._url() + path,
            content=content,
            headers={**self._headers, **headers},
            timeout=self._deadline.limit(REQUEST_S_MAX),
        )
        return Answer(response.status_code, response.headers, response.content)


def _messages(lines: Iterator[str]) -> Iterator[LiveMessage]:
    fields: dict[str, str] = {}
    for line in lines:
        if line.startswith(":"):
            return
        name, _, value = line.partition(": ")
        if name:
            fields[name] = value
        elif line == "" and "data" in fields:
            yield LiveMessage(fields["event"], fields["id"], msgspec.json.decode(fields["data"]))
            fields = {}
