"""Who is asked: the `claude` command, an OpenAI-compatible endpoint, or any command. The prompt goes in on standard
input or as the body of a request, never in argv; what comes back is bounded; nothing is tried twice.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ledger.daemons.agent.processes import Stopping
from ledger.daemons.sweep import commands
from ledger.daemons.sweep.config import JudgeKeys, words_of
from ledger.daemons.sweep.judging.prompt import Redact
from ledger.daemons.sweep.judging.verdict import JudgeFailed
from ledger.daemons.sweep.register.texts import one_line

ANSWER_BYTES_MAX = 4 * 2**20
WORDS_CHARS_MAX = 300  # of what a judge that failed said

# No tools, no servers, no hooks or settings of the user's, nothing kept of the conversation
_CLAUDE = ("-p", "--output-format", "json", "--tools", "", "--strict-mcp-config", "--setting-sources", "")
_CLAUDE_KEEPS_NOTHING = ("--no-session-persistence", "--disable-slash-commands")


class Answer(msgspec.Struct, frozen=True):
    """What a judge said, and what that took as far as it told: fields of a `usage` event."""

    text: str
    usage: dict[str, Any] = {}


class Judge(Protocol):
    def ask(self, prompt: str) -> Answer:
        """Raises JudgeFailed, and Stopped where the sweep was asked to end meanwhile."""
        ...


def judge_of(keys: JudgeKeys, redact: Redact, stop: Stopping | None = None) -> Judge:
    """The judge that the configuration names. What a judge says in failing is redacted by `redact`."""
    if keys.backend == "openai":
        return Endpoint(keys, redact)
    if keys.backend == "command":
        return Program(words_of(keys.command), keys.timeout, redact, stop)
    model = ["--model", keys.model] if keys.model else []
    words = [keys.binary, *_CLAUDE, *_CLAUDE_KEEPS_NOTHING, *model, *keys.extra_args]
    return Claude(words, keys.timeout, redact, stop)


class Program:
    """A command: the prompt on its standard input, the answer on its standard output. It runs in an empty folder."""

    def __init__(self, words: Sequence[str], time_s: float, redact: Redact, stop: Stopping | None = None) -> None:
        self._words = list(words)
        self._time_s = time_s
        self._redact = redact
        self._stop = stop

    def ask(self, prompt: str) -> Answer:
        with tempfile.TemporaryDirectory(prefix="ledgerd-judge-") as folder:
            ran = commands.run(
                self._words,
                cwd=Path(folder),
                environment=commands.outside_environment(),
                time_s=self._time_s,
                input=prompt.encode(errors="replace"),
                output_bytes_max=ANSWER_BYTES_MAX,
                stop=self._stop,
            )
        if ran.trouble:
            missing = "is not there" if ran.is_missing else "could not be started"
            raise JudgeFailed(f"the judge {self._words[0]} {missing}: {ran.trouble}", hint=_INSTALL_HINT)
        if ran.timed_out:
            raise JudgeFailed(f"the judge gave no answer within {self._time_s:g} s", hint=_TIMEOUT_HINT)
        if ran.exit_code:
            said = _said(ran.stderr or ran.stdout, self._redact)
            raise JudgeFailed(f"the judge ended with exit code {ran.exit_code}{said}")
        if len(ran.stdout) >= ANSWER_BYTES_MAX:
            raise JudgeFailed(f"the judge answered more than {ANSWER_BYTES_MAX} bytes")
        return self.answer(ran.stdout.decode(errors="replace"))

    def answer(self, output: str) -> Answer:
        return Answer(output)


class Claude(Program):
    """The `claude` command in print mode: its answer stands in an envelope, beside what it cost."""

    def answer(self, output: str) -> Answer:
        try:
            envelope = json.loads(output)
        except (ValueError, RecursionError):
            return Answer(output)
        if not isinstance(envelope, dict) or "result" not in envelope:
            return Answer(output)
        result = envelope["result"]
        if envelope.get("is_error") or not isinstance(result, str):
            raise JudgeFailed(f"the judge failed{_said(str(result).encode(errors='replace'), self._redact)}")
        tokens = envelope.get("usage")
        named = {
            "message_id": envelope.get("uuid"),
            "cost_usd": envelope.get("total_cost_usd"),
            **_counts(tokens if isinstance(tokens, dict) else {}, _CLAUDE_COUNTS),
        }
        return Answer(result, {name: value for name, value in named.items() if value is not None})


class Endpoint:
    """POST `base_url`/chat/completions. Redirects are not followed: the key is for this address alone."""

    def __init__(self, keys: JudgeKeys, redact: Redact) -> None:
        self._keys = keys
        self._redact = redact
        self._key = os.environ.get(keys.api_key_env, "") if keys.api_key_env else ""

    def ask(self, prompt: str) -> Answer:
        import httpx

        url = self._keys.base_url.rstrip("/") + "/chat/completions"
        if not self._key.isascii() or not self._key.isprintable():
            raise JudgeFailed(f"{self._keys.api_key_env} holds characters that no key has")
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            with (
                httpx.Client(timeout=self._keys.timeout, follow_redirects=False) as client,
                client.stream("POST", url, json=self._body(prompt), headers=headers) as response,
            ):
                content = self._bounded(response)
        except httpx.TimeoutException as error:
            raise JudgeFailed(
                f"the judge at {self._where} gave no answer within {self._keys.timeout:g} s", hint=_TIMEOUT_HINT
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = self._clean(str(error) or type(error).__name__)
            raise JudgeFailed(f"the judge at {self._where} cannot be reached: {why}") from error
        if response.status_code != 200:
            raise JudgeFailed(f"the judge at {self._where} answered {response.status_code}{self._said(content)}")
        return self._answer(content)

    @property
    def _where(self) -> str:
        return self._clean(self._keys.base_url)

    def _body(self, prompt: str) -> dict[str, Any]:
        text = prompt.encode(errors="replace").decode()
        body: dict[str, Any] = {
            "model": self._keys.model,
            "messages": [{"role": "user", "content": text}],
            "max_tokens": self._keys.max_tokens,
        }
        return {**body, "response_format": {"type": "json_object"}} if self._keys.json_mode else body

    def _bounded(self, response: Any) -> bytes:
        """The body. Its time is limited as a whole: each piece of a trickle would come in time."""
        import time

        ends_at = time.monotonic() + self._keys.timeout
        content = bytearray()
        for piece in response.iter_bytes():
            content += piece
            if len(content) > ANSWER_BYTES_MAX:
                raise JudgeFailed(f"the judge at {self._where} answered more than {ANSWER_BYTES_MAX} bytes")
            if time.monotonic() > ends_at:
                raise JudgeFailed(
                    f"the judge at {self._where} did not end its answer within {self._keys.timeout:g} s",
                    hint=_TIMEOUT_HINT,
                )
        return bytes(content)

    def _answer(self, content: bytes) -> Answer:
        try:
            body = json.loads(content)
            [choice, *_] = body["choices"]
            text = choice["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise JudgeFailed(
                f"the judge at {self._where} answered no chat completion{self._said(content)}"
            ) from error
        if not isinstance(text, str) or not text.strip():
            raise JudgeFailed(f"the judge at {self._where} answered nothing ({choice.get('finish_reason')})")
        if choice.get("finish_reason") == "length":
            raise JudgeFailed(
                f"the judge's answer was cut off at {self._keys.max_tokens} tokens",
                hint="Raise judge.max_tokens, or lower scan.max_candidates.",
            )
        tokens = body.get("usage")
        usage = {
            "message_id": body.get("id"),
            "model": body.get("model") or self._keys.model,
            **_counts(tokens if isinstance(tokens, dict) else {}, _OPENAI_COUNTS),
        }
        return Answer(text, {name: value for name, value in usage.items() if isinstance(value, str | int)})

    def _said(self, content: bytes) -> str:
        text = content.decode(errors="replace")
        return _said((text.replace(self._key, "[REDACTED]") if self._key else text).encode(), self._redact)

    def _clean(self, text: str) -> str:
        text = text.replace(self._key, "[REDACTED]") if self._key else text
        return one_line(self._redact(text), WORDS_CHARS_MAX)


_CLAUDE_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}
_OPENAI_COUNTS = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
_INSTALL_HINT = "Install it, or name another with judge.binary or judge.command. Nothing is lost."
_TIMEOUT_HINT = "Raise judge.timeout, or lower scan.max_candidates. Nothing is lost: the same candidates come back."


def _counts(tokens: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
    return {
        ours: tokens[theirs]
        for theirs, ours in names.items()
        if isinstance(tokens.get(theirs), int) and not isinstance(tokens[theirs], bool)
    }


def _said(output: bytes, redact: Redact) -> str:
    """The last words of a judge that failed, fit for an error. They are cut once the whole is redacted: half a secret
    is known by nothing."""
    words = redact(output.decode(errors="replace")).strip()
    if len(words) > WORDS_CHARS_MAX:
        words = "…" + words[1 - WORDS_CHARS_MAX :]
    words = one_line(words, WORDS_CHARS_MAX)
    return f": {words}" if words else ""
