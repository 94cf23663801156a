"""The route table: what is served, for whom, and what it takes and gives. `/openapi.json` is made of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ledger.events import wire
from ledger.http import (
    incidents,
    incidents_feeds,
    incidents_pages,
    ingest,
    live,
    log,
    loops,
    loops_pages,
    manage,
    ops,
    pages,
    read,
    remediation,
    remediation_pages,
    requests,
    search,
    trends,
)
from ledger.http.auth import OWNER, READER, SADDLE
from projections.remediation.plan import Configuration

Handler = Callable[[Request], Awaitable[Response]]
ANY = "any"
BEARER, BASIC = "bearer", "basic"
SCHEMES = {
    BEARER: {"type": "http", "scheme": "bearer"},
    BASIC: {
        "type": "http",
        "scheme": "basic",
        "description": "The token is the password; the name is not looked at.",
    },
}


class Endpoint(msgspec.Struct, frozen=True):
    """One route. `who` is the role it takes (an owner may do all), `body` the type of its request, `answers` the type
    of the body for each good status (None: an object that the summary describes; "": no body), `query` its
    parameters, each with what it means, `schemes` how a token may be sent, of SCHEMES."""

    method: str
    path: str
    who: str
    handler: Handler
    summary: str
    body: Any = None
    answers: dict[int, Any] = msgspec.field(default_factory=lambda: {200: None})
    query: dict[str, str] = {}
    media: str = "application/json"
    schemes: tuple[str, ...] = (BEARER,)


_FILTERS = {
    "status": "only those in this status",
    "project_id": "only those of this project",
    "limit": "how many at most, up to 1000",
    "after": "`next` of the page before",
}
_STORY = {
    "at": "a cursor: how it stood then",
    "before": "`older` of another answer: the rows before those",
    "limit": "how many rows at most, up to 1000",
}
_INCIDENTS = {
    "status": "only open, acknowledged, resolved, or unresolved",
    "severity": "only HIGH, MEDIUM or LOW",
    "register": "only those of this register",
    "limit": "how many at most, up to 200",
    "after": "`next` of the page before",
}
_SEARCH = {
    "q": 'words that must all occur, or "words side by side"; the last may be the beginning of one',
    "kind": "only remark, summary, prompt, command, question or error",
    "project_id": "only in this project",
    "goal_id": "only in this goal",
    "agent": "only what sessions of this agent said",
    "host": "only what sessions on this host said",
    "status": "only in tasks, or goals, that stand in this status now",
    "since": "only from this instant, or the start of this date, on",
    "until": "only up to this instant, or the end of this date",
    "limit": "how many at most, up to 200",
    "after": "`next` of the page before",
}

# Matched from the top: what daemons push most stands first.
API = (
    Endpoint("POST", "/api/saddle/chunks", SADDLE, ingest.push_chunk, "Pushes events of one session.", wire.ChunkIn,
             {200: wire.ChunkReceipt}),
    Endpoint("POST", "/api/saddle/ask", SADDLE, ingest.ask, "Waits for work and claims one queued task.", wire.AskIn,
             {200: None, 204: ""}),
    Endpoint("POST", "/api/saddle/sessions", SADDLE, ingest.open_session, "Opens a session.", wire.OpenIn,
             {201: None, 200: None}),
    Endpoint("POST", "/api/saddle/results", SADDLE, ingest.push_result, "Pushes the state of a session.",
             wire.ResultIn, {200: wire.ResultReceipt}),
    Endpoint("POST", "/api/saddle/heartbeat", SADDLE, ingest.heartbeat, "Says that the saddle is alive.",
             wire.HeartbeatIn, {204: ""}),
    Endpoint("GET", "/api/saddle/requests", SADDLE, requests.loop_requests, "What owners asked of a loop.", None,
             {200: wire.RequestsOut},
             {"session_id": "the loop's session", "after": "the seq of the last request that was heard"}),
    Endpoint("POST", "/api/projects", OWNER, manage.create_project, "Creates a project.", wire.ProjectIn,
             {201: None, 200: None}),
    Endpoint("POST", "/api/goals", OWNER, manage.create_goal, "Creates a goal.", wire.GoalIn, {201: None, 200: None}),
    Endpoint("POST", "/api/tasks", OWNER, manage.create_task, "Creates a task and queues it.", wire.NewTaskIn,
             {201: None, 200: None}),
    Endpoint("POST", "/api/goals/{id}/{action}", OWNER, manage.decide_goal,
             "Decides about a goal: start, cancel or reopen, as its `actions` offer.", wire.DecisionIn),
    Endpoint("POST", "/api/tasks/{id}/{action}", OWNER, manage.decide_task,
             "Decides about a task: requeue, cancel, block, unblock, or halt and resume where it is a loop, as its"
             " `actions` offer.", wire.DecisionIn),
    Endpoint("POST", "/api/loops/{id}/{action}", OWNER, requests.decide_loop,
             "Asks the runner of a loop, named by its task, to halt or to resume.", wire.DecisionIn),
    Endpoint("POST", "/api/resource-remediation/start", OWNER, remediation.start_run,
             "Starts a run of a plan; one is active at a time.", wire.RemediationStartIn, {201: None}),
    Endpoint("POST", "/api/resource-remediation/resume", OWNER, remediation.resume_run,
             "Goes on with the run that is blocked.", wire.RemediationResumeIn),
    Endpoint("POST", "/api/resource-remediation/approve", OWNER, remediation.approve_run,
             "Grants what the blocked run waits for.", wire.ApproveIn),
    Endpoint("POST", "/api/resource-remediation/configuration", OWNER, remediation.configure_remediation,
             "Publishes the names that plans may use.", Configuration),
    Endpoint("GET", "/api/resource-remediation", OWNER, remediation.current_run,
             "The run that is active, else the newest; NOT_STARTED where there is none.",
             query={"brief": "`true`: only where the run stands, and whether it is active"}),
    Endpoint("GET", "/api/resource-remediation/{id}", OWNER, remediation.one_run, "A run by its id."),
    Endpoint("POST", "/api/tokens", OWNER, manage.create_token, "Makes a token, shown this once.", wire.TokenIn,
             {201: None}),
    Endpoint("GET", "/api/tokens", OWNER, manage.list_tokens, "Lists tokens, without their texts."),
    Endpoint("DELETE", "/api/tokens/{id}", OWNER, manage.revoke_token, "Revokes a token.", None, {204: ""}),
    Endpoint("GET", "/api/projects", READER, read.projects, "Lists projects.",
             query={name: _FILTERS[name] for name in ("limit", "after")}),
    Endpoint("GET", "/api/goals", READER, read.goals, "Lists goals, the newest first.", query=_FILTERS),
    Endpoint("GET", "/api/goals/{id}", READER, read.goal, "A goal and its narrative.", query=_STORY),
    Endpoint("GET", "/api/tasks", READER, read.tasks, "Lists tasks, the newest first.", query=_FILTERS),
    Endpoint("GET", "/api/tasks/{id}", READER, read.task, "A task and its narrative.", query=_STORY),
    Endpoint("GET", "/api/sessions/{id}/events", READER, log.session_events, "The events of a session in seq order.",
             None, {200: log.SessionEvents},
             {"from": "the first seq", "before": "the seqs below this one", "limit": "how many, up to 5000"}),
    Endpoint("GET", "/api/sessions/{id}", READER, read.session, "A session, and how whole it is."),
    Endpoint("GET", "/api/fleet", READER, read.fleet, "What needs a person, what failed, what is silent, what runs."),
    Endpoint("GET", "/api/loops", READER, loops.loops, "Lists loops, the newest first.",
             query={"limit": "how many at most, up to 200", "after": _FILTERS["after"]}),
    Endpoint("GET", "/api/loops/{id}", READER, loops.loop, "A loop by its task or its name, with its rounds.",
             query={"rounds": "how many of the newest rounds, up to 1000"}),
    Endpoint("GET", "/api/incidents", READER, incidents.incidents,
             "Lists incidents, the worst first, with the state of their registers.", query=_INCIDENTS),
    Endpoint("GET", "/api/incidents/{id}", READER, incidents.incident, "An incident, and all that is behind it."),
    Endpoint("POST", "/api/incidents/{id}/{action}", OWNER, incidents.decide_incident,
             "Decides about an incident: acknowledge, resolve or reopen, as its `actions` offer.", wire.DecisionIn),
    Endpoint("GET", "/incidents.json", READER, incidents_feeds.incidents_json,
             "The newest incidents as JSON Feed 1.1.", media=incidents_feeds.JSON_FEED, schemes=(BEARER, BASIC)),
    Endpoint("GET", "/incidents.atom", READER, incidents_feeds.incidents_atom,
             "The newest incidents as Atom.", media=incidents_feeds.ATOM, schemes=(BEARER, BASIC)),
    Endpoint("GET", "/api/search", READER, search.search, "Finds what was said, the newest first.", query=_SEARCH),
    Endpoint("GET", "/api/events", READER, log.feed, "The log in position order.", None, {200: log.Feed},
             {"after": "a cursor", "limit": "how many, up to 5000"}),
    Endpoint("GET", "/api/live", READER, live.live, "Server-sent events that say which roots have moved.", None,
             {200: None}, {"root": "only this root; may be repeated", "after": "a cursor, as Last-Event-ID"},
             "text/event-stream"),
    Endpoint("GET", "/healthz", ANY, ops.healthz, "The process is alive."),
    Endpoint("GET", "/readyz", ANY, ops.readyz, "The store answers."),
    Endpoint("GET", "/metrics", READER, ops.metrics, "Counters in the Prometheus text format.", media="text/plain"),
    Endpoint("GET", "/openapi.json", ANY, ops.openapi, "This description."),
)  # fmt: skip

PAGES = (
    ("GET", "/", pages.home),
    ("GET", "/goals", pages.goals),
    ("GET", "/goals/{id}", pages.goal),
    ("POST", "/goals/{id}/{action}", pages.decide_goal),
    ("GET", "/tasks", pages.tasks),
    ("GET", "/tasks/{id}", pages.task),
    ("POST", "/tasks/{id}/{action}", pages.decide_task),
    ("GET", "/sessions/{id:path}", pages.session),
    ("GET", "/loops", loops_pages.loops),
    ("GET", "/loops/{id}", loops_pages.loop),
    ("POST", "/loops/{id}/{action}", loops_pages.ask_loop),
    ("GET", "/runs", remediation_pages.runs),
    ("GET", "/runs/{id}", remediation_pages.run),
    ("POST", "/runs/{id}/resume", remediation_pages.resume_run),
    ("POST", "/runs/{id}/approve", remediation_pages.approve_run),
    ("GET", "/incidents", incidents_pages.incidents),
    ("GET", "/incidents/{id}", incidents_pages.incident),
    ("POST", "/incidents/{id}/{action}", incidents_pages.decide_incident),
    ("GET", "/search", search.search_page),
    ("GET", "/trends", trends.trends_page),
    ("GET", "/trends/{name}.csv", trends.trends_csv),
    ("GET", "/login", pages.login_form),
    ("POST", "/login", pages.login),
    ("POST", "/logout", pages.logout),
)
