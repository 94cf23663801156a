"""The judges, each as what it really is: a `claude` on the PATH, a command, an endpoint on loopback."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.client.redaction import redact
from ledger.daemons.agent.stopping import Stop
from ledger.daemons.sweep.commands import Stopped
from ledger.daemons.sweep.config import JudgeKeys
from ledger.daemons.sweep.judging.backends import judge_of
from ledger.daemons.sweep.judging.verdict import JudgeFailed

PROMPT = "Judge this: café $(touch x) `touch y`\n" * 3
KEY = "a-key-of-the-tests-0123456789"

CLAUDE = """\
#!/bin/sh
printf '%s\\n' "$@" > {folder}/argv
pwd > {folder}/cwd
ls -A > {folder}/files
env > {folder}/environment
cat > {folder}/stdin
cat {folder}/answer
exit $(cat {folder}/code)
"""


@pytest.fixture
def claude(tmp_path: Path) -> Callable[..., JudgeKeys]:
    """Makes a `claude` that says `answer` and ends with `code`; gives the keys that name it."""

    def make(answer: str, code: int = 0, **more: Any) -> JudgeKeys:
        (tmp_path / "answer").write_text(answer)
        (tmp_path / "code").write_text(str(code))
        script = tmp_path / "claude"
        script.write_text(CLAUDE.format(folder=tmp_path))
        script.chmod(0o755)
        return JudgeKeys(binary=str(script), **more)

    return make


def envelope(result: str, **more: Any) -> str:
    usage = {"input_tokens": 12, "output_tokens": 3, "cache_read_input_tokens": 4}
    return json.dumps({"type": "result", "result": result, "total_cost_usd": 0.25, "usage": usage, **more})


def test_claude_is_asked_on_standard_input_without_tools_in_an_empty_folder(
    tmp_path: Path, claude: Callable[..., JudgeKeys], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGERD_TOKEN", "a-token-of-ours")
    keys = claude(envelope("the verdict"), model="a-model", extra_args=("--effort", "low"))
    answer = judge_of(keys, redact).ask(PROMPT)
    assert answer.text == "the verdict"
    assert answer.usage == {"cost_usd": 0.25, "input_tokens": 12, "output_tokens": 3, "cache_read_tokens": 4}
    assert (tmp_path / "stdin").read_text() == PROMPT
    argv = (tmp_path / "argv").read_text().split("\n")
    assert argv[argv.index("--tools") + 1] == ""
    assert {"-p", "--strict-mcp-config", "--no-session-persistence"} <= set(argv)
    assert argv[argv.index("--model") + 1] == "a-model"
    assert argv[-3:] == ["--effort", "low", ""]
    assert "Judge this" not in "\n".join(argv)
    assert (tmp_path / "files").read_text() == ""
    assert not Path((tmp_path / "cwd").read_text().strip()).exists()
    assert "a-token-of-ours" not in (tmp_path / "environment").read_text()


def test_a_claude_that_failed_says_so_redacted(claude: Callable[..., JudgeKeys]) -> None:
    with pytest.raises(JudgeFailed, match=r"the judge failed: Credit balance too low for token=\[REDACTED\]"):
        judge_of(claude(envelope("Credit balance too low for token=a1b2c3d4e5f6g7h8", is_error=True)), redact).ask(
            PROMPT
        )
    with pytest.raises(JudgeFailed, match="ended with exit code 1: Invalid API key"):
        judge_of(claude("Invalid API key", 1), redact).ask(PROMPT)
    assert judge_of(claude("plain text"), redact).ask(PROMPT).text == "plain text"


def command(*words: str, **more: Any) -> JudgeKeys:
    return JudgeKeys(backend="command", command=words, **more)


def test_a_command_gets_the_prompt_and_its_output_is_the_answer() -> None:
    assert judge_of(command("cat"), redact).ask(PROMPT).text == PROMPT
    assert judge_of(JudgeKeys(backend="command", command="printf '%s' 'a b'"), redact).ask(PROMPT).text == "a b"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/nowhere/judge"], "the judge /nowhere/judge is not there"),
        (["/etc/passwd"], "the judge /etc/passwd could not be started"),
        (["sh", "-c", "cat >/dev/null; echo token=a1b2c3d4e5f6g7h8 >&2; exit 4"], r"exit code 4: token=\[REDACTED\]"),
        (["sh", "-c", "kill -9 $$"], "ended with exit code 137"),
        (["head", "-c", "5000000", "/dev/zero"], "answered more than"),
    ],
)
def test_a_command_that_fails_says_how(words: list[str], said: str) -> None:
    with pytest.raises(JudgeFailed, match=said):
        judge_of(command(*words), redact).ask(PROMPT)


def test_the_last_words_of_a_judge_are_cut_once_they_are_redacted(tmp_path: Path) -> None:
    """The beginning by which a key is known may lie far before what is shown."""
    body = "".join(f"MIIE{'aB3x' * 15}\n" for _ in range(200))
    kind = "RSA PRIVATE" + " KEY-----"
    (tmp_path / "said").write_text(f"no access\n-----BEGIN {kind}\n{body}-----END {kind}\ngiving up")
    with pytest.raises(JudgeFailed) as failed:
        judge_of(command("sh", "-c", f"cat {tmp_path}/said >&2; exit 1"), redact).ask(PROMPT)
    assert failed.value.detail == "the judge ended with exit code 1: no access [REDACTED] giving up"
    (tmp_path / "said").write_text("first\n" + "x" * 1000 + "\nlast")
    with pytest.raises(JudgeFailed) as failed:
        judge_of(command("sh", "-c", f"cat {tmp_path}/said >&2; exit 1"), redact).ask(PROMPT)
    assert failed.value.detail.endswith("xx last")
    assert len(failed.value.detail) < 400


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    script = f"sleep 61 & echo $! > {tmp_path}/pid; wait"
    with pytest.raises(JudgeFailed, match=r"no answer within 0\.3 s"):
        judge_of(command("sh", "-c", script, timeout=0.3), redact).ask(PROMPT)
    pid = (tmp_path / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


def test_a_judge_is_ended_when_the_sweep_is(tmp_path: Path) -> None:
    stop = Stop()
    try:
        stop.ask()
        with pytest.raises(Stopped, match="asked to end while sleep ran"):
            judge_of(command("sleep", "60"), redact, stop).ask(PROMPT)
    finally:
        stop.close()


class Endpoint:
    """An OpenAI-compatible endpoint on loopback that answers what it is told to."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.status, self.headers, self.body = 200, {}, b""
        self.chunks_forever = False
        self.speaks = threading.Event()
        self.speaks.set()
        endpoint = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.requests.append((self.path, dict(self.headers), json.loads(content)))
                endpoint.speaks.wait(20)
                self.send_response(endpoint.status)
                for name, value in endpoint.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    self.wfile.write(endpoint.body)
                    while endpoint.chunks_forever:
                        self.wfile.write(b" " * 65_536)
                except OSError:  # who asked has gone
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def answers(self, text: str, **choice: Any) -> None:
        message = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop", **choice}
        usage = {"prompt_tokens": 7, "completion_tokens": 2}
        self.body = json.dumps({"id": "chat-1", "model": "m-1", "choices": [message], "usage": usage}).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


def keys_of(endpoint: Endpoint, **more: Any) -> JudgeKeys:
    return JudgeKeys(backend="openai", base_url=f"{endpoint.url}/", model="m", api_key_env="JUDGE_KEY", **more)


def test_an_endpoint_is_asked_once_with_the_key(endpoint: Endpoint) -> None:
    endpoint.answers("the verdict")
    answer = judge_of(keys_of(endpoint, max_tokens=99), redact).ask(PROMPT)
    assert answer.text == "the verdict"
    assert answer.usage == {"message_id": "chat-1", "model": "m-1", "input_tokens": 7, "output_tokens": 2}
    [(path, headers, body)] = endpoint.requests
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": 99,
        "response_format": {"type": "json_object"},
    }


def test_an_endpoint_may_need_no_key_and_know_no_json_mode(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGE_KEY")
    endpoint.answers("the verdict")
    judge_of(keys_of(endpoint, json_mode=False), redact).ask(PROMPT)
    [(_, headers, body)] = endpoint.requests
    assert "Authorization" not in headers
    assert "response_format" not in body


BAD: dict[str, tuple[int, bytes, str]] = {
    "a refusal": (401, f'{{"error": "bad key {KEY}"}}'.encode(), r"answered 401: .*bad key \[REDACTED\]"),
    "an error": (500, b"", "answered 500"),
    "a redirect": (302, b"", "answered 302"),
    "prose": (200, b"<html>It works</html>", "no chat completion: <html>It works"),
    "no choices": (200, b'{"choices": []}', "no chat completion"),
    "no text": (200, b'{"choices": [{"message": {"content": null}, "finish_reason": "stop"}]}', "answered nothing"),
    "half an answer": (
        200,
        b'{"choices": [{"message": {"content": "{"}, "finish_reason": "length"}]}',
        "cut off at 16000 tokens",
    ),
}


@pytest.mark.parametrize("how", BAD)
def test_an_endpoint_that_fails_says_how_and_never_shows_the_key(endpoint: Endpoint, how: str) -> None:
    endpoint.status, endpoint.body, said = BAD[how]
    endpoint.headers = {"Location": f"{endpoint.url}/elsewhere"} if how == "a redirect" else {}
    with pytest.raises(JudgeFailed, match=said) as failed:
        judge_of(keys_of(endpoint), redact).ask(PROMPT)
    assert KEY not in failed.value.detail
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_never_ends_is_left_at_the_limit(endpoint: Endpoint) -> None:
    endpoint.chunks_forever = True
    with pytest.raises(JudgeFailed, match="answered more than"):
        judge_of(keys_of(endpoint), redact).ask(PROMPT)
    endpoint.chunks_forever = False


def test_an_endpoint_that_is_silent_or_not_there_fails(endpoint: Endpoint) -> None:
    endpoint.speaks.clear()
    with pytest.raises(JudgeFailed, match=r"gave no answer within 0\.2 s"):
        judge_of(keys_of(endpoint, timeout=0.2), redact).ask(PROMPT)
    endpoint.speaks.set()
    endpoint.close()
    with pytest.raises(JudgeFailed, match="cannot be reached"):
        judge_of(keys_of(endpoint), redact).ask(PROMPT)
