"""The least that a Starlette server can do with a chunk: read its body, answer a receipt that is always the same.

Runs as ledgerd does (uvicorn with httptools on uvloop, no access log), so that the difference is ledgerd's own work.
"""

from __future__ import annotations

import socket

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ledger.events.wire import ChunkReceipt
from ledger.http.services import as_json
from tests.bench.workload import PATH

_RECEIPT = as_json(ChunkReceipt(1, 0, [], [], [], 1000, "0123456789abcdef0123456789abcdef")).body


async def _take(request: Request) -> Response:
    await request.body()
    return Response(_RECEIPT, media_type="application/json")


def main() -> None:
    app = Starlette(routes=[Route(PATH, _take, methods=["POST"])])
    config = uvicorn.Config(
        app, http="httptools", loop="none", lifespan="off", log_config=None, access_log=False, server_header=False
    )
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        uvloop.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
