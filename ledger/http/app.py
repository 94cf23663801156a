"""The application: routes, errors, headers."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ledger.errors import LedgerError
from ledger.http import problems, rendering
from ledger.http.routes import API, PAGES
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
    """Adds the headers to every answer, whoever made it; nothing is cached unless it says so itself."""

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
                    headers.append((b"cache-control", b"no-store"))
            await send(message)

        await self._app(scope, receive, with_headers)


def make_app(services: Services) -> ASGIApp:
    routes: list[Any] = [
        Route(_sessions_may_hold_slashes(endpoint.path), endpoint.handler, methods=[endpoint.method])
        for endpoint in API
    ]
    routes += [Route(path, handler, methods=[method]) for method, path, handler in PAGES]
    routes.append(Mount("/static", StaticFiles(directory=rendering.STATIC)))
    handlers: Any = {
        LedgerError: problems.on_ledger_error,
        HTTPException: problems.on_http_exception,
        Exception: problems.on_unforeseen,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.state.services = services
    return SecurityHeaders(app)


def _sessions_may_hold_slashes(path: str) -> str:
    return path.replace("/sessions/{id}", "/sessions/{id:path}")
