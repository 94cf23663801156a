"""Errors as `application/problem+json` (RFC 9457). The one place that knows HTTP statuses."""

from __future__ import annotations

import time
from http import HTTPStatus

import msgspec
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ledger import errors
from ledger.events.model import OPENING_SEQ
from ledger.http import rendering

log = structlog.get_logger()

# The first class that matches counts, so the narrow ones stand before the wide ones.
STATUSES: tuple[tuple[type[errors.LedgerError], int], ...] = (
    (errors.MalformedBody, 400),
    (errors.InvalidRequest, 422),
    (errors.TooLarge, 413),
    (errors.UnsupportedEncoding, 415),
    (errors.Unauthenticated, 401),
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.Overloaded, 429),
    (errors.StorageError, 503),
    (errors.LedgerError, 500),
)
RETRY_AFTER_S = 1


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of every error. `code` is stable, `detail` says what happened, `hint` what to do next. `last_seq` is
    where the stream stands that a conditional append found moved, -1 where nothing was pushed to it."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str = ""
    field: str | None = None
    last_seq: int | None = None


def status_of(error: errors.LedgerError) -> int:
    return next(status for kind, status in STATUSES if isinstance(error, kind))


def problem_of(error: errors.LedgerError) -> Problem:
    status = status_of(error)
    field = error.field if isinstance(error, errors.InvalidField) else None
    last_seq = max(error.last_seq, OPENING_SEQ) if isinstance(error, errors.StreamMoved) else None
    title = HTTPStatus(status).phrase
    return Problem("about:blank", title, status, error.code, error.detail, error.hint, field, last_seq)


def answer(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """The problem as JSON, or as a page for a browser."""
    if wants_page(request):
        html = rendering.problem_page(problem.status, problem.title, problem.detail, problem.hint, now=time.time_ns())
        return Response(html, problem.status, headers, "text/html")
    return Response(msgspec.json.encode(problem), problem.status, headers, "application/problem+json")


def wants_page(request: Request) -> bool:
    return not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


async def on_ledger_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.LedgerError)  # noqa: S101 — as registered
    problem = problem_of(error)
    headers = {}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status in (429, 503):
        headers["Retry-After"] = str(getattr(error, "retry_after_s", RETRY_AFTER_S))
    if problem.status >= 500:
        log.error("request failed", path=request.url.path, code=problem.code, detail=problem.detail)
    return answer(request, problem, headers)


async def on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 — as registered
    phrase = HTTPStatus(error.status_code).phrase
    code = phrase.lower().replace(" ", "_")
    hint = "GET /openapi.json lists every route." if error.status_code in (404, 405) else ""
    detail = f"{request.method} {request.url.path}: {error.detail}"
    problem = Problem("about:blank", phrase, error.status_code, code, detail, hint)
    return answer(request, problem, dict(error.headers or {}))


async def on_unforeseen(request: Request, error: Exception) -> Response:
    log.exception("unforeseen error", path=request.url.path, exc_info=error)
    detail = "The server met an error it did not foresee; its log says more. Nothing was acknowledged."
    return answer(request, Problem("about:blank", "Internal Server Error", 500, "internal_error", detail))
