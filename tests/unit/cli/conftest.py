from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from ledger.cli import main
from ledger.client import api

Routes = dict[str, Any]  # "METHOD /path" → the JSON to answer, or an httpx.Response


@pytest.fixture(autouse=True)
def _own_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings, token or store of the person who runs the tests."""
    ours = ("URL", "TOKEN", "TOKEN_FILE", "STORE", "OUTBOX", "SESSION")
    for name in (*(f"LEDGERD_{name}" for name in ours), "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run() -> Callable[..., Result]:
    """Runs `ledgerd` with some words, as in a pipe."""

    def run(*words: str, **options: Any) -> Result:
        return CliRunner().invoke(main, list(words), **options)

    return run


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Callable[[Routes], list[httpx.Request]]:
    """Lets a server answer from a table; gives the list in which the requests will be found."""

    def serve(routes: Routes) -> list[httpx.Request]:
        seen: list[httpx.Request] = []

        def answer(request: httpx.Request) -> httpx.Response:
            seen.append(request)
            found = routes[f"{request.method} {request.url.path}"]
            found = found(request) if callable(found) else found
            return found if isinstance(found, httpx.Response) else httpx.Response(200, json=found)

        transport = httpx.MockTransport(answer)
        monkeypatch.setattr(api, "Api", functools.partial(api.Api, transport=transport))
        return seen

    return serve


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes rich take standard output for a terminal of so many columns."""

    def be(columns: int) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", str(columns))

    return be
