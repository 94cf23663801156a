"""`/openapi.json` describes every route, nothing else, and truthfully: a request of each is held against it."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from ledger.http.routes import API
from tests.live.serving import Server, acted, assert_problem, created, event, fresh, opened, push, result, seen

DESIGNED = """
    POST /api/saddle/ask             POST /api/saddle/sessions        POST /api/saddle/chunks
    POST /api/saddle/results         POST /api/saddle/heartbeat
    GET /api/projects                POST /api/projects
    GET /api/goals                   POST /api/goals                  GET /api/goals/{id}
    POST /api/goals/{id}/{action}
    GET /api/tasks                   POST /api/tasks                  GET /api/tasks/{id}
    POST /api/tasks/{id}/{action}
    GET /api/tokens                  POST /api/tokens                 DELETE /api/tokens/{id}
    GET /api/sessions/{id}           GET /api/sessions/{id}/events    GET /api/fleet
    GET /api/events                  GET /api/live                    GET /api/search
    GET /api/saddle/requests
    GET /api/loops                   GET /api/loops/{id}              POST /api/loops/{id}/{action}
    GET /api/resource-remediation    GET /api/resource-remediation/{id}
    POST /api/resource-remediation/start                              POST /api/resource-remediation/resume
    POST /api/resource-remediation/approve                            POST /api/resource-remediation/configuration
    GET /api/incidents               GET /api/incidents/{id}          POST /api/incidents/{id}/{action}
    GET /incidents.json              GET /incidents.atom
    GET /healthz                     GET /readyz                      GET /metrics
    GET /openapi.json
"""
SERVED = {f"{one.method} {one.path}" for one in API}
CALLS = sorted(SERVED - {"GET /api/live"})  # that one never ends


@pytest.fixture(scope="module")
def document(nobody: httpx.Client) -> dict[str, Any]:
    return seen(nobody, "/openapi.json")


def operation_of(document: dict[str, Any], name: str) -> dict[str, Any]:
    method, path = name.split(" ")
    return dict(document["paths"][path][method.lower()])


def assert_valid(document: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    """The value is as the schema of the document says."""
    whole = {**schema, "components": document["components"]}
    Draft202012Validator.check_schema(whole)
    Draft202012Validator(whole).validate(value)


class Calls:
    """One good request for each route, with what must be there before."""

    def __init__(self, server: Server) -> None:
        self.owner = server.client()

    def of(self, name: str) -> tuple[str, dict[str, Any]]:
        """The path to call and how; a route that needs nothing is called as it is."""
        call = getattr(self, re.sub(r"\W+", "_", name).strip("_").lower(), None)
        return (name.split(" ")[1], {}) if call is None else call()

    def _posted(self, path: str, **body: Any) -> tuple[str, dict[str, Any]]:
        return path, {"json": body}

    def post_api_saddle_ask(self) -> tuple[str, dict[str, Any]]:
        created(self.owner, "tasks")
        return self._posted("/api/saddle/ask", wait_s=0, session_id=fresh("session"), agent="a", model="m")

    def post_api_saddle_sessions(self) -> tuple[str, dict[str, Any]]:
        task = {"id": fresh("task"), "title": "t", "project_id": 1, "goal_id": None}
        fields = {"resumed_from": "old", "parent_session_id": 5, "agent": "a", "cwd": "/", "contiguous": True}
        return self._posted("/api/saddle/sessions", session_id=fresh("session"), task=task, **fields)

    def post_api_saddle_chunks(self) -> tuple[str, dict[str, Any]]:
        events = [event(0), event(0, payload=[1]), event(1, at=1.5, extra={"a": 1}), event(2, at="never")]
        fields = {"events": events, "open": {"task": {"title": "t"}, "contiguous": True}}
        return self._posted("/api/saddle/chunks", session_id=fresh("session"), **fields)

    def post_api_saddle_results(self) -> tuple[str, dict[str, Any]]:
        return self._posted("/api/saddle/results", session_id=opened(self.owner)[0], state="done", summary="s")

    def post_api_saddle_heartbeat(self) -> tuple[str, dict[str, Any]]:
        return self._posted("/api/saddle/heartbeat", host="h", version="1")

    def get_api_saddle_requests(self) -> tuple[str, dict[str, Any]]:
        session_id, task_id = opened(self.owner, agent="ledgerd-loop")
        assert self.owner.post(f"/api/tasks/{task_id}/halt").status_code == 200
        return f"/api/saddle/requests?session_id={session_id}&after=-1", {}

    def post_api_loops_id_action(self) -> tuple[str, dict[str, Any]]:
        return self._posted(f"/api/loops/{opened(self.owner, agent='ledgerd-loop')[1]}/halt", reason="r")

    def configured(self) -> None:
        names = {"projects": [{"name": "it", "aliases": ["that"]}], "master": "it", "rules": {"prefix": "IT"}}
        assert self.owner.post("/api/resource-remediation/configuration", json=names).status_code == 200

    def run(self, *, blocked: bool = False) -> str:
        """The id of a run that is active: the one that is, else a new one."""
        self.configured()
        told = self.owner.get("/api/resource-remediation").json()
        if not told.get("active"):
            told = self.owner.post("/api/resource-remediation/start", json={"steps": [self.step()]}).json()
        if blocked and told["status"] != "BLOCKED":
            event_ = event(told["last_seq"] + 1, "run.blocked", {"stage": "PLAN_REVIEW", "reason": "r"})
            push(self.owner, told["run_id"], [event_], expected_seq=told["last_seq"])
        return str(told["run_id"])

    def step(self) -> dict[str, Any]:
        told = {"title": "t", "prompt": "p", "risk": "code", "aliases": ["a"], "phase": "1", "phaseLabel": "One"}
        return {"id": "s", "order": 1, "target": "it", "summary": "s", **told}

    def post_api_resource_remediation_start(self) -> tuple[str, dict[str, Any]]:
        self.owner.post(f"/api/tasks/{self.run()}/cancel")
        return self._posted("/api/resource-remediation/start", steps=[self.step()])

    def post_api_resource_remediation_resume(self) -> tuple[str, dict[str, Any]]:
        self.run(blocked=True)
        return self._posted("/api/resource-remediation/resume", steps=[self.step()])

    def post_api_resource_remediation_approve(self) -> tuple[str, dict[str, Any]]:
        self.run(blocked=True)
        return self._posted("/api/resource-remediation/approve", feedback="f")

    def post_api_resource_remediation_configuration(self) -> tuple[str, dict[str, Any]]:
        return self._posted("/api/resource-remediation/configuration", projects=[{"name": "it"}], master="it")

    def get_api_resource_remediation_id(self) -> tuple[str, dict[str, Any]]:
        return f"/api/resource-remediation/{self.run()}", {}

    def get_api_projects(self) -> tuple[str, dict[str, Any]]:
        return "/api/projects?limit=2", {}

    def post_api_projects(self) -> tuple[str, dict[str, Any]]:
        return self._posted("/api/projects", title="p", id=fresh("project"))

    def get_api_goals(self) -> tuple[str, dict[str, Any]]:
        return "/api/goals?status=created&project_id=1&limit=2", {}

    def post_api_goals(self) -> tuple[str, dict[str, Any]]:
        return self._posted("/api/goals", title="g", id=fresh("goal"), brief="b", branch_name="w", project_id=1)

    def get_api_goals_id(self) -> tuple[str, dict[str, Any]]:
        return f"/api/goals/{created(self.owner, 'goals')['id']}?limit=5", {}

    def post_api_goals_id_action(self) -> tuple[str, dict[str, Any]]:
        return self._posted(f"/api/goals/{created(self.owner, 'goals')['id']}/start", reason="r")

    def post_api_tasks(self) -> tuple[str, dict[str, Any]]:
        return self._posted("/api/tasks", title="t", id=fresh("task"), brief="b", project_id="1", goal_id=None)

    def get_api_tasks_id(self) -> tuple[str, dict[str, Any]]:
        return f"/api/tasks/{created(self.owner, 'tasks')['id']}", {}

    def post_api_tasks_id_action(self) -> tuple[str, dict[str, Any]]:
        return f"/api/tasks/{created(self.owner, 'tasks')['id']}/cancel", {}

    def post_api_tokens(self) -> tuple[str, dict[str, Any]]:
        return self._posted("/api/tokens", role="reader", name="r", expires_at="2099-01-01T00:00:00Z")

    def delete_api_tokens_id(self) -> tuple[str, dict[str, Any]]:
        made = self.owner.post("/api/tokens", json={"role": "reader", "name": "r"}).json()
        return f"/api/tokens/{made['id']}", {}

    def get_api_sessions_id(self) -> tuple[str, dict[str, Any]]:
        return f"/api/sessions/{opened(self.owner)[0]}", {}

    def get_api_sessions_id_events(self) -> tuple[str, dict[str, Any]]:
        session_id, _ = opened(self.owner)
        result(self.owner, session_id, "done")
        return f"/api/sessions/{session_id}/events?from=-1&limit=9", {}

    def get_api_loops(self) -> tuple[str, dict[str, Any]]:
        opened(self.owner, agent="ledgerd-loop")
        return "/api/loops?limit=2", {}

    def get_api_loops_id(self) -> tuple[str, dict[str, Any]]:
        return f"/api/loops/{opened(self.owner, agent='ledgerd-loop')[1]}", {}

    def incident(self) -> str:
        """The id of an incident that a sweep has filed."""
        filed = {"register": fresh("register"), "fingerprint": "f", "title": "t", "severity": "LOW"}
        events = [event(0, "sweep.started", filed), event(1, "incident.filed", filed)]
        push(self.owner, opened(self.owner, agent="ledgerd-sweep")[0], events)
        [item] = seen(self.owner, "/api/incidents", register=filed["register"])["items"]
        return str(item["id"])

    def get_api_incidents(self) -> tuple[str, dict[str, Any]]:
        return "/api/incidents?status=open&severity=HIGH&register=r&limit=2", {}

    def get_api_incidents_id(self) -> tuple[str, dict[str, Any]]:
        return f"/api/incidents/{self.incident()}", {}

    def post_api_incidents_id_action(self) -> tuple[str, dict[str, Any]]:
        return self._posted(f"/api/incidents/{self.incident()}/acknowledge", reason="r")

    def get_api_search(self) -> tuple[str, dict[str, Any]]:
        return "/api/search?q=word&limit=5", {}

    def get_api_events(self) -> tuple[str, dict[str, Any]]:
        return "/api/events?limit=5000", {}


@pytest.fixture(scope="module")
def calls(server: Server) -> Calls:
    return Calls(server)


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    validate(document)


def test_it_describes_every_route_and_nothing_else(document: dict[str, Any]) -> None:
    told = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert told == SERVED


def test_it_describes_all_that_was_promised(document: dict[str, Any]) -> None:
    promised = re.findall(r"(GET|POST|DELETE) (\S+)", DESIGNED)
    assert [name for name in promised if name[0].lower() not in document["paths"].get(name[1], {})] == []


def test_what_it_says_of_how_a_token_is_sent_holds(document: dict[str, Any], server: Server) -> None:
    known = document["components"]["securitySchemes"]
    for name in CALLS:
        method, path = name.split(" ")
        schemes = [scheme for one in operation_of(document, name)["security"] for scheme in one]
        assert set(schemes) <= set(known)
        if method == "GET" and schemes and "{" not in path:
            answer = httpx.get(f"{server.url}{path}", auth=("anybody", server.owner_token), trust_env=False)
            assert (answer.status_code != 401) == ("basic" in schemes), name


def test_every_operation_has_a_name_of_its_own(document: dict[str, Any]) -> None:
    names = [operation_of(document, name)["operationId"] for name in sorted(SERVED)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", CALLS)
def test_a_real_request_and_its_answer_are_as_described(document: dict[str, Any], calls: Calls, name: str) -> None:
    operation = operation_of(document, name)
    path, how = calls.of(name)
    if "json" in how:
        assert_valid(document, operation["requestBody"]["content"]["application/json"]["schema"], how["json"])
    answer = calls.owner.request(name.split(" ")[0], path, **how)
    described = operation["responses"][str(answer.status_code)]
    assert answer.status_code < 300
    media = answer.headers.get("content-type", "").partition(";")[0]
    assert set(described.get("content", {"": None})) == {media}
    if media == "application/json":
        assert_valid(document, described["content"][media]["schema"], answer.json())


@pytest.mark.parametrize("name", CALLS)
def test_the_parameters_it_names_are_those_that_are_read(document: dict[str, Any], calls: Calls, name: str) -> None:
    operation = operation_of(document, name)
    told = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
    assert told == set(re.findall(r"{(\w+)}", name))
    for one in operation["parameters"]:
        if one["in"] == "query" and one["name"] in ("limit", "before", "from", "at"):
            path = calls.of(name)[0].partition("?")[0]
            answer = calls.owner.get(path, params={one["name"]: "nonsense"})
            assert answer.status_code == 422, one["name"]


@pytest.mark.parametrize("name", CALLS)
def test_a_refusal_is_described_too(
    document: dict[str, Any], nobody: httpx.Client, saddle: httpx.Client, reader: httpx.Client, name: str
) -> None:
    operation, (method, path) = operation_of(document, name), name.split(" ")
    path = re.sub(r"{\w+}", "none", path)
    if not operation["security"]:
        assert nobody.request(method, path).status_code == 200
        return
    wrong_role = saddle if operation["x-role"] == "reader" else reader
    for client, status in ((nobody, 401), (wrong_role, 403)):
        problem = assert_problem(client.request(method, path), status)
        schema = operation["responses"][str(status)]["content"]["application/problem+json"]["schema"]
        assert_valid(document, schema, problem)


def test_what_is_refused_as_invalid_is_invalid_by_the_document(document: dict[str, Any], owner: httpx.Client) -> None:
    wrong = {
        "POST /api/saddle/chunks": {"session_id": "x"},
        "POST /api/saddle/results": {"session_id": [], "state": "done"},
        "POST /api/saddle/ask": {"wait_s": "5"},
        "POST /api/goals": {"brief": "no title"},
        "POST /api/tokens": {"role": "reader"},
    }
    for name, body in wrong.items():
        assert_problem(owner.post(name.split(" ")[1], json=body), 422, "invalid_field")
        schema = operation_of(document, name)["requestBody"]["content"]["application/json"]["schema"]
        assert not Draft202012Validator({**schema, "components": document["components"]}).is_valid(body)


def test_the_decisions_that_a_goal_offers_lie_under_a_path_it_describes(
    document: dict[str, Any], owner: httpx.Client
) -> None:
    goal = created(owner, "goals")
    for action, offer in goal["actions"].items():
        assert offer == {"method": "POST", "href": f"/api/goals/{goal['id']}/{action}"}
    assert acted(owner, goal, "start")["status"] == "running"
    assert "post" in document["paths"]["/api/goals/{id}/{action}"]
