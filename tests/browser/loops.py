"""Loops for looking at: one that was halted in its ninth round and is asked to go on, one at work, one that a brake
holds, and two of one name on two hosts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.browser.driving import Ledger

TASK = """Mend the flaky tests of the order import. Each must pass fifty times in a row.

Do not touch the production code of the payment module."""
CONFIG: dict[str, Any] = {
    "description": "Mends what the nightly build has found to be flaky.",
    "schedule": {"interval_seconds": 1800},
    "brakes": {"max_iterations": 25, "max_budget_usd": 40, "max_wall_s": 6 * 3600, "no_progress": True},
    "blast_radius": {"file_scope": ["src/orders/**", "tests/orders/**"], "use_worktree": True},
    "roles": {role: {"prompt": f"{role}.md"} for role in ("implement", "verify", "orchestrate")},
}
SCORES = (0.12, 0.3, 0.28, None, 0.55, 0.6, 0.82, 1.0)
REASONS = (
    "test_import_of_two_shops fails in 11 of 50 runs: the second shop's clock is read twice.",
    "\x1b[33mwarning\x1b[0m: test_import_retries sleeps; make it wait for the row instead.",
)


class Looping:
    """What the runner of a loop pushes, as of a time that goes on."""

    def __init__(self, ledger: Ledger, name: str, host: str, task: dict[str, Any], began: datetime) -> None:
        self.ledger = ledger
        self.task_id: str = task["id"]
        self.id = f"loop-{task['id']}"
        self.now = began
        self._seqs = {self.id: 0, f"{self.id}-agents": 0}
        opening = {"task": task, "host": host, "cwd": "/srv/orders", "at": began.isoformat()}
        for session, agent, parent in (
            (self.id, "ledgerd-loop", None),
            (f"{self.id}-agents", "ledgerd-loop-agents", self.id),
        ):
            fields = {"session_id": session, "agent": agent, "parent_session_id": parent}
            ledger.post("/api/saddle/sessions", {**opening, **fields})
        self.says("loop.configured", name=name, config=CONFIG, digest="d")

    def says(self, kind: str, /, session: str = "", actor: str = "loop", **payload: Any) -> None:
        session = session or self.id
        event = {"seq": self._seqs[session], "kind": kind, "actor": actor, "payload": payload}
        event["at"] = self.now.isoformat()
        self._seqs[session] += 1
        self.ledger.post("/api/saddle/chunks", {"session_id": session, "events": [event]})

    def works(self, tick: int, minutes: float, *, ends: bool = True) -> None:
        """The implementing agent's part of a round."""
        self.says("tick.started", tick=tick, run="r", task=TASK)
        self.now += timedelta(minutes=minutes)
        self.says("output", f"{self.id}-agents", "implement", stream="stdout", text="212 passed, 3 failed")
        usage = {"message_id": f"{self.id}-{tick}", "input_tokens": 90_000, "output_tokens": 7_000}
        self.says("usage", f"{self.id}-agents", "implement", cost_usd=minutes * 0.21, **usage)
        if ends:
            self.says("role.finished", tick=tick, role="implement", exit_code=0, artifact="a", seconds=minutes * 60)

    def judges(self, tick: int, score: float | None, *reasons: str, **completed: Any) -> None:
        self.now += timedelta(minutes=2)
        self.says("role.finished", tick=tick, role="verify", exit_code=0, artifact="v", seconds=114.2)
        self.says("role.finished", tick=tick, role="orchestrate", exit_code=int(tick == 2), artifact="", seconds=11)
        self.says("verdict", tick=tick, **{"pass": score == 1.0}, score=score, reasons=list(reasons))
        self.says("tick.completed", tick=tick, **completed)
        self.now += timedelta(minutes=11)

    def halts(self, reason: str, **more: Any) -> None:
        self.says("loop.halted", reason=reason, halt_reason=reason, **more)
        self.says("result", state="suspended", summary=f"{reason}: {more.get('detail', '')}")


def tell_loops(ledger: Ledger) -> dict[str, str]:
    """The pages to look at, by name."""
    began = datetime.now(UTC) - timedelta(hours=3)
    goal_id = ledger.goal("A nightly build that can be trusted")
    ledger.post(f"/api/goals/{goal_id}/start")
    halted = looping(ledger, "flaky-tests", "halted", "mole", began, goal_id=goal_id)
    eight_rounds(halted)
    halted.works(9, 6.5)
    halted.halts(
        "scope_violation",
        tick=9,
        detail="2 files outside of src/orders/**, tests/orders/** were touched.",
        files=["src/payment/charge.py", "src/payment/\u202etxt.exe"],
    )
    ledger.post("/api/loops/halted/resume", {"reason": ""})
    working = looping(ledger, "dependencies", "working", "heron", began)
    working.works(1, 14)
    working.judges(1, 0.4, "two packages are still behind", changed=True)
    working.works(2, 9)
    held = looping(ledger, "docs", "held", "mole", began)
    eight_rounds(held, flat=True)
    looping(ledger, "docs", "fresh", "heron", began)
    return {
        "loops": "/loops",
        "loop-halted": "/loops/flaky-tests",
        "loop-working": "/loops/dependencies",
        "loop-held": "/loops/held",
        "loop-fresh": "/loops/fresh",
        "loop-choice": "/loops/docs",
        "loop-task": "/tasks/halted",
        "loop-goal": f"/goals/{goal_id}",
        "home-loops": "/",
    }


def looping(ledger: Ledger, name: str, id_: str, host: str, began: datetime, **task: Any) -> Looping:
    made = Looping(ledger, name, host, {"id": id_, "title": f"Loop {name}", **task}, began)
    if id_ != "fresh":
        made.says("loop.task_set", task=TASK)
        made.says("loop.worktree", branch=f"loop/{name}", path=f"/srv/orders/.ledgerd/worktrees/{name}")
    return made


def eight_rounds(loop: Looping, *, flat: bool = False) -> None:
    for tick, score in enumerate(SCORES, 1):
        loop.works(tick, 3 + tick)
        told = 0.3 if flat and tick > 2 else score
        loop.judges(tick, told, *(() if told == 1.0 else REASONS[: 1 + tick % 2]), changed=tick != 4)
