"""What the owner asked for on the loop's page: halt, or resume. Taken at the start of a tick, each once."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ledger.client.api import ApiError
from ledger.client.saddle import Saddle
from ledger.daemons.loop.deciding import Halt
from ledger.daemons.loop.journal import Journal, New, halted, resumed
from ledger.errors import InvalidField
from projections.loop_reasons import Reason
from projections.loop_state import Loop

HALT, RESUME = "halt", "resume"
ANSWER_S_MAX = 2.0


class Request(msgspec.Struct, frozen=True):
    """`seq` names it: it is taken once."""

    seq: int
    action: str
    reason: str | None = None
    by: str | None = None


def asked(saddle: Saddle, session_id: str, after: int) -> list[Request]:
    """What was asked for after that request. Nothing where no server answers, or none that knows of loops: the loop
    never waits for one."""
    if not saddle._token:  # so there is none that would let us in
        return []
    try:
        with saddle.api(attempts_max=1) as api:
            answer = api.requests(session_id, after, timeout_s=ANSWER_S_MAX)
        found = msgspec.convert(answer.get("requests", []), list[Request])
    except (ApiError, InvalidField, msgspec.ValidationError):
        return []
    return sorted((one for one in found if one.seq > after), key=lambda one: one.seq)


def take(journal: Journal, requests: Sequence[Request]) -> None:
    """Does what was asked for; a request that changes nothing is taken, too."""
    for request in requests:
        journal.add(lambda loop, request=request: _taken(loop, request))  # type: ignore[misc]


def _taken(loop: Loop, request: Request) -> list[New]:
    if request.seq in loop.taken_requests:
        return []
    if request.action == HALT:
        said = request.reason or f"{request.by or 'The owner'} halted it on its page."
        return halted(Halt(Reason.HUMAN_INTERVENTION, said), request=request.seq, by=request.by)
    if request.action == RESUME:
        return resumed(request=request.seq, by=request.by)
    return []
