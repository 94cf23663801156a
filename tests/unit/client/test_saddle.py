from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ledger.client import Saddle
from ledger.errors import InvalidField, NotFound
from ledger.events.content import payload_object
from ledger.events.times import parse_instant
from ledger.store.sqlite import SqliteStore

TOP = Path(__file__).parents[3]


def offline(path: Path) -> Saddle:
    return Saddle("http://127.0.0.1:9", "none", outbox=path, drain=False)


@pytest.mark.parametrize(
    "code",
    [
        "import ledger.client",
        "from ledger.client import Saddle, AsyncSaddle",
        "from ledger.client import Saddle; Saddle('http://127.0.0.1:9', 't', outbox=PATH, drain=False)"
        ".open_session(task={'title': 'T'}).comment('Hello.')",
    ],
)
def test_importing_and_emitting_loads_nothing_costly(tmp_path: Path, code: str) -> None:
    path = tmp_path / "outbox.db"
    offline(path).close()
    costly = {"httpx", "starlette", "rich", "aiosqlite", "click", "jinja2"}
    check = f"print(sorted({costly} & set(sys.modules)))"
    words = [sys.executable, "-c", f"import sys; PATH = {str(path)!r}; {code}; {check}"]
    done = subprocess.run(words, cwd=TOP, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_times_are_now_or_what_is_given(tmp_path: Path) -> None:
    with offline(tmp_path / "outbox.db") as saddle:
        session = saddle.open_session("s", task={"title": "T"})
        session.emit("note", at="2026-02-03T04:05:06.5+01:00")
        session.emit("note")
        with saddle.outbox._file.reading() as db:
            [given, now] = db.execute("SELECT at FROM events WHERE seq >= 0 ORDER BY seq").fetchall()
    assert given[0] == parse_instant("2026-02-03T03:05:06.5Z")
    assert now[0] > given[0]


def test_a_state_that_is_none_and_a_session_that_is_not_here_are_refused(tmp_path: Path) -> None:
    with offline(tmp_path / "outbox.db") as saddle:
        session = saddle.open_session(task={"title": "T"})
        with pytest.raises(InvalidField, match="finished"):
            session.result("finished")
        with pytest.raises(NotFound):
            saddle.session("another").comment("Hello.")
        with pytest.raises(TypeError):
            session.emit("note", {1, 2})
        assert saddle.session(session.id).comment("Hello.") == 0


async def test_an_outbox_is_a_small_ledger_that_a_store_can_read(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    with offline(path) as saddle:
        session = saddle.open_session("s", task_id="12")
        session.comment("Hello.")
        session.result("done", "so")
    store = await SqliteStore.open(path, read_only=True)
    try:
        events = await store.read_stream("s")
        [feed_end] = await store.heads()
    finally:
        await store.close()
    assert [event.kind for event in events] == ["session.opened", "comment", "result"]
    assert payload_object(events[1].payload) == {"body": "Hello."}
    assert feed_end == events[-1].position == 3
