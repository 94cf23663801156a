"""A run of the sweep, in its order: lock, pull, scan, record, judge, write, commit, record the judged, push, hooks.

Why nothing is lost and nothing is judged twice: what a look came to is recorded before the judge is asked, so a judge
that fails costs nothing but itself. The verdict is recorded, whole, before anything is written; writing and
committing it again changes nothing. Only then are its sessions recorded as judged, in one step with what was filed.
So whenever a run is killed, the next one either finds a verdict and finishes it, or finds the candidates again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path

import msgspec

from ledger.daemons.agent.processes import Stopping
from ledger.daemons.sweep import ending, filing, seen_list
from ledger.daemons.sweep.commands import Stopped
from ledger.daemons.sweep.config import Config
from ledger.daemons.sweep.ending import Ended
from ledger.daemons.sweep.filing import Plan
from ledger.daemons.sweep.guard import WriteGuard
from ledger.daemons.sweep.hooks import run_hooks
from ledger.daemons.sweep.journal import Fact, Journal, RunJournal, State
from ledger.daemons.sweep.judging import verdict as verdicts
from ledger.daemons.sweep.judging.backends import Judge
from ledger.daemons.sweep.judging.prompt import Known, numbered_candidates, numbered_known, prompt
from ledger.daemons.sweep.judging.verdict import JudgeFailed
from ledger.daemons.sweep.locking import SweepLocked, locked
from ledger.daemons.sweep.model import Candidate, Source
from ledger.daemons.sweep.register.folder import Register
from ledger.daemons.sweep.register.texts import one_line
from ledger.daemons.sweep.repository import Repository
from ledger.daemons.sweep.scanning import Prefilter, Scanned, keys_of, scan
from ledger.errors import LedgerError
from projections import sweep as kinds
from projections.sweep import name_of

REASON_CHARS_MAX = 500

Redact = Callable[[str], str]


class Parts(msgspec.Struct, frozen=True):
    """What a run works with. `repository` is None where git is off; `today` gives the day in UTC; `say` is told
    what goes wrong with hooks and the like."""

    config: Config
    sources: Sequence[Source]
    prefilter: Prefilter
    judge: Judge
    redact: Redact
    guard: WriteGuard
    register: Register
    repository: Repository | None
    journal: Callable[[], AbstractContextManager[Journal]]
    today: Callable[[], date]
    say: Callable[[str], None]
    stop: Stopping | None = None


def run(parts: Parts) -> Ended:
    """One run, its hooks included. Raises SweepLocked where another is under way; any other trouble is its end."""
    try:
        if parts.repository is not None:
            parts.repository.check()
        with locked(parts.config.lock, parts.guard), parts.journal() as journal:
            ended = _journaled(parts, journal)
    except SweepLocked:
        raise
    except (LedgerError, OSError) as error:
        ended = ending.failed(*_said(parts, error), None, (), None, ())
    run_hooks(parts.config.keys.hooks, ended.told(), parts.config.file.parent, parts.redact, parts.say)
    return ended


def _journaled(parts: Parts, journal: Journal) -> Ended:
    state = journal.state()
    own = journal.begin(parts.today().isoformat(), state.sweeps)
    ended = _Run(parts, state, own).go()
    own.finish(ended.status, ended.headline, ended.counts)
    if trouble := journal.send():
        parts.say(f"the events wait in {parts.config.state}: {parts.redact(trouble.detail)}")
    return ended


class _Run:
    """One run while it goes on."""

    def __init__(self, parts: Parts, state: State, own: RunJournal) -> None:
        self._parts = parts
        self._state = state
        self._own = own
        self._scanned: Scanned | None = None
        self._plans: list[Plan] = []
        self._notes: list[str] = []
        self._listed: frozenset[str] = frozenset()
        self._seen_anew: set[str] = set()

    def go(self) -> Ended:
        try:
            scanned = self._work()
        except (LedgerError, OSError) as error:
            said = _said(self._parts, error)
            return ending.failed(*said, self._scanned, self._plans, self._report(), self._notes)
        return ending.good(scanned, self._plans, self._report(), self._notes)

    def _work(self) -> Scanned:
        parts = self._parts
        pushes = parts.repository if parts.config.keys.git.push else None
        if pushes is not None:
            pushes.pull()
        self._read_seen_list()
        if self._state.sweeps.pending is not None:
            self._finish_pending(self._state.sweeps.pending.payload)
        scanned = self._scan()
        self._record(scanned)
        if scanned.chosen:
            self._settle(self._judge(scanned))
        if pushes is not None:
            pushes.push()
        return scanned

    # Looking

    def _scan(self) -> Scanned:
        parts, sweeps = self._parts, self._state.sweeps
        scanned = scan(
            parts.sources,
            parts.prefilter,
            parts.config.keys.scan,
            seen=lambda name: name in sweeps.seen or name in self._listed or name in self._seen_anew,
            is_initialised=lambda source: source in sweeps.initialised or name_of(source, "") in self._listed,
            redact=parts.redact,
            stop=parts.stop,
        )
        self._scanned = scanned
        self._notes += ending.notes_of(scanned)
        return scanned

    def _record(self, scanned: Scanned) -> None:
        """What is clean, excluded, the baseline, deferred or unreadable."""
        facts = scanned.facts(self._parts.config.keys.scan.first_run)
        if scanned.chosen:
            facts.append((kinds.CANDIDATES_FOUND, _candidates_payload(scanned)))
        self._own.record(facts)
        seen = [name_of(str(fact["source"]), str(fact["key"])) for kind, fact in facts if kind in kinds.SEEN_KINDS]
        self._write_seen_list([*seen, *(name_of(source, "") for source in scanned.initialised)])

    # Judging

    def _judge(self, scanned: Scanned) -> Plan:
        """Asks once, and records what came of it before anything follows from it."""
        candidates = numbered_candidates(scanned.candidates)
        known = self._parts.register.known(self._state.registers)
        try:
            plan = judged(self._parts, candidates, known, keys_of(scanned.chosen), self._own.usage)
        except JudgeFailed as error:
            reason = self._parts.redact(error.detail)[:REASON_CHARS_MAX]
            self._own.record([(kinds.JUDGE_FAILED, {"reason": reason})])
            raise
        self._own.record([(kinds.JUDGE_VERDICT, {"verdict": plan.verdict, "plan": msgspec.to_builtins(plan)})])
        return plan

    def _finish_pending(self, payload: bytes) -> None:
        """A verdict that was given, and never reached the register."""
        self._notes.append("finished what an earlier run had judged")
        self._settle(plan_in(payload))

    def _settle(self, plan: Plan) -> None:
        """Writes what a plan asks for, commits it, and records that its sessions are judged."""
        parts = self._parts
        if parts.stop is not None and parts.stop.is_set():
            raise Stopped("asked to end before the register was written")
        headline = ending.headline_of([plan])
        paths = parts.register.write(plan, self._state.registers, headline, self._notes)
        commit = "" if parts.repository is None else parts.repository.commit(paths, headline)
        self._own.record(_filed_facts(plan, self._own.register, paths, commit))
        self._plans.append(plan)
        self._write_seen_list(name_of(source, key) for source, key in plan.judged)

    def _report(self) -> Path | None:
        return self._parts.register.report_of(self._plans[-1]) if self._plans else None

    # The kept list

    def _read_seen_list(self) -> None:
        path = self._parts.config.seen_list
        if path is not None:
            self._listed = seen_list.read(path, self._parts.guard)

    def _write_seen_list(self, names: Iterable[str]) -> None:
        """Brings the list up to what the journal holds, should a run have been killed before it could."""
        self._seen_anew.update(names)
        path, sweeps = self._parts.config.seen_list, self._state.sweeps
        if path is None:
            return
        sources = {name_of(source, "") for source in sweeps.initialised}
        wanted = self._listed | self._seen_anew | set(sweeps.seen) | sources
        if wanted != self._listed:
            seen_list.write(path, wanted, self._parts.guard)
            self._listed = frozenset(wanted)


def judged(
    parts: Parts,
    candidates: dict[str, Candidate],
    known: Sequence[Known],
    sessions: Sequence[tuple[str, str]],
    usage: Callable[[dict[str, object]], None],
) -> Plan:
    """Asks the judge, once, and makes a plan of its verdict. Raises JudgeFailed, Stopped."""
    shown = numbered_known(known)
    answer = parts.judge.ask(prompt(parts.config.prompt, shown, candidates, parts.redact))
    usage(answer.usage)
    today = parts.today()
    verdict = verdicts.read(answer.text, candidates, shown, parts.redact, today=today)
    fingerprints = {one.fingerprint for one in known}
    return filing.plan(uuid.uuid4().hex, verdict, candidates, shown, fingerprints, sessions, today=today.isoformat())


def plan_in(payload: bytes) -> Plan:
    """The plan in the payload of `judge.verdict`. Raises LedgerError where this version cannot read it."""
    try:
        return msgspec.convert(msgspec.json.decode(payload)["plan"], Plan)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise LedgerError(
            f"a verdict that waits in the state cannot be read: {error}",
            hint="Use the ledgerd version that wrote it, for one run.",
        ) from error


def _said(parts: Parts, error: LedgerError | OSError) -> tuple[str, str]:
    """What went wrong, and what to do about it."""
    detail, hint = (error.detail, error.hint) if isinstance(error, LedgerError) else (str(error), "")
    return one_line(parts.redact(detail), REASON_CHARS_MAX), hint


def _candidates_payload(scanned: Scanned) -> dict[str, object]:
    rules: dict[str, int] = {}
    for candidate in scanned.candidates:
        rules[candidate.rule] = rules.get(candidate.rule, 0) + 1
    return {"candidates": len(scanned.candidates), "sessions": len(scanned.chosen), "rules": rules}


def _filed_facts(plan: Plan, register: str, paths: Sequence[Path], commit: str) -> list[Fact]:
    """All that is true once a plan stands in the register; recorded in one step."""
    filed = [(kinds.INCIDENT_FILED, {"register": register, **_builtins(one)}) for one in plan.filed]
    recurred = [(kinds.INCIDENT_RECURRED, {"register": register, **_builtins(one)}) for one in plan.recurring]
    written = {"verdict": plan.verdict, "paths": [str(path) for path in paths], "commit": commit}
    judged_sessions = {"verdict": plan.verdict, "keys": [list(pair) for pair in plan.judged]}
    return [*filed, *recurred, (kinds.REGISTER_WRITTEN, written), (kinds.SESSION_JUDGED, judged_sessions)]


def _builtins(value: msgspec.Struct) -> dict[str, object]:
    return dict(msgspec.to_builtins(value))
