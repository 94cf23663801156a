"""What is known of a loop: the kinds of its session, and the state that they are folded into."""

from __future__ import annotations

from typing import Any

import msgspec
from immutables import Map

from projections import daemons
from projections.ordered import Ordered
from projections.usage import Usage

AGENT = daemons.LOOP  # what the session of a loop is opened with
ITS_AGENTS = daemons.LOOP_AGENTS  # and that of its agents, a child of the loop's
IMPLEMENT, VERIFY, ORCHESTRATE = "implement", "verify", "orchestrate"
ROLES = (IMPLEMENT, VERIFY, ORCHESTRATE)

# The kinds of a loop's session
CONFIGURED = "loop.configured"  # {name, config, digest}: loop.json with every default filled in
TASK_SET = "loop.task_set"  # {task}
WORKTREE = "loop.worktree"  # {branch, path}
HALTED = "loop.halted"  # {reason, halt_reason, detail?, tick?, files?, request?}
RESUMED = "loop.resumed"  # {by?, request?}
TICK_STARTED = "tick.started"  # {tick, run, task?, base?, inputs?}: `run` is who works on it from here on
TICK_SKIPPED = "tick.skipped"  # {reason, tick?, role?, seconds?}
ROLE_FINISHED = "role.finished"  # {tick, role, exit_code, artifact, seconds, verdict?, problem?, …}
VERDICT = "verdict"  # {tick, pass, score, reasons}
TICK_COMPLETED = "tick.completed"  # {tick, changed?}


class Verdict(msgspec.Struct, frozen=True, gc=False):
    passed: bool
    score: float | None = None
    reasons: tuple[str, ...] = ()


class RoleRun(msgspec.Struct, frozen=True, gc=False):
    """A role that ended. `verdict` is what the verifier's words came to, `problem` why they came to none."""

    seq: int
    role: str
    at: int
    exit_code: int = 0
    artifact: str = ""
    seconds: float = 0.0
    verdict: Verdict | None = None
    problem: str = ""


class Round(msgspec.Struct, frozen=True, gc=False):
    """What one tick number stands for. `run` is the runner that took it up last; `task`, `base` and `inputs` are what
    the first one found before any agent was started. `completed_seq` is -1 until it is complete; `changed` is None
    where nobody looked. Times in ns."""

    tick: int
    starts: tuple[int, ...] = ()  # the seqs at which it was begun or taken up, rising
    started_at: int = 0
    run: str = ""
    task: str = ""
    base: str = ""
    inputs: Map[str, str] = Map()
    roles: Map[str, RoleRun] = Map()
    verdict: Verdict | None = None
    verdict_seq: int = -1
    completed_seq: int = -1
    completed_at: int = 0
    changed: bool | None = None

    @property
    def completed(self) -> bool:
        return self.completed_seq >= 0

    @property
    def vain_starts(self) -> int:
        """How often it was taken up since a role of it has finished."""
        last = max((role.seq for role in self.roles.values()), default=-1)
        return sum(seq > last for seq in self.starts)


class Halt(msgspec.Struct, frozen=True, gc=False):
    """`reason` is what happened, `halt_reason` what the loop waits for; mostly the same. `tick` is the round that was
    halted, None where a person or a probe did it. `at` in ns."""

    seq: int
    at: int
    reason: str
    halt_reason: str
    detail: str = ""
    tick: int | None = None
    files: tuple[str, ...] = ()


class Brakes(msgspec.Struct, frozen=True, gc=False):
    """As loop.json has them; a limit of None, and a window of 0, is no brake."""

    max_iterations: int | None = None
    max_budget_usd: float | None = None
    max_wall_s: float | None = None
    score_plateau_window: int = 5
    no_progress: bool = False
    stop_on_pass: bool = False


class Logged(msgspec.Struct, frozen=True, gc=False, order=True, array_like=True):
    """One line of the log to be: which event it comes from, and what that said."""

    seq: int
    kind: str
    said: str
    tick: int
    at: int


class Loop(msgspec.Struct, frozen=True):
    """Seqs are -1 before there was any. Times in ns."""

    task_id: str
    session_id: str = ""
    opened_at: int = 0
    name: str = ""
    config: dict[str, Any] = {}
    config_digest: str = ""
    configured_seq: int = -1
    brakes: Brakes = Brakes()
    current_task: str | None = None
    task_seq: int = -1
    worktree_branch: str | None = None
    worktree_path: str | None = None
    worktree_seq: int = -1
    halts: Map[int, Halt] = Map()
    resumes: Map[int, int] = Map()  # seq → when
    taken_requests: Map[int, int] = Map()  # the owner's request → the seq that took it
    rounds: Map[int, Round] = Map()
    broken_off: Map[int, float] = Map()  # seq → seconds of agents that were interrupted
    usage: Usage = Usage()
    log: Ordered[Logged] = Ordered()

    @property
    def halt(self) -> Halt | None:
        """What it stands for; None while it runs."""
        last = max(self.halts, default=-1)
        return self.halts[last] if last > max(self.resumes, default=-1) else None

    @property
    def iteration_count(self) -> int:
        return sum(one.completed for one in self.rounds.values())

    @property
    def completed(self) -> list[Round]:
        return sorted((one for one in self.rounds.values() if one.completed), key=lambda one: one.tick)

    @property
    def open_round(self) -> Round | None:
        """The round that was begun last, if it is neither complete nor was the loop halted since."""
        last = self.rounds.get(max(self.rounds, default=0))
        if last is None or last.completed or max(last.starts, default=-1) < max(self.halts, default=-1):
            return None
        return last

    @property
    def next_tick(self) -> int:
        return max(self.rounds, default=0) + 1

    @property
    def last_verdict(self) -> Verdict | None:
        return self.completed[-1].verdict if self.completed else None

    @property
    def scores(self) -> list[float]:
        return [one.verdict.score for one in self.completed if one.verdict and one.verdict.score is not None]

    @property
    def score_history(self) -> list[float]:
        """The scores of the last window."""
        window = self.brakes.score_plateau_window
        return self.scores[-window:] if window else []

    @property
    def since(self) -> list[Round]:
        """The completed rounds that were begun since a person last spoke: resumed the loop, or set a task."""
        spoken = max(self.task_seq, max(self.resumes, default=-1))
        return [one for one in self.completed if min(one.starts, default=one.completed_seq) > spoken]

    @property
    def agent_seconds(self) -> float:
        """How long its agents have run, in all."""
        ended = sum(role.seconds for one in self.rounds.values() for role in one.roles.values())
        return ended + sum(self.broken_off.values())

    @property
    def last_tick_at(self) -> int | None:
        """When a round last ended: completed, or halted."""
        ends = [one.completed_at for one in self.rounds.values() if one.completed]
        return max([*ends, *(halt.at for halt in self.halts.values() if halt.tick is not None)], default=None)


class Loops(msgspec.Struct, frozen=True):
    """All loops that the events speak of, by their tasks. One whose `session_id` is empty is known by its agents
    alone as yet."""

    loops: Map[str, Loop] = Map()
    sessions: Map[str, str] = Map()  # session_id → task_id, of the loops' own
    agents: Map[str, str] = Map()  # session_id → task_id, of their agents'
