"""A loop in which everything has happened that a page can show, folded from its events."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ledger import prices
from ledger.events.content import content_digest
from ledger.events.model import OPENING_SEQ, Recorded
from ledger.http import rendering
from ledger.http.loop_rows import last_skip
from ledger.http.loops import at_work as at_work_of
from ledger.http.loops import skip_item
from projections.fold import fold
from projections.loop import LOOPS
from projections.loop_state import AGENT, ITS_AGENTS, Loop, Loops
from projections.loop_views import loop_view
from tests.unit.http import page_samples as samples
from tests.unit.http.page_samples import AT, OWNER

Change = Callable[[Any], Any]
Event = tuple[str, dict[str, Any]]

AT_NS = 1_764_554_850 * 10**9
BRAKES = {"max_iterations": 4, "max_budget_usd": 10, "max_wall_s": 7200, "no_progress": True, "stop_on_pass": True}
CONFIG = {
    "description": "Mends the tests.",
    "schedule": {"interval_seconds": 600},
    "brakes": BRAKES,
    "blast_radius": {"file_scope": ["src/**"]},
    "roles": {"implement": {"prompt": "i.md"}, "verify": {"prompt": "v.md"}, "orchestrate": None},
}


def begun(tick: int, task: str = "Mend the test.") -> list[Event]:
    return [
        ("tick.started", {"tick": tick, "run": "r", "task": task}),
        ("role.finished", {"tick": tick, "role": "implement", "exit_code": 0, "seconds": 312.5, "artifact": "a"}),
    ]


def round_of(tick: int, score: float | None, *, passed: bool = False, reasons: int = 1, **more: Any) -> list[Event]:
    verify = {"tick": tick, "role": "verify", "exit_code": 0, "seconds": 8.0}
    verdict = {"tick": tick, "pass": passed, "score": score, "reasons": ["Two tests fail. " * 100] * reasons}
    return [*begun(tick), ("role.finished", verify), ("verdict", verdict), ("tick.completed", {"tick": tick, **more})]


def halted(reason: str = "scope_violation", **more: Any) -> Event:
    told = {"detail": "It touched what it may not.", "files": [f"etc/{n}" for n in range(22)]}
    return "loop.halted", {"reason": reason, "halt_reason": reason, **told, **more}


def folded(*events: Event, config: dict[str, Any] = CONFIG) -> Loop:
    opening = {"agent": AGENT, "task_id": "13", "saddle": "anvil"}
    said: list[Event] = [
        ("session.opened", opening),
        ("loop.configured", {"name": "mend", "config": config, "digest": "d"}),
        *events,
    ]
    rows = [_recorded(seq + 2, "s-1", seq, kind, payload) for seq, (kind, payload) in enumerate(said, OPENING_SEQ)]
    agents = [
        ("session.opened", {**opening, "agent": ITS_AGENTS, "parent_session_id": "s-1"}),
        ("usage", {"message_id": "m", "input_tokens": 9, "output_tokens": 3, "cost_usd": 2.5}),
    ]
    rows += [_recorded(99, "s-2", seq, kind, payload) for seq, (kind, payload) in enumerate(agents, OPENING_SEQ)]
    return fold(LOOPS, Loops(), rows).loops["13"]


def _recorded(position: int, session: str, seq: int, kind: str, payload: dict[str, Any]) -> Recorded:
    body = json.dumps(payload).encode()
    digest = content_digest(kind, "loop", body)
    return Recorded(position, 0, session, seq, kind, "loop", AT_NS, AT_NS, "13", "task/13", body, digest)


WORKED = [
    ("loop.task_set", {"task": "Mend the test. And say why it failed."}),
    *round_of(1, 0.25, reasons=22),
    *round_of(2, None, changed=False),
    *round_of(3, 1.0, passed=True),
    ("loop.worktree", {"branch": "loop/mend", "path": "/srv/shop/.ledgerd/worktrees/mend"}),
    ("tick.skipped", {"reason": "locked"}),
]


def at_work() -> Loop:
    """In the middle of a round, after one that was given up when it was halted and resumed."""
    aside = [*begun(4), halted("human_intervention"), ("loop.resumed", {})]
    failed = {"tick": 5, "role": "verify", "exit_code": 3, "seconds": 1, "problem": "It said nothing."}
    return folded(*WORKED, *aside, *begun(5, "Another task."), ("role.finished", failed))


def stopped() -> Loop:
    return folded(*WORKED, *begun(4), halted(tick=4))


def detail(loop: Loop, **more: Any) -> dict[str, Any]:
    view = loop_view(loop)
    return {
        **view,
        "usage": prices.priced(view["usage"]),
        "task_status": "working" if loop.halt is None else "suspended",
        "at_work": at_work_of(loop),
        "last_skip": skip_item(last_skip(loop)),
        "host": "mole",
        "saddle": "anvil",
        "cwd": "/srv/shop",
        "project_id": "3",
        "goal_id": "7",
        "interval_s": 600,
        "file_scope": ["src/**"],
        "sessions": [{"session_id": "s-1", "agent": AGENT}, {"session_id": "s-2", "agent": ITS_AGENTS}],
        "requests": [],
        "heard_at": AT,
        "actions": {"halt": {}} if loop.halt is None else {"resume": {}},
        "cursor": "c1",
        **more,
    }


def asked(action: str = "halt") -> list[dict[str, Any]]:
    return [{"seq": 3, "action": action, "reason": "It is late.", "by": "owner", "at": AT}]


def listing() -> dict[str, Any]:
    items = [detail(stopped()), detail(at_work(), requests=asked()), detail(folded(), host=None)]
    return {"items": items, "next": "13", "cursor": "c1"}


def rendered(found: dict[str, Any], me: dict[str, str] = OWNER) -> str:
    return rendering.loop_page(found, me, now=samples.NOW)


def _told(value: Any, f: Change) -> Any:
    """What people and agents wrote is changed; by the rest a page decides what it shows."""
    if isinstance(value, dict):
        return {name: inner if name in _DECIDING else _told(inner, f) for name, inner in value.items()}
    return [_told(inner, f) for inner in value] if isinstance(value, list) else f(value)


_DECIDING = ("status", "task_status", "outcome", "reason", "agent", "roles")
PAGES: dict[str, Callable[[Change], str]] = {
    "loops": lambda f: rendering.loops_page(f(listing()), f(OWNER), now=samples.NOW),
    "loops of a name": lambda f: rendering.loops_page(f(listing()), f(OWNER), now=samples.NOW, name=f("mend")),
    "no loops": lambda f: rendering.loops_page({"items": [], "next": None}, OWNER, now=samples.NOW),
    "loop": lambda f: rendered(f(detail(at_work()))),
    "loop at work": lambda f: rendered(_told(detail(at_work()), f)),
    "loop asked": lambda f: rendered(_told(detail(at_work(), requests=asked()), f)),
    "loop halted": lambda f: rendered(_told(detail(stopped()), f)),
    "loop ended": lambda f: rendered(_told(detail(stopped(), task_status="cancelled", actions={}), f)),
    "loop without anything": lambda f: rendered(
        _told(detail(folded(config={"brakes": {"score_plateau_window": 0}}), interval_s=None), f)
    ),
}
