"""Remediation over live servers: one run is active however many servers start one, and it stands over a restart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bundles.rig.deadline import Deadline
from bundles.rig.server import Server as StoreServer
from ledger.client.api import Api, ApiError
from projections.remediation import facts, words
from projections.remediation.facts import Fact
from projections.remediation.state import Reply
from tests.live.serving import OWNER_TOKEN, running
from tests.postgres import TestLedgers

CONFIGURATION = {"projects": [{"name": "master"}, {"name": "parser"}], "master": "master"}
PLAN = [{"id": "s1", "order": 1, "target": "Parser", "title": "Mend it", "prompt": "Mend it.", "risk": "code"}]


def test_of_starts_at_two_servers_of_one_postgres_exactly_one_is_made(postgres: TestLedgers, tmp_path: Path) -> None:
    url = postgres.fresh(buckets=7)
    with ExitStack() as stack:
        apis = []
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            server = StoreServer(url, tmp_path / name, Deadline(60), owner_token=OWNER_TOKEN)
            server.start()
            stack.callback(server.close)
            apis += [stack.enter_context(Api(server.url, OWNER_TOKEN)) for _ in range(3)]
        apis[0].configure_remediation(CONFIGURATION)
        pool = stack.enter_context(ThreadPoolExecutor(len(apis)))
        for _ in range(3):
            outcomes = list(pool.map(_start, apis))
            [run_id] = [outcome for outcome in outcomes if not outcome.startswith("run_conflict")]
            assert {api.remediation()["run_id"] for api in apis} == {run_id}
            apis[-1].decide("task", run_id, "cancel")
        assert len(apis[0].tasks()["items"]) == 3


def _start(api: Api) -> str:
    """The id of the run that was started, or the code of the refusal."""
    try:
        return str(api.start_remediation(PLAN)["run_id"])
    except ApiError as error:
        return error.code


def test_a_run_stands_over_a_crash_of_its_server_and_ends_as_it_would_have(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        with Api(server.url, OWNER_TOKEN) as api:
            api.configure_remediation(CONFIGURATION)
            run = api.start_remediation(PLAN)
            reply = facts.turn_finished("q1", Reply(words.DONE, "It cannot be."))
            verdict = facts.verdict("q1", None, words.BLOCK, "It cannot be", 0)
            block = facts.run_blocked(
                words.PLAN_REVIEW, None, words.BY_VERDICT, "It cannot be", interrupted=False, repair="not_configured"
            )
            seq = _append(api, run["run_id"], run["last_seq"], [reply, verdict, *block])
        server.kill()
        server.start()
        with Api(server.url, OWNER_TOKEN) as api:
            told = api.remediation()
            assert (told["run_id"], told["status"], told["error"]) == (run["run_id"], "BLOCKED", "It cannot be")
            assert [item["run_id"] for item in api.fleet()["needs_you"]] == [run["run_id"]]
            with pytest.raises(ApiError) as refused:
                api.start_remediation(PLAN)
            assert (refused.value.status, refused.value.code) == (409, "run_conflict")
            resumed = api.resume_remediation()
            assert (resumed["stage"], resumed["last_seq"]) == ("PLAN_REVIEW", seq + 3)
            with pytest.raises(ApiError) as late:
                _append(api, run["run_id"], seq, facts.run_completed(1))
            assert (late.value.code, late.value.problem["last_seq"]) == ("stream_moved", seq + 3)
            _append(api, run["run_id"], resumed["last_seq"], facts.run_completed(1))
            assert api.remediation()["status"] == "COMPLETED"
            assert api.task(run["run_id"])["status"] == "done"


def _append(api: Api, run_id: str, seen: int, decided: list[Fact]) -> int:
    """Appends what a runner decided, behind what it has seen; where the run stands then."""
    events: list[dict[str, Any]] = [
        {"seq": seen + n, "kind": fact.kind, "actor": "runner", "payload": {**fact.payload, "runner": "r1"}}
        for n, fact in enumerate(decided, 1)
    ]
    return int(api.push(run_id, events, expected_seq=seen)["high_seq"])
