"""What saddles push: POST /api/saddle/…"""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ledger.errors import InvalidField
from ledger.events import kinds
from ledger.events.decode import PAYLOAD_TOO_LARGE, Chunk, decode_body, decode_chunk, new_event
from ledger.events.ids import checked_id
from ledger.events.model import END_SEQ, Limits, NewEvent
from ledger.events.times import parse_instant
from ledger.events.wire import (
    AskIn,
    ChunkReceipt,
    ConflictOut,
    HeartbeatIn,
    OpenIn,
    ResultIn,
)
from ledger.http.auth import SADDLE
from ledger.http.services import Services, as_json, services
from ledger.store.base import Write
from projections.catalog import statuses, work_order
from projections.task import Task

WAIT_S_MAX = 30.0
SETTLE_S = 0.05  # a waiting ask looks again at most this often, however much else moves
SMALL_BYTES_MAX, HUGE_BYTES_MIN = 8 * 2**10, 512 * 2**10


async def push_chunk(request: Request) -> Response:
    """decode, validate, repair → append (dedupe) → the log"""
    at = services(request)
    caller = await at.access.writer(request, SADDLE)
    async with at.admission.body(request) as body:
        chunk = await _decoded(body, at)
        if chunk.events and chunk.expected_seq is None:
            await at.runs.refuse_unconditional(chunk.session_id)
        write = Write(chunk.session_id, chunk.events, saddle=caller.saddle, expected_seq=chunk.expected_seq)
        opening = chunk.open and msgspec.structs.replace(chunk.open, session_id=chunk.session_id)
        appended = await at.sessions.push(write, opening, caller.saddle)
    written = appended.writes[-1]
    missing = await at.store.gaps(chunk.session_id) if written.contiguous else msgspec.UNSET
    at.metrics.pushed(written, rejected=len(chunk.rejected), repaired=len(chunk.repaired))
    return as_json(
        ChunkReceipt(
            stored=written.stored,
            duplicates=written.duplicates,
            conflicts=[ConflictOut(seq) for seq in written.conflicts],
            rejected=chunk.rejected,
            repaired=chunk.repaired,
            high_seq=written.high_seq if written.high_seq >= 0 else None,
            cursor=at.cursor(appended.heads),
            missing=missing,
        )
    )


async def _decoded(body: bytes, at: Services) -> Chunk:
    """A large body waits for its turn, one in each turn of the event loop, so that sixteen that came together do not
    keep the store waiting; a huge one is decoded in a thread, for a hostile one can hold the parser for seconds."""
    if len(body) < SMALL_BYTES_MAX:
        return decode_chunk(body, at.limits)
    if len(body) > HUGE_BYTES_MIN:
        return await asyncio.to_thread(decode_chunk, body, at.limits)
    async with at.decoding:
        await asyncio.sleep(0)
        return decode_chunk(body, at.limits)


async def push_result(request: Request) -> Response:
    at = services(request)
    caller = await at.access.writer(request, SADDLE)
    async with at.admission.body(request) as body:
        pushed = decode_body(body, ResultIn)
        session_id = checked_id(pushed.session_id, "session_id")
        await at.runs.refuse_unconditional(session_id)
        write = Write(session_id, [_result_event(pushed, caller.saddle, at.limits)], saddle=caller.saddle)
        written = (await at.store.append([write])).writes[0]
    at.metrics.pushed(written)
    task, goal = statuses(await at.reader.catalog(), written.task_id)
    return as_json(
        {
            "stored": written.stored,
            "duplicate": written.duplicates > 0,
            "conflict": bool(written.conflicts),
            "task": task,
            "goal": goal,
        }
    )


def _result_event(pushed: ResultIn, saddle: str, limits: Limits) -> NewEvent:
    if pushed.state not in kinds.STATES:
        raise InvalidField("state", f"{pushed.state!r} is none of {', '.join(sorted(kinds.STATES))}")
    if pushed.seq is None and pushed.state not in kinds.TERMINAL_STATES:
        raise InvalidField(
            "seq",
            f"a push of `{pushed.state}` needs one",
            code="seq_required",
            hint="Send the next seq of the session; only done, failed and cancelled go without.",
        )
    if pushed.seq is not None and not 0 <= pushed.seq < END_SEQ:
        raise InvalidField("seq", f"{pushed.seq} is not an integer from 0 to 2^63-2", code="invalid_seq")
    payload = {"state": pushed.state, "summary": pushed.summary}
    at = None if pushed.at is None else parse_instant(pushed.at)
    event = new_event(END_SEQ if pushed.seq is None else pushed.seq, kinds.RESULT, saddle, payload, at)
    if len(event.payload) > limits.payload_bytes:
        detail = f"makes a payload of {len(event.payload)} bytes, of at most {limits.payload_bytes}"
        raise InvalidField("summary", detail, code=PAYLOAD_TOO_LARGE, hint="Send a shorter summary.")
    return event


async def open_session(request: Request) -> Response:
    at = services(request)
    caller = await at.access.writer(request, SADDLE)
    async with at.admission.body(request) as body:
        opening = decode_body(body, OpenIn)
        session_id, appended = await at.sessions.open(opening, caller.saddle)
    written = appended.writes[-1]
    answer = {"session_id": session_id, "task_id": written.task_id}
    return as_json(answer, 201 if written.opened else 200)


async def ask(request: Request) -> Response:
    """Long-polls for work: the first queued task that this saddle wins, or 204 when the wait is over."""
    at = services(request)
    caller = await at.access.writer(request, SADDLE)
    async with at.admission.body(request) as body:
        asked = decode_body(body, AskIn, empty_ok=True)
    if not 0 <= asked.wait_s <= WAIT_S_MAX:
        raise InvalidField("wait_s", f"{asked.wait_s:g} is not from 0 to {WAIT_S_MAX:g} seconds")
    at.pulse.heard(caller.saddle, host=asked.host)
    claimed = await _wait_for_work(request, asked, caller.saddle)
    if claimed is None:
        return Response(status_code=204)
    task, session_id = claimed
    return as_json({"task": work_order(task, await at.reader.catalog()), "session_id": session_id})


async def _wait_for_work(request: Request, asked: AskIn, saddle: str) -> tuple[Task, str] | None:
    """None when the wait is over, or when the asker has hung up: it must not be given what it will not hear of."""
    at = services(request)
    listener = at.hub.listen()
    try:
        deadline = asyncio.get_running_loop().time() + asked.wait_s
        while not await request.is_disconnected():
            claimed = await at.sessions.claim(asked, saddle)
            left_s = deadline - asyncio.get_running_loop().time()
            if claimed is not None or left_s <= 0 or at.hub.closing or not await listener.rung(left_s):
                return claimed
            await asyncio.sleep(SETTLE_S)
        return None
    finally:
        at.hub.leave(listener)


async def heartbeat(request: Request) -> Response:
    at = services(request)
    caller = await at.access.writer(request, SADDLE)
    async with at.admission.body(request) as body:
        beat = decode_body(body, HeartbeatIn, empty_ok=True)
    at.pulse.heard(caller.saddle, host=beat.host, version=beat.version)
    return Response(status_code=204)
