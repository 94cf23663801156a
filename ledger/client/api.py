"""A client of the ledger's wire: one method per route, errors as `ApiError`, retries where they are safe.

    with Api(*server_from_environment()) as api:
        api.push("session-1", events, open={"task": {"title": "Fix the parser"}})

Importing this module costs little: httpx is loaded when the first `Api` is made.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from ledger.client.retries import AGAIN, REFUSED, backoff_s, retry_after_s
from ledger.errors import InvalidField, LedgerError
from ledger.events.content import given, parse_payload

if TYPE_CHECKING:
    import ssl

    import httpx

Json = dict[str, Any]

DEFAULT_URL = "http://127.0.0.1:8137"
PLAIN_BYTES_MAX = 16 * 1024  # of a body that is sent without compressing it
OWNER_TOKEN_FILE = "owner-token"  # noqa: S105 — a file's name

_URL_HINT = "Start the server with `ledgerd serve`, or set LEDGERD_URL to where it listens."
_TOKEN_HINT = "Set LEDGERD_TOKEN to a token of this server; `ledgerd token create` makes one."  # noqa: S105


class ApiError(LedgerError):
    """The server refused a request, or could not be reached.

    `status` is the HTTP status, None where there was no answer; `code` is the problem's own, `unreachable`
    without an answer, or `not_a_ledger` where something else answered. `problem` is the whole document;
    `retry_after_s` the wait that the server asked for, if it did; `connected` is false where nothing listened.
    """

    def __init__(
        self,
        status: int | None,
        code: str,
        detail: str,
        hint: str = "",
        problem: Json | None = None,
        retry_after_s: float | None = None,
        connected: bool = True,
    ) -> None:
        super().__init__(detail, code=code, hint=hint)
        self.status = status
        self.problem = problem or {}
        self.retry_after_s = retry_after_s
        self.connected = connected


def server_from_environment(store_dir: str | Path | None = None) -> tuple[str, str]:
    """Where the server is and what lets in: `(url, token)`.

    LEDGERD_URL and LEDGERD_TOKEN where they are set. Else the default address, and the owner token that a
    server on this machine left in the file LEDGERD_TOKEN_FILE or beside its store (`store_dir`, by default
    `$XDG_DATA_HOME/ledgerd`). The token is empty where none was found.
    """
    url = os.environ.get("LEDGERD_URL") or DEFAULT_URL
    token = os.environ.get("LEDGERD_TOKEN") or _token_from_files(store_dir)
    return url, token.strip()


def _token_from_files(store_dir: str | Path | None) -> str:
    data_home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    directory = Path(store_dir) if store_dir is not None else Path(data_home) / "ledgerd"
    named = os.environ.get("LEDGERD_TOKEN_FILE")
    for path in (Path(named) if named else None, directory / OWNER_TOKEN_FILE):
        try:
            if path is not None and (token := path.read_text(encoding="utf-8").strip()):
                return token
        except (OSError, UnicodeDecodeError):
            continue
    return ""


def _trust(scheme: str) -> ssl.SSLContext | bool:
    """Whom to trust. To load whom the system trusts takes longer than all else that a connection begins with, so
    nobody is where there is no TLS: neither to the server nor to a proxy."""
    import ssl
    from urllib.request import getproxies

    return True if scheme == "https" or getproxies() else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Api:
    """A connection to one server. Blocking; a context manager; not for use by two threads at once.

    Connection errors and 429, 502, 503 and 504 are tried again, `attempts_max` times in all, after the
    Retry-After that the server gave or a growing pause. A request whose repetition would do the work twice
    (creating without an id, deciding) is tried again only where it certainly was not carried out. A wait of
    more than `pause_s_max` is not waited for: the error is raised. `transport`, `sleep`, `now` (Unix time)
    and `random` are for tests.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = 30,
        attempts_max: int = 5,
        pause_s_max: float = 60,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        random: Random | None = None,
    ) -> None:
        import httpx

        try:
            parts = httpx.URL(url)
        except httpx.InvalidURL:
            parts = httpx.URL("")
        if parts.scheme not in ("http", "https") or not parts.host:
            raise InvalidField("LEDGERD_URL", f"{url!r} is no http:// or https:// address", hint=_URL_HINT)
        if not token.isascii() or not token.isprintable():
            raise InvalidField("LEDGERD_TOKEN", "holds characters that no token has", hint=_TOKEN_HINT)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._attempts_max = attempts_max
        self._pause_s_max = pause_s_max
        self._sleep = sleep
        self._now = now
        self._random = random or Random()  # noqa: S311 — spreads retries
        self._no_answer = httpx.RequestError
        self._not_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=timeout_s, transport=transport, verify=_trust(parts.scheme)
        )

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # What a saddle does

    def ask(self, *, wait_s: float = 0, session_id: str | None = None, **fields: Any) -> Json | None:
        """Claims one queued task: `{task, session_id}`, or None where none came within `wait_s` seconds. The
        session is named here, so that an ask whose answer was lost claims the same task again."""
        body = {"wait_s": wait_s, "session_id": session_id or uuid.uuid4().hex, **fields}
        answer = self.call("POST", "/api/saddle/ask", body, timeout_s=self._timeout_s + wait_s)
        return answer or None

    def open_session(self, **fields: Any) -> Json:
        """Opens a session; the fields are those of `OpenIn`. Give `session_id`, so that repeating is safe."""
        fields.setdefault("session_id", uuid.uuid4().hex)
        return self.call("POST", "/api/saddle/sessions", fields)

    def push(
        self,
        session_id: str,
        events: Iterable[Mapping[str, Any]],
        open: Mapping[str, Any] | None = None,
        *,
        expected_seq: int | None = None,
    ) -> Json:
        """Pushes a chunk `[{seq, kind, actor, payload, at?}]` and gives its receipt. A payload that is JSON
        already is passed as `msgspec.Raw`. `open` takes the fields of `open_session`.

        With `expected_seq`, the last seq that was seen (-1: none), the chunk is stored whole or, where the session
        has moved on, not at all: ApiError with code `stream_moved`, and `last_seq` in its `problem`. Trying again is
        safe: what is there already with the same content counts as duplicates."""
        body = {"session_id": session_id, "events": list(events), "open": open, "expected_seq": expected_seq}
        return self.call("POST", "/api/saddle/chunks", given(body))

    def result(
        self,
        session_id: str,
        state: str,
        summary: str | None = None,
        *,
        seq: int | None = None,
        at: str | int | float | None = None,
    ) -> Json:
        body = {"session_id": session_id, "state": state, "summary": summary, "seq": seq, "at": at}
        return self.call("POST", "/api/saddle/results", given(body))

    def heartbeat(self, **fields: Any) -> Json:
        return self.call("POST", "/api/saddle/heartbeat", fields)

    def requests(self, session_id: str, after: int | None = None, *, timeout_s: float | None = None) -> Json:
        """What owners asked of a loop since the request `after`: `{requests: [{seq, action, reason, by, at}]}`."""
        params = {"session_id": session_id, "after": after}
        return self.call("GET", "/api/saddle/requests", params=params, timeout_s=timeout_s)

    # What an owner does

    def create_project(self, title: str, **fields: Any) -> Json:
        return self._create("projects", title, fields)

    def create_goal(self, title: str, **fields: Any) -> Json:
        return self._create("goals", title, fields)

    def create_task(self, title: str, **fields: Any) -> Json:
        return self._create("tasks", title, fields)

    def decide(self, what: str, id: str, action: str, reason: str = "") -> Json:
        """Takes one of the `actions` of a goal or a task: `decide("task", "12", "requeue")`. A loop is named by its
        task."""
        path = f"/api/{what}s/{_part(id)}/{_part(action)}"
        return self.call("POST", path, {"reason": reason}, repeatable=False)

    def remediation(self, run_id: str | None = None, *, brief: bool = False) -> Json:
        """The run that is active, else the newest; `status` is NOT_STARTED where there is none. Or one by its id.
        `brief`: of the former only where it stands."""
        path = "/api/resource-remediation"
        if run_id is not None:
            return self.call("GET", f"{path}/{_part(run_id)}")
        return self.call("GET", path, params={"brief": "true" if brief else None})

    def configure_remediation(self, configuration: Mapping[str, Any]) -> Json:
        """Publishes `{projects: [{name, aliases}], master, tool_project, rules}`; the same again changes nothing."""
        return self.call("POST", "/api/resource-remediation/configuration", configuration)

    def start_remediation(self, steps: Iterable[Mapping[str, Any]]) -> Json:
        return self._decide_run("start", {"steps": list(steps)})

    def resume_remediation(self, steps: Iterable[Mapping[str, Any]] | None = None) -> Json:
        """Goes on after a block, with `steps` in place of the run's where they are given."""
        return self._decide_run("resume", {} if steps is None else {"steps": list(steps)})

    def approve_remediation(self, feedback: str = "") -> Json:
        return self._decide_run("approve", {"feedback": feedback})

    def _decide_run(self, action: str, body: Json) -> Json:
        return self.call("POST", f"/api/resource-remediation/{action}", body, repeatable=False)

    def create_token(self, role: str, name: str, *, expires_at: str | int | float | None = None) -> Json:
        """`{id, role, name, token}`; the token is shown this once."""
        body = given({"role": role, "name": name, "expires_at": expires_at})
        return self.call("POST", "/api/tokens", body, repeatable=False)

    def tokens(self) -> Json:
        return self.call("GET", "/api/tokens")

    def revoke_token(self, id: str) -> Json:
        return self.call("DELETE", f"/api/tokens/{_part(id)}")

    # What anyone may read

    def goal(self, id: str, **params: Any) -> Json:
        return self.call("GET", f"/api/goals/{_part(id)}", params=params)

    def task(self, id: str, **params: Any) -> Json:
        return self.call("GET", f"/api/tasks/{_part(id)}", params=params)

    def session(self, id: str) -> Json:
        return self.call("GET", f"/api/sessions/{_part(id)}")

    def session_events(self, id: str, **params: Any) -> Json:
        """One page of a session's events: `{events, cursor}`."""
        return self.call("GET", f"/api/sessions/{_part(id)}/events", params=params)

    def goals(self, **filters: Any) -> Json:
        """One page, `{items, next}`; `status`, `project_id`, `limit`, `after` narrow it."""
        return self.call("GET", "/api/goals", params=filters)

    def tasks(self, **filters: Any) -> Json:
        """One page, `{items, next}`, as `goals`."""
        return self.call("GET", "/api/tasks", params=filters)

    def fleet(self) -> Json:
        return self.call("GET", "/api/fleet")

    def events(self, after: str | None = None, limit: int | None = None) -> Json:
        """One page of the log, `{events, cursor}`."""
        return self.call("GET", "/api/events", params={"after": after, "limit": limit})

    def _create(self, collection: str, title: str, fields: Json) -> Json:
        body = given({"title": title, **fields})
        return self.call("POST", f"/api/{collection}", body, repeatable="id" in body)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        repeatable: bool = True,
        timeout_s: float | None = None,
    ) -> Json:
        """One request, tried again where that is safe. Gives the JSON of the answer ({} for 204) or raises
        ApiError; None among `params` is left out."""
        content, headers = (None, {}) if body is None else _packed(msgspec.json.encode(body))
        request = self._http.build_request(
            method,
            path,
            content=content,
            params=given(params or {}),
            headers=headers,
            timeout=self._timeout_s if timeout_s is None else timeout_s,
        )
        attempt = 1
        while True:
            outcome = self._attempt(request, repeatable)
            if not isinstance(outcome, _Again):
                return outcome
            after_s = outcome.error.retry_after_s
            pause_s = backoff_s(attempt, self._random) if after_s is None else after_s
            if attempt >= self._attempts_max or pause_s > self._pause_s_max:
                raise outcome.error
            self._sleep(pause_s)
            attempt += 1

    def _attempt(self, request: httpx.Request, repeatable: bool) -> Json | _Again:
        try:
            response = self._http.send(request)
        except self._no_answer as failure:
            why = str(failure) or type(failure).__name__
            connected = not isinstance(failure, self._not_sent)
            detail = f"no answer from {self.url}: {why}"
            error = ApiError(None, "unreachable", detail, _URL_HINT, connected=connected)
            if repeatable or not connected:
                return _Again(error)
            raise error from failure
        if response.is_success:
            return self._json(response)
        error = self._problem(response)
        if response.status_code in (AGAIN if repeatable else REFUSED):
            return _Again(error)
        raise error

    def _json(self, response: httpx.Response) -> Json:
        if response.status_code == 204 or not response.content:
            return {}
        try:
            answer = parse_payload(response.content)  # payloads may hold numbers that strict decoders refuse
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict):
            return answer
        detail = f"{self.url} answered, but not as a ledger does"
        raise ApiError(response.status_code, "not_a_ledger", detail, _URL_HINT)

    def _problem(self, response: httpx.Response) -> ApiError:
        status = response.status_code
        try:
            problem = msgspec.json.decode(response.content, type=dict[str, Any])
        except msgspec.MsgspecError:
            problem = {}
        detail = str(problem.get("detail") or f"{response.request.method} {response.url} answered {status}")
        hint = str(problem.get("hint") or "")
        if status == 401:
            hint = _TOKEN_HINT
        elif not problem:
            hint = _URL_HINT
        after_s = retry_after_s(response.headers.get("Retry-After"), self._now())
        return ApiError(status, str(problem.get("code") or "not_a_ledger"), detail, hint, problem, after_s)


class _Again:
    """An attempt that may be repeated, and the error it ended in."""

    def __init__(self, error: ApiError) -> None:
        self.error = error


def _packed(content: bytes) -> tuple[bytes, dict[str, str]]:
    """A JSON body with its headers; compressed where that pays."""
    headers = {"Content-Type": "application/json"}
    if len(content) < PLAIN_BYTES_MAX:
        return content, headers
    import zstandard

    return zstandard.compress(content), headers | {"Content-Encoding": "zstd"}


def _part(text: str) -> str:
    """One segment of a path: an id may hold any character, a slash included."""
    return quote(str(text), safe="")
