"""The fold over the sessions of all sweeps, for whoever looks at the incidents of all registers at once.

**Any order.** The sweeps of one register lie under roots of their own, so on a ledger of several buckets the event
that meets an incident again may be read before the one that filed it. An incident is therefore the set of its
sightings: the first that was filed gives it its words, the others are counted. Reading a stretch of a session again
changes nothing; but the opening of a session is to be read once.

**Complete.** A run is over once its result has arrived, and all before it: until then its session is read from the
first seq that is missing (`Sweeping.next_seq`).

**Bounded.** Of each register the sums of WEEKS_MAX weeks and EXCLUSIONS_KEPT exclusions are kept, and of runs that
are not over those that `bounded` leaves; texts are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from immutables import Map
from msgspec.structs import replace

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import END_SEQ, OPENING_SEQ, Recorded
from projections import sweep
from projections.fold import Projection
from projections.incidents import RULE_CHARS_MAX, SEVERITIES, SNIPPET_CHARS_MAX, rows_of, seq_of, sessions_of
from projections.incidents_board import (
    EXCLUDED,
    REJECTED,
    UNMENTIONED,
    Board,
    Candidate,
    Exclusion,
    Found,
    Register,
    Sighting,
    Sweeping,
    Week,
    date_of,
    day_of,
    incident_id,
    week_of,
)
from projections.payloads import identifier, text
from projections.session import push_of, time_of

OPEN_MAX = 500
WEEKS_MAX = 106
EXCLUSIONS_KEPT = 100  # of one register, the newest
UNSCORED_KEPT = 200  # named of one run; all are counted
CANDIDATES_KEPT = 20  # of one exclusion
TITLE_CHARS_MAX, TEXT_CHARS_MAX, WORD_CHARS_MAX = 300, 4_000, 100

Stepped = tuple[Board, Sweeping]


def evolve(board: Board, event: Recorded) -> Board:
    """Takes the openings of all sessions, and the events of those that are in `open`, each session in seq order."""
    if event.kind == kinds.SESSION_OPENED and event.seq == OPENING_SEQ:
        return _opened(board, event)
    run = board.open.get(event.session_id)
    if run is None:
        return board
    step = _STEPS.get(event.kind)
    if step is not None:
        board, run = step(board, run, event, payload_object(event.payload))
    if event.seq == run.next_seq:
        run = replace(run, next_seq=run.next_seq + 1)
    runs = board.open.delete(run.session_id) if run.is_over else board.open.set(run.session_id, run)
    return replace(board, open=runs)


def bounded(board: Board) -> Board:
    """Without the runs that are given up: of those that are not over, all but the OPEN_MAX begun last. To be asked
    once what has arrived of them was read, for runs that are over by then are not among them."""
    if len(board.open) <= OPEN_MAX:
        return board
    newest = sorted(board.open.values(), key=lambda one: one.rank)[-OPEN_MAX:]
    return replace(board, open=Map({one.session_id: one for one in newest}))


def _opened(board: Board, event: Recorded) -> Board:
    payload = payload_object(event.payload)
    if event.task_id is None or text(payload, "agent") != sweep.AGENT or event.session_id in board.open:
        return board
    run = Sweeping(event.session_id, event.task_id, event.position, time_of(event))
    return replace(board, open=board.open.set(run.session_id, run))


def _started(board: Board, run: Sweeping, event: Recorded, payload: Mapping[str, Any]) -> Stepped:
    run = replace(run, register=text(payload, "register")[:TITLE_CHARS_MAX])
    run = replace(run, title=text(payload, "title")[:TITLE_CHARS_MAX], started_at=time_of(event))
    register = _register(board, run)
    if (run.started_at, run.title) > (register.titled_at, register.title):
        register = replace(register, title=run.title, titled_at=run.started_at)
    return _with_register(board, register), run


def _unreadable(board: Board, run: Sweeping, event: Recorded, payload: Mapping[str, Any]) -> Stepped:
    name = sweep.name_of(text(payload, "source"), text(payload, "key"))[:TITLE_CHARS_MAX]
    if len(run.unscored) < UNSCORED_KEPT:
        run = replace(run, unscored=run.unscored.set(name, text(payload, "why")[:SNIPPET_CHARS_MAX]))
    return board, run


def _filed(board: Board, run: Sweeping, event: Recorded, payload: Mapping[str, Any]) -> Stepped:
    severity = text(payload, "severity")
    filing = replace(
        _sighting(event, payload, filed=True),
        severity=severity if severity in SEVERITIES else SEVERITIES[-1],
        category=text(payload, "category")[:WORD_CHARS_MAX],
        what=text(payload, "what")[:TEXT_CHARS_MAX],
        cost=text(payload, "cost")[:TEXT_CHARS_MAX],
        lesson=text(payload, "lesson")[:TEXT_CHARS_MAX],
    )
    found = _found(board, payload)
    if not found.fingerprint:
        return board, run
    if found.head is None or filing.rank < found.head.rank:
        second, found = found.head, replace(found, head=filing)
        return _with_again(board, found, second), run
    return _with_again(board, found, filing if filing.rank != found.head.rank else None), run


def _recurred(board: Board, run: Sweeping, event: Recorded, payload: Mapping[str, Any]) -> Stepped:
    found = _found(board, payload)
    return (_with_again(board, found, _sighting(event, payload, filed=False)) if found.fingerprint else board), run


def _judged(board: Board, run: Sweeping, event: Recorded, payload: Mapping[str, Any]) -> Stepped:
    plan = payload.get("plan")
    if not isinstance(plan, dict):
        return board, run
    shown = {text(row, "id"): _candidate(row) for row in rows_of(plan, "candidates")}

    def exclusion(how: str, ids: object, reason: str, **more: Any) -> Exclusion:
        named = [shown[id] for id in ids if isinstance(id, str) and id in shown] if isinstance(ids, list) else []
        candidates = tuple(named[:CANDIDATES_KEPT])
        return Exclusion(time_of(event), run.session_id, how, reason[:TEXT_CHARS_MAX], candidates, **more)

    made = [
        exclusion(EXCLUDED, row.get("candidates"), text(row, "reason"), duplicate=bool(text(row, "duplicate_of")))
        for row in rows_of(plan, "excluded")
    ]
    made += [
        exclusion(REJECTED, row.get("candidates"), text(row, "why"), title=text(row, "title")[:TITLE_CHARS_MAX])
        for row in rows_of(plan, "rejected")
    ]
    if plan.get("unmentioned"):
        made.append(exclusion(UNMENTIONED, plan["unmentioned"], ""))
    register = _register(board, run)
    kept = dict(register.exclusions)
    for number, one in enumerate(made[:EXCLUSIONS_KEPT]):
        kept[f"{one.at:020} {one.sweep} {event.seq} {number:04}"] = one
    newest = sorted(kept)[-EXCLUSIONS_KEPT:]
    return _with_register(board, replace(register, exclusions=Map({name: kept[name] for name in newest}))), run


def _finished(board: Board, run: Sweeping, event: Recorded, payload: Mapping[str, Any]) -> Stepped:
    if run.ended_at is not None:
        return board, run
    counts = {name[:WORD_CHARS_MAX]: n for name, n in payload.items() if type(n) is int and 0 <= n < END_SEQ}
    run = replace(
        run,
        ended_at=time_of(event),
        status=text(payload, "status")[:WORD_CHARS_MAX],
        headline=text(payload, "headline")[:TITLE_CHARS_MAX],
        counts=Map(counts),
    )
    register = _register(board, run)
    if register.last is None or register.last.rank < run.rank:
        register = replace(register, last=run)
    if run.has_looked and (register.look is None or register.look.rank < run.rank):
        register = replace(register, look=run)
    return _with_register(board, replace(register, weeks=_counted(register.weeks, run))), run


def _pushed(board: Board, run: Sweeping, event: Recorded, payload: Mapping[str, Any]) -> Stepped:
    push = push_of(event)
    if push is None or not push.terminal or event.seq == END_SEQ:  # that slot does not say what stands before it
        return board, run
    return board, replace(run, result_seq=event.seq)


_STEPS: dict[str, Callable[[Board, Sweeping, Recorded, Mapping[str, Any]], Stepped]] = {
    sweep.SWEEP_STARTED: _started,
    sweep.SESSION_UNREADABLE: _unreadable,
    sweep.INCIDENT_FILED: _filed,
    sweep.INCIDENT_RECURRED: _recurred,
    sweep.JUDGE_VERDICT: _judged,
    sweep.SWEEP_FINISHED: _finished,
    kinds.RESULT: _pushed,
}

BOARD = Projection(name="incidents", version="1", state_type=Board, initial=Board(), evolve=evolve)


def _sighting(event: Recorded, payload: Mapping[str, Any], *, filed: bool) -> Sighting:
    at = time_of(event)
    return Sighting(
        at=at,
        sweep=event.session_id,
        seq=event.seq,
        filed=filed,
        title=text(payload, "title")[:TITLE_CHARS_MAX],
        date=date_of(text(payload, "date")) or day_of(at),
        sessions=sessions_of(payload),
    )


def _found(board: Board, payload: Mapping[str, Any]) -> Found:
    register, mark = text(payload, "register")[:TITLE_CHARS_MAX], text(payload, "fingerprint")[:TITLE_CHARS_MAX]
    name = incident_id(register, mark)
    return board.found.get(name) or Found(name, register, mark)


def _with_again(board: Board, found: Found, sighting: Sighting | None) -> Board:
    if sighting is not None:
        found = replace(found, again=found.again.set(f"{sighting.sweep} {sighting.seq}", sighting))
    return replace(board, found=board.found.set(found.id, found))


def _candidate(row: Mapping[str, Any]) -> Candidate:
    return Candidate(
        text(row, "session")[:TITLE_CHARS_MAX],
        text(row, "rule")[:RULE_CHARS_MAX],
        text(row, "snippet")[:SNIPPET_CHARS_MAX],
        identifier(row, "session_id"),
        seq_of(row),
    )


def _register(board: Board, run: Sweeping) -> Register:
    return board.registers.get(run.register) or Register(run.register)


def _with_register(board: Board, register: Register) -> Board:
    return replace(board, registers=board.registers.set(register.name, register))


def _counted(weeks: Map[str, Week], run: Sweeping) -> Map[str, Week]:
    name = week_of(day_of(run.started_at))
    before, counts = weeks.get(name) or Week(), run.counts
    looked_at = counts.get("sessions_clean", 0) + counts.get("sessions_judged", 0)
    weeks = weeks.set(
        name,
        Week(
            before.runs + 1,
            before.failed + (run.status not in (sweep.OK, sweep.QUIET)),
            before.looked_at + looked_at,
            before.unscored + counts.get("sessions_unreadable", 0),
        ),
    )
    return weeks if len(weeks) <= WEEKS_MAX else weeks.delete(min(weeks))
