"""What a turn withstands. Every agent here is a real process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM

import pytest

from ledger.client import Saddle
from ledger.daemons.agent import Limits, Stop, processes, stopping_on_signals
from ledger.errors import InvalidField
from tests.unit.daemons.agents import (
    ACTOR,
    Harness,
    WhenThere,
    a_session,
    emitted,
    is_running,
    number_in,
    python,
    shell,
    texts,
)

SOON = Limits(time_s=0.3, grace_s=0.1)


@pytest.fixture(scope="module")
def saddle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Saddle]:
    outbox = tmp_path_factory.mktemp("outbox") / "outbox.db"
    with Saddle("http://127.0.0.1:9", "none", outbox=outbox, drain=False) as saddle:
        yield saddle


@pytest.fixture
def harness(saddle: Saddle, tmp_path: Path) -> Harness:
    return Harness(a_session(saddle), tmp_path)


# What it is given, and what it replies


def test_the_reply_is_what_was_printed_and_every_line_is_an_event_of_the_role(harness: Harness) -> None:
    reply = harness.run(shell("echo one; echo; echo two; echo why >&2"))
    assert (reply.exit_code, reply.text, reply.last_words, reply.is_ok) == (0, "one\n\ntwo\n", "why", True)
    assert (reply.cost_usd, reply.usage, reply.resume) == (None, {}, None)
    assert texts(harness.session) == ["one", "", "two"]
    assert texts(harness.session, "stderr") == ["why"]
    assert {actor for _, actor, _ in emitted(harness.session)} == {ACTOR}
    kinds = [kind for kind, _, _ in emitted(harness.session)]
    assert (kinds[0], kinds[-1]) == ("tool_call", "tool_result")


@pytest.mark.parametrize("said", ["All is well.\n", '```json\n{"pass": true}\n```\n', '{"pass": false}', " \n\n", ""])
def test_whatever_it_says_is_the_reply_as_it_is(harness: Harness, said: str) -> None:
    reply = harness.run(("cat",), stdin=said.encode())
    assert (reply.text, reply.exit_code, reply.undecodable) == (said, 0, False)


def test_each_place_in_the_words_is_filled_once(harness: Harness) -> None:
    prompt = "Write {output} and {artifact} as they are, {{braces}} too."
    command = ("printf", "%s|%s|%s|%s|%s|%s", "{prompt}", "{prompt_content}", "{cwd}", "{output}", "{artifact}{x}")
    reply = harness.run(command, prompt, output=harness.folder / "reply.json", artifact="a {prompt}.json")
    folder = harness.folder
    assert reply.text == f"{harness.prompt_path}|{prompt}|{folder}|{folder}/reply.json|a {{prompt}}.json{{x}}|"
    assert harness.prompt_path.read_text() == prompt


def test_it_reads_nothing_unless_something_is_given_to_it(harness: Harness) -> None:
    assert harness.run(("cat",)).text == ""
    assert harness.run(("cat",), stdin=b"an order").text == "an order"
    assert harness.run(("true",), stdin=b"x" * 1_000_000).exit_code == 0


def test_it_works_in_its_folder_and_holds_no_token_of_ours(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEDGERD_TOKEN", "LEDGERD_OWNER_TOKEN", "LEDGERD_SECRET", "LEDGERD_SESSION"):
        monkeypatch.setenv(name, "of ours")
    monkeypatch.setenv("KEPT", "kept")
    reply = harness.run(shell("pwd; env"), environment={"ADDED": "added"})
    lines = reply.text.splitlines()
    assert lines[0] == str(harness.folder)
    assert {"KEPT=kept", "ADDED=added", f"PWD={harness.folder}"} < set(lines)
    assert not [line for line in lines if "of ours" in line]
    assert f"LEDGERD_SESSION={harness.session.id}" in lines
    assert f"LEDGERD_OUTBOX={harness.session._saddle.outbox.path}" in lines
    assert "KEPT" not in harness.run(shell("env"), keep_variables=("PATH",)).text


@pytest.mark.parametrize("prompt", ["", "ä" * 500_000, "a\0b", "lone \ud83d"])
def test_any_prompt_can_be_given_as_a_file(harness: Harness, prompt: str) -> None:
    reply = harness.run(("cat", "{prompt}"), prompt)
    assert reply.exit_code == 0
    assert reply.text == prompt.encode(errors="replace").decode()


@pytest.mark.parametrize(("prompt", "why"), [("x" * 128 * 1024, "131,071"), ("a\0b", "NUL")])
def test_a_prompt_that_no_word_can_hold_is_refused_before_the_start(harness: Harness, prompt: str, why: str) -> None:
    reply = harness.run(("touch", "started", "{prompt_content}"), prompt)
    assert reply.exit_code == 126
    assert why in reply.last_words
    assert "{prompt}" in reply.last_words
    assert not (harness.folder / "started").exists()
    assert emitted(harness.session)[-1][2]["output"] == reply.last_words


def test_the_longest_prompt_that_a_word_can_hold_is_taken(harness: Harness) -> None:
    assert len(harness.run(("printf", "%s", "{prompt_content}"), "x" * (128 * 1024 - 1)).text) == 128 * 1024 - 1


def test_words_that_are_too_much_together_are_a_reply_too(harness: Harness) -> None:
    reply = harness.run(("true", *["{prompt_content}"] * 100), "x" * 100_000)
    assert (reply.exit_code, reply.last_words) == (126, "true: Argument list too long")


def test_a_command_of_no_words_is_refused(harness: Harness) -> None:
    with pytest.raises(InvalidField, match="names no program"):
        harness.run(())


# How it ends


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)]
)
def test_the_exit_code_is_as_a_shell_has_it(harness: Harness, script: str, code: int) -> None:
    assert harness.run(shell(script)).exit_code == code


def test_what_cannot_be_started_says_why(harness: Harness) -> None:
    plain = harness.folder / "plain.txt"
    plain.write_text("no program")
    for command, code, why in [
        (("no-such-agent",), 127, "no-such-agent: No such file or directory"),
        ((str(plain),), 126, f"{plain}: Permission denied"),
    ]:
        reply = harness.run(command)
        assert (reply.exit_code, reply.last_words) == (code, why)
    gone = harness.folder / "gone"
    reply = harness.run(("true",), cwd=gone)
    assert (reply.exit_code, reply.last_words) == (126, f"{gone}: No such file or directory")


def test_who_hangs_is_ended_when_the_time_is_over(harness: Harness) -> None:
    reply = harness.run(shell("sleep 60"), limits=SOON)
    assert (reply.exit_code, reply.timed_out, reply.is_ok) == (124, True, False)
    assert emitted(harness.session)[-1][2] == {"tool": "run", "exit_code": 124, "output": "the time was over"}


def test_who_does_not_hear_that_it_is_asked_is_killed(harness: Harness) -> None:
    script = "trap '' TERM; touch ready; while :; do sleep 60; done"
    assert harness.run(shell(script), stop=WhenThere(harness.folder / "ready")).exit_code == 128 + SIGKILL


def test_who_is_stopped_hears_that_it_is_asked(harness: Harness) -> None:
    script = "touch ready; kill -STOP $$; sleep 60"
    limits = Limits(grace_s=20)
    reply = harness.run(shell(script), limits=limits, stop=WhenThere(harness.folder / "ready"))
    assert reply.exit_code == 128 + SIGTERM


def test_who_cleans_up_when_asked_has_the_time_for_it(harness: Harness) -> None:
    script = "trap 'echo cleaned; exit 0' TERM; touch ready; while :; do sleep 0.01; done"
    limits = Limits(grace_s=20)
    reply = harness.run(shell(script), limits=limits, stop=WhenThere(harness.folder / "ready"))
    assert (reply.exit_code, reply.interrupted, reply.text) == (0, SIGTERM, "cleaned\n")


def test_a_child_that_outlives_it_is_ended_with_it(harness: Harness) -> None:
    reply = harness.run(shell("sleep 60 & echo $!"))
    assert not is_running(int(reply.text))


def test_a_grandchild_in_a_session_of_its_own_that_holds_the_output_is_ended_too(harness: Harness) -> None:
    script = "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 60; done' & until [ -s pid ]; do :; done"
    assert harness.run(shell(script)).exit_code == 0
    assert not is_running(number_in(harness.folder / "pid"))


def test_a_daemon_that_has_left_its_parent_is_found(harness: Harness) -> None:
    script = "(setsid sleep 60 & echo $! > pid); touch ready; sleep 60"
    assert harness.run(shell(script), stop=WhenThere(harness.folder / "ready")).interrupted
    assert not is_running(number_in(harness.folder / "pid"))


def test_neither_it_nor_its_guard_is_left_as_a_zombie(harness: Harness) -> None:
    seen: list[int] = []

    def look(pid: int) -> None:
        guard = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        seen.extend([pid, int(guard)])

    harness.run(shell("sleep 60 & sleep 60 & exec sleep 0.1"), on_start=look)
    assert seen[1] != os.getpid()
    assert not any(Path(f"/proc/{pid}").exists() for pid in seen)


def test_a_guard_that_is_killed_takes_the_agent_with_it(harness: Harness) -> None:
    script = "echo $$ > pid; setsid sleep 60 & echo $! > child; kill -KILL $PPID; sleep 60"
    reply = harness.run(shell(script))
    assert reply.exit_code == 128 + SIGKILL
    assert not is_running(number_in(harness.folder / "pid"))
    assert not is_running(number_in(harness.folder / "child"))


# Being asked to end


@pytest.mark.parametrize("kind", [Stop, threading.Event])
def test_a_stop_ends_it_and_says_so(harness: Harness, kind: type[Stop]) -> None:
    stop = kind()
    ask = stop.ask if isinstance(stop, Stop) else stop.set
    reply = harness.run(shell("sleep 60"), stop=stop, on_start=lambda _: ask())
    assert (reply.exit_code, reply.interrupted, reply.is_ok) == (128 + SIGTERM, SIGTERM, False)
    assert not reply.timed_out
    again = harness.run(("touch", "started"), stop=stop)
    assert again.interrupted == SIGTERM
    assert not (harness.folder / "started").exists()


def test_a_signal_to_the_runner_ends_it_by_way_of_a_stop(harness: Harness) -> None:
    with stopping_on_signals() as stop:
        reply = harness.run(shell("sleep 60"), stop=stop, on_start=lambda _: os.kill(os.getpid(), SIGINT))
        assert stop.wait(0)
    assert reply.interrupted == SIGINT


def test_one_that_ended_by_itself_was_not_interrupted(harness: Harness) -> None:
    assert harness.run(("true",), stop=Stop()).interrupted is None


# What it prints


def test_what_it_says_is_told_while_it_runs(harness: Harness) -> None:
    class WhenTold:
        def is_set(self) -> bool:
            return texts(harness.session) == ["begun"]

    assert harness.run(shell("echo begun; sleep 60"), stop=WhenTold()).interrupted == SIGTERM


def test_a_flood_is_read_to_the_end_with_few_events_and_a_bounded_reply(harness: Harness) -> None:
    limits = Limits(time_s=60, output_bytes=100_000, events=500)
    reply = harness.run(shell("yes 123456789 | head -c 50000000; echo; touch ended"), limits=limits)
    assert (reply.exit_code, reply.truncated, len(reply.text)) == (0, True, 100_000)
    assert (harness.folder / "ended").exists()
    told = texts(harness.session)
    assert 0 < len(told) <= 500
    assert set(told) == {"123456789"}
    assert "output.lost" in [kind for kind, _, _ in emitted(harness.session)]


def test_a_line_without_an_end_is_parted_and_bounded(harness: Harness) -> None:
    limits = Limits(time_s=60, output_bytes=1_000_000)
    reply = harness.run(shell("head -c 9000000 /dev/zero | tr '\\0' x"), limits=limits)
    assert (reply.truncated, reply.text) == (True, "x" * 1_000_000)
    assert "".join(texts(harness.session)) == reply.text


def test_what_is_no_utf8_is_marked_and_said(harness: Harness) -> None:
    reply = harness.run(("printf", r"a\377b\303"))
    assert (reply.text, reply.undecodable) == ("a\ufffdb\ufffd", True)
    assert not harness.run(("printf", "ä")).undecodable


def test_a_character_that_the_limit_cuts_is_left_away(harness: Harness) -> None:
    reply = harness.run(("printf", "aää"), limits=Limits(output_bytes=4))
    assert (reply.text, reply.undecodable, reply.truncated) == ("aä", False, True)


def test_who_closes_its_output_early_goes_on(harness: Harness) -> None:
    script = "import os; os.write(1, b'bye'); os.close(1); os.close(2); open('ended', 'w').close()"
    reply = harness.run(python(script))
    assert (reply.exit_code, reply.text) == (0, "bye")
    assert (harness.folder / "ended").exists()


def test_whatever_is_raised_meanwhile_nothing_is_left_running(harness: Harness) -> None:
    seen: list[int] = []

    def interrupt(pid: int) -> None:
        seen.append(pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        harness.run(shell("sleep 60"), on_start=interrupt)
    assert not is_running(seen[0])
    assert not list(harness.prompt_path.parent.glob("*.running"))


def test_who_stops_its_guard_does_not_escape_the_limits(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_GUARD_S_MAX", 0.2)
    script = "setsid sleep 60 & echo $! > child; echo $$ > pid; kill -STOP $PPID; touch ready; while :; do :; done"
    assert harness.run(shell(script), limits=Limits(time_s=1, grace_s=0.1)).timed_out
    (harness.folder / "ready").unlink(missing_ok=True)
    assert harness.run(shell(script), stop=WhenThere(harness.folder / "ready")).interrupted
    assert not is_running(number_in(harness.folder / "pid"))
    assert not is_running(number_in(harness.folder / "child"))


def test_secrets_are_told_to_nobody_and_stay_in_the_reply(harness: Harness) -> None:
    secret = "ghp_" + "a1B2" * 9
    reply = harness.run(("printf", f"one\ntoken {secret}\ntwo\n"))
    assert secret in reply.text
    assert texts(harness.session) == ["one", "token [REDACTED]", "two"]


def test_what_the_environment_cannot_hold_is_a_reply(harness: Harness) -> None:
    reply = harness.run(("touch", "started"), environment={"ROLE": "a\0b"})
    assert (reply.exit_code, reply.last_words) == (126, "touch: embedded null byte")
    assert harness.run(("printf", "%s", "{prompt_content}"), "lone \ud83d").text == "lone ?"
