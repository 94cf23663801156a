"""What is pushed: bodies like those that daemons send, the same for every part that is measured.

A session's events go round a short cycle of what coding agents do: say something, call a tool, get its output. Their
payloads weigh about 300 bytes each. All is made of a seed, so that every process makes the same bodies.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec

PATH = "/api/saddle/chunks"

_TEXT = (
    "read the failing test again and found that the cursor moves before the row is written so a crash between both "
    "loses one event now the order is turned round def append(self, rows): return self._write(sorted(rows)) ok"
)
_WORDS = _TEXT.split()


class Workload(msgspec.Struct, frozen=True):
    """`pushers` sessions side by side; each pushes `chunks` chunks of `batch` events, one after another."""

    name: str
    pushers: int
    chunks: int
    batch: int

    @property
    def requests(self) -> int:
        return self.pushers * self.chunks

    @property
    def events(self) -> int:
        return self.requests * self.batch

    def session_ids(self) -> list[str]:
        return [f"{self.name}-{number:02}" for number in range(self.pushers)]

    def bodies(self, session_id: str) -> Iterator[bytes]:
        """The session's chunks in the order of their sending, as JSON."""
        chance = random.Random(session_id)
        for chunk in range(self.chunks):
            seqs = range(chunk * self.batch, (chunk + 1) * self.batch)
            events = [_event(seq, chance) for seq in seqs]
            yield msgspec.json.encode({"session_id": session_id, "events": events})


def _event(seq: int, chance: random.Random) -> dict[str, Any]:
    kind, payload = _KINDS[seq % len(_KINDS)](seq, chance)
    at = f"{_clock(seq)}.{chance.randrange(1000):03}Z"
    return {"seq": seq, "kind": kind, "actor": "agent", "payload": payload, "at": at}


def _message(seq: int, chance: random.Random) -> tuple[str, dict[str, Any]]:
    text = _text(chance, 46)
    return "message", {"role": "assistant", "text": text, "message_id": f"msg_{seq:08}", "model": "large-2"}


def _tool_call(seq: int, chance: random.Random) -> tuple[str, dict[str, Any]]:
    args = {
        "command": f"sed -n 1,{seq % 400}p src/module_{seq % 37}.py && {_text(chance, 20)}",
        "description": _text(chance, 17),
    }
    return "tool_call", {"tool": "bash", "args": args, "call_id": f"call_{seq:08}", "turn": seq // 3}


def _tool_result(seq: int, chance: random.Random) -> tuple[str, dict[str, Any]]:
    stdout = "\n".join(f"{line:4}  {_text(chance, 9)}" for line in range(5))
    return "tool_result", {"call_id": f"call_{seq - 1:08}", "exit_code": 0, "stdout": stdout, "turn": seq // 3}


_KINDS = (_message, _tool_call, _tool_result)


def _text(chance: random.Random, words: int) -> str:
    start = chance.randrange(len(_WORDS))
    return " ".join(_WORDS[(start + word) % len(_WORDS)] for word in range(words))


def _clock(seq: int) -> str:
    minutes, seconds = divmod(seq % 86_400, 60)
    return f"2026-03-14T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
