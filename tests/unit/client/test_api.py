from __future__ import annotations

import json
import ssl
import subprocess
import sys
from email.utils import formatdate
from pathlib import Path
from random import Random

import httpx
import msgspec
import pytest
import zstandard

from ledger.client.api import Api, ApiError, _trust, server_from_environment
from ledger.client.retries import BACKOFF_MAX_S, RETRY_AFTER_MAX_S, backoff_s, retry_after_s
from ledger.errors import InvalidField, LedgerError

NOW_S = 1_800_000_000.0
RECEIPT = {"stored": 1, "duplicates": 0}


class Server:
    """Gives its answers one after the other, the last one for ever; keeps the requests and the pauses."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.pauses_s: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def api(self) -> Api:
        return Api(
            "http://ledger.test",
            "secret",
            transport=httpx.MockTransport(self),
            sleep=self.pauses_s.append,
            now=lambda: NOW_S,
            random=Random(1),
        )


def ok(body: object = RECEIPT) -> httpx.Response:
    return httpx.Response(200, json=body)


def problem(status: int, code: str = "x", headers: dict[str, str] | None = None) -> httpx.Response:
    body = {"code": code, "detail": f"it was {code}", "hint": "do this", "status": status}
    return httpx.Response(status, json=body, headers=headers)


def test_a_push_carries_the_token_the_events_and_the_opening() -> None:
    server = Server(ok())
    events = [{"seq": 1, "kind": "message", "actor": "a", "payload": msgspec.Raw(b'{"n":1.50}')}]
    with server.api() as api:
        assert api.push("s", events, open={"task": {"title": "T"}}) == RECEIPT
    [request] = server.requests
    assert request.headers["Authorization"] == "Bearer secret"
    assert b'"payload":{"n":1.50}' in request.content
    body = json.loads(request.content)
    assert (body["session_id"], body["open"]) == ("s", {"task": {"title": "T"}})


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_asks_for_it_is_tried_again(status: int) -> None:
    server = Server(problem(status), problem(status), ok())
    with server.api() as api:
        assert api.push("s", []) == RECEIPT
    assert len(server.requests) == 3
    assert len({request.content for request in server.requests}) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 500])
def test_any_other_refusal_is_final(status: int) -> None:
    server = Server(problem(status, "no_such_thing"), ok())
    with server.api() as api, pytest.raises(ApiError) as caught:
        api.goal("7")
    assert (caught.value.status, caught.value.code) == (status, "no_such_thing")
    assert caught.value.detail == "it was no_such_thing"
    assert isinstance(caught.value, LedgerError)
    assert server.pauses_s == []


def test_retry_after_is_honoured_in_seconds_and_as_a_date() -> None:
    date = formatdate(NOW_S + 42, usegmt=True)
    server = Server(problem(429, headers={"Retry-After": "7"}), problem(503, headers={"Retry-After": date}), ok())
    with server.api() as api:
        api.push("s", [])
    assert server.pauses_s == [7.0, 42.0]


def test_a_wait_longer_than_the_bound_is_not_waited_for() -> None:
    server = Server(problem(503, "storage_full", {"Retry-After": "3600"}))
    with server.api() as api, pytest.raises(ApiError, match="storage_full"):
        api.push("s", [])
    assert server.pauses_s == []


def test_attempts_end_and_the_pauses_between_them_grow() -> None:
    server = Server(problem(502))
    with server.api() as api, pytest.raises(ApiError):
        api.push("s", [])
    assert len(server.requests) == 5
    assert server.pauses_s == sorted(server.pauses_s)
    assert all(0 < pause <= BACKOFF_MAX_S for pause in server.pauses_s)


def test_a_conditional_push_says_what_was_seen_and_hears_where_the_session_stands() -> None:
    moved = httpx.Response(409, json={"code": "stream_moved", "detail": "d", "last_seq": 9})
    server = Server(httpx.ReadError("reset"), moved)
    with server.api() as api, pytest.raises(ApiError) as caught:
        api.push("s", [], expected_seq=-1)
    assert (caught.value.code, caught.value.problem["last_seq"]) == ("stream_moved", 9)
    assert [json.loads(request.content)["expected_seq"] for request in server.requests] == [-1, -1]


def test_a_lost_connection_is_tried_again_where_repeating_is_safe() -> None:
    lost = httpx.ReadError("reset")
    server = Server(lost, ok())
    with server.api() as api:
        api.push("s", [])
        api.create_goal("T", id="7")
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "act",
    [
        lambda api: api.create_goal("T"),
        lambda api: api.decide("task", "1", "requeue"),
        lambda api: api.create_token("reader", "r"),
    ],
)
def test_what_would_be_done_twice_is_not_repeated_when_the_answer_was_lost(act) -> None:
    server = Server(httpx.ReadError("reset"), ok())
    with server.api() as api, pytest.raises(ApiError) as caught:
        act(api)
    assert (caught.value.status, caught.value.code) == (None, "unreachable")
    refused = Server(httpx.ConnectError("refused"), problem(503), ok())
    with refused.api() as api:
        act(api)
    assert len(refused.requests) == 3


def test_an_ask_whose_answer_was_lost_is_repeated_for_the_same_session() -> None:
    server = Server(httpx.ReadError("reset"), ok({"task": {"id": "1"}, "session_id": "s"}))
    with server.api() as api:
        api.ask()
    first, second = (json.loads(request.content)["session_id"] for request in server.requests)
    assert first == second


def test_an_ask_that_finds_no_work_is_none() -> None:
    with Server(httpx.Response(204)).api() as api:
        assert api.ask(wait_s=5) is None


def test_a_wrong_token_and_a_wrong_address_name_the_setting_to_change() -> None:
    with Server(problem(401)).api() as api, pytest.raises(ApiError) as caught:
        api.fleet()
    assert "LEDGERD_TOKEN" in caught.value.hint
    for answer in (httpx.ConnectError("refused"), httpx.Response(404, text="<html>"), ok([1])):
        with Server(answer).api() as api, pytest.raises(ApiError) as caught:
            api.fleet()
        assert "LEDGERD_URL" in caught.value.hint
    with pytest.raises(InvalidField, match="LEDGERD_URL"):
        Api("localhost:8137", "t")
    with pytest.raises(InvalidField, match="LEDGERD_TOKEN"):
        Api("http://localhost", "t\nX-Evil: 1")


def test_ids_and_filters_are_quoted_for_the_address() -> None:
    server = Server(ok({}))
    with server.api() as api:
        api.session_events("a/b?c#d%20", from_seq=3, limit=None)
        api.goals(status="running", after=None)
    assert [request.url.raw_path for request in server.requests] == [
        b"/api/sessions/a%2Fb%3Fc%23d%2520/events?from_seq=3",
        b"/api/goals?status=running",
    ]


def test_what_is_decided_about_loops_and_runs_goes_to_its_address() -> None:
    server = Server(ok({}))
    with server.api() as api:
        api.requests("l/1", after=3)
        api.decide("loop", "7", "halt", "too dear")
        api.remediation()
        api.remediation("run-1")
        api.configure_remediation({"master": "m"})
        api.start_remediation([{"id": "s"}])
        api.resume_remediation()
        api.resume_remediation([])
        api.approve_remediation("go")
    said = [(one.method, one.url.raw_path.decode(), one.content.decode()) for one in server.requests]
    run = "/api/resource-remediation"
    assert said == [
        ("GET", "/api/saddle/requests?session_id=l%2F1&after=3", ""),
        ("POST", "/api/loops/7/halt", '{"reason":"too dear"}'),
        ("GET", run, ""),
        ("GET", f"{run}/run-1", ""),
        ("POST", f"{run}/configuration", '{"master":"m"}'),
        ("POST", f"{run}/start", '{"steps":[{"id":"s"}]}'),
        ("POST", f"{run}/resume", "{}"),
        ("POST", f"{run}/resume", '{"steps":[]}'),
        ("POST", f"{run}/approve", '{"feedback":"go"}'),
    ]


def test_no_retry_after_makes_a_sender_sleep_for_ever() -> None:
    far = formatdate(NOW_S + 10**6, usegmt=True)
    assert {retry_after_s(value, NOW_S) for value in ("86400", "9" * 400, far)} == {RETRY_AFTER_MAX_S}


def test_a_body_that_cannot_be_unpacked_counts_as_no_answer() -> None:
    broken = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip"))
    with Server(broken, ok()).api() as api:
        assert api.fleet() is not None


def test_a_retry_after_that_nobody_can_read_is_none() -> None:
    past = formatdate(NOW_S - 10, usegmt=True)
    assert [retry_after_s(value, NOW_S) for value in (None, "", "soon", "-1", "1.5", past)] == [None] * 5 + [0.0]


def test_a_pause_never_leaves_its_bounds() -> None:
    seed = Random().randrange(2**32)
    print(f"seed {seed}")
    random = Random(seed)
    for attempt in (*range(1, 40), 10_000):
        assert 0.1 < backoff_s(attempt, random) <= BACKOFF_MAX_S


def test_the_server_is_found_by_the_environment_then_by_the_files_of_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LEDGERD_URL", "LEDGERD_TOKEN", "LEDGERD_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert server_from_environment() == ("http://127.0.0.1:8137", "")
    (tmp_path / "ledgerd").mkdir()
    (tmp_path / "ledgerd" / "owner-token").write_text("beside\n")
    assert server_from_environment()[1] == "beside"
    assert server_from_environment(tmp_path)[1] == ""
    (tmp_path / "named").write_text("named\n")
    monkeypatch.setenv("LEDGERD_TOKEN_FILE", str(tmp_path / "named"))
    assert server_from_environment()[1] == "named"
    monkeypatch.setenv("LEDGERD_URL", "https://ledger.test")
    monkeypatch.setenv("LEDGERD_TOKEN", "set")
    assert server_from_environment() == ("https://ledger.test", "set")


def test_importing_the_client_does_not_load_the_http_library() -> None:
    code = "import sys, ledger.client.api; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_large_body_is_compressed_and_a_small_one_is_not() -> None:
    server = Server(ok())
    with server.api() as api:
        api.push("s", [])
        api.push("s", [{"seq": 1, "kind": "note", "payload": "x" * 100_000}])
    small, large = server.requests
    assert "Content-Encoding" not in small.headers
    assert large.headers["Content-Encoding"] == "zstd"
    assert len(large.content) < 1000
    assert json.loads(zstandard.decompress(large.content))["events"][0]["payload"] == "x" * 100_000


def test_an_error_says_how_long_to_wait_and_whether_anything_listens() -> None:
    with Server(problem(429, headers={"Retry-After": "3600"})).api() as api, pytest.raises(ApiError) as caught:
        api.push("s", [])
    assert (caught.value.retry_after_s, caught.value.connected) == (3600.0, True)
    with Server(httpx.ConnectError("refused")).api() as api, pytest.raises(ApiError) as caught:
        api.push("s", [])
    assert (caught.value.retry_after_s, caught.value.connected) == (None, False)


def test_without_tls_nobody_is_trusted_and_with_it_whom_the_system_trusts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a proxy may be spoken to over TLS."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    nobody = _trust("http")
    assert isinstance(nobody, ssl.SSLContext)
    assert (nobody.verify_mode, nobody.check_hostname, nobody.get_ca_certs()) == (ssl.CERT_REQUIRED, True, [])
    assert _trust("https") is True
    monkeypatch.setenv("HTTP_PROXY", "https://proxy.test")
    assert _trust("http") is True
