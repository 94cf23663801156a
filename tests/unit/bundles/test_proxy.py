"""The faulty link."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random

import httpx
import pytest

from bundles.rig.deadline import Deadline
from bundles.rig.proxy import Link, Proxy
from bundles.rig.wire import LostAnswer, Wire, new_client


class _Counting(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bodies: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[tuple[str, list[bytes]]]:
    handler = type("Handler", (_Counting,), {"bodies": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", handler.bodies
        server.shutdown()
        thread.join()


def through(url: str, link: Link, seed: int = 1) -> Proxy:
    return Proxy(lambda: url, link, Random(seed))


def post(client: httpx.Client, proxy: Proxy, body: bytes) -> bytes:
    return Wire(client, lambda: proxy.url, None, Deadline(10)).post_raw("/x", body).content


def test_a_link_without_faults_passes_everything_both_ways(upstream: tuple[str, list[bytes]]) -> None:
    url, bodies = upstream
    body = bytes(range(256)) * 2000
    with through(url, Link()) as proxy, new_client() as client:
        assert post(client, proxy, body) == body
        assert post(client, proxy, b"again") == b"again"
    assert bodies == [body, b"again"]


def test_a_cut_swallows_the_answer_after_the_server_had_the_request(upstream: tuple[str, list[bytes]]) -> None:
    url, bodies = upstream
    with through(url, Link(cut_share=1.0)) as proxy, new_client() as client:
        with pytest.raises(LostAnswer):
            post(client, proxy, b"heard of never")
        assert proxy.cuts == 1
    assert bodies == [b"heard of never"]


def test_a_slow_link_passes_everything_in_small_blocks(upstream: tuple[str, list[bytes]]) -> None:
    url, _ = upstream
    body = bytes(range(256)) * 20
    with through(url, Link(block_bytes=512, wait_s=0.001)) as proxy, new_client() as client:
        assert post(client, proxy, body) == body
