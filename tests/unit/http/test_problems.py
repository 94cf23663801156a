"""Every error on purpose has one status, and its problem says what, where and what to do next."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ledger import errors
from ledger.http import problems

STATUSES = {
    "LedgerError": 500,
    "InvalidRequest": 422,
    "MalformedBody": 400,
    "InvalidField": 422,
    "ForeignCursor": 422,
    "TooLarge": 413,
    "UnsupportedEncoding": 415,
    "Unauthenticated": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "Conflict": 409,
    "StreamMoved": 409,
    "SessionElsewhere": 409,
    "IdTaken": 409,
    "NotOffered": 409,
    "Overloaded": 429,
    "StorageError": 503,
    "StorageFull": 503,
    "StoreLocked": 503,
    "StoreMismatch": 503,
    "LedgerDamaged": 503,
}


def every_error() -> Iterator[errors.LedgerError]:
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if kind is errors.InvalidField:
            yield kind("events[3].seq", "is missing")
        elif kind is errors.StreamMoved:
            yield kind("@task/1", 3, 4)
        elif issubclass(kind, errors.LedgerError):
            yield kind("it went wrong")


def request(path: str = "/api/goals", accept: str = "*/*") -> Request:
    headers = [(b"host", b"ledger"), (b"accept", accept.encode())]
    return Request({"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers})


@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: type(error).__name__)
async def test_an_error_has_its_status_and_says_what_to_do_next(error: errors.LedgerError) -> None:
    answer = await problems.on_ledger_error(request(), error)
    problem = json.loads(bytes(answer.body))
    assert answer.status_code == problem["status"] == STATUSES[type(error).__name__]
    assert answer.headers["content-type"] == "application/problem+json"
    assert (problem["code"], problem["detail"], problem.get("hint", "")) == (error.code, error.detail, error.hint)
    assert ("retry-after" in answer.headers) is (answer.status_code in (429, 503))
    assert ("www-authenticate" in answer.headers) is (answer.status_code == 401)
    assert problem.get("field") == getattr(error, "field", None)


def test_the_codes_of_errors_are_all_different() -> None:
    codes = [error.code for error in every_error()]
    assert len(set(codes)) == len(codes)


async def test_only_what_asks_a_sender_to_try_again_says_when() -> None:
    answer = await problems.on_ledger_error(request(), errors.Overloaded("full", retry_after_s=7))
    assert answer.headers["retry-after"] == "7"


async def test_what_nobody_foresaw_gives_nothing_away() -> None:
    answer = await problems.on_unforeseen(request(), RuntimeError("the secret is 42"))
    problem = json.loads(bytes(answer.body))
    assert (answer.status_code, problem["code"]) == (500, "internal_error")
    assert "42" not in bytes(answer.body).decode()


@pytest.mark.parametrize(("status", "code"), [(404, "not_found"), (405, "method_not_allowed")])
async def test_what_the_routes_refuse_is_a_problem_too(status: int, code: str) -> None:
    answer = await problems.on_http_exception(request("/nothing"), HTTPException(status, headers={"Allow": "GET"}))
    problem = json.loads(bytes(answer.body))
    assert (answer.status_code, problem["code"], answer.headers["allow"]) == (status, code, "GET")
    assert "/openapi.json" in problem["hint"]


@pytest.mark.parametrize(
    ("path", "accept", "page"),
    [
        ("/goals/1", "text/html,*/*;q=0.8", True),
        ("/goals/1", "*/*", False),
        ("/goals/1", "application/json", False),
        ("/api/goals/1", "text/html", False),
    ],
)
async def test_a_browser_is_shown_a_page_and_the_api_never_is(path: str, accept: str, page: bool) -> None:
    answer = await problems.on_ledger_error(request(path, accept), errors.NotFound("no <b>goal</b>"))
    assert answer.headers["content-type"].startswith("text/html" if page else "application/problem+json")
    if page:
        assert "<b>goal</b>" not in bytes(answer.body).decode()
