"""Whole runs: real transcripts, a judge in a process of its own, a register in files."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from ledger.client.outbox import Outbox
from ledger.client.saddle import Saddle
from ledger.daemons.sweep import runner
from ledger.daemons.sweep.guard import WriteGuard
from ledger.daemons.sweep.journal import RunJournal
from ledger.daemons.sweep.locking import SweepLocked, locked
from ledger.events.model import Recorded
from tests.unit.daemons.sweep.gits import own_world
from tests.unit.daemons.sweep.worlds import JUDGE, World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    own_world(monkeypatch, tmp_path)
    return World(tmp_path / "home")


class Killed(BaseException):
    """In place of a SIGKILL: nothing of the run goes on."""


def test_a_run_files_what_the_judge_finds_and_the_next_is_quiet(world: World) -> None:
    world.damage("one")
    world.clean("two")
    ended = world.run()
    assert (ended.status, ended.headline) == ("ok", "1 incident filed: 1 HIGH")
    assert world.filed() == ["Damage in one"]
    assert world.seen() == {"one": "judged", "two": "clean"}
    text = (world.register / "incidents.md").read_text()
    assert (
        "## Damage in one · 2026-03-01 · HIGH\n\n**What**: A folder was removed.\n\n**Cost**: A day of work." in text
    )
    report = (world.register / "reports" / "2026-03-09.md").read_text()
    assert "C01 · remove-tree · claude one: rm -rf /srv/one/a" in report.replace("\\", "")
    assert (world.register / "latest.md").read_text() == report
    index = json.loads((world.register / "index.json").read_text())
    assert index["counts"] == {"total": 1, "HIGH": 1, "MEDIUM": 0, "LOW": 0}
    assert index["incidents"][0]["first_seen"] == "2026-03-09"
    before = world.tree(lambda name: name.startswith("sweep.db"))
    again = world.run()
    assert (again.status, len(world.asked)) == ("quiet", 1)
    assert world.tree(lambda name: name.startswith("sweep.db")) == before


def test_the_first_run_takes_what_is_there_as_the_baseline(world: World) -> None:
    world.configure(first_run="baseline")
    world.damage("old")
    assert world.run().status == "quiet"
    assert (world.seen(), world.asked) == ({"old": "baselined"}, [])
    world.damage("new")
    assert world.run().headline == "1 incident filed: 1 HIGH"
    assert world.filed() == ["Damage in new"]


def test_a_session_that_has_grown_is_looked_at_again(world: World) -> None:
    path = world.clean("one")
    world.run()
    world.damage("one")
    world.touched(path)
    assert world.run().headline == "1 incident filed: 1 HIGH"


def test_a_source_that_failed_is_not_initialised_and_the_run_is_not_called_good(world: World) -> None:
    world.configure(first_run="baseline")
    world.damage("old")
    os.rename(world.transcripts, world.home / "away")
    ended = world.run()
    assert ended.status == "failed"
    assert ended.headline == "quiet: 0 sessions looked at, nothing to judge; 1 source could not be looked at"
    assert not world.state().sweeps.initialised
    os.rename(world.home / "away", world.transcripts)
    world.run()
    assert (world.seen(), world.asked) == ({"old": "baselined"}, [])


def test_three_sessions_of_three_candidates_with_a_budget_of_four_take_three_runs(world: World) -> None:
    world.configure(scan="max_candidates = 4")
    for name in ("one", "two", "three"):
        world.damage(name, 3)
    world.clean("four")
    seen = []
    for _ in range(3):
        ended = world.run()
        assert ended.headline == "1 incident filed: 1 HIGH"
        seen.append(world.seen())
    assert seen[0] == {"one": "judged", "four": "clean"}  # scanning went on behind what was deferred
    assert seen[2] == {"one": "judged", "two": "judged", "three": "judged", "four": "clean"}
    assert [prompt.count('{"id": "C') for prompt in world.asked] == [3, 3, 3]
    assert (world.run().status, len(world.asked)) == ("quiet", 3)


def test_a_session_gives_no_more_candidates_than_its_share(world: World) -> None:
    world.configure(scan="max_per_session = 2")
    world.damage("one", 5)
    world.run()
    assert world.asked[0].count('{"id": "C') == 2
    assert world.seen() == {"one": "judged"}


def test_an_excluded_session_is_recorded_and_never_judged(world: World) -> None:
    world.configure(scan='exclude = ["*/secret*.jsonl"]')
    world.damage("secret-one")
    assert world.run().status == "quiet"
    assert (world.seen(), world.asked) == ({"secret-one": "excluded"}, [])


def test_an_unreadable_session_is_counted_not_recorded_and_tried_again(world: World) -> None:
    path = world.damage("one")
    content = path.read_bytes()
    outside = path.rename(world.home / "outside.jsonl")
    path.symlink_to(outside)
    for _ in range(2):
        ended = world.run()
        assert ended.headline == "quiet: 0 sessions looked at, nothing to judge; 1 session could not be scored"
        [unscored] = world.state().sweeps.unscored.values()
        assert (world.seen(), [why.partition(";")[2] for why in unscored.values()]) == ({}, [" it is not followed"])
    path.unlink()
    path.write_bytes(content)
    world.run()
    [unscored] = world.state().sweeps.unscored.values()
    assert (world.seen(), dict(unscored)) == ({"one": "judged"}, {})


JUDGES = {
    "an exit code": ("fail", "", "the judge ended with exit code 3: no credit left for token=[REDACTED]"),
    "prose": ("say", "All is well.", "the judge answered no verdict, but: All is well."),
    "half a verdict": ("say", '{"incidents": [{"title": "x", "candid', "the judge answered no verdict"),
    "nothing": ("say", "", "the judge answered no verdict, but: nothing"),
}


@pytest.mark.parametrize("how", JUDGES)
def test_a_judge_that_fails_costs_nothing_and_the_same_candidates_come_back(world: World, how: str) -> None:
    mode, answer, expected = JUDGES[how]
    world.damage("one")
    world.clean("two")
    world.judge_does(mode, answer)
    ended = world.run()
    assert ended.status == "failed"
    assert ended.headline.startswith(expected)
    assert world.seen() == {"two": "clean"}
    assert not world.register.exists()
    world.judge_does("file")
    assert world.run().headline == "1 incident filed: 1 HIGH"
    assert world.asked[0] == world.asked[1]


def test_a_judge_that_takes_too_long_or_is_not_there_fails_the_run(world: World) -> None:
    world.damage("one")
    world.configure(judge='backend = "command"\ncommand = "/nowhere/judge"')
    assert world.run().headline.startswith("the judge /nowhere/judge is not there")
    command = f"sh -c 'cat > {world.judge}/asked-1; exec sleep 60'"
    world.configure(judge=f'backend = "command"\ncommand = "{command}"\ntimeout = 0.2')
    assert world.run().headline == "the judge gave no answer within 0.2 s"
    assert world.seen() == {}
    assert len(world.asked) == 1  # it was asked on its standard input


def test_what_the_judge_cost_is_told_with_the_run(world: World) -> None:
    claude = world.home / "claude"
    claude.write_text(f"#!/bin/sh\nexec {sys.executable} -S {JUDGE} {world.judge}\n")
    claude.chmod(0o755)
    world.configure(judge=f'binary = "{claude}"')
    world.judge_does("claude")
    world.damage("one")
    assert world.run().headline == "1 incident filed: 1 HIGH"
    [usage] = [event for event in _events(world) if event.kind == "usage"]
    assert json.loads(usage.payload) == {"cost_usd": 0.5, "input_tokens": 1200, "output_tokens": 80}


def test_what_is_excluded_stands_in_the_report_with_its_reason(world: World) -> None:
    world.damage("one", 2)
    world.judge_does("exclude")
    ended = world.run()
    assert (ended.status, ended.headline) == ("ok", "0 incidents filed; 2 candidates excluded")
    assert "All of it is harmless." in (world.register / "latest.md").read_text()
    assert world.seen() == {"one": "judged"}


def test_candidates_that_nobody_mentioned_are_listed(world: World) -> None:
    world.damage("one")
    world.judge_does("empty")
    world.run()
    report = (world.register / "latest.md").read_text()
    assert "## Not mentioned by the judge\n\n- C01" in report


def test_a_judge_that_repeats_an_old_incident_files_nothing_and_it_is_counted(world: World) -> None:
    world.damage("one")
    world.run()
    world.damage("two")
    old = world.state().registers
    [known] = old.incidents.values()
    again = {"title": f"{known.title.upper()}!", "severity": "LOW", "what": "a", "cost": "b", "lesson": "c"}
    world.judge_does("say", json.dumps({"incidents": [{**again, "candidates": ["C01"]}], "excluded": []}))
    text = (world.register / "incidents.md").read_text()
    assert world.run().headline == "0 incidents filed; 1 known already"
    assert (world.register / "incidents.md").read_text() == text
    [incident] = world.state().registers.incidents.values()
    assert (len(incident.recurrences), len(incident.sessions)) == (1, 2)
    world.damage("three")
    duplicate = {"candidates": ["C01"], "reason": "the same", "duplicate_of": "E01"}
    world.judge_does("say", json.dumps({"incidents": [], "excluded": [duplicate]}))
    world.run()
    [incident] = world.state().registers.incidents.values()
    assert [one.date for one in incident.recurrences] == ["2026-03-01", "2026-03-01"]
    assert '"times": 3' in (world.register / "index.json").read_text()


def test_a_judge_that_writes_headings_paths_and_secrets_writes_text(world: World) -> None:
    world.damage("one")
    secret = "ghp_" + "a1B2" * 9
    in_pieces = "\u200b".join(secret)
    nasty = f"../../etc/passwd\n# One\n## Two · 2026-01-01 · HIGH\n<img src=x> [l](http://evil) {secret} {in_pieces}"
    incident = {"severity": "HIGH", "candidates": ["C01"], "date": "../../x", "category": "../y"}
    texts = dict.fromkeys(("title", "what", "cost", "lesson", "why"), nasty)
    excluded = {"candidates": ["C01"], "reason": nasty}
    verdict = {"incidents": [{**incident, **texts}], "excluded": [excluded], "patterns": nasty}
    world.judge_does("say", json.dumps(verdict))
    world.run()
    written = {path.relative_to(world.register) for path in world.register.rglob("*") if path.is_file()}
    assert written == {Path(name) for name in ("incidents.md", "index.json", "latest.md", "reports/2026-03-09.md")}
    incidents = (world.register / "incidents.md").read_text()
    assert [line[:3] for line in incidents.splitlines() if line.startswith("#")] == ["# I", "## "]
    for path in written:
        text = (world.register / path).read_text()
        assert secret not in text.replace("\\", "")
        assert "\n## Two" not in text
        if path.suffix == ".md":
            assert "<img" not in text.replace("\\<", "")
            assert "](http" not in text.replace("\\]", "")
    assert secret not in str([event.payload for event in _events(world)])


def test_hand_edits_stay_whatever_a_run_adds(world: World) -> None:
    world.damage("one")
    world.run()
    path = world.register / "incidents.md"
    edited = path.read_text().replace("Damage in one", "We lost the folder") + "## Notes\n\nOurs.\n"
    path.write_text(edited + "## By hand · 2026-02-01 · MEDIUM\n\nWritten by a person.\n")
    world.damage("two")
    assert world.run().headline == "1 incident filed: 1 HIGH"
    text = path.read_text()
    headings = [line for line in text.splitlines() if line.startswith("##")]
    assert headings == [
        "## Damage in two · 2026-03-01 · HIGH",
        "## We lost the folder · 2026-03-01 · HIGH",
        "## By hand · 2026-02-01 · MEDIUM",
        "## Notes",
    ]
    for line in edited.splitlines():
        assert line in text.splitlines()


def test_a_register_that_was_lost_is_written_anew_from_the_journal(world: World) -> None:
    world.damage("one")
    world.run()
    (world.register / "incidents.md").unlink()
    world.damage("two")
    world.run()
    text = (world.register / "incidents.md").read_text()
    assert "## Damage in one ·" in text
    assert "## Damage in two ·" in text


def test_a_lost_state_with_a_kept_list_judges_nothing_again_and_files_nothing_twice(world: World) -> None:
    world.damage("one")
    world.clean("two")
    world.run()
    for path in world.home.glob("sweep.db*"):
        path.unlink()
    world.configure(first_run="baseline")
    assert (world.run().status, len(world.asked)) == ("quiet", 1)
    world.damage("three")  # its source was initialised, by the list: this is judged, not a baseline
    assert world.run().headline == "1 incident filed: 1 HIGH"


def test_a_run_goes_on_without_its_server_and_says_that_the_events_wait(world: World) -> None:
    def open_saddle(outbox: Path, bytes_max: int) -> Saddle:
        return Saddle("http://127.0.0.1:9", "a-token", outbox=outbox, bytes_max=bytes_max)

    world.damage("one")
    assert runner.run(world.parts(open_saddle=open_saddle, sends=True)).headline == "1 incident filed: 1 HIGH"
    [said] = world.said
    assert said.startswith(f"the events wait in {world.home}/sweep.db: ")
    assert os.stat(world.home / "sweep.db").st_mode & 0o077 == 0


def test_a_damaged_state_stops_the_run_and_says_how_to_go_on(world: World) -> None:
    world.damage("one")
    world.run()
    state = world.home / "sweep.db"
    whole = state.read_bytes()
    for damaged in (b"not a database" * 100, whole[:5000], whole.replace(b"Damage in one", b"Damage in 0ne")):
        state.write_bytes(damaged)
        ended = world.run()
        assert ended.status == "failed"
        assert ended.headline.startswith(f"the state {state} cannot be used")
        assert "state.seen_list" in ended.hint
        assert len(world.asked) == 1
    state.write_bytes(whole)
    assert world.run().status == "quiet"


def test_a_damaged_list_stops_the_run_and_names_the_line(world: World) -> None:
    world.damage("one")
    world.run()
    (world.home / "seen.txt").write_text("# fine\nclaude\tkey\nno tab here\n")
    assert world.run().headline == f"{world.home / 'seen.txt'}:3: is no source and key with a tab between"


def test_another_run_that_holds_the_lock_is_left_alone(world: World) -> None:
    world.damage("one")
    parts = world.parts()
    with locked(parts.config.lock, parts.guard), pytest.raises(SweepLocked):
        runner.run(world.parts())
    assert not (world.home / "sweep.db").exists()
    assert world.run().status == "ok"


STEPS = {
    "before anything is recorded": (RunJournal, "record", 1, 1),
    "before what is clean is recorded": (RunJournal, "record", 2, 1),
    "before the verdict is recorded": (RunJournal, "record", 3, 2),
    "before the first file is written": (WriteGuard, "write", 2, 1),
    "between the files": (WriteGuard, "write", 4, 1),
    "before the judged are recorded": (RunJournal, "record", 4, 1),
    "before the list is written": (WriteGuard, "write", 6, 1),
    "before its end is recorded": (RunJournal, "finish", 1, 1),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_is_killed_anywhere_loses_nothing_and_judges_nothing_twice(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The judge is asked again only where its answer was never recorded."""
    where, name, number, asked = STEPS[step]
    world.damage("one", 2)
    world.clean("two")
    real, calls = getattr(where, name), []

    def dying(*args: object) -> object:
        calls.append(1)
        if len(calls) == number:
            raise Killed
        return real(*args)

    monkeypatch.setattr(where, name, dying)
    with pytest.raises(Killed):
        world.run()
    monkeypatch.setattr(where, name, real)
    ended = world.run()
    assert ended.is_good
    assert len(world.asked) == asked
    assert world.filed() == ["Damage in one"]
    assert world.seen() == {"one": "judged", "two": "clean"}
    assert (world.register / "incidents.md").read_text().count("## Damage in one") == 1
    assert [path.name for path in (world.register / "reports").iterdir()] == ["2026-03-09.md"]
    assert world.run().status == "quiet"
    assert not world.state().sweeps.unended()
    assert (world.home / "seen.txt").read_text().count("\n") == 4  # a head, the source, two sessions


def _events(world: World) -> list[Recorded]:
    with Outbox(world.home / "sweep.db") as outbox:
        return list(outbox.kept())
