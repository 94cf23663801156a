"""A scripted fleet: three saddles, goals that run, wait, fail and churn. All of it goes over the wire."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

from ledger.client.api import Api, ApiError

Event = dict[str, Any]

_PAUSE_S = 2.5


class Saddle:
    """One daemon: its own token, and sessions whose seqs it counts."""

    def __init__(self, owner: Api, name: str, host: str) -> None:
        self.name, self.host = name, host
        self.api = Api(owner.url, owner.create_token("saddle", name)["token"], attempts_max=2)
        self.api.heartbeat(host=host, version="demo")

    def session(self, session_id: str, **opening: Any) -> Session:
        self.api.open_session(session_id=session_id, host=self.host, **opening)
        return Session(self, session_id)


class Session:
    """A session that remembers what it pushed, so that it can be delivered again."""

    def __init__(self, saddle: Saddle, session_id: str, pushed: list[Event] | None = None) -> None:
        self.saddle, self.id = saddle, session_id
        self.pushed: list[Event] = list(pushed or [])

    def say(self, kind: str, actor: str = "model", **payload: Any) -> Session:
        event = {"seq": len(self.pushed), "kind": kind, "actor": actor, "payload": payload, "at": time.time()}
        self.pushed.append(event)
        self.saddle.api.push(self.id, [event])
        return self

    def ask(self, text: str) -> Session:
        return self.say("message", "user", role="user", text=text)

    def answer(self, text: str) -> Session:
        return self.say("message", role="assistant", text=text)

    def edit(self, path: str, before: str, after: str) -> Session:
        call_id = f"call-{len(self.pushed)}"
        args = {"file_path": path, "old_string": before, "new_string": after}
        self.say("tool_call", tool="edit", args=args, call_id=call_id)
        return self.say("tool_result", "harness", call_id=call_id, output=f"{path} has been updated")

    def run(self, command: str, output: str, exit_code: int = 0) -> Session:
        call_id = f"call-{len(self.pushed)}"
        self.say("tool_call", tool="run_command", args={"command": command}, call_id=call_id)
        return self.say("tool_result", "harness", call_id=call_id, output=output, exit_code=exit_code)

    def remark(self, body: str) -> Session:
        """As agents do it: a command that carries the remark, then the remark itself."""
        self.say("tool_call", tool="run_command", args={"command": f"cat << 'EOF' | ledgerd comment\n{body}\nEOF"})
        return self.say("comment", body=body)

    def spend(self, input_tokens: int, output_tokens: int, cost_usd: float) -> Session:
        usage = {"input_tokens": input_tokens, "output_tokens": output_tokens, "cost_usd": cost_usd}
        return self.say("usage", "harness", message_id=f"{self.id}-{len(self.pushed)}", model="demo-large", **usage)

    def state(self, state: str, summary: str | None = None) -> Session:
        return self.say("result", "harness", state=state, summary=summary)

    def end(self, state: str, summary: str, times: int = 1) -> Session:
        """The terminal push, `times` over: daemons retry."""
        for _ in range(times):
            self.saddle.api.result(self.id, state, summary)
        return self


def tell_history(owner: Api) -> None:
    """What the fleet has done so far. Told once: a store that was kept holds it already."""
    if any(goal["id"] == "parser" for goal in owner.goals()["items"]):
        return
    owner.create_project("Demo", id="demo")
    harbour = Saddle(owner, "harbour", "harbour")
    mole = Saddle(owner, "mole", "mole")
    lantern = Saddle(owner, "lantern", "lantern")
    _a_goal_that_failed_twice(owner, harbour, mole)
    _a_goal_that_waits(owner, harbour)
    _a_goal_that_is_done(owner, lantern)
    _a_churned_task(owner, mole)
    _a_session_with_helpers(owner, harbour)
    owner.create_task("Look at the slow import", id="slow-import", project_id="demo")


def _goal(owner: Api, goal_id: str, title: str, brief: str, branch_name: str) -> str:
    """The id of its run task."""
    goal = owner.create_goal(title, id=goal_id, project_id="demo", brief=brief, branch_name=branch_name)
    if "start" in goal["actions"]:
        goal = owner.decide("goal", goal_id, "start")
    return str(goal["run_task_id"])


def _a_goal_that_failed_twice(owner: Api, harbour: Saddle, mole: Saddle) -> None:
    brief = "Same grammar, same error messages, twice the speed."
    run = _goal(owner, "parser", "Port the parser to Rust", brief, "goal/parser-rs")
    first = harbour.session("parser-1", task_id=run, agent="claude-code", model="demo-large")
    first.remark(
        "The grammar is ported, 212 of 240 cases pass. The remaining 28 cases are error positions in multi-byte"
        " text; the old parser counted bytes there."
    )
    first.run("cargo test -p parser", "test result: FAILED. 212 passed; 28 failed", 101)
    first.spend(212_000, 9_400, 0.92).end("failed", "bash -n rejected the script", times=3)

    task = owner.create_task("Write the fuzz target", id="parser-fuzz", goal_id="parser", project_id="demo")
    fuzz = mole.session("parser-fuzz-1", task_id=task["id"], agent="codex", model="demo-small")
    fuzz.run("cargo fuzz run grammar -- -max_total_time=600", "Done 1,204,551 runs in 601 second(s)")
    fuzz.spend(88_000, 3_100, 0.44).end("done", "Fuzzed for ten minutes without a difference.")

    owner.decide("goal", "parser", "reopen", "Quote the paths in the script.")
    second = harbour.session("parser-2", task_id=run, agent="claude-code", resumed_from="parser-1")
    second.remark("The flange weld holds. All 240 cases pass with positions in characters.")
    second.run("cargo build --release", "error: linking with `cc` failed: signal 9", 101)
    second.remark("Linking takes all memory; I will try another linker. Peak is in the last link step only.")
    second.spend(301_000, 14_200, 1.71)
    collapse = "the harness collapsed\nsignal 9 while linking, 31.8 GB resident"
    second.end("failed", collapse, times=40)
    for number in range(3):  # the daemon came back under new session ids and said it all again
        churned = harbour.session(
            f"parser-2-again-{number}", task_id=run, agent="claude-code", resumed_from="parser-2"
        )
        harbour.api.push(churned.id, second.pushed)
        churned.end("failed", collapse, times=25)


def _a_goal_that_waits(owner: Api, harbour: Saddle) -> None:
    run = _goal(
        owner, "orders", "Move orders to the new schema", "No downtime, reversible until Friday.", "goal/orders"
    )
    session = harbour.session("orders-1", task_id=run, agent="claude-code", model="demo-large")
    session.remark(
        "The backfill is written and idempotent. It copies 5,000 rows a batch and can be stopped anywhere."
    )
    session.run("python manage.py backfill --dry-run", "would copy 1,204,551 rows in 241 batches")
    session.spend(140_000, 6_200, 0.81)
    session.state("waiting", "May I run the migration on staging?")


def _a_goal_that_is_done(owner: Api, lantern: Saddle) -> None:
    run = _goal(owner, "linters", "Upgrade the linters", "All of them to this year's releases.", "goal/linters")
    session = lantern.session("linters-1", task_id=run, agent="opencode", model="demo-small")
    session.run("ruff check .", "Found 14 errors.", 1)
    session.run("ruff check . --fix", "Found 14 errors (14 fixed, 0 remaining).")
    session.remark("Fourteen findings, all fixed by the tool. One rule was renamed; its exceptions moved along.")
    session.spend(61_000, 2_000, 0.12).end("done", "All linters are at this year's releases.", times=2)


def _a_churned_task(owner: Api, mole: Saddle) -> None:
    """The same remarks under three session ids: stored each, shown once."""
    owner.create_task("Fix flaky uploads", id="uploads", project_id="demo")
    first = mole.session("uploads-1", task_id="uploads", agent="codex", model="demo-small")
    first.run("pytest tests/test_uploads.py --count 50", "47 passed, 3 failed", 1)
    first.remark("Three of fifty runs fail. The temporary folder is shared between workers.")
    for number in (2, 3):
        again = mole.session(f"uploads-{number}", task_id="uploads", agent="codex", resumed_from="uploads-1")
        mole.api.push(again.id, first.pushed)
    last = Session(mole, "uploads-3", first.pushed)
    last.run("pytest tests/test_uploads.py --count 200", "200 passed")
    last.remark("Each worker has a folder of its own now; two hundred runs pass.")


def _a_session_with_helpers(owner: Api, harbour: Saddle) -> None:
    """A session as agents' transcripts are: prompts, answers, edits, colours, and two children."""
    owner.create_task("Speed up the import", id="import", project_id="demo")
    lead = harbour.session("import-1", task_id="import", agent="claude-code", model="demo-large")
    lead.ask("The nightly import takes 40 minutes. Find out why, and make it fast without new dependencies.")
    lead.answer(
        "I will profile it first, then look at the slowest query. Two helpers read the two modules meanwhile."
    )
    for name, found in (
        ("reader", "The reader opens the file once for every row; it should be opened once."),
        ("writer", "The writer commits after each row. Batches of 500 keep the same guarantees."),
    ):
        helper = harbour.session(
            f"import-1-{name}", task_id="import", agent="claude-code", parent_session_id="import-1"
        )
        helper.ask(f"Read the {name} and say what makes it slow.").run(
            f"rg -n 'def ' importer/{name}.py", "12 matches"
        )
        helper.answer(found).spend(21_000, 700, 0.06).end("done", found)
    lead.run(
        "python -m cProfile -s tottime importer",
        "\x1b[1m   ncalls  tottime\x1b[0m\n  1204551  \x1b[31m1911.3\x1b[0m  commit",
    )
    lead.edit(
        "importer/writer.py",
        "for row in rows:\n    insert(row)\n    connection.commit()",
        "for batch in batched(rows, 500):\n    insert_all(batch)\n    connection.commit()",
    )
    lead.run(
        "pytest -q tests/test_importer.py",
        "\x1b[31mF\x1b[0m\x1b[32m..................\x1b[0m\n\x1b[31m1 failed\x1b[0m, 18 passed",
        1,
    )
    lead.answer("One test counted commits; the count is now one for each batch.")
    lead.run("pytest -q tests/test_importer.py", "\x1b[32m19 passed\x1b[0m in 2.31s").spend(118_000, 5_100, 0.64)
    lead.remark("The import takes 70 seconds now. The writer committed after each row; batches of 500 are as safe.")


def work_on(owner: Api, ended: threading.Event) -> None:
    """One goal that keeps moving, until `ended`."""
    run = _goal(owner, "notes", "Write the release notes for 4.2", "For users, not for us.", "goal/notes-4.2")
    lantern = Saddle(owner, "lantern", "lantern")
    session = lantern.session(f"notes-{time.time_ns()}", task_id=run, agent="gemini", model="demo-large")
    for step in _steps():
        try:
            step(session)
            lantern.api.heartbeat(host="lantern", version="demo")
        except ApiError:
            return  # the server has ended
        if ended.wait(_PAUSE_S):
            return


def _steps() -> Iterator[Any]:
    for number in itertools.count(1):
        change = f"#{4100 + number}"
        yield lambda session, change=change: session.run(
            f"git show --stat {change}", "3 files changed, 41 insertions(+)"
        )
        yield lambda session: session.spend(9_000, 350, 0.03)
        yield lambda session, change=change: session.remark(
            f"Change {change} is worth a line. It alters what users see; I will say how to go back."
        )
        if number % 5 == 0:
            yield lambda session: session.saddle.api.push(session.id, session.pushed[-8:])  # a retry: nothing new
