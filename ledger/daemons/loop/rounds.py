"""One round: its roles, each once, watched; then the verdict, and only then word that the round is complete."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from ledger.client.redaction import redact
from ledger.daemons.agent import Limits, Reply, Stopping, Turn, run_turn
from ledger.daemons.loop import working
from ledger.daemons.loop.config import Setup
from ledger.daemons.loop.deciding import Begin, Complete, Halt, RunRole, Step, broken_off_too_often, next_step
from ledger.daemons.loop.folders import LoopFolder, clear, read_text, write_whole
from ledger.daemons.loop.journal import Journal, New, halted
from ledger.daemons.loop.snapshots import content_of
from ledger.daemons.loop.verdicts import TEXT_BYTES_MAX, Unreadable, read_verdict
from ledger.daemons.loop.watching import Watch
from ledger.errors import StorageError
from projections.loop_reasons import Reason
from projections.loop_state import (
    IMPLEMENT,
    ORCHESTRATE,
    ROLE_FINISHED,
    TICK_COMPLETED,
    TICK_SKIPPED,
    TICK_STARTED,
    VERDICT,
    VERIFY,
    Loop,
    Round,
)
from projections.loop_views import verdict_item

OUTPUT_BYTES_MAX = 4 * 2**20  # that is told of a role: with the server away, the outbox is to last for days
REPLY_CHARS_KEPT = 2**20


class RoundOf:
    """Works on the loop's round: the one that was broken off, or a new one. `stop` ends it where it stands."""

    def __init__(self, folder: LoopFolder, setup: Setup, journal: Journal, stop: Stopping) -> None:
        self._folder = folder
        self._setup = setup
        self._journal = journal
        self._stop = stop
        self._run = uuid.uuid4().hex[:12]
        self._cwd = working.place(folder, setup, journal)
        self._watch = Watch(folder, setup, self._cwd)

    def work(self) -> str | None:
        """To the end of the round: None if it was completed, else why not. Raises StorageError, InvalidLoop,
        GitFailed."""
        step: Step | str = self._take_up()
        while True:
            if isinstance(step, str):
                return step
            if isinstance(step, Halt):
                return self._halt(step)
            loop = self._journal.read()
            one = loop.rounds[step.tick]
            if isinstance(step, Complete):
                return None if self._complete(step) else str(Reason.SUPERSEDED)
            if isinstance(step, RunRole) and not self._run_role(loop, one, step.role):
                return Reason.INTERRUPTED
            step = self._next(step.tick)

    def _take_up(self) -> Step | str:
        """Begins a round, or takes up the one that was broken off: what to do first, or why it cannot be done."""
        step = next_step(self._journal.loop, self._setup.roles)
        if isinstance(step, Halt):
            return step
        if stuck := broken_off_too_often(self._journal.loop):
            return stuck
        begun = self._watch.begin(step.tick) if isinstance(step, Begin) else {}

        def take(loop: Loop) -> list[New]:
            same = next_step(loop, self._setup.roles) == step and loop.halt is None
            payload = {"tick": step.tick, "run": self._run, "task": loop.current_task, **begun}
            return [(TICK_STARTED, payload)] if same else []

        if not self._journal.add(take):
            halt = self._journal.loop.halt
            return str(Reason.SUPERSEDED) if halt is None else f"halted:{halt.halt_reason}"
        return next_step(self._journal.loop, self._setup.roles) if begun else self._next(step.tick)

    def _next(self, tick: int) -> Step | str:
        """What to do after what was done, or why nothing more: halted by a person, or taken over. A halt keeps agents
        from being started, but a round that has its verdict is completed."""
        loop = self._journal.read()
        one = loop.rounds[tick]
        if one.run != self._run:
            return str(Reason.SUPERSEDED)
        if trouble := self._watch.trouble(one):
            return trouble
        if loop.halt is None:
            return next_step(loop, self._setup.roles)
        verified = one.roles.get(VERIFY)
        if verified is not None and verified.verdict is not None and set(self._setup.roles) <= set(one.roles):
            return Complete(tick, verified.verdict)
        return f"halted:{loop.halt.halt_reason}"

    def _halt(self, step: Halt) -> str:
        """Also where a person halted it meanwhile: why the round ended is not to be lost."""

        def halt(loop: Loop) -> list[New]:
            known = any(one.tick == step.tick for one in loop.halts.values()) if step.tick else loop.halt is not None
            return [] if known else halted(step)

        self._journal.add(halt)
        return str(step.reason)

    def _complete(self, step: Complete) -> bool:
        """False where another runner has taken the round over: then nothing is claimed."""
        changed = self._watch.changed(self._journal.loop.rounds[step.tick])
        verdict = {"tick": step.tick, **(verdict_item(step.verdict) or {})}
        completed = {"tick": step.tick} | ({} if changed is None else {"changed": changed})

        def complete(loop: Loop) -> list[New]:
            one = loop.rounds[step.tick]
            if one.completed or one.run != self._run:
                return []
            return [(VERDICT, verdict), (TICK_COMPLETED, completed)]

        done = self._journal.add(complete)
        if done:
            self._watch.end(step.tick)
        return done

    def _run_role(self, loop: Loop, one: Round, role: str) -> bool:
        """False if it was asked to end meanwhile."""
        if self._stop.is_set():
            return self._interrupted(one, None, 0.0)
        self._folder.make()  # or finds out that an agent has put a link in its place
        clear(self._folder.output(one.tick, role))  # what lies there was written by somebody else
        turn = self._turn(loop, one, role)
        began = time.monotonic()
        reply = run_turn(turn, self._journal.agents, actor=role, stop=self._stop)
        seconds = round(time.monotonic() - began, 3)
        if reply.interrupted is not None:
            return self._interrupted(one, role, seconds)
        with suppress(StorageError):  # it is for people only
            write_whole(self._folder.reply(one.tick, role), redact(reply.text[:REPLY_CHARS_KEPT]))
        output = self._folder.output(one.tick, role)
        payload: dict[str, Any] = {
            "tick": one.tick,
            "role": role,
            "exit_code": reply.exit_code,
            "artifact": str(output) if output.is_file() and not output.is_symlink() else "",
            "digest": content_of(output),
            "seconds": seconds,
        }
        payload |= _judged(reply, output) if role == VERIFY else {"problem": _problem(reply)}

        def finish(loop: Loop) -> list[New]:
            now = loop.rounds[one.tick]
            return [(ROLE_FINISHED, payload)] if now.run == self._run and role not in now.roles else []

        self._journal.add(finish)
        return True

    def _turn(self, loop: Loop, one: Round, role: str) -> Turn:
        artifact = _artifact(one, role)
        text = self._setup.prompts[role]
        prompt = working.prompt_text(
            self._folder, text, one, role=role, cwd=self._cwd, artifact=artifact, before=loop.last_verdict
        )
        return Turn(
            command=working.command(self._setup, prompt),
            prompt=prompt,
            prompt_path=self._folder.prompt(one.tick, role),
            cwd=self._cwd,
            output=self._folder.output(one.tick, role),
            artifact=artifact,
            limits=Limits(time_s=self._setup.config.harness.time_limit_s, output_bytes=OUTPUT_BYTES_MAX),
            environment={
                "LEDGERD_LOOP": self._folder.name,
                "LEDGERD_LOOP_ROLE": role,
                "LEDGERD_LOOP_TICK": str(one.tick),
            },
        )

    def _interrupted(self, one: Round, role: str | None, seconds: float) -> bool:
        payload = {"reason": str(Reason.INTERRUPTED), "tick": one.tick, "role": role, "seconds": seconds}
        self._journal.add(lambda _: [(TICK_SKIPPED, payload)])
        return False


def _artifact(one: Round, role: str) -> str:
    """What the role is to look at: the verifier at what the implementer wrote, the orchestrator at the verdict."""
    of = {VERIFY: IMPLEMENT, ORCHESTRATE: VERIFY}.get(role, "")
    path = one.roles[of].artifact if of in one.roles else ""
    return path if path and Path(path).is_file() else ""


def _judged(reply: Reply, output: Path) -> dict[str, Any]:
    """What the verifier's words come to. A pass is believed only of one that ended well."""
    try:
        verdict = read_verdict(_said(reply, output))
    except Unreadable as why:
        ended = f"; {_problem(reply)}" if reply.exit_code else ""
        return {"problem": f"{why}{ended}"}
    if verdict.passed and not reply.is_ok:
        return {"problem": f"it said pass, but {_problem(reply)}"}
    return {"verdict": verdict_item(verdict)}


def _said(reply: Reply, output: Path) -> str:
    """The file that it wrote, else what it printed."""
    if output.is_symlink():
        raise Unreadable("its output file is a link")
    try:
        if (text := read_text(output, TEXT_BYTES_MAX)).strip():
            return text
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Unreadable(f"its output file cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Unreadable(f"its output file {error}") from error
    if len(reply.text) > TEXT_BYTES_MAX:
        raise Unreadable(f"it printed more than {TEXT_BYTES_MAX} bytes")
    if reply.undecodable and "\ufffd" in reply.text:
        raise Unreadable("it printed what is no UTF-8")
    return reply.text


def _problem(reply: Reply) -> str:
    if reply.timed_out:
        return "it was ended after its time limit"
    if reply.exit_code == 0:
        return ""
    said = f": {reply.last_words.strip()[:300]}" if reply.last_words.strip() else ""
    return f"it ended with exit code {reply.exit_code}{said}"
