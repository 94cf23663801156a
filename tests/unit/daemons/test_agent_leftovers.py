"""What a killed runner leaves behind is ended, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from ledger.daemons.agent import end_leftovers
from ledger.daemons.agent.leftovers import SUFFIX, Life, Mark, Note, _life
from tests.unit.daemons.agents import is_running, number_in, wait_for

Start = Callable[..., "subprocess.Popen[bytes]"]
GRACE_S = 0.1

RUNNER = """
import sys
from pathlib import Path
from ledger.client import Saddle
from ledger.daemons.agent import Limits, Turn, run_turn

folder = Path(sys.argv[1])
with Saddle("http://127.0.0.1:9", "none", outbox=folder / "outbox.db", drain=False) as saddle:
    session = saddle.open_session("s", task={"title": "T"})
    turn = Turn(("/bin/sh", "-c", sys.argv[2]), "Do it.", folder / "prompt.md", folder, limits=Limits(grace_s=0.1))
    run_turn(turn, session, actor="implement")
"""


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs that are ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **more: object) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(words, **more))  # type: ignore[call-overload]
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def note_of_a_dead_runner(folder: Path, mark: Mark, *processes: Life) -> Path:
    """As a runner leaves it that was killed."""
    Note(folder / "prompt.md", mark).write()
    path = folder / f"prompt.md{SUFFIX}"
    note = msgspec.json.decode(path.read_bytes())
    note["runner"]["start"] -= 1  # another process with the same number
    note["processes"] = [msgspec.to_builtins(life) for life in processes]
    path.write_bytes(msgspec.json.encode(note))
    return path


def life_of(process: subprocess.Popen[bytes]) -> Life:
    life = _life(process.pid)
    assert life is not None
    return life


SCRIPT = "echo $$ > pid; setsid sleep 60 & echo $! > child; trap '' TERM; while :; do sleep 60; done"


def test_nothing_lives_on_when_the_runner_is_killed(tmp_path: Path, start: Start) -> None:
    runner = start(sys.executable, "-c", RUNNER, str(tmp_path), SCRIPT)
    pids = [number_in(tmp_path / name) for name in ("pid", "child")]
    runner.kill()
    wait_for(lambda: not any(map(is_running, pids)))


def test_what_a_runner_left_that_was_killed_with_its_guard_is_ended_by_the_next(tmp_path: Path, start: Start) -> None:
    runner = start(sys.executable, "-c", RUNNER, str(tmp_path), SCRIPT)
    pid, child = (number_in(tmp_path / name) for name in ("pid", "child"))
    guard = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(runner.pid, signal.SIGSTOP)  # so that it cannot see the guard go
    os.kill(guard, signal.SIGKILL)
    runner.kill()
    runner.wait()
    assert is_running(child)
    assert child in end_leftovers(tmp_path, grace_s=GRACE_S)
    assert not is_running(pid)
    assert not is_running(child)
    assert end_leftovers(tmp_path, grace_s=GRACE_S) == []


def test_a_process_is_known_by_its_start_even_without_its_mark(tmp_path: Path, start: Start) -> None:
    process = start("sleep", "60")
    note_of_a_dead_runner(tmp_path, Mark(), life_of(process))
    assert end_leftovers(tmp_path, grace_s=60) == [process.pid]
    assert process.wait() == -signal.SIGTERM


def test_a_number_that_was_given_to_another_process_is_left_alone(tmp_path: Path, start: Start) -> None:
    process = start("sleep", "60")
    life = life_of(process)
    path = note_of_a_dead_runner(tmp_path, Mark(), Life(life.pid, life.start - 1))
    assert end_leftovers(tmp_path, grace_s=GRACE_S) == []
    assert process.poll() is None
    assert not path.exists()


def test_what_a_runner_that_lives_has_started_is_left_alone(tmp_path: Path, start: Start) -> None:
    mark = Mark()
    process = start("sleep", "60", env=mark.put_into(os.environ))
    Note(tmp_path / "prompt.md", mark).write(process.pid)
    assert end_leftovers(tmp_path, grace_s=GRACE_S) == []
    assert process.poll() is None


def test_a_note_of_another_boot_ends_nothing(tmp_path: Path, start: Start) -> None:
    process = start("sleep", "60")
    path = note_of_a_dead_runner(tmp_path, Mark(), life_of(process))
    note = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**note, "boot": "another"}))
    assert end_leftovers(tmp_path, grace_s=GRACE_S) == []
    assert process.poll() is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"mark": "", "boot": 1}', b"\xff" * 10_000])
def test_a_note_that_cannot_be_read_is_taken_away(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / f"prompt.md{SUFFIX}"
    path.write_bytes(content)
    assert end_leftovers(tmp_path) == []
    assert not path.exists()


def test_who_runs_inside_of_what_it_would_end_spares_itself(tmp_path: Path) -> None:
    mark = Mark()
    note_of_a_dead_runner(tmp_path, mark)
    script = (
        "import sys; from pathlib import Path; from ledger.daemons.agent import end_leftovers;"
        " print(end_leftovers(Path(sys.argv[1]), grace_s=0.1))"
    )
    words = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(words, env=mark.put_into(os.environ), capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (0, b"[]\n")


def test_a_mark_inside_of_another_is_found_too(tmp_path: Path, start: Start) -> None:
    outer, inner = Mark(), Mark()
    process = start("sleep", "60", env=inner.put_into(outer.put_into(os.environ)))
    note_of_a_dead_runner(tmp_path, outer)
    wait_for(lambda: b"sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes())
    assert end_leftovers(tmp_path, grace_s=GRACE_S) == [process.pid]
