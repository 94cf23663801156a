"""Agents by name: stand-ins on the PATH that take the words of the real ones and print streams of their shapes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.client import Saddle
from ledger.daemons.agent import PRESETS, Limits, Reply, command_for
from ledger.errors import InvalidField
from tests.unit.daemons.agents import ACTOR, Harness, a_session, emitted

PROMPT = "Make the tests pass.\n" + "x" * 200_000  # more than one word can hold

STAND_IN = """#!{python} -IS
import json, os, sys
folder = {folder!r}
open(folder + "/words", "w").write(json.dumps(sys.argv[1:]))
open(folder + "/read", "w").write(sys.stdin.read())
sys.stdout.buffer.write(open(folder + "/stream", "rb").read())
sys.stdout.flush()
sys.exit(int(open(folder + "/code").read()))
"""

CLAUDE = [
    {"type": "system", "subtype": "init", "session_id": "c-1", "model": "m", "cwd": "."},
    {
        "type": "assistant",
        "session_id": "c-1",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}],
            "usage": {"input_tokens": 10, "output_tokens": 1},
        },
    },
    {
        "type": "user",
        "session_id": "c-1",
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
    },
    {
        "type": "assistant",
        "session_id": "c-1",
        "parent_tool_use_id": "t1",
        "message": {"id": "msg_2", "role": "assistant", "content": [{"type": "text", "text": "A subagent's words."}]},
    },
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "session_id": "c-1",
        "result": "All pass.",
        "total_cost_usd": 0.25,
        "usage": {"input_tokens": 10, "output_tokens": 7, "cache_read_input_tokens": 3},
    },
]
CODEX = [
    {"type": "thread.started", "thread_id": "x-1"},
    {"type": "turn.started"},
    {"type": "item.started", "item": {"id": "i0", "type": "command_execution", "command": "make"}},
    {
        "type": "item.completed",
        "item": {"id": "i0", "type": "command_execution", "aggregated_output": "ok", "exit_code": 0},
    },
    {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "All pass."}},
    {
        "type": "turn.completed",
        "usage": {"input_tokens": 13, "cached_input_tokens": 3, "output_tokens": 7},
    },
]
OPENCODE = [
    {"type": "step_start", "sessionID": "ses_1", "part": {"messageID": "m1", "type": "step-start"}},
    {
        "type": "tool_use",
        "sessionID": "ses_1",
        "part": {
            "messageID": "m1",
            "type": "tool",
            "callID": "t1",
            "tool": "bash",
            "state": {"status": "completed", "input": {"command": "make"}, "output": "ok"},
        },
    },
    {"type": "text", "sessionID": "ses_1", "part": {"messageID": "m1", "type": "text", "text": "All pass."}},
    {
        "type": "step_finish",
        "sessionID": "ses_1",
        "part": {
            "id": "p9",
            "messageID": "m1",
            "type": "step-finish",
            "reason": "stop",
            "cost": 0.25,
            "tokens": {"input": 10, "output": 7, "reasoning": 0, "cache": {"read": 3, "write": 0}},
        },
    },
]
GEMINI = [
    {"type": "init", "timestamp": "2026-01-02T03:04:05.000Z", "session_id": "g-1", "model": "m"},
    {"type": "message", "timestamp": "2026-01-02T03:04:05.000Z", "role": "user", "content": "Make them pass."},
    {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t1", "parameters": {"command": "make"}},
    {"type": "tool_result", "tool_id": "t1", "status": "success", "output": "ok"},
    {"type": "message", "role": "assistant", "content": "All ", "delta": True},
    {"type": "message", "role": "assistant", "content": "pass.", "delta": True},
    {
        "type": "result",
        "timestamp": "2026-01-02T03:04:09.000Z",
        "status": "success",
        "stats": {"total_tokens": 20, "input_tokens": 13, "output_tokens": 7, "cached": 3, "tool_calls": 1},
    },
]
STREAMS: dict[str, list[dict[str, Any]]] = {"claude": CLAUDE, "codex": CODEX, "opencode": OPENCODE, "gemini": GEMINI}
CONVERSATIONS = {"claude": "c-1", "codex": "x-1", "opencode": "ses_1", "gemini": "g-1"}


@pytest.fixture(scope="module")
def saddle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Saddle]:
    outbox = tmp_path_factory.mktemp("outbox") / "outbox.db"
    with Saddle("http://127.0.0.1:9", "none", outbox=outbox, drain=False) as saddle:
        yield saddle


class StandIns(Harness):
    def reply_of(self, name: str, stream: list[dict[str, Any]] | bytes, code: int = 0, **more: Any) -> Reply:
        bin = self.folder / "bin"
        bin.mkdir(exist_ok=True)
        program = bin / name
        program.write_text(STAND_IN.format(python=sys.executable, folder=str(self.folder)))
        program.chmod(0o755)
        data = stream if isinstance(stream, bytes) else b"".join(json.dumps(row).encode() + b"\n" for row in stream)
        (self.folder / "stream").write_bytes(data)
        (self.folder / "code").write_text(str(code))
        return self.run(more.pop("command", name), PROMPT, environment={"PATH": str(bin)}, **more)

    @property
    def words(self) -> list[str]:
        words: list[str] = json.loads((self.folder / "words").read_text())
        return words


@pytest.fixture
def agents(saddle: Saddle, tmp_path: Path) -> StandIns:
    return StandIns(a_session(saddle), tmp_path)


@pytest.mark.parametrize("name", STREAMS)
def test_an_agent_is_given_the_prompt_and_replies_with_its_last_message(agents: StandIns, name: str) -> None:
    reply = agents.reply_of(name, STREAMS[name])
    assert (reply.exit_code, reply.text, reply.resume) == (0, "All pass.", CONVERSATIONS[name])
    assert reply.last_words == "All pass."
    assert agents.words == list(command_for(name)[1:])
    assert (agents.folder / "read").read_text() == PROMPT


@pytest.mark.parametrize("name", STREAMS)
def test_what_an_agent_does_is_told_as_events_of_its_role(agents: StandIns, name: str) -> None:
    agents.reply_of(name, STREAMS[name])
    told = emitted(agents.session)[1:-1]  # between the run's own call and result
    kinds = [kind for kind, _, _ in told]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 1
    assert [payload["args"] for kind, _, payload in told if kind == "tool_call"] == [{"command": "make"}]
    messages = [payload["text"] for kind, _, payload in told if kind == "message" and payload["role"] == "assistant"]
    assert messages[-1].endswith("All pass." if name != "claude" else "words.")
    assert {actor for _, actor, _ in told} <= {ACTOR, "user"}
    assert "result" not in kinds
    assert "output" not in kinds


@pytest.mark.parametrize(
    ("name", "cost_usd"), [("claude", 0.25), ("codex", None), ("opencode", 0.25), ("gemini", None)]
)
def test_what_it_used_is_added_up_and_a_cost_that_nobody_named_is_unknown(
    agents: StandIns, name: str, cost_usd: float | None
) -> None:
    reply = agents.reply_of(name, STREAMS[name])
    assert reply.cost_usd == cost_usd
    assert reply.usage == {
        "input_tokens": 10,
        "output_tokens": 7,
        "cache_read_tokens": 3,
        "cache_write_tokens": 0,
    }


@pytest.mark.parametrize("name", STREAMS)
def test_a_conversation_is_gone_on_with_by_its_id(agents: StandIns, name: str) -> None:
    reply = agents.reply_of(name, STREAMS[name], resume=CONVERSATIONS[name])
    assert CONVERSATIONS[name] in agents.words
    assert agents.words == [
        word.replace("{resume}", CONVERSATIONS[name]) for word in command_for(name, resume=True)[1:]
    ]
    assert reply.resume == CONVERSATIONS[name]


def test_two_turns_of_one_conversation_are_two_costs(agents: StandIns) -> None:
    for _ in range(2):
        agents.reply_of("claude", CLAUDE, resume="c-1")
    costs = {
        payload["message_id"]: payload["cost_usd"]
        for kind, _, payload in emitted(agents.session)
        if kind == "usage" and payload.get("cost_usd")
    }
    assert list(costs.values()) == [0.25, 0.25]


FAILED: dict[str, list[dict[str, Any]]] = {
    "claude": [
        CLAUDE[0],
        {
            "type": "result",
            "subtype": "error_max_turns",
            "is_error": True,
            "session_id": "c-1",
            "errors": ["Too far."],
        },
    ],
    "codex": [*CODEX[:2], {"type": "turn.failed", "error": {"message": "Too far."}}],
    "opencode": [
        OPENCODE[0],
        {"type": "error", "sessionID": "ses_1", "error": {"name": "APIError", "data": {"message": "Too far."}}},
    ],
    "gemini": [GEMINI[0], {"type": "result", "status": "error", "error": {"type": "Limit", "message": "Too far."}}],
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(("code", "seen"), [(0, 1), (53, 53)])
def test_an_agent_that_says_that_it_failed_has_failed(agents: StandIns, name: str, code: int, seen: int) -> None:
    reply = agents.reply_of(name, FAILED[name], code)
    assert reply.exit_code == seen
    assert "Too far." in reply.last_words
    assert reply.text == ""


def test_what_is_printed_beside_a_stream_is_told_and_the_reply_where_there_is_no_other(agents: StandIns) -> None:
    reply = agents.reply_of("claude", b"Invalid API key\nPlease run /login\n[1]\n", code=1)
    assert (reply.exit_code, reply.text) == (1, "Invalid API key\nPlease run /login\n[1]")
    outputs = [payload["text"] for kind, _, payload in emitted(agents.session) if kind == "output"]
    assert outputs == ["Invalid API key", "Please run /login", "[1]"]
    mixed = b"npm warn\n" + b"".join(json.dumps(row).encode() + b"\n" for row in CLAUDE)
    assert agents.reply_of("claude", mixed).text == "All pass."


ODD: list[Any] = [
    {},
    {"type": None},
    {"type": "assistant", "session_id": "c-1", "message": None},
    {"type": "assistant", "session_id": "c-1", "message": {"content": [None, 1, {"type": "text", "text": 5}]}},
    {"type": "result", "session_id": "c-1", "usage": [], "total_cost_usd": "much"},
    {"type": "item.completed", "item": {"type": "agent_message"}},
    {"type": "turn.completed", "usage": {"input_tokens": -1}},
    {"type": "step_finish", "sessionID": "ses_1", "part": {"type": "step-finish", "tokens": 1, "cost": []}},
    {"type": "message", "role": "assistant", "content": {}},
    {"type": "result", "status": "success", "stats": {"input_tokens": "many"}},
    {"type": "init", "session_id": "@goal/7"},
    {"type": "system", "subtype": "init", "session_id": "a/b"},
    {"type": "thread.started", "thread_id": "\x00" * 500},
]


@pytest.mark.parametrize("name", STREAMS)
def test_rows_of_shapes_that_nobody_has_seen_cost_the_others_nothing(agents: StandIns, name: str) -> None:
    odd = [STREAMS[name][0], *ODD, *STREAMS[name]]
    reply = agents.reply_of(name, odd)
    assert reply.exit_code == 0
    assert reply.text == "All pass."


def test_a_row_cut_in_the_middle_and_bytes_that_are_no_utf8_cost_the_others_nothing(agents: StandIns) -> None:
    whole = b"".join(json.dumps(row).encode() + b"\n" for row in CLAUDE)
    reply = agents.reply_of("claude", b'{"type": "assis\n\xff\xfe\n' + whole + b'{"type": "res')
    assert (reply.text, reply.undecodable, reply.exit_code) == ("All pass.", True, 0)


def test_beyond_the_limits_the_reply_is_heard_all_the_same(agents: StandIns) -> None:
    long = [{"type": "user", "session_id": "c-1", "message": {"content": "x" * 1000}} for _ in range(50)]
    reply = agents.reply_of("claude", [*long, *CLAUDE], limits=Limits(output_bytes=10_000))
    assert (reply.text, reply.truncated, reply.cost_usd) == ("All pass.", True, 0.25)
    few = agents.reply_of("claude", [*long, *CLAUDE], limits=Limits(events=3))
    assert (few.text, few.cost_usd) == ("All pass.", 0.25)
    assert "output.lost" in [kind for kind, _, _ in emitted(agents.session)]


def test_a_row_of_many_megabytes_is_left_out(agents: StandIns) -> None:
    huge = {"type": "user", "session_id": "c-1", "message": {"content": "x" * 9_000_000}}
    reply = agents.reply_of("claude", [huge, *CLAUDE])
    assert (reply.text, reply.truncated) == ("All pass.", True)


def test_an_agent_given_as_words_is_understood_if_it_prints_its_stream(agents: StandIns) -> None:
    words = ("claude", "-p", "--model", "m", "--output-format=stream-json", "--verbose", "{prompt}")
    reply = agents.reply_of("claude", CLAUDE, command=words)
    assert (reply.text, reply.cost_usd) == ("All pass.", 0.25)
    assert agents.words[-1] == str(agents.prompt_path)
    plain = agents.reply_of("claude", b"All pass.\n", command=("claude", "-p", "{prompt}"))
    assert (plain.text, plain.cost_usd) == ("All pass.\n", None)
    named = agents.reply_of(
        "claude", b'{"a": 1}', command=("claude", "-p", "{prompt}", "{artifact}"), artifact="stream-json"
    )
    assert named.text == '{"a": 1}'


def test_an_agent_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(InvalidField, match="cursor") as refused:
        command_for("cursor")
    assert all(name in refused.value.hint for name in PRESETS)
