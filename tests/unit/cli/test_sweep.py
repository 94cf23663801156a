from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ledger.daemons.sweep.config import load
from tests.unit.daemons.sweep.gits import git, own_world
from tests.unit.daemons.sweep.worlds import World

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _nobodys_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_world(monkeypatch, tmp_path)
    for name in ("LEDGERD_SWEEP_CONFIG", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")


def sweep(run: Run, world: World, *words: str) -> Result:
    return run("sweep", "-c", str(world.home / "sweep.toml"), *words)


def test_a_run_says_what_was_filed_and_a_quiet_one_is_fine(run: Run, world: World) -> None:
    world.damage("one")
    done = sweep(run, world, "run")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "1 incident filed: 1 HIGH\nHIGH 2026-03-01 Damage in one\n"
    done = sweep(run, world, "run", "--json")
    assert done.exit_code == 0
    said = json.loads(done.stdout)
    assert (said["status"], said["counts"]["sessions_judged"], said["report"]) == ("quiet", 0, None)


def test_a_failed_run_is_exit_code_1_with_a_hint(run: Run, world: World) -> None:
    world.damage("one")
    world.judge_does("fail")
    done = sweep(run, world, "run")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("the judge ended with exit code 3: no credit left for token=[REDACTED]\nhint: ")


def test_a_mistake_in_the_configuration_is_exit_code_2_and_names_the_key(run: Run, world: World) -> None:
    for scan, key in (
        ("max_candidate = 3", "scan.max_candidate: there is no such key"),
        ('extra_alarm = ["fine", "(half"]', "scan.extra_alarm[1]: '(half' is no pattern"),
    ):
        world.configure(scan=scan)
        for words in (["run"], ["run", "--dry-run"], ["scan"], ["config"], ["reindex"]):
            done = sweep(run, world, *words)
            assert done.exit_code == 2, words
            assert key in done.stderr
    assert not (world.home / "sweep.db").exists()


def test_a_configuration_without_sources_is_never_quiet(run: Run, world: World) -> None:
    (world.home / "sweep.toml").write_text('[ledger]\ndir = "register"\n')
    for words in (["run"], ["scan"]):
        done = sweep(run, world, *words)
        assert (done.exit_code, "source: there is none" in done.stderr) == (2, True)


def test_a_lock_that_is_held_is_exit_code_3(run: Run, world: World) -> None:
    from ledger.daemons.sweep.locking import locked

    world.damage("one")
    parts = world.parts()
    with locked(parts.config.lock, parts.guard):
        done = sweep(run, world, "run")
    assert done.exit_code == 3
    assert "another run holds" in done.stderr


def test_a_dry_run_writes_nothing(run: Run, world: World) -> None:
    world.damage("one")
    before = world.tree()
    assert sweep(run, world, "run", "--dry-run").stdout == "1 candidate of 1 session would be judged\n"
    assert world.tree() == before
    done = sweep(run, world, "run", "--dry-run", "--with-judge")
    assert done.stdout == "would be: 1 incident filed: 1 HIGH\nHIGH 2026-03-01 Damage in one\n"
    assert world.tree(lambda name: name == "judge/asked-1") == before
    assert sweep(run, world, "run", "--with-judge").exit_code == 2


def test_a_scan_shows_every_candidate_with_its_rule_and_changes_nothing(run: Run, world: World) -> None:
    world.damage("one", 2)
    world.clean("two")
    before = world.tree()
    shown = sweep(run, world, "scan", "--show").stdout
    assert "remove-tree" in shown
    assert "rm -rf /srv/one/b" in shown
    listed = json.loads(sweep(run, world, "scan", "--json").stdout)
    assert listed["counts"]["candidates"] == 2
    assert [one["rule"] for one in listed["sessions"][0]["found"]] == ["remove-tree", "remove-tree"]
    assert world.tree() == before
    sweep(run, world, "run")
    assert sweep(run, world, "scan").stdout == "nothing is new\n"
    assert "2 candidates" in sweep(run, world, "scan", "--all").stdout


def test_init_makes_a_register_that_a_run_can_use_and_overwrites_nothing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "config" / "sweep.toml"
    done = run("sweep", "-c", str(file), "init", "--git", str(tmp_path / "incidents"))
    assert done.exit_code == 0, done.stderr
    assert tomllib.loads(file.read_text())["git"]["enabled"] is True
    assert load(file).folder == tmp_path / "incidents"
    assert git(tmp_path / "incidents", "status", "--porcelain") == ""
    assert (tmp_path / "incidents" / "incidents.md").read_text() == "# Incidents\n\n"
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    assert run("sweep", "-c", str(file), "run").stdout.startswith("quiet: ")
    text = file.read_text()
    done = run("sweep", "-c", str(file), "init", str(tmp_path / "other"))
    assert (done.exit_code, file.read_text(), (tmp_path / "other").exists()) == (2, text, False)
    done = run("sweep", "-c", str(tmp_path / "new.toml"), "init", str(tmp_path / "incidents"))
    assert (done.exit_code, (tmp_path / "new.toml").exists()) == (2, False)


def test_without_a_configuration_it_says_how_one_is_made(run: Run) -> None:
    done = run("sweep", "run")
    assert done.exit_code == 2
    assert "sweep init" in done.stderr


def test_reindex_ranks_hand_edits_anew_and_names_what_it_cannot_read(run: Run, world: World) -> None:
    world.register.mkdir()
    path = world.register / "incidents.md"
    path.write_text(
        "# Ours\n\n## A · 2026-01-01 · LOW\n\na\n\n## B · 2026-01-02 · HIGH\n\nb\n\n## C · 2026-01-03 · BAD\n"
    )
    done = sweep(run, world, "reindex")
    assert done.exit_code == 0
    assert done.stdout == "2 total, 1 HIGH, 0 MEDIUM, 1 LOW\nwritten: incidents.md\nwritten: index.json\n"
    assert done.stderr == "line 11 is read as no incident: ## C · 2026-01-03 · BAD\n"
    assert [line for line in path.read_text().splitlines() if line.startswith("##")] == [
        "## B · 2026-01-02 · HIGH",
        "## A · 2026-01-01 · LOW",
        "## C · 2026-01-03 · BAD",
    ]
    assert sweep(run, world, "reindex").stdout.endswith("nothing had to change\n")
    assert json.loads(sweep(run, world, "reindex", "--json").stdout)["written"] == []


def test_config_prints_what_is_in_force_and_every_path_it_writes(run: Run, world: World) -> None:
    world.configure("[git]\nenabled = true\n")
    git(world.home, "init", "--quiet", "register")
    done = sweep(run, world, "config")
    assert done.exit_code == 0, done.output
    printed = done.stdout
    in_force, _, paths = printed.partition("writes:\n")
    values = tomllib.loads(in_force)
    assert values["scan"]["max_candidates"] == 50
    assert values["source"] == [{"type": "claude-code", "path": "projects", "name": "claude"}]
    names = {str(Path(line.strip()).relative_to(world.home)) for line in paths.splitlines()}
    assert names == {
        *(f"register/{name}" for name in ("incidents.md", "index.json", "latest.md", "reports", ".git")),
        *("sweep.db", "sweep.db-wal", "sweep.db-shm", "sweep.db.sender", "sweep.db.lock", "seen.txt"),
    }
    assert json.loads(sweep(run, world, "config", "--json").stdout)["scan"]["max_candidates"] == 50


def test_config_prints_no_password_that_an_address_or_a_command_holds(run: Run, world: World) -> None:
    address = "https://somebody:Pa55w0rdOfNobody@example.org"
    world.configure(
        f'[git]\nexpected_remote_url = "{address}/x.git"\n[[source]]\ntype = "ledger"\npath = "{address}"\n'
        f'[hooks]\nnotify_cmd = "curl {address}/ping"\n[privacy]\nextra_redact_patterns = ["password=.+"]\n',
        judge=f'backend = "command"\ncommand = ["ask", "{address}"]\n',
    )
    for words in (["config"], ["config", "--json"]):
        done = sweep(run, world, *words)
        assert done.exit_code == 0, done.stderr
        assert "Pa55w0rdOfNobody" not in done.stdout
        assert "password=.+" in done.stdout


def test_install_writes_a_timer_or_prints_a_line(run: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGERD_TOKEN", "a-token")
    monkeypatch.setenv("LEDGERD_URL", "http://127.0.0.1:8137/100%")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(world.home / "con fig"))
    monkeypatch.setenv("PATH", "/home/somebody/.local/bin:/usr/bin")
    printed = sweep(run, world, "install", "--dry-run").stdout
    assert not (world.home / "con fig").exists()
    done = sweep(run, world, "install", "--at", "05:15")
    assert done.exit_code == 0, done.stderr
    service, timer = sorted((world.home / "con fig" / "systemd" / "user").iterdir())
    text = service.read_text()
    assert f"sweep -c {world.home}/sweep.toml run\n" in text
    assert 'Environment="LEDGERD_URL=http://127.0.0.1:8137/100%%"' in text
    assert "PATH=/home/somebody/.local/bin:/usr/bin" in text
    assert "OnCalendar=*-*-* 05:15:00\n" in timer.read_text()
    assert "OnCalendar=*-*-* 04:30:00\n" in printed
    line = sweep(run, world, "install", "--crontab", "--at", "05:07").stdout
    assert line.startswith("7 5 * * * LEDGERD_URL=")
    assert r"100\%" in line
    assert " PATH=/home/somebody/.local/bin:/usr/bin " in line
    for written in (text, timer.read_text(), line, printed):
        assert "a-token" not in written
    assert sweep(run, world, "install", "--at", "25:00").exit_code == 2
