"""Commands run as sessions, and what a shell says to the ledger."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.serving import Server, created, events_of, fresh, seen
from tests.live.shell import LATER, Shell


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Shell:
    return Shell(tmp_path, server.url)


@pytest.fixture
def task_id(owner: httpx.Client) -> str:
    return str(created(owner, "tasks")["id"])


def run_of(reader: httpx.Client, task_id: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The task, and the events of its one session."""
    task = seen(reader, f"/api/tasks/{task_id}")
    [session] = task["sessions"]
    return task, events_of(reader, session["session_id"])


def lines(events: list[dict[str, Any]], stream: str) -> list[str]:
    return [e["payload"]["text"] for e in events if e["kind"] == "output" and e["payload"]["stream"] == stream]


def test_output_and_exit_code_pass_through_and_are_told(shell: Shell, reader: httpx.Client, task_id: str) -> None:
    done = shell.ledgerd("run", "--task", task_id, "--", "sh", "-c", "echo one; echo two; echo why >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "one\ntwo\n", "why\n")
    task, events = run_of(reader, task_id)
    assert lines(events, "stdout") == ["one", "two"]
    assert lines(events, "stderr") == ["why"]
    assert task["status"] == "failed"
    assert task["summary"].endswith("ended with exit code 3: why")
    assert [e["payload"].get("exit_code") for e in events if e["kind"] == "tool_result"] == [3]


def test_what_is_no_text_and_has_no_last_newline_is_kept_too(
    shell: Shell, reader: httpx.Client, task_id: str
) -> None:
    done = shell.ledgerd("run", "--task", task_id, "--", "printf", r"a\377b\r\n\nrest")
    assert done.returncode == 0
    task, events = run_of(reader, task_id)
    assert lines(events, "stdout") == ["a\ufffdb", "", "rest"]
    assert task["status"] == "done"


def test_a_run_without_a_task_makes_one_and_can_belong_to_a_goal(
    shell: Shell, owner: httpx.Client, reader: httpx.Client
) -> None:
    goal = created(owner, "goals")
    done = shell.ledgerd("run", "--goal", goal["id"], "--title", "Try it", "--", "true")
    assert done.returncode == 0, done.stderr
    [task] = seen(reader, f"/api/goals/{goal['id']}")["tasks"]
    assert (task["title"], task["status"]) == ("Try it", "done")


def test_comments_and_a_result_from_inside_land_in_the_session_and_count(
    shell: Shell, reader: httpx.Client, task_id: str
) -> None:
    script = (
        "ledgerd comment 'All pass.'; printf 'two\\nlines\\n' | ledgerd comment; ledgerd result failed --summary why"
    )
    done = shell.ledgerd("run", "--task", task_id, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    task, events = run_of(reader, task_id)
    assert [e["payload"]["body"] for e in events if e["kind"] == "comment"] == ["All pass.", "two\nlines"]
    assert (task["status"], task["summary"]) == ("failed", "why")


def test_a_session_that_parked_itself_and_ended_well_stays_parked(
    shell: Shell, reader: httpx.Client, task_id: str
) -> None:
    shell.ledgerd("run", "--task", task_id, "--", "ledgerd", "result", "waiting", "--summary", "May I?")
    assert seen(reader, f"/api/tasks/{task_id}")["status"] == "waiting"


def test_signals_reach_the_command_and_its_children_and_cancel_the_task(
    shell: Shell, reader: httpx.Client, task_id: str
) -> None:
    script = "trap 'echo told; exit 9' TERM; sleep 60 & echo $!; wait"
    process = shell.start("run", "--task", task_id, "--", "sh", "-c", script)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (9, b"told\n")
    assert ended(child)
    task, _ = run_of(reader, task_id)
    assert task["status"] == "cancelled"
    assert "SIGTERM" in task["summary"]


def test_what_the_command_leaves_running_is_ended_with_it(shell: Shell, task_id: str) -> None:
    done = shell.ledgerd("run", "--task", task_id, "--", "sh", "-c", "sleep 60 & echo $!")
    assert done.returncode == 0
    assert ended(int(done.stdout))


def ended(pid: int) -> bool:
    """True if no such process runs; one that only waits to be reaped does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(("words", "code"), [(["no-such-command"], 127), (["/etc/passwd"], 126)])
def test_a_command_that_cannot_be_started_fails_the_task(
    shell: Shell, reader: httpx.Client, task_id: str, words: list[str], code: int
) -> None:
    done = shell.ledgerd("run", "--task", task_id, "--", *words)
    assert done.returncode == code
    assert words[0] in done.stderr
    assert seen(reader, f"/api/tasks/{task_id}")["status"] == "failed"


def test_a_signal_that_ends_the_command_is_named(shell: Shell, reader: httpx.Client, task_id: str) -> None:
    done = shell.ledgerd("run", "--task", task_id, "--", "sh", "-c", "kill -KILL $$")
    assert done.returncode == 137
    assert "was ended by SIGKILL" in seen(reader, f"/api/tasks/{task_id}")["summary"]


def test_where_nothing_can_be_kept_the_command_runs_all_the_same(shell: Shell) -> None:
    shell.outbox.write_text("no outbox, but something that nobody may overwrite")
    done = shell.ledgerd("run", "--", "sh", "-c", "echo done; exit 4")
    assert (done.returncode, done.stdout) == (4, "done\n")
    assert "LEDGERD_OUTBOX" in done.stderr


def test_much_output_is_kept_line_by_line_and_in_order(shell: Shell, reader: httpx.Client, task_id: str) -> None:
    done = shell.ledgerd("run", "--task", task_id, "--", "seq", "4000")
    assert done.returncode == 0
    assert shell.ledgerd("outbox", "drain").returncode == 0
    _, events = run_of(reader, task_id)
    assert lines(events, "stdout") == [str(n) for n in range(1, 4001)]


def test_a_worker_runs_its_command_for_a_queued_task(shell: Shell, owner: httpx.Client, reader: httpx.Client) -> None:
    task = created(owner, "tasks", title="Do it", brief="In one go.")
    for queued in seen(owner, "/api/tasks", status="queued")["items"]:
        if queued["id"] != task["id"]:
            owner.post(f"/api/tasks/{queued['id']}/cancel")
    line = 'cat > order.json; echo "$LEDGERD_TASK_TITLE: $LEDGERD_TASK_BRIEF"'
    done = shell.ledgerd("worker", "--once", "--command", line)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Do it: In one go.\n"
    assert json.loads((shell.folder / "order.json").read_text())["id"] == task["id"]
    told, events = run_of(reader, task["id"])
    assert told["status"] == "done"
    assert lines(events, "stdout") == ["Do it: In one go."]
    assert shell.ledgerd("worker", "--once", "--command", line).stdout == ""


def test_a_worker_that_waits_for_work_ends_on_a_signal(shell: Shell) -> None:
    worker = shell.start("worker", "--command", "true")
    wait_for(lambda: shell.outbox.exists() and asks(shell))
    worker.send_signal(signal.SIGTERM)
    _, errors = worker.communicate(timeout=20)
    assert (worker.returncode, errors) == (0, b"")


def asks(shell: Shell) -> int:
    """How many asks for work are under way."""
    with closing(sqlite3.connect(shell.outbox)) as db:
        return int(db.execute("SELECT count(*) FROM asks").fetchone()[0])


def test_lines_that_cannot_be_read_are_named_counted_and_passed_over(shell: Shell, reader: httpx.Client) -> None:
    session_id = fresh("pushed")
    text = '{"kind": "note", "payload": 1}\nnot json\n\n{"payload": {}}\n{"kind": "note", "payload": NaN, "more": 1}'
    done = shell.ledgerd("push", "--session", session_id, "--title", "Push", "--json", input=text)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "session_id": session_id,
        "events": 2,
        "duplicates": 0,
        "conflicts": 0,
        "bad_lines": 2,
        "sent": True,
    }
    named = done.stderr.splitlines()
    assert [line.partition(":")[0] for line in named] == ["line 2", "line 4"]
    assert "kind" in named[1]
    first, second = events_of(reader, session_id)
    assert (first["seq"], first["payload"], second["seq"], second["payload"]) == (0, 1, 1, None)


def test_pushing_lines_with_seqs_again_stores_nothing_twice(shell: Shell, reader: httpx.Client) -> None:
    session_id = fresh("pushed")
    text = '{"seq": 3, "kind": "a"}\n{"seq": 1, "kind": "b"}\n'
    push = ["push", "--session", session_id, "--title", "Push"]
    assert "2 events sent" in shell.ledgerd(*push, input=text).stdout
    assert "2 were there already" in shell.ledgerd(*push, input=text).stdout
    conflict = shell.ledgerd(*push, input='{"seq": 3, "kind": "c"}')
    assert conflict.returncode == 1
    assert [event["kind"] for event in events_of(reader, session_id)] == ["b", "a"]
    assert session_id in shell.ledgerd("outbox", "dead").stdout


def test_a_session_that_is_open_on_the_server_is_gone_on_with(
    shell: Shell, saddle: httpx.Client, owner: httpx.Client, reader: httpx.Client
) -> None:
    session_id = fresh("elsewhere")
    event = {"seq": 7, "kind": "note"}
    opened = owner.post(
        "/api/saddle/chunks", json={"session_id": session_id, "events": [event], "open": {"task": {"title": "T"}}}
    )
    assert opened.status_code == 200
    done = shell.ledgerd("comment", "Hello.", environment={"LEDGERD_SESSION": session_id})
    assert done.returncode == 0, done.stderr
    assert [event["seq"] for event in events_of(reader, session_id)] == [7, 8]
    unknown = shell.ledgerd("comment", "Hello.", environment={"LEDGERD_SESSION": fresh("unknown")})
    assert unknown.returncode == 1
    assert "ledgerd push --session" in unknown.stderr


def test_without_a_session_or_words_it_says_what_to_do(shell: Shell) -> None:
    nothing = shell.ledgerd("comment", "Hello.")
    assert nothing.returncode == 2
    assert "LEDGERD_SESSION" in nothing.stderr
    assert shell.ledgerd("comment", input=" \n").returncode == 2


def test_with_the_server_away_a_comment_is_kept_and_a_wrong_token_is_named(
    shell: Shell, reader: httpx.Client
) -> None:
    session_id = fresh("offline")
    away = {"LEDGERD_URL": "http://127.0.0.1:9", "LEDGERD_SESSION": session_id}
    assert shell.ledgerd("push", "--title", "Offline", "--wait", "1", environment=away).returncode == 0
    kept = shell.ledgerd("comment", "Later.", environment=away)
    assert kept.returncode == 0
    assert LATER in kept.stderr
    nowhere = shell.ledgerd("outbox", "drain", "--wait", "3", environment=away)
    assert nowhere.returncode == 1
    assert "LEDGERD_URL" in nowhere.stderr
    wrong = shell.ledgerd("outbox", "drain", "--wait", "3", environment={"LEDGERD_TOKEN": "no-such-token"})
    assert wrong.returncode == 1
    assert "LEDGERD_TOKEN" in wrong.stderr
    assert json.loads(shell.ledgerd("outbox", "status", "--json").stdout)["waiting"] == 1
    assert shell.ledgerd("outbox", "drain").stdout == "all is sent\n"
    assert [event["payload"]["body"] for event in events_of(reader, session_id)] == ["Later."]
    assert "0 wait to be sent" in shell.ledgerd("outbox").stdout


def test_what_one_process_leaves_unsent_another_with_the_same_outbox_sends(
    shell: Shell, reader: httpx.Client, task_id: str
) -> None:
    script = "ledgerd comment --no-send 'Left behind.'"
    done = shell.ledgerd("run", "--task", task_id, "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    _, events = run_of(reader, task_id)
    assert "Left behind." in [event["payload"].get("body") for event in events]


def test_a_run_that_is_killed_loses_nothing_that_was_written(
    shell: Shell, reader: httpx.Client, task_id: str
) -> None:
    process = shell.start("run", "--task", task_id, "--", "sh", "-c", "echo $$; exec sleep 60")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    wait_for(lambda: kept_lines(shell) >= 2)
    process.kill()
    process.communicate()
    wait_for(lambda: ended(child))
    assert shell.ledgerd("outbox", "drain").returncode == 0
    _, events = run_of(reader, task_id)
    assert lines(events, "stdout") == [str(child)]


def kept_lines(shell: Shell) -> int:
    standing = json.loads(shell.ledgerd("outbox", "status", "--json").stdout)
    return int(standing["waiting"]) + int(standing["kept"])


def wait_for(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_dead_letters_can_be_retried_and_thrown_away(shell: Shell) -> None:
    session_id = fresh("pushed")
    push = ["push", "--session", session_id, "--title", "Push", "--wait", "0"]
    shell.ledgerd(*push, input='{"seq": 0, "kind": "a"}')
    shell.ledgerd(*push, input='{"seq": 0, "kind": "b"}')
    [letter] = json.loads(shell.ledgerd("outbox", "dead", "--json").stdout)
    assert (letter["session_id"], letter["kind"], letter["code"]) == (session_id, "b", "conflict")
    assert shell.ledgerd("outbox", "retry").stdout.startswith("1 dead letters")
    assert json.loads(shell.ledgerd("outbox", "status", "--json").stdout)["waiting"] == 2
    shell.ledgerd(*push, input='{"seq": 0, "kind": "c"}')
    assert shell.ledgerd("outbox", "discard", "--yes").stdout == "1 dead letters are gone\n"
    assert json.loads(shell.ledgerd("outbox", "dead", "--json").stdout) == []


def test_a_pipe_that_nobody_reads_does_not_stop_the_command(shell: Shell, reader: httpx.Client, task_id: str) -> None:
    process = shell.start("run", "--task", task_id, "--", "sh", "-c", "seq 1000; echo end >&2")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    _, events = run_of(reader, task_id)
    assert lines(events, "stdout")[-1] == "1000"
