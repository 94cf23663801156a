"""Hears from a server that the log has grown."""

from __future__ import annotations

from collections.abc import Generator

from ledger.client.api import Api, ApiError

SILENCE_S_MAX = 60.0  # the server says something every 15 s; beyond this it is gone


def cursors(api: Api, *, after: str | None = None) -> Generator[str, None, None]:
    """The log's cursor now, and again each time that it has grown, until the server stops or the connection breaks.

    With `after`, a cursor of an earlier call, nothing that happened since is missed: what is new lies between the
    two cursors. Raises ApiError where the server refuses, or breaks off before it has said anything.
    """
    import httpx

    heard = False
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after is not None else {})
    timeout = httpx.Timeout(SILENCE_S_MAX)
    try:
        with api._http.stream("GET", "/api/live", headers=headers, timeout=timeout) as response:
            if not response.is_success:
                response.read()
                raise api._problem(response)
            for line in response.iter_lines():
                if line.startswith("id:"):
                    heard = True
                    yield line.removeprefix("id:").strip()
    except httpx.TransportError as error:
        if not heard:
            raise ApiError(None, "unreachable", f"no answer from {api.url}: {error}") from error
