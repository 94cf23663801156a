"""A runner's ticks, on a stream in memory and with agents that say what they are told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest

from ledger.client.api import ApiError
from ledger.daemons.remediation.runner import NO_COMMIT, Stopping
from ledger.errors import StreamMoved
from projections.remediation import facts, owner, words
from projections.remediation.facts import Fact
from projections.remediation.state import Prompt, Reply
from tests.sim.remediation.world import APPROVE, BLOCK, SECOND, Host, World


class Told(World):
    """A world without chance: every agent approves, unless told otherwise."""

    def __init__(self, *, tool: bool = False) -> None:
        super().__init__(Random(1), tool=tool)
        self.says: Callable[[Prompt], Reply] = lambda prompt: Reply(words.DONE, APPROVE)
        self.before_append: Callable[[Sequence[Fact]], None] = lambda decided: None
        self.broken = False

    def work(self, prompt: Prompt, stop: Stopping) -> Reply:
        self.started.append(prompt)
        return self.says(prompt)

    def append(self, run_id: str, decided: Sequence[Fact], expected_seq: int) -> None:
        self.before_append(decided)
        super().append(run_id, decided, expected_seq)

    def maybe_kill(self) -> None:
        pass


class Project(Host):
    def folder(self, project: str) -> object:  # type: ignore[override]
        if getattr(self._world, "broken", False):
            raise KeyError(f"token=ghp_{'a' * 36} of {project}")
        return project


def kinds(world: World, since: int = 0) -> list[str]:
    return [event.kind for event in world.stream[since:]]


def test_a_tick_takes_the_lease_starts_the_turn_tells_the_reply_and_moves() -> None:
    world = Told()
    since = len(world.stream)
    assert Project(world, "one").tick() == "processed"
    assert kinds(world, since) == [
        "lease.taken",
        "turn.started",
        "turn.finished",
        "supervision.verdict",
        "prompt.enqueued",
    ]


def test_a_second_tick_within_a_third_of_the_lease_does_not_renew_it() -> None:
    world = Told()
    host = Project(world, "one")
    host.tick()
    since = len(world.stream)
    host.tick()
    assert "lease.taken" not in kinds(world, since)
    world.now += 11 * SECOND
    host.tick()
    assert "lease.taken" in kinds(world, since)


def test_a_runner_that_leaves_gives_its_lease_back_and_the_next_need_not_wait() -> None:
    world = Told()
    one, two = Project(world, "one"), Project(world, "two")
    one.tick()
    assert two.tick() == "waiting"
    one.runner.leave()
    assert two.tick() == "processed"


def test_a_completed_run_leaves_nothing_to_do() -> None:
    world = Told()
    host = Project(world, "one")
    results = [host.tick() for _ in range(9)]
    assert results == ["processed"] * 8 + ["idle"]
    assert world.run().status == "COMPLETED"
    host.runner.leave()
    assert kinds(world)[-1] == "result"


def test_an_exception_blocks_with_its_text_and_without_the_secrets_in_it() -> None:
    world = Told()
    world.broken = True
    assert Project(world, "one").tick() == "blocked"
    assert "KeyError" in str(world.run().error)
    assert "of Platform" in str(world.run().error)
    assert "ghp_" not in str(world.run().error)


def test_what_the_server_will_never_take_blocks_the_run() -> None:
    world = Told()

    def refuse(decided: Sequence[Fact]) -> None:
        if decided[0].kind == words.VERDICT:
            raise ApiError(422, "payload_too_large", "an event of 5 MiB", "")

    world.before_append = refuse
    assert Project(world, "one").tick() == "blocked"
    assert "an event of 5 MiB" in str(world.run().error)


@pytest.mark.parametrize("status", [None, 401, 404, 429, 503])
def test_a_server_that_is_away_or_lets_nobody_in_blocks_nothing(status: int | None) -> None:
    world = Told()

    def refuse(_: Sequence[Fact]) -> None:
        raise ApiError(status, "away", "it is away", "")

    world.before_append = refuse
    with pytest.raises(ApiError, match="away"):
        Project(world, "one").tick()
    assert world.run().status == "RUNNING"


def test_of_two_runners_who_saw_the_same_one_moves_the_run() -> None:
    world = Told()
    one, two = Project(world, "one"), Project(world, "two")

    def two_comes_first(decided: Sequence[Fact]) -> None:
        if decided[0].kind == words.LEASE_TAKEN:
            world.before_append = lambda _: None
            two.tick()

    world.before_append = two_comes_first
    assert one.tick() == "waiting"
    assert len(world.started) == 1
    assert kinds(world).count("supervision.verdict") == 1


def test_a_stream_that_never_stands_still_is_given_up() -> None:
    world = Told()
    world.before_append = lambda _: world.put([facts.lease_released("nobody")])
    with pytest.raises(StreamMoved):
        Project(world, "one").tick()


def test_a_runner_that_is_asked_to_stop_starts_no_turn() -> None:
    world = Told()
    host = Project(world, "one")
    host.runner._stop = Asked()
    assert host.tick() == "waiting"
    assert world.started == []


def test_the_owner_decides_while_a_repair_is_at_work_and_its_reply_moves_nothing() -> None:
    world = Told(tool=True)
    world.says = lambda prompt: Reply(words.DONE, BLOCK)
    host = Project(world, "one")
    host.tick()

    def resumed(prompt: Prompt) -> Reply:
        decided = owner.resume(world.run(), "owner")
        assert isinstance(decided, list)
        world.put(decided)
        return Reply(words.DONE, 'LEDGERD_SELF_REPAIR {"decision": "fixed"}')

    world.says = resumed
    assert host.tick() == "waiting"
    run = world.run()
    assert (run.status, run.stage) == ("RUNNING", "PLAN_REVIEW")
    assert run.repair is not None
    assert run.repair.status == "SUPERSEDED"


class Asked:
    def is_set(self) -> bool:
        return True


def test_a_review_is_told_where_git_cannot_say_what_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Told()
    host = Project(world, "one")
    monkeypatch.setattr(host, "head", lambda folder: None)
    while (prompt := host.runner.run.active_prompt) is None or prompt.stage != words.SUPERVISOR:
        assert host.tick() == "processed"
    assert NO_COMMIT in prompt.text
