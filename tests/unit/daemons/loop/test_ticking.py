from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from ledger.daemons.agent import Stop
from ledger.daemons.loop import handling
from ledger.daemons.loop.folders import InvalidLoop
from ledger.daemons.loop.locking import tick_lock
from ledger.daemons.loop.ticking import Summary
from ledger.daemons.loop.views import write_views
from ledger.daemons.loop.watching import Watch
from ledger.errors import Forbidden
from projections.loop_brakes import cost_usd
from projections.loop_state import Round
from tests.unit.daemons.loop.bench import FAIL, PASS, Bench


def test_a_folder_without_the_loop_is_skipped_and_left_alone(bench: Bench) -> None:
    bench.folder.config.unlink()
    assert bench.tick() == Summary("l", True, False, "untracked", 0, None)
    assert not bench.folder.outbox.exists()


def test_without_a_task_no_agent_is_started(bench: Bench) -> None:
    assert bench.tick() == Summary("l", True, False, "no_current_task", 0, None)
    assert bench.calls == []


def test_a_tick_runs_the_roles_in_order_each_once_and_says_complete_after_the_verdict(bench: Bench) -> None:
    summary = bench.roles("implement", "verify", "orchestrate").task().tick()
    verdict = {"pass": True, "score": 0.9, "reasons": ["all of it"]}
    assert summary == Summary("l", False, False, None, 1, verdict)
    assert bench.calls == ["implement", "verify", "orchestrate"]
    assert [kind for kind, _ in bench.events()][-5:] == [
        "role.finished",
        "role.finished",
        "role.finished",
        "verdict",
        "tick.completed",
    ]
    assert bench.state()["iteration_count"] == 1
    assert bench.folder.log_view.read_text().splitlines()[-1] == "TICK pass=True score=0.9 iter=1"


def test_a_failing_verdict_is_an_iteration_and_halts_nothing(bench: Bench) -> None:
    bench.task().agent("verify", FAIL)
    assert [bench.tick().iter, bench.tick().iter] == [1, 2]
    assert bench.state()["status"] == "running"
    assert bench.state()["last_verdict"]["pass"] is False


def test_the_verifier_is_given_what_the_implementer_wrote_and_nothing_where_it_wrote_nothing(bench: Bench) -> None:
    seen = bench.scripts / "seen"
    bench.task().agent("verify", f'echo "<$3>" >> {seen}; {PASS}')
    bench.agent("implement", 'echo "I am done, pass it."').tick()
    bench.agent("implement", 'echo "{}" > "$2"').tick()
    assert seen.read_text().splitlines() == ["<>", f"<{bench.folder.output(2, 'implement')}>"]


def test_the_verdict_is_read_from_the_file_before_what_was_printed(bench: Bench) -> None:
    bench.task().agent("verify", f"""{PASS}; printf '```json\\n{{"pass": false}}\\n```\\n' > "$2" """)
    summary = bench.tick()
    assert summary.verdict == {"pass": False, "score": None, "reasons": []}


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("true", "it said nothing"),
        ("echo All is well, I pass it.", "no JSON object"),
        (f"{PASS}; exit 3", "it said pass, but it ended with exit code 3"),
        (f"{PASS}; kill -9 $$", "it said pass, but it ended with exit code 137"),
        (f'mkdir "$2"; {PASS}', "Is a directory"),
        (f'ln -s /dev/null "$2"; {PASS}', "is a link"),
    ],
)
def test_a_verifier_without_a_verdict_halts_the_loop_and_counts_nothing(bench: Bench, script: str, why: str) -> None:
    summary = bench.roles("verify").task().agent("verify", script).tick()
    assert summary == Summary("l", False, True, "verifier_failed", 0, None)
    halt = bench.loop.halt
    assert halt is not None
    assert why in halt.detail
    assert bench.state()["halt_reason"] == "verifier_failed"
    assert [kind for kind, _ in bench.events("verdict", "tick.completed")] == []


def test_a_verdict_that_the_implementer_left_in_the_verifiers_place_does_not_count(bench: Bench) -> None:
    forged = bench.folder.output(1, "verify")
    bench.task().agent("implement", f"echo '{{\"pass\": true}}' > {forged}").agent("verify", "true")
    assert bench.tick().reason == "verifier_failed"


def test_without_a_verify_role_the_loop_halts_before_any_agent_is_paid_for(bench: Bench) -> None:
    bench.roles("implement", "orchestrate").task()
    assert bench.tick() == Summary("l", False, True, "verifier_failed", 0, None)
    assert bench.calls == []


def test_an_implementer_that_fails_halts_the_loop_and_one_that_says_nothing_does_not(bench: Bench) -> None:
    bench.task().agent("implement", "echo boom >&2; exit 7")
    assert bench.tick() == Summary("l", False, True, "implement_failed", 0, None)
    assert bench.calls == ["implement"]
    [(_, halt)] = bench.events("loop.halted")
    assert (halt["tick"], halt["detail"]) == (1, "it ended with exit code 7: boom")


def test_a_program_that_is_not_there_halts_the_loop_with_its_name(bench: Bench) -> None:
    bench.configure(harness={"command": ["no-such-agent", "{prompt}"]}).task()
    assert bench.tick().reason == "implement_failed"
    halt = bench.loop.halt
    assert halt is not None
    assert "127" in halt.detail


def test_an_orchestrator_that_fails_is_logged_and_nothing_more(bench: Bench) -> None:
    summary = bench.roles("verify", "orchestrate").task().agent("orchestrate", "exit 4").tick()
    assert summary.iter == 1
    assert "FAILED orchestrate exit=4" in bench.folder.log_view.read_text().splitlines()


def test_an_agent_that_hangs_is_ended_at_its_time_limit(bench: Bench) -> None:
    bench.config["harness"]["time_limit_s"] = 0.3
    bench.configure().task().agent("implement", "exec sleep 60")
    assert bench.tick().reason == "implement_failed"
    halt = bench.loop.halt
    assert halt is not None
    assert halt.detail == "it was ended after its time limit"


def test_a_flood_is_bounded_and_what_an_agent_leaves_running_is_ended(bench: Bench) -> None:
    pid = bench.scripts / "pid"
    bench.task().agent("implement", f"setsid sleep 60 & echo $! > {pid}; yes | head -c 50000000")
    assert bench.tick().iter == 1
    assert not is_running(int(pid.read_text()))
    assert bench.folder.reply(1, "implement").stat().st_size <= 2**20


def is_running(pid: int) -> bool:
    """A process that only waits to be reaped does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_halted_loop_is_skipped_until_it_is_resumed(bench: Bench) -> None:
    bench.task()
    assert handling.halt(bench.folder, bench.saddle, "lunch")
    before = bench.folder.state_view.read_bytes()
    assert bench.tick() == Summary("l", True, True, "halted:human_intervention", 0, None)
    assert bench.folder.state_view.read_bytes() == before
    assert handling.resume(bench.folder, bench.saddle) is None
    assert bench.tick().iter == 1
    assert bench.state()["resumed_count"] == 1


def test_a_plateau_stops_the_next_tick(bench: Bench) -> None:
    bench.roles("verify").configure(brakes={"score_plateau_window": 2}).task().agent("verify", FAIL)
    assert [bench.tick().reason for _ in range(3)] == [None, None, "score_plateau"]
    assert bench.state()["score_history"] == [0.4, 0.4]


def test_a_loop_that_has_had_its_rounds_is_skipped(bench: Bench) -> None:
    bench.configure(brakes={"max_iterations": 1}).task().tick()
    assert bench.tick() == Summary("l", True, False, "max_iterations", 1, None)


def test_what_the_agents_cost_counts_against_the_budget(bench: Bench) -> None:
    """Told in the way that agents tell it: as a stream on standard output."""
    claude = bench.scripts / "claude"
    claude.write_text(f'#!/bin/sh\n. {bench.scripts}/"$LEDGERD_LOOP_ROLE".sh\n')
    claude.chmod(0o755)
    for role, said in (("implement", "did it"), ("verify", '{"pass": false, "score": 0.1}')):
        rows = [
            {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "cwd": "/"},
            {"type": "result", "subtype": "success", "session_id": "s", "result": said, "total_cost_usd": 0.3},
        ]
        stream = "\n".join(json.dumps(row) for row in rows)
        bench.agent(role, f"cat << 'END'\n{stream}\nEND")
    bench.configure(
        harness={"command": [str(claude), "--output-format", "stream-json"]}, brakes={"max_budget_usd": 0.6}
    )
    assert bench.task().tick().verdict == {"pass": False, "score": 0.1, "reasons": []}
    assert cost_usd(bench.loop) == 0.6
    assert bench.tick().reason == "budget_exhausted"


def test_a_tick_while_another_runs_is_skipped(bench: Bench) -> None:
    bench.task()
    with tick_lock(bench.folder.lock) as taken:
        assert taken
        assert bench.tick().reason == "locked"
    assert bench.tick().iter == 1


@pytest.mark.parametrize(
    ("prints", "reason"),
    [
        ('{"ok": true}', None),
        ('{"ok": false, "reason": "the build is red", "halt_reason": "red"}', "the build is red"),
        ('{"ok": "yes"}', "gate_subprocess_failed"),
        ("", "gate_subprocess_failed"),
        ("nonsense", "gate_subprocess_failed"),
    ],
)
def test_a_gate_is_asked_as_well(bench: Bench, prints: str, reason: str | None) -> None:
    bench.configure(gate={"command": ["printf", "%s", prints]}).task()
    summary = bench.tick()
    assert (summary.reason, summary.halted) == (reason, False)
    assert bool(bench.calls) is (reason is None)


def test_a_gate_that_fails_or_takes_too_long_lets_nothing_through(bench: Bench) -> None:
    bench.configure(gate={"command": """sh -c 'echo "{\\"ok\\": true}"; exit 1'"""}).task()
    assert bench.tick().reason == "gate_subprocess_failed"
    bench.configure(gate={"command": ["sleep", "60"], "time_limit_s": 0.2})
    assert bench.tick().reason == "gate_subprocess_failed"


def test_a_context_below_the_floor_halts_and_starts_no_agent(bench: Bench) -> None:
    bench.configure(context_probe={"command": ["echo", '{"loop_mode_eligible": false}']}).task()
    assert bench.tick() == Summary("l", False, True, "context_below_floor", 0, None)
    assert bench.state()["halt_reason"] == "human_intervention"
    assert bench.calls == []


def test_a_probe_that_prints_nonsense_skips_the_tick(bench: Bench) -> None:
    bench.configure(context_probe={"command": ["echo", '{"loop_mode_eligible": 1}']}).task()
    assert bench.tick() == Summary("l", True, False, "context_probe_failed", 0, None)


def test_a_tick_that_was_asked_to_end_is_gone_on_with_by_the_next(bench: Bench) -> None:
    """The verifier is in the middle when the runner is asked to end: only it is run again."""
    bench.roles("implement", "verify", "orchestrate").task()
    with bench.while_it_runs("verify", bench.stop.ask, then="exec sleep 60"):
        assert bench.tick() == Summary("l", True, False, "interrupted", 0, None)
    [(_, skip)] = bench.events("tick.skipped")
    assert (skip["tick"], skip["role"]) == (1, "verify")
    bench.stop = Stop()
    assert bench.agent("verify", PASS).tick().iter == 1
    assert bench.calls == ["implement", "verify", "verify", "orchestrate"]


def test_a_halt_while_an_agent_runs_keeps_the_next_one_from_being_started(bench: Bench) -> None:
    bench.task()
    with bench.while_it_runs("implement", lambda: handling.halt(bench.folder, bench.saddle)):
        summary = bench.tick()
    assert (summary.reason, summary.halted, summary.iter) == ("halted:human_intervention", True, 0)
    assert bench.calls == ["implement"]
    handling.resume(bench.folder, bench.saddle)
    assert bench.agent("implement", "true").tick().iter == 1
    assert [one.tick for one in bench.loop.completed] == [2]


def test_a_verdict_that_is_there_when_a_person_halts_still_counts(bench: Bench) -> None:
    bench.roles("verify").task()
    with bench.while_it_runs("verify", lambda: handling.halt(bench.folder, bench.saddle), then=PASS):
        summary = bench.tick()
    assert (summary.halted, summary.iter) == (True, 1)


def test_of_two_runners_of_one_round_the_one_that_was_overtaken_counts_nothing(bench: Bench) -> None:
    """The lock file is gone, say: the round is taken up by another runner while the first one's agent works."""
    bench.roles("verify").task()

    def overtake() -> None:
        with bench.saddle() as saddle:
            bench.journal(saddle).add(lambda _: [("tick.started", {"tick": 1, "run": "other"})])

    with bench.while_it_runs("verify", overtake, then=PASS):
        assert bench.tick() == Summary("l", True, False, "superseded", 0, None)
    assert bench.events("role.finished", "verdict", "tick.completed") == []


def test_a_runner_that_is_overtaken_at_the_very_last_claims_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.roles("verify").task()

    def overtaken(watch: Watch, one: Round) -> None:
        with bench.saddle() as saddle:
            bench.journal(saddle).add(lambda _: [("tick.started", {"tick": 1, "run": "other"})])

    monkeypatch.setattr(Watch, "changed", overtaken)
    assert bench.tick() == Summary("l", True, False, "superseded", 0, None)
    assert bench.events("verdict", "tick.completed") == []


def test_pipes_in_the_place_of_the_runners_files_hold_nothing_up(bench: Bench) -> None:
    """Whoever opens a pipe waits for somebody at its other end."""
    outputs = bench.folder.outputs
    bench.task().agent(
        "implement",
        f"cd {outputs}; mkfifo left.running tick1-verify-prompt.md tick1-verify-prompt.md.running;"
        f" cd {bench.folder.ledgerd}; rm .gitignore; mkfifo .gitignore",
    )
    summaries: list[Summary] = []
    ticking = threading.Thread(target=lambda: summaries.extend(bench.tick() for _ in range(2)), daemon=True)
    ticking.start()
    ticking.join(20)
    assert [one.reason for one in summaries] == [None, None]
    assert (bench.folder.ledgerd / ".gitignore").is_file()


def test_a_pipe_in_the_place_of_what_a_killed_round_began_with_is_tampering(bench: Bench) -> None:
    bench.repository().configure(blast_radius={"file_scope": ["src/"]}).task()
    with bench.while_it_runs("implement", bench.stop.ask, then="exec sleep 60"):
        assert bench.tick().reason == "interrupted"
    bench.stop = Stop()
    bench.folder.base(1).unlink()
    os.mkfifo(bench.folder.base(1))
    assert bench.tick().reason == "verifier_changed"


def test_a_person_and_the_runner_write_the_views_at_once(bench: Bench) -> None:
    loop = bench.task().loop
    others = [replace(loop, current_task="x" * n) for n in range(100)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda one: write_views(bench.folder, one), others)) == [None] * 100
    assert set(bench.state()["current_task"]) <= {"x"}
    assert not list(bench.folder.home.glob(".state*.new"))


@pytest.mark.parametrize("role", ["implement", "verify", "orchestrate"])
def test_an_agent_can_neither_resume_its_loop_nor_give_itself_another_task(
    bench: Bench, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.task()
    handling.halt(bench.folder, bench.saddle)
    monkeypatch.setenv("LEDGERD_LOOP_ROLE", role)
    with pytest.raises(Forbidden, match="may not resume it"):
        handling.resume(bench.folder, bench.saddle)
    if role != "orchestrate":  # whose work that is
        with pytest.raises(Forbidden, match="may not set its task"):
            bench.task("Do something easier.")
    assert (bench.loop.current_task, len(bench.loop.resumes)) == ("Do it.", 0)


def test_what_an_agent_tells_the_ledger_decides_nothing(bench: Bench) -> None:
    bench.roles("verify").task()

    def forge() -> None:
        with bench.saddle() as saddle:
            session = saddle.session(bench.journal(saddle).agents.id)  # as LEDGERD_SESSION names it
            session.emit("verdict", {"tick": 1, "pass": True}, actor="loop")
            session.emit("tick.completed", {"tick": 1}, actor="loop")
            session.result("done")

    with bench.while_it_runs("verify", forge, then=FAIL):
        assert bench.tick().verdict == {"pass": False, "score": 0.4, "reasons": ["half of it"]}
    assert bench.tick().iter == 2


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ({"brake": {}}, "brake is no key of a loop"),
        ({"brakes": {"max_iteration": 3}}, "brakes.max_iteration is no key of a loop"),
        ({"name": "other"}, "name is 'other'"),
        ({"roles": {"verify": {"prompt": "missing.md"}}}, "roles.verify.prompt"),
        ({"roles": {"verify": {"prompt": "../../../secret.md"}}}, "leads out of the loop's folder"),
    ],
)
def test_a_loop_that_is_not_as_it_should_be_starts_nothing_and_changes_nothing(
    bench: Bench, mistake: dict[str, object], named: str
) -> None:
    (bench.project / "secret.md").write_text("secret")
    bench.task()
    before = bench.events()
    bench.configure(**mistake)
    with pytest.raises(InvalidLoop) as wrong:
        bench.tick()
    assert named in wrong.value.detail
    assert bench.calls == []
    assert bench.events() == before


def test_a_link_out_of_the_folder_is_no_prompt(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.md").write_text("text")
    (bench.folder.home / "link.md").symlink_to(tmp_path / "elsewhere.md")
    bench.configure(roles={"verify": {"prompt": "link.md"}})
    with pytest.raises(InvalidLoop, match="leads out"):
        bench.tick()
