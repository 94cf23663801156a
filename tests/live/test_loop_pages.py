"""What a real runner did, as the server tells it; and what an owner asks there, as the runner hears it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from ledger.client.saddle import Saddle
from ledger.daemons.loop import handling
from ledger.daemons.loop.folders import LoopFolder
from ledger.daemons.loop.ticking import Summary, tick
from tests.live.serving import OWNER_TOKEN, Server, seen
from tests.live.test_loop import Project

SENT_S_MAX = 30.0


class Runner:
    """The runner of the loop of a project, within this process. Whatever it says has reached the server."""

    def __init__(self, project: Project, url: str) -> None:
        self.folder = LoopFolder(project.folder, "l")
        self._url = url

    @contextmanager
    def saddle(self) -> Iterator[Saddle]:
        with Saddle(self._url, OWNER_TOKEN, outbox=self.folder.outbox) as saddle:
            yield saddle
            assert saddle.flush(SENT_S_MAX)

    def tick(self) -> Summary:
        return tick(self.folder, self.saddle, threading.Event())


def test_what_an_owner_asks_on_the_page_is_pending_until_the_runner_has_taken_it(
    tmp_path: Path, server: Server, owner: httpx.Client
) -> None:
    project = Project(tmp_path, server.url)
    project.configure(brakes={"max_iterations": 9, "stop_on_pass": True})
    runner = Runner(project, server.url)
    assert runner.tick().iter == 1
    task_id = handling.look(
        runner.folder, lambda: Saddle(server.url, outbox=runner.folder.outbox, drain=False)
    ).task_id
    path = f"/api/loops/{task_id}"
    told = seen(owner, path)
    assert (told["name"], told["held_by"], list(told["actions"])) == ("l", "passed", ["resume", "halt"])
    assert [(one["outcome"], len(one["roles"])) for one in told["rounds"]] == [("passed", 2)]
    assert "Round 1" in owner.get(f"/loops/{task_id}", headers={"Accept": "text/html"}).text
    assert owner.post(f"{path}/resume").status_code == 200
    assert [one["action"] for one in seen(owner, path)["requests"]] == ["resume"]
    assert runner.tick().iter == 2  # it was resumed, so that what had passed holds it no more
    told = seen(owner, path)
    assert (told["iteration_count"], told["requests"]) == (2, [])
    assert owner.post(f"{path}/halt", json={"reason": "look at this"}).status_code == 200
    assert runner.tick().reason == "halted:human_intervention"
    told = seen(owner, path)
    assert (told["status"], told["requests"], list(told["actions"])) == ("halted", [], ["resume"])
    assert "look at this" in told["halt"]["detail"]
