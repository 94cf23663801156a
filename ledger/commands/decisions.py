"""Creating projects, goals and tasks, and deciding about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ledger.commands import writing
from ledger.commands.deciding import decide_goal, decide_task
from ledger.commands.reading import TEXT_CHARS_MAX, TITLE_CHARS_MAX, again_if_moved, bounded, optional_id, unknown
from ledger.commands.writing import Fact, last_seq, write_of
from ledger.errors import IdTaken, StreamMoved
from ledger.events.content import parse_payload
from ledger.events.ids import checked_id
from ledger.events.model import NO_EVENTS, goal_root
from ledger.events.wire import GoalIn, Id, NewTaskIn, ProjectIn
from ledger.reader import Reader
from ledger.store.base import Store
from projections.catalog import Catalog
from projections.task import ORDINARY
from projections.work import Work


class Decisions:
    """`numbering` is held while the ledger gives an id, so that many who create at once do not all take the same one
    and lose it."""

    def __init__(self, store: Store, reader: Reader, numbering: asyncio.Lock) -> None:
        self._store = store
        self._reader = reader
        self._numbering = numbering

    # Creating

    async def create_project(self, asked: ProjectIn, actor: str) -> tuple[str, bool]:
        """The project's id, and whether it is new. Raises IdTaken, InvalidField."""
        title = bounded(asked.title, "title", TITLE_CHARS_MAX)

        def made(project_id: str) -> Fact:
            return writing.project_created(project_id, title or project_id)

        return await self._create(asked.id, lambda catalog: catalog.next_project_number, made, actor)

    async def create_goal(self, asked: GoalIn, actor: str) -> tuple[str, bool]:
        """The goal's id, and whether it is new. Raises IdTaken, InvalidField."""
        project_id = optional_id(asked.project_id, "project_id")
        title = bounded(asked.title, "title", TITLE_CHARS_MAX, needed=True)
        brief = bounded(asked.brief, "brief", TEXT_CHARS_MAX)
        branch_name = bounded(asked.branch_name, "branch_name", TITLE_CHARS_MAX)

        def made(goal_id: str) -> Fact:
            return writing.goal_created(goal_id, project_id, title, brief, branch_name)

        return await self._create(asked.id, lambda catalog: catalog.next_goal_number, made, actor)

    async def create_task(self, asked: NewTaskIn, actor: str) -> tuple[str, bool]:
        """The task's id, and whether it is new. Raises IdTaken, InvalidField, NotFound for an unknown goal."""
        goal_id = optional_id(asked.goal_id, "goal_id")
        if goal_id is not None and goal_id not in (await self._reader.catalog()).work.goals:
            raise unknown("goal", goal_id)
        project_id = optional_id(asked.project_id, "project_id")
        title = bounded(asked.title, "title", TITLE_CHARS_MAX, needed=True)
        brief = bounded(asked.brief, "brief", TEXT_CHARS_MAX)

        def made(task_id: str) -> Fact:
            return writing.task_created(task_id, ORDINARY, title, brief=brief, project_id=project_id, goal_id=goal_id)

        return await self._create(asked.id, lambda catalog: catalog.next_task_number, made, actor)

    async def _create(
        self, wanted: Id | None, number: Callable[[Catalog], int], made: Callable[[str], Fact], actor: str
    ) -> tuple[str, bool]:
        if wanted is not None:
            given = checked_id(wanted, "id", slash_ok=False)
            return given, await self._create_as(made(given), actor)

        async def numbered() -> str:
            free = str(number(await self._reader.catalog()))
            await self._store.append([write_of(made(free), NO_EVENTS, actor)])
            return free

        async with self._numbering:
            return await again_if_moved(numbered), True

    async def _create_as(self, fact: Fact, actor: str) -> bool:
        try:
            await self._store.append([write_of(fact, NO_EVENTS, actor)])
            return True
        except StreamMoved:
            [first] = await self._store.read_stream(fact.stream, from_seq=0, limit=1)
            if parse_payload(first.payload) != fact.payload:
                raise IdTaken(f"{fact.stream[1:]} exists with other content") from None
            return False

    # Deciding

    async def about_goal(self, goal_id: str, action: str, reason: str, actor: str) -> None:
        """Raises NotFound, NotOffered."""
        reason = bounded(reason, "reason", TEXT_CHARS_MAX)

        async def decided() -> None:
            root, _ = await self._reader.root(goal_root(goal_id))
            goal = root.work.goals.get(goal_id)
            if goal is None:
                raise unknown("goal", goal_id)
            new_task_id = str((await self._reader.catalog()).next_task_number)
            await self._append(decide_goal(action, goal, root.work, new_task_id, reason), root.work, actor)

        async with self._numbering:
            await again_if_moved(decided)

    async def about_task(
        self, task_id: str, action: str, reason: str, actor: str, *, also: Sequence[str] = ()
    ) -> None:
        """`also` are decisions that are open to it besides those of its status. Raises NotFound, NotOffered."""
        reason = bounded(reason, "reason", TEXT_CHARS_MAX)

        async def decided() -> None:
            work = (await self._reader.catalog()).work
            task = work.tasks.get(task_id)
            if task is None:
                raise unknown("task", task_id)
            await self._append(decide_task(action, task, reason, also), work, actor)

        await again_if_moved(decided)

    async def _append(self, facts: Sequence[Fact], work: Work, actor: str) -> None:
        await self._store.append([write_of(fact, last_seq(work, fact.stream), actor) for fact in facts])
