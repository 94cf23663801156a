from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import watchfiles

from ledger.cli import watch
from ledger.client.api import ApiError
from tests.unit.transcripts.written import user, write

UNREACHABLE = ApiError(None, "unreachable", "no answer")


class Answers:
    """Work that fails with each of `errors` in turn, and then is done."""

    def __init__(self, *errors: ApiError) -> None:
        self.errors = list(errors)
        self.done = 0

    def __call__(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.done += 1


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "RETRY_S", 0)


def test_a_ledger_that_does_not_answer_is_waited_for_and_that_is_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    work = Answers(UNREACHABLE, ApiError(503, "storage_full", "disk full"), UNREACHABLE)
    assert watch._again_until_answered(work, threading.Event())
    assert work.done == 1
    assert capsys.readouterr().err == "waiting: no answer\n"


@pytest.mark.parametrize("error", [ApiError(401, "unauthenticated", "x"), ApiError(200, "not_a_ledger", "x")])
def test_what_waiting_does_not_help_ends_it(error: ApiError) -> None:
    with pytest.raises(ApiError):
        watch._again_until_answered(Answers(error), threading.Event())


def test_a_pass_ends_when_it_is_stopped() -> None:
    def work() -> None:
        raise watch._Stopped

    assert not watch._again_until_answered(work, threading.Event())


def test_folders_that_cannot_be_watched_are_looked_at_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> Iterator[None]:
        raise OSError("OS file watch limit reached")
        yield

    monkeypatch.setattr(watch, "RESCAN_S", 0)
    monkeypatch.setattr(watchfiles, "watch", full)
    wakes = watch._wakes(lambda: [tmp_path], threading.Event())
    for _ in range(3):
        next(wakes)


def test_a_wait_ends_when_it_is_stopped() -> None:
    stop = threading.Event()
    stop.set()
    assert not watch._again_until_answered(Answers(), stop)


def test_a_change_below_a_folder_wakes_it_and_a_stop_ends_it(tmp_path: Path) -> None:
    stop = threading.Event()
    wakes = watch._wakes(lambda: [tmp_path], stop)
    next(wakes)
    writer = threading.Timer(0.2, lambda: write(tmp_path / "a" / "t.jsonl", user("x")))
    writer.start()
    next(wakes)
    writer.join()
    assert (tmp_path / "a" / "t.jsonl").exists()
    stop.set()
    assert list(wakes) == []


def test_only_folders_that_are_there_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert watch._roots((), watch.AGENTS) == []
    (tmp_path / ".codex" / "sessions").mkdir(parents=True)
    assert watch._roots((), watch.AGENTS) == [tmp_path / ".codex" / "sessions"]
    assert watch._roots((), ("gemini",)) == []
    assert watch._roots((tmp_path,), ("gemini",)) == [tmp_path]
