"""The runs of the incident sweep: which sessions are seen, what a run came to, what was judged and not yet filed.

The sweep itself folds this from its journal to know what to look at; nothing else remembers it. A session with
candidates counts as seen once its verdict stands in the register: `session.judged` behind `register.written`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from immutables import Map
from msgspec.structs import replace

from ledger.events.content import payload_object
from ledger.events.kinds import RESULT, SESSION_OPENED
from ledger.events.model import Recorded
from projections import daemons
from projections.fold import Projection
from projections.payloads import text
from projections.session import push_of, time_of

AGENT = daemons.SWEEP  # what a run's session is opened as

SWEEP_STARTED = "sweep.started"  # {register, title}
SOURCE_INITIALISED = "source.initialised"  # {source, first_run}
SESSION_BASELINED = "session.baselined"  # {source, key}: was there before the first run
SESSION_CLEAN = "session.clean"  # {source, key}
SESSION_EXCLUDED = "session.excluded"  # {source, key, pattern}
SESSION_DEFERRED = "session.deferred"  # {source, key, candidates}: no room for it in this run
SESSION_UNREADABLE = "session.unreadable"  # {source, key, why}
CANDIDATES_FOUND = "candidates.found"  # {candidates, sessions, rules: {rule: how many}}
JUDGE_FAILED = "judge.failed"  # {reason}
JUDGE_VERDICT = "judge.verdict"  # {verdict: id, plan}: what is to be filed, excluded and recorded
INCIDENT_FILED = "incident.filed"  # {register, fingerprint, title, date, severity, category, what, cost, lesson, …}
INCIDENT_RECURRED = "incident.recurred"  # {register, fingerprint, title, date, sessions}
REGISTER_WRITTEN = "register.written"  # {verdict, paths, commit}
SESSION_JUDGED = "session.judged"  # {verdict, keys: [[source, key], …]}
SWEEP_FINISHED = "sweep.finished"  # {status, headline, filed, …}

OK, QUIET, FAILED, INTERRUPTED = "ok", "quiet", "failed", "interrupted"

SEEN_KINDS = {SESSION_BASELINED: "baselined", SESSION_CLEAN: "clean", SESSION_EXCLUDED: "excluded"}


class Verdict(msgspec.Struct, frozen=True):
    """A verdict as it was given: `payload` is that of its event."""

    id: str
    session_id: str
    payload: bytes


class Run(msgspec.Struct, frozen=True, gc=False):
    """One run. `status` is empty while it goes on, or where it was killed. Times in ns."""

    session_id: str
    register: str
    task_id: str | None
    started_at: int
    ended_at: int | None = None
    status: str = ""
    headline: str = ""
    counts: Map[str, int] = Map()
    has_result: bool = False


class Sweeps(msgspec.Struct, frozen=True):
    """`seen` tells of each session (see `name_of`) how it came to be seen; `unscored` holds, by register, why some
    could not be read in its last run. `pending` is the last verdict, where it has not been written to the register
    yet."""

    seen: Map[str, str] = Map()
    initialised: Map[str, str] = Map()
    unscored: Map[str, Map[str, str]] = Map()
    runs: Map[str, Run] = Map()
    written: Map[str, int] = Map()
    pending: Verdict | None = None

    def unended(self) -> list[Run]:
        """Runs that were killed: of which no result was said."""
        return [run for run in self.runs.values() if not run.has_result]


def name_of(source: str, key: str) -> str:
    """A session of a source, in one text."""
    return f"{source}\t{key}"


def parted(name: str) -> tuple[str, str]:
    """Source and key of a name that `name_of` made."""
    source, _, key = name.partition("\t")
    return source, key


def evolve(sweeps: Sweeps, event: Recorded) -> Sweeps:
    step = _STEPS.get(event.kind)
    return sweeps if step is None else step(sweeps, event, payload_object(event.payload))


def _opened(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    if text(payload, "agent") != AGENT or event.session_id in sweeps.runs:
        return sweeps
    return _with_run(sweeps, Run(event.session_id, "", event.task_id, time_of(event)))


def _started(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    run = sweeps.runs.get(event.session_id)
    run = Run(event.session_id, "", event.task_id, time_of(event)) if run is None else run
    register = text(payload, "register")
    sweeps = replace(sweeps, unscored=sweeps.unscored.set(register, Map()))
    return _with_run(sweeps, replace(run, register=register))


def _initialised(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    source, how = text(payload, "source"), text(payload, "first_run")
    return replace(sweeps, initialised=sweeps.initialised.set(source, how))


def _seen(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    return _with_seen(sweeps, name_of(text(payload, "source"), text(payload, "key")), SEEN_KINDS[event.kind])


def _unreadable(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    run = sweeps.runs.get(event.session_id)
    if run is None:
        return sweeps
    name = name_of(text(payload, "source"), text(payload, "key"))
    unscored = sweeps.unscored.get(run.register, Map()).set(name, text(payload, "why"))
    return replace(sweeps, unscored=sweeps.unscored.set(run.register, unscored))


def _verdict(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    verdict = text(payload, "verdict")
    if not verdict or verdict in sweeps.written:
        return sweeps
    return replace(sweeps, pending=Verdict(verdict, event.session_id, event.payload))


def _written(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    verdict = text(payload, "verdict")
    pending = sweeps.pending if sweeps.pending is not None and sweeps.pending.id != verdict else None
    return replace(sweeps, written=sweeps.written.set(verdict, time_of(event)), pending=pending)


def _judged(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    keys = payload.get("keys")
    if text(payload, "verdict") not in sweeps.written or not isinstance(keys, list):
        return sweeps
    for pair in keys:
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair):
            sweeps = _with_seen(sweeps, name_of(*pair), "judged")
    return sweeps


def _finished(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    run = sweeps.runs.get(event.session_id)
    if run is None:
        return sweeps
    counts = {name: n for name, n in payload.items() if isinstance(n, int) and not isinstance(n, bool)}
    ended = replace(
        run,
        ended_at=time_of(event),
        status=text(payload, "status"),
        headline=text(payload, "headline"),
        counts=Map(counts),
    )
    return _with_run(sweeps, ended)


def _pushed(sweeps: Sweeps, event: Recorded, payload: Mapping[str, Any]) -> Sweeps:
    run, push = sweeps.runs.get(event.session_id), push_of(event)
    if run is None or push is None or not push.terminal:
        return sweeps
    return _with_run(sweeps, replace(run, has_result=True))


def _with_run(sweeps: Sweeps, run: Run) -> Sweeps:
    return replace(sweeps, runs=sweeps.runs.set(run.session_id, run))


def _with_seen(sweeps: Sweeps, name: str, how: str) -> Sweeps:
    return replace(sweeps, seen=sweeps.seen.set(name, how))


_STEPS: dict[str, Callable[[Sweeps, Recorded, Mapping[str, Any]], Sweeps]] = {
    SESSION_OPENED: _opened,
    SWEEP_STARTED: _started,
    SOURCE_INITIALISED: _initialised,
    SESSION_BASELINED: _seen,
    SESSION_CLEAN: _seen,
    SESSION_EXCLUDED: _seen,
    SESSION_UNREADABLE: _unreadable,
    JUDGE_VERDICT: _verdict,
    REGISTER_WRITTEN: _written,
    SESSION_JUDGED: _judged,
    SWEEP_FINISHED: _finished,
    RESULT: _pushed,
}

SWEEPS = Projection(name="sweeps", version="1", state_type=Sweeps, initial=Sweeps(), evolve=evolve)
