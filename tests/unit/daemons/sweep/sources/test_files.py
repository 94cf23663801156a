"""Transcripts that are files: found, keyed, read, and never written to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ledger.daemons.sweep.model import Found, SessionUnreadable, SourceFailed, Unreadable
from ledger.daemons.sweep.sources.files import FileSource
from ledger.daemons.sweep.sources.opening import open_source
from ledger.errors import InvalidField
from ledger.events import kinds
from tests.unit.transcripts.written import assistant, call, result, text, user, write

CODEX = (
    b'{"type":"session_meta","payload":{"id":"c-1","cwd":"/x"}}\n'
    b'{"type":"event_msg","payload":{"type":"user_message","message":"Hello"}}\n'
)
GEMINI = b"""{"sessionId": "g-1", "projectHash": "p", "startTime": "2026-03-01T10:00:00Z",
 "messages": [{"id": "1", "timestamp": "2026-03-01T10:00:01Z", "type": "user", "content": "Hello"}]}"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def source(root: Path, type_: str = "claude-code") -> FileSource:
    return FileSource(type_, "here", root)


def found(root: Path, type_: str = "claude-code") -> list[Found]:
    return [one for one in source(root, type_).sessions() if isinstance(one, Found)]


def unreadable(root: Path) -> list[Unreadable]:
    return [one for one in source(root).sessions() if isinstance(one, Unreadable)]


def aged(path: Path, at_s: int) -> Path:
    os.utime(path, (at_s, at_s))
    return path


def test_transcripts_are_found_at_any_depth_the_longest_unchanged_first(root: Path) -> None:
    aged(write(root / "new.jsonl", user("a")), 3_000)
    aged(write(root / "p" / "q" / "agent-1.jsonl", user("b")), 1_000)
    aged(write(root / "p" / "old.jsonl", user("c")), 2_000)
    (root / "notes.txt").write_text("{}")
    (root / "empty.jsonl").write_bytes(b"")
    assert [Path(one.where).name for one in found(root)] == ["agent-1.jsonl", "old.jsonl", "new.jsonl"]


def test_a_key_is_file_mtime_and_size_so_what_has_grown_is_another(root: Path) -> None:
    path = aged(write(root / "s.jsonl", user("a")), 1_000)
    (before,) = found(root)
    assert before.key == f"{path}:{1_000 * 10**9}:{path.stat().st_size}"
    assert found(root) == [before]
    write(path, user("a"), user("b"))
    aged(path, 1_000)
    (after,) = found(root)
    assert after.key != before.key


def test_moments_come_in_order_with_what_was_said_and_done(root: Path) -> None:
    path = write(
        root / "s.jsonl",
        user("Fix it"),
        assistant(text("I will."), call("Bash", {"command": "ls"})),
        user([result("a b")], toolUseResult={"stdout": "a b"}),
    )
    path.write_bytes(path.read_bytes() + b'not json\n{"type": "user", "mess')
    session = source(root).read(found(root)[0])
    moments = list(session.moments)
    assert (session.title, session.cwd) == ("Fix it", "/home/dev/My App")
    said = [moment.kind for moment in moments if moment.kind not in (kinds.RESULT, kinds.USAGE)]
    assert said == [kinds.MESSAGE, kinds.MESSAGE, kinds.TOOL_CALL, kinds.TOOL_RESULT]
    assert [moment.seq for moment in moments] == sorted(moment.seq for moment in moments)
    assert moments[0].payload["text"] == "Fix it"


def test_each_agent_s_transcripts_are_read_by_its_own_importer(root: Path) -> None:
    (root / "rollout.jsonl").write_bytes(CODEX)
    (root / "chat.json").write_bytes(GEMINI)
    write(root / "s.jsonl", user("Hello"))
    for type_, session_id in (("codex", "c-1"), ("gemini", "g-1"), ("claude-code", None)):
        read = [list(source(root, type_).read(one).moments) for one in found(root, type_)]
        spoken = [moments for moments in read if moments]
        assert len(spoken) == 1, type_
        assert spoken[0][0].payload["text"] == "Hello"
        assert session_id in (None, spoken[0][0].session_id)


def test_a_file_that_holds_no_session_has_no_moments(root: Path) -> None:
    (root / "titles.jsonl").write_text('{"type": "summary", "summary": "x"}\n' * 3)
    (root / "history.jsonl").write_text('{"display": "x"}\n')
    assert [list(source(root).read(one).moments) for one in found(root)] == [[], []]


@pytest.mark.parametrize("content", [b"\0" * 1_000, b"[" * 100_000 + b"\n", b"\xff\xfe not JSON\n" * 300])
def test_a_file_of_which_nothing_can_be_read_is_never_called_clean(root: Path, content: bytes) -> None:
    (root / "bad.jsonl").write_bytes(content)
    source = FileSource("claude-code", "claude", root)
    [bad] = [one for one in source.sessions() if isinstance(one, Found) and one.where.endswith("bad.jsonl")]
    with pytest.raises(SessionUnreadable, match="none of its first lines is JSON"):
        source.read(bad)


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(root: Path) -> None:
    write(root / "s.jsonl", user("a"))
    (one,) = found(root)
    (root / "s.jsonl").unlink()
    with pytest.raises(SessionUnreadable, match=r"source 'here': .*s\.jsonl: No such file"):
        source(root).read(one)


def test_a_file_that_goes_away_while_it_is_read_is_an_error_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root / "s.jsonl", user("a"))
    session = source(root).read(found(root)[0])

    def gone(self: Path, *_: object) -> None:
        raise OSError(5, "Input/output error", str(self))

    monkeypatch.setattr(Path, "open", gone)
    with pytest.raises(SessionUnreadable, match="Input/output error"):
        list(session.moments)


def test_a_root_that_is_not_there_fails_the_source(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match=r"source 'here': .*nowhere: No such file"):
        list(source(tmp_path / "nowhere").sessions())


def test_a_root_may_be_one_file_or_a_link(root: Path, tmp_path: Path) -> None:
    path = write(root / "s.jsonl", user("a"))
    (tmp_path / "link").symlink_to(root)
    assert [one.where for one in found(path)] == [str(path)]
    assert [one.where for one in found(tmp_path / "link")] == [str(path)]


def test_links_are_followed_inside_the_root_and_reported_if_they_lead_out(root: Path, tmp_path: Path) -> None:
    inside = write(root / "p" / "s.jsonl", user("a"))
    outside = write(tmp_path / "other" / "private.jsonl", user("secret"))
    (root / "again.jsonl").symlink_to(inside)
    (root / "out.jsonl").symlink_to(outside)
    (root / "up.jsonl").symlink_to(Path("..") / "other" / "private.jsonl")
    (root / "folder").symlink_to(outside.parent)
    write(tmp_path / "root-look-alike" / "s.jsonl", user("secret"))
    (root / "alike.jsonl").symlink_to(tmp_path / "root-look-alike" / "s.jsonl")
    assert [one.where for one in found(root)] == [str(inside)]
    told = unreadable(root)
    assert sorted(Path(one.where).name for one in told) == ["alike.jsonl", "out.jsonl", "up.jsonl"]
    assert all("a link that leads out" in one.why for one in told)


def test_a_pipe_and_a_link_to_itself_are_passed_over(root: Path) -> None:
    os.mkfifo(root / "pipe.jsonl")
    (root / "loop.jsonl").symlink_to(root / "loop.jsonl")
    (root / "gone.jsonl").symlink_to(root / "nothing.jsonl")
    assert list(source(root).sessions()) == []


def test_a_key_stands_on_one_line_whatever_the_file_is_called(root: Path) -> None:
    for name in (b"a\nb.jsonl", b"\xff\xfe.jsonl", b"c\\nd.jsonl", "é.jsonl".encode()):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(CODEX)
    keys = [one.key for one in found(root, "codex")]
    assert len(set(keys)) == 4
    assert all(key.isprintable() and key.encode() for key in keys)


def test_reading_changes_nothing_on_disk(root: Path) -> None:
    write(root / "p" / "s.jsonl", user("a"))
    (root / "bad.jsonl").write_bytes(b"\0\0{")
    before = list(snapshot(root))
    for one in found(root):
        with suppress(SessionUnreadable):
            list(source(root).read(one).moments)
    assert list(snapshot(root)) == before


def snapshot(root: Path) -> Iterator[tuple[str, int, int, bytes]]:
    for path in sorted(root.rglob("*")):
        stat = path.stat()
        yield str(path), stat.st_mtime_ns, stat.st_mode, path.read_bytes() if path.is_file() else b""


def test_a_source_is_made_by_its_type(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(url: str | None) -> tuple[str, object]:
        return url or "http://127.0.0.1:1", object()

    monkeypatch.setenv("HOME", str(root))
    write(root / ".claude" / "projects" / "p" / "s.jsonl", user("a"))
    for path in (None, "~/.claude", str(root)):
        opened = open_source("claude-code", "mine", path, connect)  # type: ignore[arg-type]
        assert (opened.type, opened.name, len(list(opened.sessions()))) == ("claude-code", "mine", 1)
    assert open_source("ledger", "l", None, connect).type == "ledger"  # type: ignore[arg-type]
    assert open_source("opencode", "o", None, connect).type == "opencode"  # type: ignore[arg-type]
    with pytest.raises(InvalidField, match=r"^source\.type: 'svn' is none of "):
        open_source("svn", "s", None, connect)  # type: ignore[arg-type]
