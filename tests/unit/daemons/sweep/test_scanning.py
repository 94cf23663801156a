from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.client.redaction import redact
from ledger.daemons.agent.stopping import Stop
from ledger.daemons.sweep.commands import Stopped
from ledger.daemons.sweep.config import ScanKeys
from ledger.daemons.sweep.model import (
    DONE,
    REMOVES,
    Candidate,
    Candidates,
    Found,
    SessionText,
    SessionUnreadable,
    SourceFailed,
    Unreadable,
)
from ledger.daemons.sweep.scanning import Scanned, scan
from projections.sweep import name_of


class Listed:
    """A source of sessions by name; the prefilter beside it finds as many candidates as the name ends with."""

    type = "listed"

    def __init__(self, name: str, *sessions: str, fails: bool = False) -> None:
        self.name = name
        self._sessions = sessions
        self._fails = fails

    def sessions(self) -> Iterator[Found | Unreadable]:
        for session in self._sessions:
            where = f"/home/{self.name}/{session}"
            if session == "unreadable":
                yield Unreadable(self.name, session, where, "token=a1b2c3d4e5f6g7h8 is no file")
            else:
                yield Found(self.name, session, where, "listed")
        if self._fails:
            raise SourceFailed("the folder has gone, token=a1b2c3d4e5f6g7h8")

    def read(self, found: Found) -> SessionText:
        if found.key == "gone":
            raise SessionUnreadable("it has gone")
        return SessionText(found, found.key, None, ())


class Counting:
    def candidates(self, session: SessionText) -> Candidates:
        key = session.found.key
        if key == "poison":
            raise ZeroDivisionError("nobody foresaw this, token=a1b2c3d4e5f6g7h8")
        one = Candidate(session.found.source, key, key, 0, "rule", DONE, REMOVES, "why", "snippet")
        return Candidates(session.found, key, None, (one,) * int(key[-1]))


def scanned(*sources: Listed, seen: tuple[str, ...] = (), initialised: bool = True, **keys: object) -> Scanned:
    return scan(
        sources,
        Counting(),
        ScanKeys(**keys),  # type: ignore[arg-type]
        seen=lambda name: name in seen,
        is_initialised=lambda _: initialised,
        redact=redact,
    )


def keys(found: list[Found]) -> list[str]:
    return [one.key for one in found]


def test_each_session_is_put_where_it_belongs_and_what_is_seen_is_left_alone() -> None:
    source = Listed("a", "clean-0", "bad-2", "seen-3", "unreadable", "gone", "poison", "late-0")
    seen = scanned(source, seen=(name_of("a", "seen-3"),))
    assert keys(seen.clean) == ["clean-0", "late-0"]
    assert [(one.session.key, len(one.found)) for one in seen.chosen] == [("bad-2", 2)]
    assert {one.key: one.why for one in seen.unreadable} == {
        "unreadable": "token=[REDACTED] is no file",
        "gone": "it has gone",
        "poison": "ZeroDivisionError: nobody foresaw this, token=[REDACTED]",
    }


def test_what_exceeds_the_budget_is_deferred_whole_and_smaller_ones_behind_it_are_taken() -> None:
    seen = scanned(Listed("a", "a-3", "b-3", "c-1", "d-0", "e-1"), Listed("b", "f-0"), max_candidates=4)
    assert [one.session.key for one in seen.chosen] == ["a-3", "c-1"]
    assert [one.session.key for one in seen.deferred] == ["b-3", "e-1"]
    assert keys(seen.clean) == ["d-0", "f-0"]


def test_a_session_with_more_than_there_is_ever_room_for_is_taken_with_its_worst() -> None:
    seen = scanned(Listed("a", "a-9"), max_candidates=4)
    assert [len(one.found) for one in seen.chosen] == [4]


def test_a_source_that_fails_is_told_and_none_of_it_is_taken_as_seen() -> None:
    seen = scanned(Listed("a", "a-0", fails=True), Listed("b", "b-0"), initialised=False, first_run="backfill")
    assert seen.failed == {"a": "the folder has gone, token=[REDACTED]"}
    assert (seen.initialised, keys(seen.clean)) == (["b"], ["b-0"])


def test_a_first_run_reads_nothing_where_a_baseline_is_wished_for() -> None:
    seen = scanned(Listed("a", "poison", "b-2", "unreadable"), initialised=False)
    assert (keys(seen.baselined), len(seen.unreadable), seen.initialised) == (["poison", "b-2"], 1, ["a"])


def test_sessions_are_excluded_by_shell_patterns_of_their_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home")
    seen = scanned(Listed("a", "x-2", "y-2", "z-2"), exclude=["*/x-*", "~/a/y-2"])
    assert [(one.key, pattern) for one, pattern in seen.excluded] == [("x-2", "*/x-*"), ("y-2", "~/a/y-2")]
    assert [one.session.key for one in seen.chosen] == ["z-2"]


def test_a_look_ends_when_the_sweep_is_asked_to(tmp_path: Path) -> None:
    stop = Stop()
    try:
        stop.ask()
        with pytest.raises(Stopped, match="while the source a was read"):
            scan(
                [Listed("a", "a-0")],
                Counting(),
                ScanKeys(),
                seen=lambda _: False,
                is_initialised=lambda _: True,
                redact=redact,
                stop=stop,
            )
    finally:
        stop.close()


def test_an_address_with_a_password_is_shown_without_it() -> None:
    class Elsewhere(Listed):
        def sessions(self) -> Iterator[Found | Unreadable]:
            yield Unreadable(self.name, "k", "https://somebody:Pa55w0rdOfNobody@ledger/sessions/k", "is gone")

    [one] = scanned(Elsewhere("a")).unreadable
    assert (one.where, one.key) == ("https://somebody:[REDACTED]@ledger/sessions/k", "k")
