"""The application: routes, errors, headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ledger.errors import LedgerError
from ledger.http import problems, rendering
from ledger.http.routes import API, PAGES, Handler
from ledger.http.services import Services

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class SecurityHeaders:
    """Adds the headers to every answer, whoever made it. Nothing is kept by a cache, but for static files, which a
    browser asks for again by their ETag."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: list[tuple[bytes, bytes]] = message["headers"]
                headers.extend(self._headers)
                if not any(name == b"cache-control" for name, _ in headers):
                    static = scope["path"].startswith("/static/")
                    headers.append((b"cache-control", b"no-cache" if static else b"no-store"))
            await send(message)

        await self._app(scope, receive, with_headers)


def make_app(services: Services) -> ASGIApp:
    by_path: dict[str, dict[str, Handler]] = {}
    for method, path, handler in [*((one.method, one.path, one.handler) for one in API), *PAGES]:
        by_path.setdefault(_sessions_may_hold_slashes(path), {})[method] = handler
    routes: list[Any] = [Route(path, _by_method(found), methods=list(found)) for path, found in by_path.items()]
    routes.append(Mount("/static", StaticFiles(directory=rendering.STATIC)))
    handlers: Any = {
        LedgerError: problems.on_ledger_error,
        HTTPException: problems.on_http_exception,
        Exception: problems.on_unforeseen,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.services = services
    return SecurityHeaders(app)


def _by_method(handlers: Mapping[str, Handler]) -> Handler:
    """One handler for all methods of a path, so that a refusal can name all that are allowed."""

    async def handle(request: Request) -> Response:
        return await handlers["GET" if request.method == "HEAD" else request.method](request)

    return handle


def _sessions_may_hold_slashes(path: str) -> str:
    return path.replace("/sessions/{id}", "/sessions/{id:path}")
