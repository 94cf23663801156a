"""A run's stream as the server tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from ledger.client.api import Api, ApiError
from ledger.daemons.remediation.journal import ServerJournal

EVENT = {
    "kind": "lease.taken",
    "actor": "remediation",
    "payload": {},
    "session_id": "run-1",
    "task_id": "run-1",
    "recorded_at": "2026-01-01T00:00:00Z",
}


def journal(answer: Callable[[httpx.Request], httpx.Response]) -> ServerJournal:
    return ServerJournal(Api("http://ledger.test", "owner", transport=httpx.MockTransport(answer)))


def test_a_stream_is_read_page_by_page_to_its_end() -> None:
    def page(request: httpx.Request) -> httpx.Response:
        first = int(request.url.params["from"])
        events = [{**EVENT, "seq": seq, "position": seq} for seq in range(first, min(first + 2, 6))]
        return httpx.Response(200, json={"events": events, "next": first + 2 if first + 2 < 6 else None})

    assert [event.seq for event in journal(page).read("run-1", 0)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("standing", "over"),
    [
        ({"run_id": "run-1", "active": True}, False),
        ({"run_id": "run-1", "active": False}, True),
        ({"run_id": "run-2", "active": True}, True),
        ({"run_id": None, "active": False}, True),
    ],
)
def test_a_run_is_over_when_it_is_not_the_one_that_is_active(standing: dict[str, Any], over: bool) -> None:
    assert journal(lambda request: httpx.Response(200, json=standing)).is_over("run-1") is over


def test_where_another_owners_run_is_active_ours_is_over_and_theirs_is_not_taken() -> None:
    theirs = journal(lambda request: httpx.Response(404, json={"code": "unknown_run", "detail": "another owner's"}))
    assert theirs.is_over("run-1")
    with pytest.raises(ApiError, match="another owner's"):
        theirs.active_run()
