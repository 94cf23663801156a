"""A transcript as Claude Code writes them, made up from a seed, with an account of what it says."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

Row = dict[str, Any]
Said = tuple[int, str, str]  # seq, kind, and what was said

LINE_SEQS = 1000  # seq = line × 1000 + the place in the line, lines counted from 1
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")

_FIELDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Transcript:
    """`lines` as the agent writes them, each with its line feed. `said` is what they say, in order; `ends` the number
    of things said with each line; `tokens` the totals: the last report of each message counts."""

    def __init__(self, random: Random, turns: int) -> None:
        self.session_id = str(uuid.UUID(int=random.getrandbits(128), version=4))
        self.lines: list[bytes] = []
        self.said: list[Said] = []
        self.ends: list[int] = []
        self.tokens = dict.fromkeys(TOKENS, 0)
        self._random = random
        for number in range(turns):
            self._turn(number)

    def said_by(self, count: int) -> int:
        """How much the first `count` lines say."""
        return self.ends[count - 1] if count else 0

    def _turn(self, number: int) -> None:
        """A prompt, an answer of several rows, the last of them a call, and what came of it."""
        prompt = f"Do step {number}, süß und schnell ✓"
        self._write("user", {"role": "user", "content": prompt}, ("message", prompt), ("result", "working"))
        output_tokens = 0
        for text in [f"Step {number}, thought {n}" for n in range(self._random.randint(1, 3))]:
            output_tokens += self._random.randint(1, 90)
            self._answer(number, output_tokens, {"type": "text", "text": text}, ("message", text))
        call = f"toolu_{number}"
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"make step-{number}"}}
        output_tokens += 1
        self._answer(number, output_tokens, use, ("tool_call", call))
        result = {"type": "tool_result", "tool_use_id": call, "content": "x" * self._random.randint(0, 2000)}
        self._write("user", {"role": "user", "content": [result]}, ("tool_result", call))
        counts = (3, output_tokens, 2000, 100)
        self.tokens = {name: self.tokens[name] + count for name, count in zip(TOKENS, counts, strict=True)}

    def _answer(self, number: int, output_tokens: int, block: Row, said: tuple[str, str]) -> None:
        """One row of a message; its `output_tokens` grow from row to row, the other counts are repeated."""
        usage = dict(zip(_FIELDS, (3, output_tokens, 2000, 100), strict=True))
        message = {"id": f"msg_{number}", "model": "claude-test-1", "content": [block], "usage": usage}
        self._write("assistant", message, said, ("usage", str(output_tokens)))

    def _write(self, type_: str, message: Row, *said: tuple[str, str]) -> None:
        number = len(self.lines) + 1
        row = {
            "type": type_,
            "sessionId": self.session_id,
            "cwd": "/srv/app",
            "isSidechain": False,
            "uuid": f"row-{number}",
            "timestamp": f"2026-03-01T10:{number // 60 % 60:02}:{number % 60:02}.000Z",
            "message": message,
        }
        self.lines.append(msgspec.json.encode(row) + b"\n")
        self.said += [(number * LINE_SEQS + place, *each) for place, each in enumerate(said)]
        self.ends.append(len(self.said))


def said_in(events: list[dict[str, Any]]) -> Iterator[Said]:
    """The same account, of events as the ledger holds them."""
    for event in events:
        payload = event["payload"]
        name = {"message": "text", "result": "state", "usage": "output_tokens"}.get(event["kind"], "call_id")
        yield event["seq"], event["kind"], str(payload.get(name))
