"""Who gets in, to what, and what every answer carries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

import httpx
import pytest

from ledger.http.app import SECURITY_HEADERS
from ledger.http.auth import OWNER, READER, SADDLE
from ledger.http.routes import ANY, API, BASIC, Endpoint
from tests.live.serving import (
    OWNER_TOKEN,
    Server,
    assert_problem,
    created,
    event,
    events_of,
    fresh,
    opened,
    push,
    seen,
)

BY_NAME = {f"{one.method} {one.path}": one for one in API}


def requested(client: httpx.Client, endpoint: Endpoint, **how: object) -> httpx.Response:
    path = re.sub(r"{\w+}", "none", endpoint.path)
    return client.request(endpoint.method, path, **how)  # type: ignore[arg-type]


def restricted() -> list[Endpoint]:
    """The routes that take a token; of the live stream, which never ends, only the head."""
    return [
        Endpoint("HEAD", one.path, one.who, one.handler, "") if one.path == "/api/live" else one
        for one in API
        if one.who != ANY
    ]


named = pytest.mark.parametrize("endpoint", restricted(), ids=lambda one: f"{one.method} {one.path}")


# Roles


@named
def test_nobody_gets_in_without_a_token(nobody: httpx.Client, endpoint: Endpoint) -> None:
    answer = requested(nobody, endpoint)
    assert answer.status_code == 401
    offered = [one.split()[0].lower() for one in answer.headers["www-authenticate"].split(", ")]
    assert offered[: len(endpoint.schemes)] == list(endpoint.schemes)
    assert (BASIC in offered) == (BASIC in endpoint.schemes)
    if endpoint.method != "HEAD":
        assert_problem(answer, 401, "unauthenticated")


@named
def test_a_role_may_do_what_the_route_table_says(
    reader: httpx.Client, saddle: httpx.Client, owner: httpx.Client, endpoint: Endpoint
) -> None:
    for client, role in ((reader, READER), (saddle, SADDLE), (owner, OWNER)):
        answer = requested(client, endpoint)
        assert (answer.status_code == 403) is (role not in (endpoint.who, OWNER)), (role, answer.text)
        assert answer.status_code != 401


@pytest.mark.parametrize(
    "header",
    ["Bearer nonsense", "Bearer", "Basic b3duZXI6eA==", OWNER_TOKEN, f"Bearer {OWNER_TOKEN}x", "Bearer é"],
)
def test_what_is_no_token_lets_nobody_in(nobody: httpx.Client, header: str) -> None:
    answer = nobody.get("/api/goals", headers={b"Authorization": header.encode("latin-1")})  # type: ignore[dict-item]
    assert_problem(answer, 401, "unauthenticated")


def test_a_token_is_never_repeated_in_an_answer(nobody: httpx.Client) -> None:
    answer = nobody.get("/api/goals", headers={"Authorization": "Bearer a-secret-that-was-mistyped"})
    assert "a-secret-that-was-mistyped" not in answer.text


def test_another_saddles_session_looks_unknown_and_keeps_nothing(
    saddle: httpx.Client, other_saddle: httpx.Client, owner: httpx.Client
) -> None:
    session_id, task_id = opened(saddle)
    requests = {
        "/api/saddle/chunks": {"session_id": session_id, "events": [event(0)]},
        "/api/saddle/results": {"session_id": session_id, "state": "done"},
        "/api/saddle/sessions": {"session_id": session_id, "task_id": task_id},
        "/api/saddle/ask": {"session_id": session_id},
    }
    for stranger in (other_saddle, owner):
        for path, body in requests.items():
            assert_problem(stranger.post(path, json=body), 404, "unknown_session")
        with_open = {**requests["/api/saddle/chunks"], "open": {"task_id": task_id}}
        assert_problem(stranger.post("/api/saddle/chunks", json=with_open), 404, "unknown_session")
    assert events_of(owner, session_id) == []
    assert seen(owner, f"/api/tasks/{task_id}")["status"] == "working"


def test_an_owner_is_the_saddle_named_owner(owner: httpx.Client) -> None:
    session_id, _ = opened(owner)
    assert push(owner, session_id, [event(0)])["stored"] == 1
    assert seen(owner, f"/api/sessions/{session_id}")["saddle"] == "owner"


# Tokens


def test_a_token_is_shown_once_and_never_listed(owner: httpx.Client) -> None:
    name = fresh("someone")
    answer = owner.post("/api/tokens", json={"role": "reader", "name": name})
    assert answer.status_code == 201
    made = answer.json()
    assert {"id", "role", "name", "token"} <= set(made)
    listed = owner.get("/api/tokens")
    assert made["token"] not in listed.text
    [item] = [one for one in listed.json()["items"] if one["name"] == name]
    assert item == {key: value for key, value in made.items() if key != "token"}


@pytest.mark.parametrize(
    "body",
    [
        {"role": "king", "name": "x"},
        {"role": "reader", "name": ""},
        {"role": "reader", "name": "x" * 201},
        {"role": "reader", "name": "a\nb"},
        {"role": "saddle", "name": "owner"},
        {"role": "reader"},
        {"role": "reader", "name": "x", "expires_at": "tomorrow"},
        {"role": "reader", "name": "x", "expires_at": "2030-01-01T00:00:00"},
    ],
)
def test_a_token_that_cannot_be_is_refused(owner: httpx.Client, body: dict[str, str]) -> None:
    before = owner.get("/api/tokens").json()
    assert_problem(owner.post("/api/tokens", json=body), 422, "invalid_field")
    assert owner.get("/api/tokens").json() == before


def test_a_revoked_token_lets_nobody_in_and_stays_listed(server: Server, owner: httpx.Client) -> None:
    made = owner.post("/api/tokens", json={"role": "reader", "name": fresh("someone")}).json()
    client = server.client(made["token"])
    assert client.get("/api/goals").status_code == 200
    assert owner.delete(f"/api/tokens/{made['id']}").status_code == 204
    assert_problem(client.get("/api/goals"), 401, "unauthenticated")
    assert owner.delete(f"/api/tokens/{made['id']}").status_code == 204
    [item] = [one for one in owner.get("/api/tokens").json()["items"] if one["id"] == made["id"]]
    assert item["revoked_at"] is not None
    assert_problem(owner.delete("/api/tokens/none"), 404, "not_found")


def test_an_expired_token_lets_nobody_in(server: Server, owner: httpx.Client) -> None:
    now = datetime.now(UTC)
    for expires_at, status in ((now - timedelta(seconds=1), 401), (now + timedelta(hours=1), 200)):
        body = {"role": "reader", "name": fresh("someone"), "expires_at": expires_at.isoformat()}
        made = owner.post("/api/tokens", json=body).json()
        assert datetime.fromisoformat(made["expires_at"]) == expires_at
        assert server.client(made["token"]).get("/api/goals").status_code == status


def test_rotating_a_saddles_token_keeps_its_sessions(server: Server, owner: httpx.Client) -> None:
    name = fresh("saddle")
    old = owner.post("/api/tokens", json={"role": "saddle", "name": name}).json()
    session_id, _ = opened(server.client(old["token"]))
    new = server.client(server.token("saddle", name))
    owner.delete(f"/api/tokens/{old['id']}")
    assert push(new, session_id, [event(0)])["stored"] == 1


# At a browser


@pytest.fixture
def visitor(server: Server) -> Iterator[httpx.Client]:
    """An owner at a browser: a cookie, and no token in a header."""
    client = server.client(None)
    answer = client.post("/login", data={"token": OWNER_TOKEN})
    assert answer.status_code == 303
    return client


def csrf_of(visitor: httpx.Client) -> str:
    return re.findall(r'name="csrf" value="([0-9a-f]+)"', visitor.get("/").text)[0]


def test_a_page_sends_who_is_not_logged_in_to_the_login_and_back(nobody: httpx.Client, server: Server) -> None:
    answer = nobody.get("/goals?status=failed")
    assert answer.status_code == 303
    assert unquote(answer.headers["location"]) == "/login?next=/goals?status=failed"
    form = server.client(None)
    assert 'value="/goals"' in form.get("/login?next=/goals").text
    answer = form.post("/login", data={"token": OWNER_TOKEN, "next": "/goals"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/goals")
    assert form.get("/goals").status_code == 200


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(server: Server) -> None:
    answer = server.client(None).post("/login", data={"token": OWNER_TOKEN})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert re.search(r"samesite=(lax|strict)", cookie)
    assert OWNER_TOKEN not in cookie


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.test/",
        "//evil.test",
        "/\\evil.test",
        "evil",
        "javascript:alert(1)",
        "/\n/evil.test",
        "/\t//e",
        "",
    ],
)
def test_a_login_leads_to_this_server_only(server: Server, target: str) -> None:
    client = server.client(None)
    answer = client.post("/login", data={"token": OWNER_TOKEN, "next": target})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert 'name="next" value="/"' in client.get("/login", params={"next": target}).text


def test_a_wrong_token_at_the_login_is_said_on_the_form(nobody: httpx.Client, server: Server) -> None:
    for token in ("wrong", "", server.token("saddle", fresh("saddle"))):
        answer = nobody.post("/login", data={"token": token})
        assert answer.status_code == 401
        assert "text/html" in answer.headers["content-type"]
        assert "set-cookie" not in answer.headers


def test_a_form_of_a_page_decides_with_its_csrf_token_only(visitor: httpx.Client, owner: httpx.Client) -> None:
    task_id = created(owner, "tasks")["id"]
    for csrf in (None, "", "0" * 64, "é"):
        answer = visitor.post(f"/tasks/{task_id}/cancel", data={} if csrf is None else {"csrf": csrf})
        assert answer.status_code == 403
    assert seen(owner, f"/api/tasks/{task_id}")["status"] == "queued"
    answer = visitor.post(f"/tasks/{task_id}/cancel", data={"csrf": csrf_of(visitor)})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/tasks/{task_id}")
    assert seen(owner, f"/api/tasks/{task_id}")["status"] == "cancelled"


def test_another_visitors_csrf_token_is_worth_nothing(
    visitor: httpx.Client, server: Server, owner: httpx.Client
) -> None:
    other = server.client(None)
    other.post("/login", data={"token": OWNER_TOKEN})
    goal_id = created(owner, "goals")["id"]
    assert visitor.post(f"/goals/{goal_id}/start", data={"csrf": csrf_of(other)}).status_code == 403


CHANGING = [one for one in restricted() if one.method not in ("GET", "HEAD")]


@pytest.mark.parametrize("endpoint", CHANGING, ids=lambda one: f"{one.method} {one.path}")
def test_a_cookie_alone_changes_nothing_through_the_api(visitor: httpx.Client, endpoint: Endpoint) -> None:
    problem = assert_problem(requested(visitor, endpoint), 403, "forbidden")
    assert "CSRF" in problem["detail"]
    answer = requested(visitor, endpoint, headers={"X-CSRF-Token": csrf_of(visitor)})
    assert answer.status_code not in (401, 403)


def test_a_cookie_reads_through_the_api_as_it_reads_pages(visitor: httpx.Client) -> None:
    assert visitor.get("/api/fleet").status_code == 200


def test_a_reader_at_a_browser_decides_nothing(server: Server, owner: httpx.Client) -> None:
    client = server.client(None)
    client.post("/login", data={"token": server.token("reader", fresh("someone"))})
    task_id = created(owner, "tasks")["id"]
    answer = client.post(f"/tasks/{task_id}/cancel", data={"csrf": csrf_of(client)})
    assert answer.status_code == 403


def test_revoking_a_token_ends_the_logins_made_with_it(server: Server, owner: httpx.Client) -> None:
    made = owner.post("/api/tokens", json={"role": "reader", "name": fresh("someone")}).json()
    client = server.client(None)
    client.post("/login", data={"token": made["token"]})
    assert client.get("/").status_code == 200
    owner.delete(f"/api/tokens/{made['id']}")
    assert client.get("/").status_code == 303
    assert client.get("/api/goals").status_code == 401


def test_a_cookie_that_was_changed_is_worth_nothing(visitor: httpx.Client, nobody: httpx.Client) -> None:
    cookie = visitor.cookies["ledgerd"]
    for forged in (cookie[:-2] + ("aa" if not cookie.endswith("aa") else "bb"), "x" + cookie, "nonsense", ""):
        answer = nobody.get("/api/goals", headers={"Cookie": f"ledgerd={forged}"})
        assert_problem(answer, 401, "unauthenticated")


def test_logging_out_takes_the_csrf_token_and_ends_the_login(visitor: httpx.Client) -> None:
    assert visitor.post("/logout").status_code == 403
    assert visitor.post("/logout", data={"csrf": "wrong"}).status_code == 403
    answer = visitor.post("/logout", data={"csrf": csrf_of(visitor)})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert visitor.get("/").status_code == 303


def test_a_form_is_bounded(visitor: httpx.Client) -> None:
    answer = visitor.post("/login", data={"token": "x" * 70_000})
    assert answer.status_code == 413


# What every answer carries


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/healthz", 200),
        ("GET", "/openapi.json", 200),
        ("GET", "/api/goals", 200),
        ("HEAD", "/api/goals", 200),
        ("HEAD", "/api/live", 200),
        ("GET", "/login", 200),
        ("GET", "/static/ledger.css", 200),
        ("GET", "/static/nothing.css", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "/nothing", 404),
        ("GET", "/api/nothing", 404),
        ("GET", "/api/goals/none", 404),
        ("POST", "/api/goals", 400),
        ("OPTIONS", "/api/goals", 405),
        ("PUT", "/api/goals", 405),
        ("DELETE", "/api/tokens", 405),
        ("POST", "/healthz", 405),
        ("POST", "/static/ledger.css", 405),
        ("GET", "/api/goals/", 307),
    ],
)
def test_every_answer_carries_the_security_headers(owner: httpx.Client, method: str, path: str, status: int) -> None:
    answer = owner.request(method, path)
    assert answer.status_code == status
    assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "cache-control" in answer.headers
    if status >= 400 and method != "HEAD":
        assert_problem(answer, status)
    if status == 405:
        assert method not in answer.headers["allow"]


def test_a_refused_method_is_told_all_that_are_allowed(owner: httpx.Client) -> None:
    allowed = {
        path: set(owner.options(path).headers["allow"].split(", ")) for path in ("/api/goals", "/api/tokens/x")
    }
    assert allowed == {"/api/goals": {"GET", "HEAD", "POST"}, "/api/tokens/x": {"DELETE"}}


def test_a_head_of_the_live_stream_leaves_its_connection_free(owner: httpx.Client) -> None:
    assert owner.head("/api/live").headers["content-type"].startswith("text/event-stream")
    assert owner.get("/healthz", timeout=20).status_code == 200


@pytest.mark.parametrize("path", ["/nothing", "/goals/none", "/tasks/none", "/sessions/none"])
def test_a_browser_is_shown_a_page_where_a_program_is_given_a_problem(owner: httpx.Client, path: str) -> None:
    page = owner.get(path, headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert_problem(owner.get(path), 404)
