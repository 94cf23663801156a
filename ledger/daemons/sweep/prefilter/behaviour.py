"""How a session went, told by numbers: what failed again and again, what was started twice, what was spent while
nothing new succeeded, and claims that the last check contradicts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import orjson

from ledger.daemons.sweep.model import BEHAVED, SAID, WENT_ROUND, WENT_WRONG
from ledger.daemons.sweep.prefilter import checks
from ledger.daemons.sweep.prefilter.matching import Rule
from ledger.daemons.sweep.prefilter.shell import Command, words

FAILURES_MIN = 4  # of one command, with no success in between
STREAK_MIN = 12  # calls, of which none did anything new that worked
TOLD_MAX = 1_000  # different commands and calls that are held in mind

FAILS_AGAIN = Rule("fails-again", BEHAVED, WENT_ROUND, "The same command failed again and again.")
STARTED_TWICE = Rule("started-twice", BEHAVED, WENT_ROUND, "The same work was started twice.")
SPENT_IDLE = Rule("spent-idle", BEHAVED, WENT_ROUND, "Calls and tokens were spent while nothing new succeeded.")
CLAIM_DISAGREES = Rule(
    "claim-disagrees", SAID, WENT_WRONG, "The agent says that it works; the last check had failed."
)
DONE_DISAGREES = Rule("done-disagrees", BEHAVED, WENT_WRONG, "The work was reported done; the last check had failed.")

_LAUNCHING_TOOLS = words("task agent spawn_agent dispatch_agent")
_DETACHED = words("tmux screen pm2")


class Digest(NamedTuple):
    """A rule that fired, what tells it from others of its kind, and what is said of it in numbers."""

    rule: Rule
    likeness: str
    text: str


class Call(msgspec.Struct, frozen=True):
    """A call whose result is waited for. `digest` is of the tool and its arguments; `writes` the file that it writes,
    if it is a tool that does; `check` as `check_of` gives it."""

    tool: str
    digest: bytes
    commands: tuple[Command, ...] = ()
    shown: str = ""
    check: tuple[str, str] | None = None
    writes: str = ""


class Behaviour:
    """Of one session, from its first moment on. Each method gives what fired by what it is told."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._launched: dict[bytes, str] = {}
        self._results: dict[bytes, bytes] = {}
        self._streak = self._failed_in_streak = 0
        self._requests: dict[str, tuple[int, float]] = {}
        self._bad_checks: dict[str, tuple[str, str]] = {}

    def called(self, call: Call, args: Any) -> list[Digest]:
        launch = call.tool.lower() in _LAUNCHING_TOOLS or _is_detached(call.commands, args)
        if not launch:
            return []
        again = call.digest in self._launched
        _hold(self._launched, call.digest, call.shown)
        return [Digest(STARTED_TWICE, call.shown, f"{call.tool} was started again: {call.shown}")] if again else []

    def stopped_something(self) -> None:
        """What was started may be started again now."""
        self._launched.clear()

    def ended(self, call: Call, output: str, *, failed: bool) -> list[Digest]:
        if call.check is not None:
            family, source = call.check
            failed = checks.ended_badly(output, failed=failed)
            self._bad_checks.pop(family, None)
            if failed:
                self._bad_checks[family] = source, output
        fired = self._count_failure(call, failed=failed) if call.commands else []
        result = hashlib.blake2b(output.encode(errors="replace"), digest_size=8).digest()
        repeated = self._results.get(call.digest) == result
        _hold(self._results, call.digest, result)
        if not failed and not repeated:
            return [*fired, *self.end_of_streak()]
        self._streak += 1
        self._failed_in_streak += failed
        return fired

    def spent(self, message_id: str, tokens: int, cost_usd: float) -> None:
        """The last report of a message counts."""
        if self._streak:
            _hold(self._requests, message_id, (tokens, cost_usd))

    def claimed(self, text: str) -> tuple[str, str, str] | None:
        """A line of `text` that claims what the last check contradicts, that check and what it printed. Each failed
        check is held against one claim."""
        if not self._bad_checks or (claim := checks.claim(text)) is None:
            return None
        line, families = claim
        against = next((family for family in reversed(self._bad_checks) if family in families), None)
        return None if against is None else (line, *self._bad_checks.pop(against))

    def reported_done(self) -> tuple[str, str] | None:
        """The last check that had failed, and what it printed, when the work is reported done."""
        return self._bad_checks.popitem()[1] if self._bad_checks else None

    def end_of_streak(self) -> list[Digest]:
        """At a success, when a person speaks, and at the end."""
        streak, failed, requests = self._streak, self._failed_in_streak, self._requests
        self._streak = self._failed_in_streak = 0
        self._requests = {}
        if streak < STREAK_MIN:
            return []
        tokens, cost = sum(spent[0] for spent in requests.values()), sum(spent[1] for spent in requests.values())
        text = f"{streak} calls in a row brought nothing new: {failed} failed, {streak - failed} repeated a result"
        text += f"; {len(requests)} requests, {tokens:,} tokens" + (f", {cost:.2f} USD" if cost else "")
        return [Digest(SPENT_IDLE, "", text)]

    def _count_failure(self, call: Call, *, failed: bool) -> list[Digest]:
        if not failed:
            self._failures.pop(call.shown, None)
            return []
        times = self._failures.pop(call.shown, 0) + 1
        _hold(self._failures, call.shown, times)
        if times < FAILURES_MIN:
            return []
        return [Digest(FAILS_AGAIN, call.shown, f"failed {times} times in a row: {call.shown}")]


def digest_of(tool: str, args: Any) -> bytes:
    """The same for the same call."""
    try:
        data = orjson.dumps(args, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    except TypeError:  # a number beyond 64 bits
        data = repr(args).encode(errors="replace")
    return hashlib.blake2b(tool.encode(errors="replace") + b"\0" + data, digest_size=16).digest()


def _is_detached(commands: Iterable[Command], args: Any) -> bool:
    if isinstance(args, dict) and args.get("run_in_background") is True:
        return True
    return any(command.background or command.name in _DETACHED for command in commands)


def _hold(told: dict[Any, Any], key: Any, value: Any) -> None:
    """Sets a value as the newest; the oldest is forgotten when there are too many."""
    told.pop(key, None)
    told[key] = value
    if len(told) > TOLD_MAX:
        del told[next(iter(told))]
