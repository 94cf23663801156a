"""For operators and programs: is it alive, is it ready, what does it count, what does it serve."""

from __future__ import annotations

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from ledger import __version__
from ledger.http.auth import READER, require
from ledger.http.services import as_json, services


async def healthz(request: Request) -> Response:
    return as_json({"ok": True, "version": __version__})


async def readyz(request: Request) -> Response:
    """Ready when the store answers; a StorageError becomes 503."""
    at = services(request)
    await at.store.heads()
    return as_json({"ok": True, "ledger_id": at.store.ledger_id})


async def metrics(request: Request) -> Response:
    at = services(request)
    require(await at.access.caller(request), READER)
    for bucket, position in enumerate(await at.store.heads()):
        at.metrics.position.labels(str(bucket)).set(position)
    return Response(generate_latest(at.metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def openapi(request: Request) -> Response:
    from ledger.http.openapi import document  # it describes the route table, which holds this very handler

    return as_json(document())
