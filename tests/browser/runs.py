"""A supervised run for looking at: a plan of three steps over three projects, the first sent back twice, the second
waiting for the owner after a repair that could not go on alone."""

from __future__ import annotations

from projections.remediation import facts, words
from projections.remediation.facts import Fact
from projections.remediation.state import Prompt, Reply
from tests.browser.driving import Ledger

BASE = "/api/resource-remediation"
CONFIGURATION = {
    "projects": [
        {"name": "Billing service", "aliases": ["billing"]},
        {"name": "Web shop", "aliases": ["shop"]},
        {"name": "Platform"},
        {"name": "Runner"},
    ],
    "master": "Platform",
    "tool_project": "Runner",
}
PLAN = [
    {
        "id": "pool",
        "order": 1,
        "target": "billing",
        "title": "Close database connections that nobody uses",
        "summary": "The pool of the billing service leaks one connection for each refused card.",
        "prompt": "Find where a refused card leaves its connection open. Close it, and add a test for it.",
        "risk": "code",
        "phaseLabel": "Stop the leak",
    },
    {
        "id": "limits",
        "order": 2,
        "target": "shop",
        "title": "Give the shop's workers a memory limit",
        "prompt": "Set a limit of 512 MiB for each worker. Measure a day's peak first; say what you measured.",
        "risk": "production",
        "phaseLabel": "Bound the damage",
    },
    {
        "id": "alarm",
        "order": 3,
        "target": "platform",
        "title": "Raise an alarm before the pool is empty",
        "prompt": "Alarm at 80 % of the pool, for five minutes.",
        "risk": "code",
    },
]
FIRST_REPORT = """I closed the connection in `refuse()` and added a test.

    $ pytest tests/billing -q
    \x1b[32m212 passed\x1b[0m in 8.1s

Two places open one, `charge()` and `refuse()`. Only the second left it open: it returns before the block ends."""


class Runner:
    """What the runner of a run appends, behind all that it has seen."""

    def __init__(self, ledger: Ledger, run_id: str, seen: int, queued: int = 1) -> None:
        self.ledger, self.id, self.seen, self.queued = ledger, run_id, seen, queued

    def says(self, *decided: Fact) -> Runner:
        events = [
            {"seq": self.seen + number, "kind": fact.kind, "actor": "runner-1", "payload": fact.payload}
            for number, fact in enumerate(decided, 1)
        ]
        body = {"session_id": self.id, "events": events, "expected_seq": self.seen}
        self.seen = self.ledger.post("/api/saddle/chunks", body)["high_seq"]
        return self

    def asks(
        self, project: str, role: str, stage: str, purpose: str, step: str | None, text: str, attempt: int = 1
    ) -> Runner:
        self.queued += 1
        conversation = "master" if role == words.MASTER else f"{role}-{step}"
        told = Prompt(f"q{self.queued}", conversation, project, role, stage, purpose, text, step, attempt)
        return self.says(facts.prompt_enqueued(told))

    def hears(self, text: str, cost_usd: float | None = None, status: str = words.DONE, error: str = "") -> Runner:
        reply = facts.turn_finished(f"q{self.queued}", Reply(status, text, error, cost_usd=cost_usd))
        return self.says(facts.turn_started(f"q{self.queued}", None), reply)

    def judges(self, step: str | None, decision: str, feedback: str, findings: int = 0) -> Runner:
        return self.says(facts.verdict(f"q{self.queued}", step, decision, feedback, findings))

    def works(self, project: str, step: str, purpose: str, text: str, attempt: int = 1) -> Runner:
        return self.asks(project, words.WORKER, words.AGENT, purpose, step, text, attempt)

    def reviews(self, step: str, text: str, attempt: int = 1) -> Runner:
        return self.asks("Platform", words.MASTER, words.SUPERVISOR, "review", step, text, attempt)


def started(ledger: Ledger) -> Runner:
    ledger.post(f"{BASE}/configuration", CONFIGURATION)
    run = ledger.post(f"{BASE}/start", {"steps": PLAN})
    return Runner(ledger, run["run_id"], run["last_seq"])


def tell_run(ledger: Ledger) -> dict[str, str]:
    """The pages of a run that waits for its owner."""
    run = started(ledger)
    run.hears("The order is right: first the leak, then the limit.\n\nOne remark: measure before you bound.", 0.31)
    run.judges(None, words.APPROVE, "The order is right: first the leak, then the limit.")
    task = PLAN[0]["prompt"]
    run.works("Billing service", "pool", "work", f"Step: {PLAN[0]['title']}\n\n{task}").hears(FIRST_REPORT, 1.84)
    run.reviews("pool", f"Review the step.\n\n{FIRST_REPORT}").hears("Three things are missing, see below.", 0.42)
    findings = "- a timeout leaves it open, too\n- the test passes without the change\n- the pool's metric is gone"
    run.judges("pool", words.CORRECT, findings, 3)
    run.works("Billing service", "pool", "correct", f"Sent back:\n{findings}", 2).hears("All three are mended.", 2.10)
    run.reviews("pool", "Review the step again.", 2).hears("One is left.", 0.39)
    run.judges("pool", words.CORRECT, "- the metric counts closed connections twice", 1)
    run.works("Billing service", "pool", "correct", "Sent back: the metric.", 3).hears(
        "It counts them once now.", 0.77
    )
    run.reviews("pool", "Review the step once more.", 3).hears("", None, words.INTERRUPTED, "the runner was stopped")
    run.says(facts.review_restarted(f"q{run.queued}", "pool", 1))
    run.asks("Platform", words.MASTER, words.SUPERVISOR, "review_restarted", "pool", "Inspect only.", 3)
    run.hears("Checked: the leak is closed, the test fails without the change.", 0.36)
    run.judges("pool", words.APPROVE, "The leak is closed, and the test fails without the change.")
    run.says(facts.step_approved(f"q{run.queued}", "pool", "The leak is closed."))
    run.works("Web shop", "limits", "work", f"Step: {PLAN[1]['title']}\n\n{PLAN[1]['prompt']}")
    run.hears("Measured: 410 MiB at most. The limit is in place; the workers have to be restarted for it.", 1.05)
    run.reviews("limits", "Review the step.").hears("Only the owner may restart the workers of the shop.", 0.40)
    reason = "The limit needs a restart of the shop's workers, which only the owner may allow."
    run.judges("limits", words.BLOCK, reason)
    run.says(
        *facts.run_blocked("SUPERVISOR", "limits", words.BY_VERDICT, reason, interrupted=False, repair="started"),
        facts.repair_started(1, "limits", "SUPERVISOR", reason, catchup=False),
    )
    run.asks("Runner", words.REPAIR, words.SUPERVISOR, "repair", "limits", "A run is stuck. Mend the tool.")
    run.hears("The tool is not at fault: a restart in production is the owner's to allow.", 0.52)
    run.says(
        *facts.repair_needs_user(1, "limits", "Allow the restart of the shop's workers, or say when it may happen.")
    )
    path = f"/runs/{run.id}"
    return {
        "runs": "/runs",
        "run": path,
        "exchange": f"{path}?exchange=q2",
        "run-task": f"/tasks/{run.id}",
        "home-run": "/",
    }
