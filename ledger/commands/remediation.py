"""What owners decide about remediation: configure it, start a run, resume or approve the one that stands.

One run is active at a time, on however many servers. A run is entered in the ledger's own stream for remediation, its
task and its session are made in the same append, and that append is conditional on the whole of what its starter has
seen there: of two that start at once, one is stored, and the other decides again and finds it. For all three streams
to lie in one bucket, the run is given an id that puts it into the bucket of the register.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ledger.commands import writing
from ledger.commands.reading import TITLE_CHARS_MAX, again_if_moved
from ledger.commands.remediation_reading import Runs, Standing
from ledger.commands.writing import write_of
from ledger.errors import Conflict, InvalidField, LedgerError
from ledger.events import kinds
from ledger.events.decode import PAYLOAD_TOO_LARGE, new_event
from ledger.events.model import NO_EVENTS, OPENING_SEQ, NewEvent, task_root
from ledger.store.base import Opening, Store, Write
from projections.remediation import facts, owner, plan, register, words
from projections.remediation.facts import Fact
from projections.remediation.owner import Refusal
from projections.remediation.plan import Configuration, Problem
from projections.remediation.register import ROOT
from projections.remediation.state import Run
from projections.task import ORDINARY

NO_CONFIGURATION = Configuration()
PROBLEMS_TOLD = 10
PROJECTS_MAX = 500
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
_RULES_MAX = {
    "correction_rounds_max": 100,
    "repairs_max": 100,
    "review_restarts_max": 100,
    "feedback_chars_max": 100_000,
    "addendum_chars_max": 100_000,
    "reply_chars_max": 1_000_000,
}


class RemediationCommands:
    """`payload_bytes_max` bounds each event that a decision makes, as those that saddles push are bounded."""

    def __init__(self, store: Store, runs: Runs, payload_bytes_max: int) -> None:
        self._store = store
        self._runs = runs
        self._payload_bytes_max = payload_bytes_max

    async def configure(self, configuration: Configuration, actor: str) -> bool:
        """Publishes what runs are checked against; whether that was new. Raises InvalidField."""
        problems = [*_bound_problems(configuration), *plan.check_configuration(configuration)]
        if problems := [one for one in problems if one.field != "master" or configuration.master]:
            raise _error(Refusal(tuple(problems)))

        async def decided() -> bool:
            known = await self._runs.register()
            if known.configuration == configuration:
                return False
            await self._store.append([self._entered(facts.configured(configuration), known.last_seq, actor)])
            return True

        return await again_if_moved(decided)

    async def start(self, wanted: Any, actor: str, saddle: str) -> str:
        """The id of a new run of the plan `wanted` (JSON), which is also that of its task and of its session. Raises
        InvalidField, Conflict where a run is active."""

        async def decided() -> str:
            known = await self._runs.register()
            active = await self._runs.active(known)
            run_id = self._free_id()
            configuration = known.configuration or NO_CONFIGURATION
            first = _taken(owner.start(run_id, actor, wanted, configuration, None if active is None else active.run))
            entered = Fact(register.RUN_ENTERED, {"run_id": run_id, "owner": actor})
            task, session = self._founded(run_id, first, actor, saddle)
            await self._store.append([self._entered(entered, known.last_seq, actor), task, session])
            return run_id

        return await again_if_moved(decided)

    async def resume(self, wanted: Any, actor: str, saddle: str, run_id: str | None = None) -> str:
        """Goes on with the current run, or with the one that is named, after a block; `wanted` (JSON) stands in for
        what was told to the agents. Raises NotFound for another owner's run, InvalidField, Conflict."""
        return await self._decide(lambda run: owner.resume(run, actor, wanted), actor, saddle, run_id)

    async def approve(self, feedback: str, actor: str, saddle: str, run_id: str | None = None) -> str:
        """Grants what the run waits for. Raises as `resume` does."""
        return await self._decide(lambda run: owner.approve(run, actor, feedback), actor, saddle, run_id)

    async def _decide(
        self, decide: Callable[[Run], list[Fact] | Refusal], actor: str, saddle: str, run_id: str | None
    ) -> str:
        async def decided() -> str:
            standing = await self._standing(actor, run_id)
            run = Run() if standing is None else standing.run
            if standing is not None and standing.cancelled:
                hint = "Start a new run."
                raise Conflict(f"run {run.id}: its task was ended, so it is over", code="run_over", hint=hint)
            events = self._events(_taken(decide(run)), run.last_seq, actor)
            await self._store.append([Write(run.id, events, saddle=saddle, expected_seq=run.last_seq)])
            return run.id

        return await again_if_moved(decided)

    async def _standing(self, actor: str, run_id: str | None) -> Standing | None:
        if run_id is None:
            return await self._runs.current(actor)
        return await self._runs.of(run_id, actor)

    def _entered(self, fact: Fact, last_seq: int, actor: str) -> Write:
        """A fact of the register, behind all that was seen of it."""
        founds = last_seq == NO_EVENTS
        [event] = self._events([fact], -1 if founds else last_seq, actor)
        return Write(
            words.STREAM, [event], opening=Opening(ROOT, None, actor) if founds else None, expected_seq=last_seq
        )

    def _founded(self, run_id: str, first: Sequence[Fact], actor: str, saddle: str) -> tuple[Write, Write]:
        """The run's task, claimed, and its session with its first events."""
        titles = [str(one.get("title", "")) for one in first[0].payload["steps"]]
        created = writing.task_created(run_id, ORDINARY, _title(titles), brief=_brief(titles))
        claimed = writing.of_task(run_id, kinds.TASK_CLAIMED, session_id=run_id, saddle=saddle)
        task, claim = write_of(created, NO_EVENTS, actor), write_of(claimed, 0, saddle)
        task = msgspec.structs.replace(task, events=[*task.events, *claim.events])
        opened = {"task_id": run_id, "saddle": saddle, "agent": words.AGENT_NAME}
        opening = Opening(
            task_root(run_id), run_id, saddle, event=new_event(OPENING_SEQ, kinds.SESSION_OPENED, saddle, opened)
        )
        events = self._events(first, OPENING_SEQ, actor)
        return task, Write(run_id, events, opening, saddle, expected_seq=NO_EVENTS)

    def _events(self, decided: Sequence[Fact], last_seq: int, actor: str) -> list[NewEvent]:
        events = [new_event(last_seq + n, fact.kind, actor, fact.payload) for n, fact in enumerate(decided, 1)]
        if any(len(event.payload) > self._payload_bytes_max for event in events):
            detail = f"make an event of more than {self._payload_bytes_max} bytes"
            raise InvalidField("steps", detail, code=PAYLOAD_TOO_LARGE, hint="Send shorter prompts, or fewer steps.")
        return events

    def _free_id(self) -> str:
        """As `words.RUN_ID` has it."""
        bucket = self._store.bucket_of(ROOT)
        while True:
            run_id = f"run-{uuid.uuid4().hex[:12]}"
            if self._store.bucket_of(task_root(run_id)) == bucket:
                return run_id


def _bound_problems(configuration: Configuration) -> list[Problem]:
    """What is out of bounds. A start says that there is no master; a configuration may come without."""
    problems = []
    if len(configuration.projects) > PROJECTS_MAX:
        problems.append(Problem("projects", f"has {len(configuration.projects)}", f"Send at most {PROJECTS_MAX}."))
    for index, project in enumerate(configuration.projects[:PROJECTS_MAX]):
        if len(project.aliases) > plan.ALIASES_MAX:
            problems.append(Problem(f"projects[{index}].aliases", f"has more than {plan.ALIASES_MAX} names"))
        if any(len(name) > plan.WORD_CHARS_MAX for name in (project.name, *project.aliases)):
            detail = f"has a name of more than {plan.WORD_CHARS_MAX} characters"
            problems.append(Problem(f"projects[{index}]", detail))
    rules = configuration.rules
    if not _PREFIX.fullmatch(rules.prefix):
        problems.append(Problem("rules.prefix", f"{rules.prefix[:60]!r} is no prefix", "Use letters, digits and _."))
    for name, most in _RULES_MAX.items():
        if not 0 <= getattr(rules, name) <= most:
            problems.append(Problem(f"rules.{name}", f"{getattr(rules, name)} is not from 0 to {most}"))
    return problems


def _title(titles: Sequence[str]) -> str:
    more = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
    return f"Remediation: {' '.join(titles[0].split())[: TITLE_CHARS_MAX - 50]}{more}"


def _brief(titles: Sequence[str]) -> str:
    return "\n".join(f"{number}. {' '.join(title.split())}" for number, title in enumerate(titles, 1))


def _taken(decided: list[Fact] | Refusal) -> list[Fact]:
    if isinstance(decided, Refusal):
        raise _error(decided)
    return decided


def _error(refusal: Refusal) -> LedgerError:
    """The first problem by its field, the others in its words."""
    first, *others = refusal.problems
    told = [first.detail, *(f"{one.field}: {one.detail}" for one in others[: PROBLEMS_TOLD - 1])]
    if len(others) >= PROBLEMS_TOLD:
        told.append(f"and {len(refusal.problems) - PROBLEMS_TOLD} more")
    detail = "; ".join(told)
    if not refusal.conflict:
        return InvalidField(first.field, detail, hint=first.hint)
    where, code = (f"{first.field}: ", "plan_conflict") if first.field else ("", "run_conflict")
    return Conflict(f"{where}{detail}", code=code, hint=first.hint)
