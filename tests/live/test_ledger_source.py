"""A sweep that reads the sessions of a running ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from ledger.client.api import Api
from ledger.client.redaction import Redactor
from ledger.daemons.sweep.model import Found, SessionUnreadable, SourceFailed, Unreadable
from ledger.daemons.sweep.prefilter.filtering import Prefilter
from ledger.daemons.sweep.sources import ledger as module
from ledger.daemons.sweep.sources.ledger import OWN_AGENT, LedgerSource
from tests.live.serving import Server, event, opened, push, result


@pytest.fixture(scope="module")
def api(server: Server) -> Iterator[Api]:
    with Api(server.url, server.token("reader", "sweeper")) as opened_api:
        yield opened_api


@pytest.fixture
def source(server: Server, api: Api) -> LedgerSource:
    return LedgerSource("fleet", server.url, api)


def found(source: LedgerSource) -> dict[str | None, Found]:
    return {one.session_id: one for one in source.sessions() if isinstance(one, Found)}


def call(seq: int, command: str) -> dict[str, Any]:
    return event(seq, "tool_call", {"tool": "bash", "args": {"command": command}, "call_id": f"c{seq}"})


def ended(seq: int, of: int, output: str, code: int) -> dict[str, Any]:
    return event(seq, "tool_result", {"call_id": f"c{of}", "stdout": output, "exit_code": code})


def test_comments_calls_and_failed_results_are_what_was_said_done_and_failed(
    saddle: httpx.Client, source: LedgerSource
) -> None:
    session_id, _ = opened(saddle, task={"title": "Clean up"}, agent="claude-code", cwd="/home/dev/app")
    said = event(3, "comment", {"body": "I made a mistake and removed it."})
    push(saddle, session_id, [call(1, "git push --force"), ended(2, 1, "No space left on device", 1), said])
    result(saddle, session_id, "done")
    candidates = Prefilter(Redactor()).candidates(source.read(found(source)[session_id]))
    assert candidates.title == "Clean up"
    assert candidates.cwd == "/home/dev/app"
    rules = {candidate.rule: candidate for candidate in candidates.found}
    assert set(rules) == {"git-push-force", "disk-full", "admits-mistake"}
    assert rules["git-push-force"].evidence == ("exit 1", "No space left on device")
    assert rules["admits-mistake"].at is None or rules["admits-mistake"].at.endswith("Z")


def test_a_key_is_session_and_high_seq_so_what_has_grown_is_looked_at_again(
    saddle: httpx.Client, source: LedgerSource
) -> None:
    empty, _ = opened(saddle)
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(1), event(5)])
    assert empty not in found(source)
    assert found(source)[session_id].key == f"{session_id}:5"
    push(saddle, session_id, [event(9)])
    assert found(source)[session_id].key == f"{session_id}:9"


def test_what_sweeps_do_themselves_is_left_out_and_hides_nobody_else(
    saddle: httpx.Client, source: LedgerSource
) -> None:
    own, task_id = opened(saddle, agent=OWN_AGENT)
    other, _ = opened(saddle, task_id=task_id, agent="claude-code")
    loop, _ = opened(saddle, agent="ledgerd-loop")
    for session_id in (own, other, loop):
        push(saddle, session_id, [event(1)])
    there = found(source)
    assert {loop, other} <= there.keys()
    assert own not in there


def test_a_long_session_is_read_page_by_page(
    saddle: httpx.Client, source: LedgerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVENTS_A_PAGE", 3)
    monkeypatch.setattr(module, "TASKS_A_PAGE", 1)
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(seq) for seq in range(1, 12)])
    moments = list(source.read(found(source)[session_id]).moments)
    assert [moment.seq for moment in moments if moment.kind == "message"] == list(range(1, 12))


def test_a_session_that_cannot_be_read_is_an_error(saddle: httpx.Client, source: LedgerSource) -> None:
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(1)])
    one = msgspec.structs.replace(found(source)[session_id], session_id="no-such-session")
    with pytest.raises(SessionUnreadable, match=r"source 'fleet': http.*no-such-session"):
        list(source.read(one).moments)


def test_a_ledger_that_lets_nobody_in_or_is_not_there_fails_the_source(server: Server) -> None:
    with Api(server.url, "no-token") as nobody, pytest.raises(SourceFailed, match="source 'fleet': ") as refused:
        list(LedgerSource("fleet", server.url, nobody).sessions())
    assert refused.value.hint
    with Api("http://127.0.0.1:9", "x", attempts_max=1) as gone, pytest.raises(SourceFailed, match="no answer from"):
        list(LedgerSource("fleet", "http://127.0.0.1:9", gone).sessions())


def test_nothing_is_written(saddle: httpx.Client, source: LedgerSource, api: Api) -> None:
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(1)])
    before = api.events(limit=5000)
    for one in source.sessions():
        assert not isinstance(one, Unreadable)
        list(source.read(one).moments)
    assert api.events(limit=5000) == before
