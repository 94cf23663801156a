"""What a run is told of a turn, and where its agents run."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ledger.client.saddle import Saddle
from ledger.daemons import agent
from ledger.daemons.remediation.runner import Never
from ledger.daemons.remediation.settings import RemediationSettings
from ledger.daemons.remediation.turns import Agents, reply_of
from ledger.errors import InvalidField
from projections.remediation.plan import Rules
from projections.remediation.state import Reply
from tests.unit.daemons.remediation.given import Case, working

SECRET = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("ended", "reply"),
    [
        (agent.Reply(0, "Done.", resume="h", cost_usd=0.5), Reply("done", "Done.", "", "", "h", 0.5, 0)),
        (agent.Reply(0, " \n"), Reply("done", " \n", "", "empty", None, None, 0)),
        (agent.Reply(0, "a\ufffd", undecodable=True), Reply("done", "a\ufffd", "", "not_utf8", None, None, 0)),
        (agent.Reply(0, "x" * 11), Reply("done", "x" * 10, "", "too_long", None, None, 0)),
        (agent.Reply(3, "half", "no quota"), Reply("failed", "half", "exit code 3: no quota", "", None, None, 3)),
        (agent.Reply(127), Reply("failed", "", "exit code 127", "", None, None, 127)),
        (agent.Reply(124, timed_out=True), Reply("failed", "", "it took longer than 5 s", "", None, None, 124)),
        (
            agent.Reply(143, "half", interrupted=signal.SIGTERM),
            Reply("interrupted", "half", "stopped by SIGTERM", "", None, None, 143),
        ),
    ],
    ids=lambda value: value.status if isinstance(value, Reply) else "",
)
def test_a_turn_becomes_a_reply(ended: agent.Reply, reply: Reply) -> None:
    assert reply_of(ended, Rules(reply_chars_max=10), 5) == reply


def test_no_secret_goes_into_the_run() -> None:
    for ended in (agent.Reply(0, f"I used {SECRET}."), agent.Reply(1, "", f"bad token {SECRET}")):
        reply = reply_of(ended, Rules(), 5)
        assert SECRET not in reply.content + reply.error
        assert "[REDACTED]" in reply.content + reply.error


@pytest.fixture
def saddle(tmp_path: Path) -> Iterator[Saddle]:
    with Saddle("http://127.0.0.1:1", "a-token", outbox=tmp_path / "outbox.db", drain=False) as saddle:
        yield saddle


def agents(folder: Path, saddle: Saddle, command: Any) -> Agents:
    (folder / "alpha").mkdir()
    settings = {"projects": {"Alpha": {"path": str(folder / "alpha"), "agent": command}}, "turn_s": 20}
    return Agents(msgspec.convert(settings, RemediationSettings), saddle, folder / "state")


def python(code: str, *more: str) -> list[str]:
    return [sys.executable, "-IS", "-c", code, *more]


def test_an_agent_runs_in_its_projects_folder_and_finds_no_token(
    tmp_path: Path, saddle: Saddle, monkeypatch: Any
) -> None:
    monkeypatch.setenv("LEDGERD_TOKEN", "a-token-of-ours")
    monkeypatch.setenv("LEDGERD_OWNER_TOKEN", "an-owner-token")
    code = (
        "import os, sys; print(os.getcwd(), sorted(n for n in os.environ if n.startswith('LEDGERD_')), len(sys.argv))"
    )
    host = agents(tmp_path, saddle, python(code))
    case = working()
    reply = host.run(case.run, case.prompt, Never())
    assert reply.status == "done"
    assert str(tmp_path / "alpha") in reply.content
    assert "TOKEN" not in reply.content
    assert "LEDGERD_SESSION" in reply.content


def test_an_agent_may_write_its_reply_where_it_is_told_to(tmp_path: Path, saddle: Saddle) -> None:
    host = agents(
        tmp_path, saddle, python("import sys; open(sys.argv[1], 'w').write('Done.'); print('noise')", "{output}")
    )
    case = working()
    assert host.run(case.run, case.prompt, Never()).content == "Done."


def test_what_lay_there_before_is_no_reply(tmp_path: Path, saddle: Saddle) -> None:
    host = agents(tmp_path, saddle, python("print('I wrote nothing.')", "{output}"))
    case = working()
    folder = tmp_path / "state" / "runs" / "run-1"
    folder.mkdir(parents=True)
    (folder / f"{case.prompt.queue_id}.out").write_text("Forged.")
    assert host.run(case.run, case.prompt, Never()).content == "I wrote nothing.\n"


def test_a_turn_that_begins_has_no_reply_yet(tmp_path: Path, saddle: Saddle) -> None:
    """An earlier agent of this user may have put one there, for the case that the runner dies in this turn."""
    case = working()
    forged = tmp_path / "state" / "runs" / "run-1" / f"{case.prompt.queue_id}.reply"
    forged.parent.mkdir(parents=True)
    forged.write_bytes(msgspec.json.encode(Reply("done", "Forged.")))
    looks = python("import os, sys; sys.exit(os.path.exists(sys.argv[1]))", str(forged))
    host = agents(tmp_path, saddle, looks)
    assert host.run(case.run, case.prompt, Never()).exit_code == 0


def test_a_reply_lies_on_disk_until_it_is_told(tmp_path: Path, saddle: Saddle) -> None:
    host = agents(tmp_path, saddle, python("print('Done.')"))
    case = working()
    assert host.left_behind(case.run, case.prompt) is None
    reply = host.run(case.run, case.prompt, Never())
    assert host.left_behind(case.run, case.prompt) == reply
    [kept] = (tmp_path / "state" / "runs" / "run-1").glob("*.reply")
    kept.write_text("{")
    assert host.left_behind(case.run, case.prompt) is None


def test_a_project_of_another_host_is_named(tmp_path: Path, saddle: Saddle) -> None:
    host = agents(tmp_path, saddle, ["true"])
    case = Case()
    with pytest.raises(InvalidField, match="no project 'Platform' is configured on this host"):
        host.run(case.run, case.prompt, Never())
