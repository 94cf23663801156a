"""Bodies that break others: poison among good events, a body cut in the middle, too large, a gzip bomb."""

from __future__ import annotations

import gzip
import socket
import zlib
from typing import Any
from urllib.parse import urlsplit

from bundles import checks
from bundles.rig.saddle import Saddle
from bundles.runner import Scenario

NAME = "hostile"
TITLE = "poison is rejected alone; what is cut, too large or a bomb is refused whole and stores nothing"
RESTARTS = False

MIB = 2**20
CHUNKS = "/api/saddle/chunks"


def run(scenario: Scenario) -> None:
    saddle = scenario.saddle()
    task = scenario.create("tasks", title="Take it all")
    session = saddle.must_ask().session_id
    _poison_among_good(scenario, saddle, session)
    before = len(checks.stored_rows(scenario, session))
    _cut_bodies(scenario, saddle, session)
    _too_large(scenario, saddle, session)
    _bombs(scenario, saddle, session)
    scenario.equal("nothing of all that is stored", len(checks.stored_rows(scenario, session)), before)
    _repairs(scenario, saddle, session)
    said = scenario.server.stderr_tail()
    scenario.check("none of it surprised the server", "Traceback" not in said, said)
    scenario.equal("the server is well", scenario.reader.get("/readyz").status, 200)
    scenario.equal("the task can be read", scenario.read(f"/api/tasks/{task}")["status"], "working")
    scenario.check("and so can its page", "Take it all" in scenario.page(f"/tasks/{task}").text)


def _poison_among_good(scenario: Scenario, saddle: Saddle, session: str) -> None:
    deep = "[" * 1024 + "]" * 1024
    poison = [
        *[_note(seq, "{}") for seq in ("5.0", '"6"', "true", "-1", str(2**63 - 1))],
        '{"seq":11,"actor":"model","payload":{}}',
        _note("12", deep),
        _note("13", _text("x" * 5 * MIB)),
    ]
    good = [_note(str(n), _text(str(n))) for n in range(100, 200)]
    mixed = good[:50] + poison + good[50:]
    answer = saddle.wire.post_raw(CHUNKS, _chunk(session, mixed))
    if not checks.receipt(scenario, "poison among good: the good are stored", answer, stored=100, duplicates=0):
        return
    rejected = {entry["index"]: entry["code"] for entry in answer.json["rejected"]}
    sentence = "each poison event is rejected with its index"
    scenario.equal(sentence, sorted(rejected), list(range(50, 50 + len(poison))))
    scenario.equal("the one over the limit says so", rejected.get(57), "payload_too_large")


def _cut_bodies(scenario: Scenario, saddle: Saddle, session: str) -> None:
    body = _chunk(session, [_note(str(n), "{}") for n in range(300, 340)])
    cut = saddle.wire.post_raw(CHUNKS, body[: len(body) // 2])
    scenario.equal("half a body is refused", (cut.status, cut.code), (400, "malformed_body"))
    packed = gzip.compress(body)
    cut = saddle.wire.post_raw(CHUNKS, packed[: len(packed) // 2], encoding="gzip")
    scenario.equal("half a gzip stream is refused", (cut.status, cut.code), (400, "malformed_body"))
    for wrong in (b"", b"[]", b"null", b'{"session_id":"x"}', b'{"session_id":"x","events":{}}'):
        answer = saddle.wire.post_raw(CHUNKS, wrong)
        scenario.check(f"{wrong!r} is no chunk: 400 or 422", answer.status in (400, 422), answer)
    _hang_up(scenario, session, body)
    scenario.equal("a sender that hangs up in the middle harms nobody", scenario.reader.get("/healthz").status, 200)


def _hang_up(scenario: Scenario, session: str, body: bytes) -> None:
    """Promises a whole body, sends half of it and closes the connection."""
    address = urlsplit(scenario.server.url)
    token = scenario.token("saddle", scenario.saddle().name)
    head = (
        f"POST {CHUNKS} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=10) as connection:
        connection.sendall(head.encode() + body[: len(body) // 2])


def _too_large(scenario: Scenario, saddle: Saddle, session: str) -> None:
    filler = "x" * (17 * MIB // 6)
    events = [_note(str(n), _text(filler)) for n in range(400, 406)]
    body = _chunk(session, events)
    answer = saddle.wire.post_raw(CHUNKS, body)
    scenario.equal("a body of 17 MiB is refused", (answer.status, answer.code), (413, "body_too_large"))
    answer = saddle.wire.post_raw(CHUNKS, gzip.compress(body), encoding="gzip")
    scenario.equal("also when it is 17 KiB of gzip", (answer.status, answer.code), (413, "body_too_large"))


def _bombs(scenario: Scenario, saddle: Saddle, session: str) -> None:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    bomb = b"".join(packer.compress(bytes(MIB)) for _ in range(256)) + packer.flush()
    answer = saddle.wire.post_raw(CHUNKS, bomb, encoding="gzip")
    scenario.equal(
        "a gzip bomb (256 MiB in 256 KiB) is refused", (answer.status, answer.code), (413, "body_too_large")
    )
    two = gzip.compress(_chunk(session, [_note("350", "{}")])) + gzip.compress(b" ")
    answer = saddle.wire.post_raw(CHUNKS, two, encoding="gzip")
    scenario.equal("a body is never read by half: a second gzip stream is refused", answer.status, 400)
    answer = saddle.wire.post_raw(CHUNKS, _chunk(session, []), encoding="compress")
    scenario.equal("an encoding nobody reads is refused", answer.status, 415)


def _repairs(scenario: Scenario, saddle: Saddle, session: str) -> None:
    events = [
        _note("500", _text(r"half \ud83d")),
        _note("501", '{"score":NaN,"most":Infinity}'),
        _note("502", _text(r"a\u0000b")),
        _note("503", f'{{"n":{10**40 + 1}}}'),
    ]
    answer = saddle.wire.post_raw(CHUNKS, _chunk(session, events))
    if not checks.receipt(scenario, "what strict JSON refuses is repaired and stored", answer, stored=4):
        return
    repaired = sorted({entry["seq"] for entry in answer.json["repaired"]})
    scenario.equal("and named in the receipt", repaired, [500, 501])
    again = saddle.wire.post_raw(CHUNKS, _chunk(session, events))
    checks.receipt(scenario, "the same again is a duplicate", again, stored=0, duplicates=4, conflicts=[])
    held = {event["seq"]: event["payload"] for event in checks.stored_rows(scenario, session)}
    seen: list[Any] = [held.get(seq) for seq in range(500, 504)]
    expected = [{"text": "half \ufffd"}, {"score": None, "most": None}, {"text": "a\0b"}, {"n": 10**40 + 1}]
    scenario.equal("it can be read again", seen, expected)


def _chunk(session: str, events: list[str]) -> bytes:
    """A chunk's body from the raw text of its events."""
    return f'{{"session_id":"{session}","events":[{",".join(events)}]}}'.encode()


def _note(seq: str, payload: str) -> str:
    return f'{{"seq":{seq},"kind":"note","actor":"model","payload":{payload}}}'


def _text(text: str) -> str:
    return f'{{"text":"{text}"}}'
