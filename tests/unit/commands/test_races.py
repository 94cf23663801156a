"""Commands over a store that many use at once: every race has one winner, and the losers hear the truth."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from ledger.commands.decisions import Decisions
from ledger.commands.sessions import SessionCommands
from ledger.errors import IdTaken, NotFound, NotOffered, SessionElsewhere
from ledger.events.model import goal_root
from ledger.events.wire import AskIn, GoalIn, NewTaskIn, OpenIn, ProjectIn, TaskIn
from ledger.reader import Reader
from ledger.store.base import Appended, Write
from ledger.store.memory import MemoryStore

OWNER = "owner"


class SlowStore(MemoryStore):
    """A store whose appends take a while, as those of a disk do: what was read before may have moved."""

    async def append(self, writes: Sequence[Write]) -> Appended:
        await asyncio.sleep(0)
        return await super().append(writes)


class Ledger:
    def __init__(self) -> None:
        self.store = SlowStore()
        self.reader = Reader(self.store)
        numbering = asyncio.Lock()
        self.decisions = Decisions(self.store, self.reader, numbering)
        self.sessions = SessionCommands(self.store, self.reader, numbering)

    async def task(self, task_id: str | None = None) -> str:
        return (await self.decisions.create_task(NewTaskIn("Mend it", id=task_id), OWNER))[0]

    async def goal(self) -> str:
        return (await self.decisions.create_goal(GoalIn("Port it"), OWNER))[0]


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def kinds_of(outcomes: Sequence[object]) -> Counter[str]:
    return Counter(type(outcome).__name__ for outcome in outcomes)


async def test_fifty_starts_of_one_goal_make_one_run_task(ledger: Ledger) -> None:
    goal_id = await ledger.goal()
    starts = [ledger.decisions.about_goal(goal_id, "start", "", OWNER) for _ in range(50)]
    outcomes = await asyncio.gather(*starts, return_exceptions=True)
    assert kinds_of(outcomes) == {"NoneType": 1, "NotOffered": 49}
    root, _ = await ledger.reader.root(goal_root(goal_id))
    assert len(root.work.tasks) == 1


async def test_fifty_claims_of_ten_tasks_claim_each_once(ledger: Ledger) -> None:
    wanted = {await ledger.task() for _ in range(10)}
    claims = await asyncio.gather(*[ledger.sessions.claim(AskIn(), f"saddle-{n}") for n in range(50)])
    claimed = [claim[0].id for claim in claims if claim is not None]
    assert Counter(claimed) == dict.fromkeys(wanted, 1)
    assert len({claim[1] for claim in claims if claim is not None}) == 10


async def test_fifty_that_create_at_once_are_each_given_an_id_of_their_own(ledger: Ledger) -> None:
    tasks = await asyncio.gather(*[ledger.task() for _ in range(50)])
    assert sorted(tasks, key=int) == [str(number) for number in range(1, 51)]
    goals = await asyncio.gather(*[ledger.goal() for _ in range(50)])
    assert len(set(goals)) == 50


async def test_fifty_ad_hoc_tasks_goal_runs_and_tasks_at_once_never_share_an_id(ledger: Ledger) -> None:
    goals = [await ledger.goal() for _ in range(20)]
    await asyncio.gather(
        *[ledger.decisions.about_goal(goal_id, "start", "", OWNER) for goal_id in goals],
        *[ledger.sessions.open(OpenIn(task=TaskIn(title="ad hoc")), "anvil") for _ in range(20)],
        *[ledger.task() for _ in range(10)],
    )
    assert len((await ledger.reader.catalog()).work.tasks) == 50


async def test_of_those_who_create_the_same_id_at_once_one_is_first_and_the_others_are_told(ledger: Ledger) -> None:
    same = [ledger.decisions.create_project(ProjectIn("Sheds", id="p"), OWNER) for _ in range(10)]
    assert sorted(await asyncio.gather(*same)) == [("p", False)] * 9 + [("p", True)]
    with pytest.raises(IdTaken):
        await ledger.decisions.create_project(ProjectIn("Boats", id="p"), OWNER)


async def test_the_same_ask_ten_times_at_once_claims_one_task(ledger: Ledger) -> None:
    for _ in range(3):
        await ledger.task()
    asks = [ledger.sessions.claim(AskIn(session_id="s"), "anvil") for _ in range(10)]
    claims = await asyncio.gather(*asks)
    assert {(claim[0].id, claim[1]) if claim else None for claim in claims} == {("1", "s")}
    assert [task.id for task in (await ledger.reader.catalog()).claimable()] == ["2", "3"]


async def test_two_asks_of_two_saddles_with_one_session_id_have_one_winner(ledger: Ledger) -> None:
    for _ in range(2):
        await ledger.task()
    asks = [ledger.sessions.claim(AskIn(session_id="s"), saddle) for saddle in ("anvil", "bellows")]
    outcomes = await asyncio.gather(*asks, return_exceptions=True)
    assert kinds_of(outcomes) == {"tuple": 1, "NotFound": 1}


async def test_an_opening_and_an_ask_that_race_for_a_task_are_both_served_or_one_finds_nothing(
    ledger: Ledger,
) -> None:
    task_id = await ledger.task()
    claim, (session_id, _) = await asyncio.gather(
        ledger.sessions.claim(AskIn(), "anvil"), ledger.sessions.open(OpenIn(task_id=task_id), "bellows")
    )
    sessions = (await ledger.reader.catalog()).work.tasks[task_id].sessions
    assert set(sessions) == {session_id} | ({claim[1]} if claim else set())


async def test_the_same_opening_ten_times_at_once_opens_one_session(ledger: Ledger) -> None:
    opening = OpenIn(session_id="s", task=TaskIn(id="t", title="ad hoc"))
    opened = await asyncio.gather(*[ledger.sessions.open(opening, "anvil") for _ in range(10)])
    assert [appended.writes[-1].opened for _, appended in opened].count(True) == 1
    assert all(appended.writes[-1].conflicts == () for _, appended in opened)
    with pytest.raises(SessionElsewhere):
        await ledger.sessions.open(OpenIn(session_id="s", task_id="another"), "anvil")
    with pytest.raises(NotFound):
        await ledger.sessions.open(opening, "bellows")


async def test_requeue_and_cancel_that_race_each_hold_against_what_the_other_did(ledger: Ledger) -> None:
    task_id = await ledger.task()
    decisions = [ledger.decisions.about_task(task_id, "cancel", "", OWNER) for _ in range(5)]
    outcomes = await asyncio.gather(*decisions, return_exceptions=True)
    assert kinds_of(outcomes) == {"NoneType": 1, "NotOffered": 4}
    requeues = [ledger.decisions.about_task(task_id, "requeue", "", OWNER) for _ in range(5)]
    outcomes = await asyncio.gather(*requeues, return_exceptions=True)
    assert kinds_of(outcomes) == {"NoneType": 1, "NotOffered": 4}
    assert (await ledger.reader.catalog()).work.tasks[task_id].attempt.number == 2


async def test_a_blocked_task_is_not_handed_out(ledger: Ledger) -> None:
    task_id = await ledger.task()
    await ledger.decisions.about_task(task_id, "block", "wait", OWNER)
    assert await ledger.sessions.claim(AskIn(), "anvil") is None
    await ledger.decisions.about_task(task_id, "unblock", "", OWNER)
    assert await ledger.sessions.claim(AskIn(), "anvil") is not None


async def test_what_is_unknown_is_said_by_its_name(ledger: Ledger) -> None:
    for attempt, code in (
        (ledger.decisions.about_goal("9", "start", "", OWNER), "unknown_goal"),
        (ledger.decisions.about_task("9", "cancel", "", OWNER), "unknown_task"),
        (ledger.decisions.create_task(NewTaskIn("x", goal_id="9"), OWNER), "unknown_goal"),
        (ledger.sessions.open(OpenIn(task_id="9"), "anvil"), "unknown_task"),
        (ledger.sessions.open(OpenIn(task=TaskIn(goal_id="9")), "anvil"), "unknown_goal"),
    ):
        with pytest.raises(NotFound) as raised:
            await attempt
        assert raised.value.code == code


async def test_a_decision_that_lost_is_refused_and_not_repeated(ledger: Ledger) -> None:
    goal_id = await ledger.goal()
    await ledger.decisions.about_goal(goal_id, "start", "", OWNER)
    heads = await ledger.store.heads()
    with pytest.raises(NotOffered):
        await ledger.decisions.about_goal(goal_id, "start", "", OWNER)
    assert await ledger.store.heads() == heads
