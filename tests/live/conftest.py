"""One server for each module of this folder, with a client for each role."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import httpx
import pytest

from tests.live.serving import Server, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def owner(server: Server) -> httpx.Client:
    return server.client()


@pytest.fixture(scope="module")
def reader(server: Server) -> httpx.Client:
    return server.client(server.token("reader", "rita"))


@pytest.fixture(scope="module")
def saddle(server: Server) -> httpx.Client:
    return server.saddle("anvil")


@pytest.fixture(scope="module")
def other_saddle(server: Server) -> httpx.Client:
    return server.saddle("bellows")


@pytest.fixture(scope="module")
def nobody(server: Server) -> httpx.Client:
    return server.client(None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows what the server said where a test failed."""
    report = yield
    server: Any = getattr(item, "funcargs", {}).get("server")
    if report.failed and isinstance(server, Server):
        report.sections.append(("the server's last words", server.stderr[-5000:]))
    return report
