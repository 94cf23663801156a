"""The trends of a server: what is pushed shows in the tables behind the plots, over a restart too."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.serving import assert_problem, created, event, opened, push, result, running

SHOWN_S_MAX = 60.0
NAMES = ("sessions", "cost", "time-to-done", "deliveries", "week")

Rows = list[dict[str, str]]


def table(reader: httpx.Client, name: str, **query: Any) -> Rows:
    answer = reader.get(f"/trends/{name}.csv", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


def until(reader: httpx.Client, name: str, fits: Callable[[Rows], bool]) -> Rows:
    """The table as soon as it fits: trends follow the log a moment behind."""
    deadline = time.monotonic() + SHOWN_S_MAX
    while not fits(rows := table(reader, name)):
        assert time.monotonic() < deadline, rows
        time.sleep(0.05)
    return rows


def total(rows: Rows, name: str) -> int:
    return sum(int(row[name]) for row in rows)


def test_usage_shows_by_project_and_model_with_its_cost(
    owner: httpx.Client, reader: httpx.Client, saddle: httpx.Client
) -> None:
    project_id = created(owner, "projects", title="=2+2")["id"]
    task = {"title": "t", "project_id": project_id}
    usage = {"message_id": "m", "model": "gpt-5", "input_tokens": 10**6, "output_tokens": 0}
    session_id, _ = opened(saddle, task=task)
    push(saddle, session_id, [event(0, "usage", usage), event(1, "usage", usage)])
    push(saddle, session_id, [event(2, "usage", {"message_id": "n", "model": "=cmd", "cost_usd": 2})])
    rows = until(reader, "cost", lambda rows: len([row for row in rows if row["project_id"] == project_id]) == 2)
    mine = {row["model"]: row for row in rows if row["project_id"] == project_id}
    assert mine["gpt-5"]["input_tokens"] == "1000000"
    assert float(mine["gpt-5"]["cost_usd"]) > 0
    assert mine["gpt-5"]["cost_estimated"] == "True"
    assert (mine["'=cmd"]["cost_usd"], mine["'=cmd"]["cost_estimated"]) == ("2.0", "False")


def test_a_view_says_what_usage_costs_and_what_has_no_price(reader: httpx.Client, saddle: httpx.Client) -> None:
    session_id, task_id = opened(saddle, model="house-model")
    push(saddle, session_id, [event(0, "usage", {"message_id": "a", "input_tokens": 5})])
    push(saddle, session_id, [event(1, "usage", {"message_id": "b", "input_tokens": 5, "model": "gpt-5"})])
    for path in (f"/api/tasks/{task_id}", f"/api/sessions/{session_id}"):
        usage = reader.get(path).json()["usage"]
        assert usage["input_tokens"] == 10
        assert 0 < usage["cost_usd"] < 0.001
        assert (usage["cost_estimated"], usage["unpriced_models"]) == (True, ["house-model"])
    html = reader.get(f"/tasks/{task_id}", headers={"Accept": "text/html"}).text
    assert "No price is known for <bdi>house-model</bdi>" in html


def test_deliveries_count_beside_their_duplicates(reader: httpx.Client, other_saddle: httpx.Client) -> None:
    session_id, _ = opened(other_saddle)
    for _ in range(3):
        push(other_saddle, session_id, [event(0), event(1)])
    [row] = [row for row in table(reader, "deliveries") if row["saddle"] == "bellows"]
    assert (row["events"], row["deliveries"], row["duplicates"]) == ("3", "3", "4")


def test_trends_outlive_a_stop_and_a_crash_and_count_nothing_twice(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        saddle = server.saddle("anvil")
        for state in ("done", "failed"):
            session_id, _ = opened(saddle)
            result(saddle, session_id, state)
            result(saddle, session_id, state)
        until(server.client(), "sessions", lambda rows: total(rows, "failed") == 1)
        for end in (server.stop, server.kill):
            end()
            server.start()
            rows = until(server.client(), "sessions", lambda rows: total(rows, "failed") == 1)
            assert (total(rows, "sessions"), total(rows, "done")) == (2, 1)
        assert total(table(server.client(), "week"), "events") == 4


@pytest.mark.parametrize("name", NAMES)
def test_each_plot_stands_on_the_page_with_its_table(reader: httpx.Client, name: str) -> None:
    html = reader.get("/trends?days=7", headers={"Accept": "text/html"}).text
    assert f'<figure id="{name}">' in html
    assert f'href="/trends/{name}.csv?days=7"' in html
    assert "style=" not in html


def test_days_are_as_many_as_are_asked_for(reader: httpx.Client) -> None:
    assert len(table(reader, "sessions", days=7)) == 7
    assert len(table(reader, "sessions")) == 30
    assert assert_problem(reader.get("/trends/sessions.csv?days=366"), 422)["field"] == "days"


def test_what_there_is_no_plot_of_is_not_found(reader: httpx.Client) -> None:
    assert_problem(reader.get("/trends/weather.csv"), 404)


def test_trends_take_a_token(nobody: httpx.Client, saddle: httpx.Client) -> None:
    assert_problem(nobody.get("/trends/cost.csv"), 401)
    assert_problem(saddle.get("/trends/cost.csv"), 403)


def test_a_goal_says_what_each_of_its_tasks_cost(owner: httpx.Client, saddle: httpx.Client) -> None:
    goal_id = created(owner, "goals")["id"]
    session_id, task_id = opened(saddle, task={"title": "t", "goal_id": goal_id})
    push(saddle, session_id, [event(0, "usage", {"message_id": "a", "model": "gpt-5", "output_tokens": 10**5})])
    goal = owner.get(f"/api/goals/{goal_id}").json()
    [task] = goal["tasks"]
    assert task["usage"] == goal["usage"]
    assert (task["usage"]["cost_usd"], task["usage"]["cost_estimated"]) == (pytest.approx(1.0, rel=0.9), True)
    [session] = owner.get(f"/api/tasks/{task_id}").json()["sessions"]
    assert session["usage"] == goal["usage"]
    assert "about $" in owner.get(f"/goals/{goal_id}", headers={"Accept": "text/html"}).text
