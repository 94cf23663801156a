"""A random walk over everything that can happen to a run; after each, what the spec promises must hold."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from ledger.events.content import payload_object
from projections.remediation import words
from projections.remediation.evolving import RUN
from projections.remediation.state import Prompt, Run
from tests.sim.remediation.world import Host, World, decide_as_owner, deliver_again

WALKS = 300
STEPS_MAX = 70


@pytest.mark.parametrize("part", range(3))
def test_whatever_happens_the_promises_hold(part: int) -> None:
    reached: Counter[str] = Counter()
    for seed in range(part * WALKS // 3, (part + 1) * WALKS // 3):
        try:
            world = walk(seed)
            judge(world)
        except Exception as error:
            raise AssertionError(f"the walk of seed {seed} broke a promise: {error}") from error
        reached.update({event.kind for event in world.stream} | {world.run().status})
    missing = EVERYTHING - reached.keys()
    assert not missing, f"no walk came to {missing}"


EVERYTHING = {
    words.COMPLETED,
    words.BLOCKED,
    words.RUN_RESUMED,
    words.REVIEW_RESTARTED,
    words.REPAIR_BEGUN,
    words.REPAIR_RESUMED,
    words.REPAIR_NEEDS_USER,
    words.REPAIR_RESOLVED,
    words.OWNER_APPROVED,
    words.STEP_APPROVED,
    words.LEASE_TAKEN,
}


def walk(seed: int) -> World:
    chance = Random(seed)
    world = World(chance, tool=chance.random() < 0.8)
    world.kill_chance = chance.choice([0.0, 0.02, 0.06])
    hosts = [Host(world, "one"), Host(world, "two")]
    for _ in range(STEPS_MAX):
        host, other = chance.sample(hosts, 2)
        if chance.random() < 0.3:
            world.between = chance.choice([other.tick, lambda: decide_as_owner(world)])
        luck = chance.random()
        if luck < 0.80:
            host.tick()
        elif luck < 0.88:
            deliver_again(world)
        elif luck < 0.92:
            world.now += 31 * 10**9
        elif world.run().status == words.BLOCKED:
            decide_as_owner(world)
        if world.run().status == words.COMPLETED:
            break
    world.kill_chance = 0
    return world


def judge(world: World) -> None:
    run = world.run()
    plan_stays(run)
    attempts_are_dispatches(world, run)
    no_turn_is_started_twice(world)
    one_reply_moves_once(world)
    only_the_master_completes_a_step(world)
    bounds_hold(world, run)
    conversations_stay(run)
    one_runner_at_a_time(world)
    assert RUN.decode(RUN.encode(run)) == run


def plan_stays(run: Run) -> None:
    stands = [(one.step.id, one.step.order, one.step.target, one.step.risk) for one in run.steps]
    assert stands == [("s1", 1, "Alpha", "code"), ("s2", 2, "beta", "code"), ("s3", 3, "Alpha", "code")]
    order = [one.status == words.APPROVED for one in run.steps]
    assert order == sorted(order, reverse=True), "a step was approved before the one ahead of it"


def attempts_are_dispatches(world: World, run: Run) -> None:
    """An attempt is a prompt to the step's agent; each was started at most once, and left unstarted only where the
    run was blocked, or ended, before it came to that."""
    for progress in run.steps:
        sent = [one for one in run.prompts.values() if one.role == words.WORKER and one.step == progress.step.id]
        assert progress.attempts == len(sent)
        unstarted = [one for one in sent if one.started_at is None and one.queue_id != run.active]
        crashes = [event for event in run.events if event.payload.get("cause") == words.BY_CRASH]
        assert len(unstarted) <= len(crashes)


def no_turn_is_started_twice(world: World) -> None:
    """Interrupted work is never replayed silently: a prompt is given to an agent once, whatever dies."""
    starts = Counter(prompt.queue_id for prompt in world.started)
    assert not [queue_id for queue_id, count in starts.items() if count > 1]
    for before, after in interrupted_work(world):
        assert after in (None, words.RUN_BLOCKED), f"{before} was interrupted, then came {after}"


def interrupted_work(world: World) -> list[tuple[str, str | None]]:
    """For each agent's turn that was interrupted while it was awaited: the decision that followed."""
    found = []
    run = Run()
    for number, event in enumerate(world.stream):
        before, run = run, RUN.evolve(run, event)
        prompt = before.active_prompt
        answered = run.prompts.get(prompt.queue_id) if prompt is not None else None
        if prompt is None or answered is None or prompt.role != words.WORKER or prompt.reply is not None:
            continue
        if answered.reply is not None and answered.reply.status == words.INTERRUPTED:
            found.append((prompt.queue_id, decision_after(world, number)))
    return found


def decision_after(world: World, number: int) -> str | None:
    told = (words.LEASE_TAKEN, words.LEASE_RELEASED, words.TURN_FINISHED)
    return next((event.kind for event in world.stream[number + 1 :] if event.kind not in told), None)


def one_reply_moves_once(world: World) -> None:
    """Each prompt was the active one in one stretch, and left by one decision."""
    left: Counter[str] = Counter()
    run = Run()
    for event in world.stream:
        before, run = run.active, RUN.evolve(run, event)
        if before is not None and run.active != before:
            left[before] += 1
    assert not [queue_id for queue_id, count in left.items() if count > 1]
    judged = Counter(event.payload["queue_id"] for event in run.events if event.kind == words.VERDICT)
    assert not [queue_id for queue_id, count in judged.items() if count > 1]


def one_runner_at_a_time(world: World) -> None:
    """Whoever decides has the lease; it is taken from another only once it has expired. A reply is told by whoever
    has it."""
    run = Run()
    for event in world.stream:
        before, run = run, RUN.evolve(run, event)
        runner = payload_object(event.payload).get("runner")
        lease = before.lease
        if runner is None or event.kind in (words.TURN_FINISHED, words.LEASE_RELEASED) or before.ended_at:
            continue
        if event.kind == words.LEASE_TAKEN:
            assert lease is None or lease.runner == runner or lease.expires_at <= event.recorded_at
        elif run.is_active:
            assert lease is not None
            assert lease.runner == runner, f"{runner} decided {event.kind} under the lease of {lease.runner}"


def only_the_master_completes_a_step(world: World) -> None:
    """Whatever the owner grants and a repair says: each approval stands beside the master's own."""
    run = world.run()
    approved = [event.payload for event in run.events if event.kind == words.STEP_APPROVED]
    for payload in approved:
        prompt = run.prompts[payload["queue_id"]]
        assert (prompt.role, prompt.stage, prompt.step) == (words.MASTER, words.SUPERVISOR, payload["step"])
        assert prompt.reply is not None
        assert '"decision": "approve"' in prompt.reply.content.splitlines()[-1]
    assert len(approved) == len({payload["step"] for payload in approved})


def bounds_hold(world: World, run: Run) -> None:
    for progress in run.steps:
        assert progress.correction_round <= run.rules.correction_rounds_max
        assert progress.repairs <= run.rules.repairs_max
        assert progress.restarts <= run.rules.review_restarts_max
    assert run.run_repairs <= run.rules.repairs_max
    if run.status == words.BLOCKED:
        assert run.error
        assert run.active is None or run.prompts[run.active].role == words.REPAIR
    if run.status == words.COMPLETED:
        assert {one.status for one in run.steps} == {words.APPROVED}


def conversations_stay(run: Run) -> None:
    places: dict[str, set[tuple[str, str]]] = {}
    for prompt in run.prompts.values():
        places.setdefault(prompt.conversation, set()).add((prompt.project, prompt.role))
        progress = run.progress(prompt.step)
        if prompt.role == words.WORKER and progress is not None:
            assert (prompt.conversation, prompt.project) == (progress.conversation, progress.project)
    assert all(len(where) == 1 for where in places.values()), places
    assert not [one for one in _masters(run) if one.conversation != "master"]


def _masters(run: Run) -> list[Prompt]:
    return [one for one in run.prompts.values() if one.role == words.MASTER]
