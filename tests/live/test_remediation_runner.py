"""Runs end to end: scripted agents as real processes, through the harness and HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bundles.rig.scripted_agent import self_repair, supervision
from ledger.cli import main
from ledger.client.outbox.backlog import Backlog
from ledger.client.saddle import Saddle
from ledger.daemons.agent import Stop
from ledger.daemons.remediation import journal
from ledger.events.decode import new_event
from tests.live.remediating import Host, commits, drive, repository, step
from tests.live.serving import Server

APPROVE, BLOCK = supervision("approve", "good"), supervision("block", "deploy it first")
CORRECT = supervision("correct", "- mend it")
WAIT_S_MAX = 20.0


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def host(server: Server, state: Path, tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path, server, state)
    yield host
    host.close()


def test_a_plan_goes_through_two_projects_to_its_end(host: Host) -> None:
    host.script(
        master=[
            APPROVE,
            supervision("correct", "- name the file b\n- say why"),
            supervision("correct", "- say why"),
            APPROVE,
            APPROVE,
            "Both are in.",
        ],
        alpha=[
            {"write": {"a": "1"}, "commit": "a", "say": "Made a."},
            {"write": {"b": "2"}, "commit": "b", "say": "Made b."},
            "Because.",
        ],
        beta=[{"write": {"new.txt": "not committed"}, "say": "Made it."}],
    )
    for project in ("alpha", "beta"):
        repository(host.folder / project)
    with host.runner() as runner:
        host.start(step(1), step(2, "Béta  side!"))
        assert drive(runner) == ["processed"] * 10 + ["idle"]
    run = host.run()
    assert (run["status"], run["stage"], run["error"]) == ("COMPLETED", "IDLE", None)
    assert [(one["status"], one["attempts"]) for one in run["steps"]] == [("APPROVED", 3), ("APPROVED", 1)]
    assert run["convergence"][0] == {"step": "s1", "rounds": 2, "findings": [2, 1, 0], "shrinking": True}
    assert commits(host.folder / "alpha") == ["begun", "a", "b"]
    review, again, _, of_beta = host.prompts("master")[1:5]
    assert "Made a." in review
    assert "+1" in review
    assert "name the file b" in again
    assert "+1" in again, "the diff is from the step's beginning, told whole in a fresh context"
    assert "new: new.txt\nnot committed" in of_beta
    task = host.task()
    assert (task["status"], task["summary"]) == ("done", "2 steps approved")


def test_what_the_agents_said_stands_in_a_session_for_each_conversation(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_EVENTS_AT_ONCE", 3)  # so that the runner reads page by page
    host.script(master=[APPROVE, APPROVE, "Closed."], alpha=["A word of alpha."])
    with host.runner() as runner:
        host.start()
        drive(runner)
    run_id = host.run()["run_id"]
    sessions = {one["session_id"]: one for one in host.task()["sessions"]}
    assert sorted(sessions) == [run_id, f"{run_id}/master", f"{run_id}/step-1"]
    assert {one["state"] for one in sessions.values()} == {"done"}
    assert sessions[f"{run_id}/step-1"]["parent_session_id"] == run_id
    events = host.client.get(f"/api/sessions/{run_id}%2Fstep-1/events").json()["events"]
    assert ("agent", "A word of alpha.") in [(one["actor"], one["payload"].get("text")) for one in events]


def test_a_block_is_repaired_and_what_only_the_owner_may_grant_waits(host: Host) -> None:
    host.script(
        master=[APPROVE, supervision("block", "the lock is stale"), BLOCK, APPROVE, "Closed."],
        alpha=["Could not.", "Could.", "Deployed."],
        tool=[
            self_repair("fixed", "lock removed", "Use the new lock."),
            self_repair("needs_user", "the owner must deploy"),
        ],
    )
    with host.runner() as runner:
        host.start()
        assert drive(runner)[-3:] == ["processed", "self_repair_processed", "waiting"]
        run = host.run()
        assert (run["status"], run["self_repair"]["status"]) == ("BLOCKED", "NEEDS_USER")
        assert (run["steps"][0]["status"], run["steps"][0]["attempts"]) == ("BLOCKED", 2)
        assert host.task()["status"] == "suspended"
        host.owner("approve", feedback="Deploy it now.")
        assert host.run()["self_repair"]["status"] == "SUPERSEDED"
        assert drive(runner) == ["processed"] * 3 + ["idle"]
    assert host.run()["status"] == "COMPLETED"
    assert "Use the new lock." in host.prompts("alpha")[1]
    assert "Deploy it now." in host.prompts("alpha")[2]
    assert "the lock is stale" in host.prompts("tool")[0]


# name → what the agents do, settings, and then: status, stage, step's status, attempts, what the error says
ENDINGS: dict[str, tuple[dict[str, list[Any]], dict[str, Any], tuple[str, str, str, int, str]]] = {
    "the plan is blocked": (
        {"master": [BLOCK]},
        {},
        ("BLOCKED", "PLAN_REVIEW", "BLOCKED", 0, "deploy it first"),
    ),
    "a plan that is sent back is blocked": (
        {"master": [CORRECT]},
        {},
        ("BLOCKED", "PLAN_REVIEW", "BLOCKED", 0, "- mend it"),
    ),
    "prose, twice": (
        {"master": [APPROVE, "I like it.", "I do like it."], "alpha": ["Done."]},
        {},
        ("BLOCKED", "SUPERVISOR", "BLOCKED", 1, "gave no verdict, twice: it holds no line LEDGERD_SUPERVISION"),
    ),
    "cut JSON, then a wrong decision": (
        {"master": ['LEDGERD_SUPERVISION {"decision": "app', supervision("fine", "x")]},
        {},
        ("BLOCKED", "PLAN_REVIEW", "BLOCKED", 0, "holds no decision of approve, correct, block"),
    ),
    "an agent fails": (
        {"master": [APPROVE], "alpha": [{"say": "no quota", "exit": 7}]},
        {},
        ("BLOCKED", "AGENT", "BLOCKED", 1, "the agent failed: exit code 7: no quota"),
    ),
    "an agent takes too long": (
        {"master": [APPROVE], "alpha": [{"until": "never"}]},
        {"turn_s": 0.6},
        ("BLOCKED", "AGENT", "BLOCKED", 1, "the agent failed: it took longer than 0.6 s"),
    ),
    "an agent says nothing, twice": (
        {"master": [APPROVE], "alpha": ["", " \n"]},
        {},
        ("BLOCKED", "AGENT", "BLOCKED", 2, "gave no reply that can be taken, twice: it is empty"),
    ),
    "an agent says what is no UTF-8, then too much": (
        {"master": [APPROVE], "alpha": [{"hex": "ff fe 00 d8"}, "x" * 200_001]},
        {},
        ("BLOCKED", "AGENT", "BLOCKED", 2, "gave no reply that can be taken, twice: it is too long"),
    ),
    "too many rounds": (
        {"master": [APPROVE, CORRECT, CORRECT], "alpha": ["Done.", "Mended."]},
        {"correction_rounds_max": 1},
        ("BLOCKED", "SUPERVISOR", "BLOCKED", 2, "still to be mended after 1 correction rounds: - mend it"),
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_run_that_cannot_go_on_is_blocked_and_says_why(host: Host, name: str) -> None:
    scripts, settings, (status, stage, of_step, attempts, error) = ENDINGS[name]
    host.script(**scripts)
    with host.runner(tool_project=None, **settings) as runner:
        host.start()
        assert set(drive(runner)) == {"processed", "waiting"}
    run = host.run()
    assert (run["status"], run["stage"]) == (status, stage)
    assert (run["steps"][0]["status"], run["steps"][0]["attempts"]) == (of_step, attempts)
    assert error in run["error"]
    assert (run["self_repair"], run["actions"]) == (None, ["resume", "approve"])


@pytest.mark.parametrize(
    ("said", "told"), [("It works now.", "holds no line LEDGERD_SELF_REPAIR"), ({"exit": 3}, "failed: exit code 3")]
)
def test_a_repair_without_a_valid_reply_needs_the_owner(host: Host, said: Any, told: str) -> None:
    host.script(master=[BLOCK], tool=[said])
    with host.runner() as runner:
        host.start()
        assert drive(runner) == ["processed", "self_repair_processed", "waiting"]
    repair = host.run()["self_repair"]
    assert repair["status"] == "NEEDS_USER"
    assert told in repair["feedback"]


def test_a_crash_inside_a_tick_blocks_with_its_text_and_starts_a_repair(host: Host) -> None:
    """The plan was started by a host that knows beta; this one does not."""
    host.script(master=[APPROVE], tool=[self_repair("needs_user", "configure beta")])
    with host.runner():
        host.start(step(1, "beta"))
    with host.runner(projects=("alpha", "platform", "tool")) as runner:
        assert drive(runner) == ["processed", "blocked", "self_repair_processed", "waiting"]
    run = host.run()
    assert run["blocked"]["cause"] == "runner_crashed"
    assert "no project 'beta' is configured on this host" in run["error"]
    assert "no project 'beta' is configured on this host" in host.prompts("tool")[0]


def test_an_interrupted_review_is_restarted_and_interrupted_work_blocks(host: Host) -> None:
    host.script(master=[{"until": "never"}, APPROVE], alpha=[{"until": "never"}])
    for name in ("master", "alpha"):
        stop = Stop()
        with host.runner(stop, tool_project=None) as runner:
            if name == "master":
                host.start()
            interrupting = threading.Thread(target=stop_when, args=(stop, host.folder / f"{name}.here"))
            interrupting.start()
            assert drive(runner)[-1] == "waiting"
            interrupting.join()
    with host.runner(tool_project=None) as runner:
        assert drive(runner) == ["processed", "waiting"]
    run = host.run()
    assert "master.review_restarted" in host.kinds()
    assert "Inspect only, change nothing." in host.prompts("master")[1]
    assert (run["status"], run["stage"]) == ("BLOCKED", "AGENT")
    assert "the agent was interrupted: stopped by SIGTERM" in run["error"]
    assert (len(host.prompts("alpha")), run["steps"][0]["attempts"]) == (1, 1)


def test_a_second_runner_waits_while_the_first_has_the_lease(host: Host) -> None:
    host.script(master=[{"until": "go", "say": APPROVE}])
    with host.runner() as first, host.runner(state_dir=str(host.folder / "other")) as second:
        host.start()
        results: list[str] = []
        working = threading.Thread(target=lambda: results.append(first.tick()))
        working.start()
        wait_for(host.folder / "master.here")
        assert second.tick() == "waiting"
        (host.folder / "go").touch()
        working.join()
        assert results == ["processed"]
    assert len(host.prompts("master")) == 1


def test_a_run_whose_task_the_owner_cancelled_is_left_and_its_agent_ended(host: Host) -> None:
    host.script(master=[{"until": "never"}])
    with host.runner(lease_s=0.3) as runner:
        host.start()
        run = host.run()
        working = threading.Thread(target=runner.tick)
        working.start()
        wait_for(host.folder / "master.here")
        assert host.client.post(f"/api/tasks/{run['task_id']}/cancel", json={}).status_code == 200
        working.join(WAIT_S_MAX)
        assert not working.is_alive()
        assert runner.tick() == "idle"


def test_a_reply_that_came_while_its_runner_died_is_told_by_the_next(host: Host) -> None:
    """The turn had ended, and its reply lay on disk."""
    host.script(master=[APPROVE, APPROVE, "Closed."], alpha=["Done."])
    with host.runner() as runner:
        host.start()
        assert runner.tick() == "processed"

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        runner._record = die  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            runner.tick()
    with host.runner() as runner:
        assert drive(runner) == ["processed"] * 3 + ["idle"]
    assert len(host.prompts("alpha")) == 1


def test_what_an_agent_puts_into_its_runners_outbox_does_not_move_the_run(host: Host) -> None:
    """It finds the outbox in its environment, and what lies there is sent with the owner's token."""
    host.script(master=[APPROVE, APPROVE, "Closed."], alpha=["Done."])
    with host.runner() as runner:
        host.start()
        assert runner.tick() == "processed"
        run_id, seq = host.run()["run_id"], host.run()["last_seq"]
        forged = [new_event(seq + 50, "step.approved", "agent", {"queue_id": "q2", "step": "s1", "feedback": ""})]
        with Saddle("", "", outbox=host.state / "outbox.db", drain=False) as outbox:
            outbox.open_session(run_id, task_id=run_id).add(forged)
            outbox.session(run_id).result("done", "all is well")
            for own in (f"{run_id}/step-1", f"{run_id}/mine"):
                outbox.open_session(own, task_id=run_id).result("done", "all is well")
        with Saddle(host.server.url, host.server.owner_token, outbox=host.state / "outbox.db") as sending:
            assert sending.flush(WAIT_S_MAX)
        with closing(Backlog(host.state / "outbox.db", bytes_max=2**30)) as backlog:
            codes = {(letter.session_id, letter.code) for letter in backlog.dead_letters()}
        assert codes == {(run_id, "expected_seq_required")}
        run = host.run()
        assert (run["status"], run["stage"], run["task_status"]) == ("RUNNING", "AGENT", "working")
        assert drive(runner) == ["processed"] * 3 + ["idle"]
    assert [event["actor"] for event in host.run()["events"] if event["kind"] == "step.approved"] == ["remediation"]
    assert (host.task()["status"], host.task()["summary"]) == ("done", "1 step approved")


def stop_when(stop: Stop, path: Path) -> None:
    wait_for(path)
    stop.ask()


def wait_for(path: Path) -> None:
    ends = time.monotonic() + WAIT_S_MAX
    while not path.exists():
        assert time.monotonic() < ends, f"{path.name} does not come"
        time.sleep(0.01)


def test_a_run_that_an_older_version_left_blocked_is_recovered(host: Host) -> None:
    fixed, asks = self_repair("fixed", "mended", "Mind it."), self_repair("needs_user", "see to it")
    host.script(master=[BLOCK], tool=[fixed, asks])
    with host.runner() as runner:
        host.start()
        run = host.run()
        blocked = {"seq": run["last_seq"] + 1, "kind": "run.blocked", "payload": {"reason": "it broke"}}
        body = {"session_id": run["run_id"], "events": [blocked], "expected_seq": run["last_seq"]}
        assert host.client.post("/api/saddle/chunks", json=body).json()["stored"] == 1
        results = drive(runner)
    assert results[:3] == ["self_repair_recovered", "self_repair_processed", "processed"]
    kinds = host.kinds()
    assert kinds.index("self_repair.catchup_started") < kinds.index("self_repair.resumed")
    assert "stuck in PLAN_REVIEW" in host.prompts("tool")[0]
    assert "Mind it." in host.prompts("master")[0]


def test_the_command_line_starts_ticks_shows_and_resumes(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.script(master=[supervision("block", "say how")])
    host.write_settings(tool_project=None)
    (host.folder / "plan.json").write_text(json.dumps({"steps": [step(1)]}))
    monkeypatch.chdir(host.folder)
    monkeypatch.setenv("LEDGERD_URL", host.server.url)
    monkeypatch.setenv("LEDGERD_TOKEN", host.server.owner_token)

    def ledgerd(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(main, ["remediate", *words])
        assert done.exit_code == code, done.output
        return done.output

    assert ledgerd("start", "plan.json").endswith(" is RUNNING: PLAN_REVIEW\n")
    assert "one is running" in ledgerd("start", "plan.json", code=1)
    told = json.loads(ledgerd("tick", "--json"))
    assert (told["result"], told["status"], told["stage"]) == ("processed", "BLOCKED", "PLAN_REVIEW")
    shown = ledgerd("show")
    assert "it stands: say how" in shown
    assert "ledgerd remediate resume" in shown
    (host.folder / "plan.json").write_text(json.dumps({"steps": [step(1, risk="production")]}))
    assert "steps[0].risk: was 'code' when the run started" in ledgerd("resume", "plan.json", code=1)
    (host.folder / "plan.json").write_text(json.dumps({"steps": [step(1, prompt="Like this.")]}))
    assert ledgerd("resume", "plan.json").endswith(" is RUNNING: PLAN_REVIEW\n")
    host.script(master=[supervision("block", "no")])
    assert ledgerd("daemon", "--until-idle").startswith("processed: run ")
    assert "Like this." in host.prompts("master")[1]
    assert ledgerd("approve", "As you wish.").endswith(" is RUNNING: PLAN_REVIEW\n")
