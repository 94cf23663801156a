from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from ledger.errors import LedgerError
from ledger.transcripts.delivering import Delivery
from ledger.transcripts.finding import Finder
from ledger.transcripts.follow import Follower
from ledger.transcripts.formats import AGENTS
from ledger.transcripts.marks import Marks
from ledger.transcripts.model import Report
from tests.unit.transcripts.keeping import Kept
from tests.unit.transcripts.opencode_written import SESSION as OPENCODE
from tests.unit.transcripts.opencode_written import conversation, into_database
from tests.unit.transcripts.reading_all import write_lines
from tests.unit.transcripts.written import SESSION, as_lines, user, write


class Watcher:
    """A follower of one folder, started anew on the same marks as often as a test likes."""

    def __init__(self, folder: Path, kept: Kept, marks: Path | None, ledger_id: str = "one") -> None:
        self.said: list[str] = []
        self.bad: list[str] = []
        self.delivery = Delivery(kept)
        report = Report(lambda bad: self.bad.append(str(bad)))
        self.follower = Follower(
            lambda: [folder], Finder(AGENTS), self.delivery, Marks(marks, ledger_id), report, say=self.said.append
        )

    def look(self) -> int:
        """How many events were sent."""
        delivered = self.delivery.delivered
        before = delivered.stored + delivered.duplicates
        self.follower.bring(self.follower.changed(), growing=True)
        return delivered.stored + delivered.duplicates - before


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "agents"


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    return tmp_path / "state" / "marks.json"


def prompts(*words: str) -> bytes:
    return as_lines(*(user(word) for word in words))


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_a_growing_file_is_sent_line_by_line_and_none_twice(folder: Path, kept: Kept) -> None:
    path = write(folder / "t.jsonl", user("one"))
    watcher = Watcher(folder, kept, None)
    assert watcher.look() == 2
    assert watcher.look() == 0
    add(path, prompts("two", "three"))
    assert watcher.look() == 4
    assert kept.texts(SESSION) == ["one", "two", "three"]


def test_a_line_that_comes_in_pieces_is_taken_once_and_never_called_bad(folder: Path, kept: Kept) -> None:
    path = write(folder / "t.jsonl", user("one"))
    watcher = Watcher(folder, kept, None)
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    line = prompts("zwö — 漢字 🙂")
    cuts = sorted(random.Random(seed).sample(range(1, len(line)), 12))
    for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True):
        watcher.look()
        add(path, line[start:end])
    watcher.look()
    assert kept.texts(SESSION) == ["one", "zwö — 漢字 🙂"]
    assert watcher.bad == []


def test_a_watcher_that_starts_again_goes_on_where_it_was(folder: Path, kept: Kept, marks: Path) -> None:
    path = write(folder / "t.jsonl", user("one"))
    Watcher(folder, kept, marks).look()
    add(path, prompts("two"))
    assert Watcher(folder, kept, marks).look() == 2
    assert Watcher(folder, kept, marks).look() == 0


@pytest.mark.parametrize("content", [b"", b"{", b'{"ledger_id": 3}', b"\xff" * 100])
def test_lost_or_damaged_marks_cost_a_reading_and_store_nothing_twice(
    folder: Path, kept: Kept, marks: Path, content: bytes
) -> None:
    write(folder / "t.jsonl", user("one"), user("two"))
    Watcher(folder, kept, marks).look()
    marks.write_bytes(content)
    watcher = Watcher(folder, kept, marks)
    watcher.look()
    assert (watcher.delivery.delivered.stored, watcher.delivery.delivered.duplicates) == (0, 4)


def test_marks_that_were_made_for_another_ledger_are_not_believed(folder: Path, kept: Kept, marks: Path) -> None:
    write(folder / "t.jsonl", user("one"))
    Watcher(folder, kept, marks).look()
    assert Watcher(folder, Kept(), marks, "two").look() == 2


def test_marks_that_cannot_be_kept_hold_up_nothing(folder: Path, kept: Kept, tmp_path: Path) -> None:
    (tmp_path / "in-the-way").touch()
    write(folder / "t.jsonl", user("one"))
    watcher = Watcher(folder, kept, tmp_path / "in-the-way" / "marks.json")
    assert watcher.look() > 0
    add(folder / "t.jsonl", prompts("two"))
    assert watcher.look() > 0
    assert len([line for line in watcher.said if "cannot be remembered" in line]) == 1


def test_two_watchers_store_each_thing_once(folder: Path, kept: Kept) -> None:
    write(folder / "t.jsonl", user("one"), user("two"))
    watchers = [Watcher(folder, kept, None) for _ in range(2)]
    for watcher in watchers:
        watcher.look()
    assert sum(watcher.delivery.delivered.stored for watcher in watchers) == 4
    assert sum(watcher.delivery.delivered.duplicates for watcher in watchers) == 4


def test_a_file_that_was_moved_or_copied_stores_nothing_again(folder: Path, kept: Kept, marks: Path) -> None:
    path = write(folder / "t.jsonl", user("one"), user("two"))
    watcher = Watcher(folder, kept, marks)
    watcher.look()
    path.rename(folder / "archived.jsonl")
    write(folder / "copies" / "c.jsonl", user("one"))
    watcher.look()
    assert watcher.delivery.delivered.stored == 4
    assert list(kept.opened) == [SESSION]


def test_a_file_that_was_cut_short_and_written_on_loses_nothing(folder: Path, kept: Kept, marks: Path) -> None:
    path = write(folder / "t.jsonl", user("one"), user("two"), user("three"))
    watcher = Watcher(folder, kept, marks)
    watcher.look()
    path.write_bytes(prompts("one"))
    watcher.look()
    assert list(kept.opened) == [SESSION]
    add(path, prompts("zwei", "drei", "vier"))
    watcher.look()
    assert kept.texts(SESSION)[:3] == ["one", "two", "three"]
    assert kept.texts(f"{SESSION}~2") == ["one", "zwei", "drei", "vier"]
    assert kept.opened[f"{SESSION}~2"]["resumed_from"] == SESSION
    add(path, prompts("fünf"))
    assert Watcher(folder, kept, marks).look() == 2  # goes on in the second history, without asking again
    assert kept.texts(f"{SESSION}~2")[-1] == "fünf"
    again = Watcher(folder, kept, None)
    again.look()
    assert again.delivery.delivered.stored == 0


def test_a_file_replaced_by_another_session_of_the_same_name_is_that_one(folder: Path, kept: Kept) -> None:
    path = write(folder / "t.jsonl", user("one"), user("two"))
    watcher = Watcher(folder, kept, None)
    watcher.look()
    other = write(folder / "new.tmp", *[user(f"other {n}", sessionId="other") for n in range(9)])
    os.replace(other, path)
    watcher.look()
    assert list(kept.opened) == [SESSION, "other"]
    assert len(kept.texts("other")) == 9


def test_a_file_replaced_by_one_of_another_agent_is_known_again(folder: Path, kept: Kept) -> None:
    path = write(folder / "t.jsonl", user("one"))
    watcher = Watcher(folder, kept, None)
    watcher.look()
    meta = {"timestamp": "2026-03-01T10:00:00Z", "type": "session_meta", "payload": {"id": "codex-1"}}
    said = {**meta, "type": "event_msg", "payload": {"type": "user_message", "message": "two"}}
    os.replace(write_lines(folder / "new.tmp", meta, said), path)
    watcher.look()
    assert kept.texts("codex-1") == ["two"]


def test_a_database_is_sent_again_only_in_what_is_new(folder: Path, kept: Kept) -> None:
    records = conversation()
    path = into_database(folder / "opencode.db", records)
    watcher = Watcher(folder, kept, None)
    first = watcher.look()
    assert watcher.look() == 0
    asked = records.message("user", 5000)
    records.part(asked, 5001, "text", text="and on")
    into_database(path, records, updated=1)
    assert watcher.look() == 2
    assert first == 7
    assert kept.texts(OPENCODE)[-1] == "and on"


def test_a_record_that_was_edited_stands_as_it_was_first_read(folder: Path, kept: Kept) -> None:
    records = conversation()
    path = into_database(folder / "opencode.db", records)
    Watcher(folder, kept, None).look()
    records.parts[0]["text"] = "edited"
    into_database(path, records, updated=1)
    watcher = Watcher(folder, kept, None)
    watcher.look()
    assert watcher.delivery.delivered.conflicts == 1
    assert list(kept.opened) == [OPENCODE]
    assert kept.texts(OPENCODE)[0] == "Fix it"


def test_nothing_is_marked_before_the_ledger_has_it(folder: Path, kept: Kept, marks: Path) -> None:
    write(folder / "t.jsonl", user("one"))
    watcher = Watcher(folder, kept, marks)
    kept.error = LedgerError("no answer", code="unreachable")
    with pytest.raises(LedgerError, match="no answer"):
        watcher.look()
    kept.error = None
    assert Watcher(folder, kept, marks).look() == 2
    assert watcher.look() == 2


def test_a_file_that_fails_is_named_once_and_the_others_go_through(folder: Path, kept: Kept) -> None:
    (folder / "broken.db").parent.mkdir(parents=True)
    into_database(folder / "broken.db", conversation())
    watcher = Watcher(folder, kept, None)
    assert watcher.look() == 7
    with (folder / "broken.db").open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 4000)
    write(folder / "t.jsonl", user("one"))
    assert watcher.look() == 2
    assert watcher.look() == 0
    assert ["broken.db" in line for line in watcher.said] == [True]
    assert watcher.follower.swept.failed_files == 1


def test_a_session_that_has_not_begun_yet_is_taken_up_when_it_does(folder: Path, kept: Kept) -> None:
    path = write(folder / "t.jsonl", {"type": "file-history-snapshot"})
    watcher = Watcher(folder, kept, None)
    assert watcher.look() == 0
    add(path, prompts("one"))
    assert watcher.look() == 2


def test_a_parent_is_sent_before_its_subagent(folder: Path, kept: Kept) -> None:
    write(folder / "a" / "agent-1.jsonl", user("look", isSidechain=True, agentId="1"))
    write(folder / "b.jsonl", user("go"))
    Watcher(folder, kept, None).look()
    assert list(kept.opened) == [SESSION, f"{SESSION}.agent-1"]
    assert len({opened["task"]["id"] for opened in kept.opened.values()}) == 1


def test_a_folder_that_is_not_there_yet_is_nothing(folder: Path, kept: Kept) -> None:
    watcher = Watcher(folder, kept, None)
    assert watcher.look() == 0
    write(folder / "t.jsonl", user("one"))
    assert watcher.look() == 2


def test_any_history_of_a_file_ends_with_all_that_it_ever_held(folder: Path, kept: Kept, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    path = folder / "t.jsonl"
    path.parent.mkdir(parents=True)
    lines: list[str] = []
    seen: set[str] = set()
    watcher = Watcher(folder, kept, tmp_path / "marks")
    for step in range(60):
        what = chance.random()
        if what < 0.1 and lines:
            lines = lines[: chance.randrange(len(lines)) + 1]
        elif what < 0.15 and lines:
            lines[chance.randrange(len(lines))] = f"rewritten {step}"
        else:
            lines += [f"line {step}.{n}" for n in range(chance.randrange(4))]
        path.write_bytes(prompts(*lines))
        if chance.random() < 0.3:
            watcher = Watcher(folder, kept, tmp_path / "marks")
        if lines:
            watcher.look()
            seen |= set(lines)
    texts = {text for session_id in kept.opened for text in kept.texts(session_id)}
    assert seen <= texts
