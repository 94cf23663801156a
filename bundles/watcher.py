"""`ledgerd watch` under fire: a transcript grows while the watcher and the server are killed, and is told once.

The watcher reaches the server over a link that loses answers, and that stays where it is when the server moves.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bundles import checks
from bundles.rig.proxy import Link
from bundles.rig.server import Server
from bundles.rig.transcript import Transcript, said_in
from bundles.rig.wire import segment
from bundles.runner import Scenario

NAME = "watcher"
TITLE = "a transcript grows, its watcher and the server are killed: the ledger holds each thing once"
RESTARTS = False  # it kills by itself

TURNS = 60
WATCHER_KILLS = 6
PIECE_BYTES_MAX = 1200  # several lines, or a part of one
BETWEEN_PIECES_S_MAX = 0.04
BEFORE_KILL_S_MAX = 0.6
WAIT_S_MAX = 60.0
POLL_S = 0.05
LOSES_ANSWERS = Link(cut_share=0.1)
FOLLOWS = "following;"

_PACKAGES = Path(__file__).resolve().parents[1]
_OTHER_PLACES = ("LEDGERD_", "XDG_", "CLAUDE_", "CODEX_")


def run(scenario: Scenario) -> None:
    transcript = Transcript(scenario.random, TURNS)
    growing = _Growing(scenario, transcript)
    proxy = scenario.link(LOSES_ANSWERS)
    token = scenario.token("saddle", "watcher")
    watchers = [_Watcher(scenario.folder, name, growing.folder, lambda: proxy.url, token) for name in ("a", "b")]
    once = _Watcher(scenario.folder, "once", growing.folder, lambda: scenario.server.url, token)
    try:
        _fire(scenario, growing, watchers[0], once)
        _side_by_side(scenario, growing, watchers, once)
    finally:
        for watcher in watchers:
            watcher.kill()
    scenario.check("answers were lost on the way to the watchers", proxy.cuts > 0, proxy.cuts)


def _fire(scenario: Scenario, growing: _Growing, watcher: _Watcher, once: _Watcher) -> None:
    """The first half grows piece by piece; at random pieces the watcher or the server is killed and started again.
    The last piece is left to a single pass."""
    growing.aim_at(len(growing.transcript.lines) // 2)
    *pieces, last = growing.pieces()
    moments = scenario.random.sample(range(len(pieces)), WATCHER_KILLS + 1)
    of_server = scenario.random.choice(moments)
    watcher.start()
    for number, piece in enumerate(pieces):
        growing.append(piece)
        time.sleep(scenario.random.uniform(0, BETWEEN_PIECES_S_MAX))  # the random moment is the point
        if number in moments:
            if scenario.random.random() < 0.5:
                growing.wait_until_brought()
            time.sleep(scenario.random.uniform(0, BEFORE_KILL_S_MAX))
            _kill_and_start(scenario.server if number == of_server else watcher)
    watcher.kill()
    brought = growing.held()
    growing.append(last)
    scenario.check("the watchers that were killed had brought something", brought > 0, brought)
    first = once.pass_once()
    left = growing.said - brought  # at most: a push may have been on its way when its watcher was killed
    scenario.check("a single pass stores what they had left", 0 < first["stored"] <= left, first["stored"])
    seen = (first["rejected"], first["bad_lines"], first["conflicts"], first["rewritten"])
    scenario.equal("it finds nothing wrong", seen, (0, 0, 0, 0))
    _each_thing_once(scenario, growing, "after the kills")
    scenario.equal("a further pass stores nothing", once.pass_once()["stored"], 0)


def _side_by_side(scenario: Scenario, growing: _Growing, watchers: list[_Watcher], once: _Watcher) -> None:
    """The second half grows while two watchers follow it."""
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.wait_until_it_follows()
    duplicates = growing.duplicates()
    growing.aim_at(len(growing.transcript.lines))
    for piece in growing.pieces():
        growing.append(piece)
        time.sleep(scenario.random.uniform(0, BETWEEN_PIECES_S_MAX))
    growing.wait_until_brought()
    for watcher in watchers:
        scenario.equal(f"watcher {watcher.name} ends when it is asked to", watcher.stop(), 0)
    _each_thing_once(scenario, growing, "of two watchers")
    more = growing.duplicates() - duplicates
    scenario.check("both brought the same, and the ledger took it once", more > 0, f"{more} duplicates")
    scenario.equal("after them a pass stores nothing", once.pass_once()["stored"], 0)


def _each_thing_once(scenario: Scenario, growing: _Growing, when: str) -> None:
    transcript = growing.transcript
    told = [event for event in growing.events() if event["seq"] >= 0]
    expected = transcript.said[: growing.said]
    found = list(said_in(told))
    lost = [each for each in expected if each not in set(found)]
    scenario.check(f"{when} all {len(expected)} things said are in the log", not lost, lost[:5])
    scenario.equal(f"{when} nothing is there twice, and nothing else", len(found), len(set(expected)))
    session = growing.session()
    scenario.equal(f"{when} nothing was in conflict", session["conflicts"], [])
    tasks = scenario.read("/api/tasks")["items"]
    sessions = scenario.read(f"/api/tasks/{segment(session['task_id'])}")["sessions"]
    scenario.equal(f"{when} there is one task with one session", (len(tasks), len(sessions)), (1, 1))
    if growing.is_whole:
        seen = {name: session["usage"][name] for name in transcript.tokens}
        scenario.equal(f"{when} the tokens are counted once", seen, transcript.tokens)


def _kill_and_start(running: Server | _Watcher) -> None:
    running.kill()
    running.start()


class _Growing:
    """The transcript's file, up to the line aimed at, and what the ledger holds of it."""

    def __init__(self, scenario: Scenario, transcript: Transcript) -> None:
        self.transcript = transcript
        self.folder = scenario.folder / "projects" / "-srv-app"
        self.folder.mkdir(parents=True)
        self._file = self.folder / f"{transcript.session_id}.jsonl"
        self._scenario = scenario
        self._written = b""
        self._aim = 0

    def aim_at(self, line: int) -> None:
        self._aim = line

    def pieces(self) -> list[bytes]:
        """What is to be written up to the line aimed at, cut without regard to lines."""
        rest = b"".join(self.transcript.lines[: self._aim])[len(self._written) :]
        pieces = []
        while rest:
            size = self._scenario.random.randint(1, PIECE_BYTES_MAX)
            pieces.append(rest[:size])
            rest = rest[size:]
        return pieces

    def append(self, piece: bytes) -> None:
        with self._file.open("ab") as file:
            file.write(piece)
        self._written += piece

    @property
    def said(self) -> int:
        """How much the whole lines in the file say."""
        return self.transcript.said_by(self._written.count(b"\n"))

    @property
    def is_whole(self) -> bool:
        return self._aim == len(self.transcript.lines)

    def wait_until_brought(self) -> None:
        """Waits until the ledger holds all that the file says in whole lines; raises AssertionError."""
        ends = time.monotonic() + WAIT_S_MAX
        while self.held() < self.said:
            if time.monotonic() > ends:
                raise AssertionError(f"the watcher has brought {self.held()} of {self.said} in {WAIT_S_MAX:.0f} s")
            time.sleep(POLL_S)

    def held(self) -> int:
        """How many events of the session the ledger holds, without its opening."""
        answer = self._scenario.reader.get(self._path)
        return answer.json["events"] - 1 if answer.status == 200 else 0

    def session(self) -> dict[str, Any]:
        found: dict[str, Any] = self._scenario.read(self._path)
        return found

    def duplicates(self) -> int:
        task = self._scenario.read(f"/api/tasks/{segment(self.session()['task_id'])}")
        return int(task["integrity"]["duplicates"])

    def events(self) -> list[dict[str, Any]]:
        return checks.stored_rows(self._scenario, self.transcript.session_id)

    @property
    def _path(self) -> str:
        return f"/api/sessions/{segment(self.transcript.session_id)}"


class _Watcher:
    """`ledgerd watch` on one folder, over any number of starts. All watchers of a run share what they remember, as
    they do on one host."""

    def __init__(self, folder: Path, name: str, transcripts: Path, url: Callable[[], str], token: str) -> None:
        self.name = name
        self._folder = folder
        self._url = url
        self._words = [sys.executable, "-m", "ledger.cli", "watch", "--from", str(transcripts)]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(_OTHER_PLACES)}
        path = os.pathsep.join(filter(None, [str(_PACKAGES), kept.get("PYTHONPATH")]))
        places = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
        self._environment = {**kept, **places, "PYTHONPATH": path, "LEDGERD_TOKEN": token}
        self._process: subprocess.Popen[str] | None = None
        self._follows = threading.Event()

    def start(self) -> None:
        self._follows = threading.Event()
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._with_url(),
                cwd=self._folder,
            )
        threading.Thread(target=_listen, args=(self._process, self._follows), daemon=True).start()

    def wait_until_it_follows(self) -> None:
        """Returns once it has brought what was there; raises AssertionError."""
        if not self._follows.wait(WAIT_S_MAX):
            raise AssertionError(f"watcher {self.name} does not begin to follow: {self._last_words()}")

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int | None:
        return self._end(signal.SIGTERM)

    def pass_once(self) -> dict[str, int]:
        """`--once`: what it says it has brought. Raises AssertionError where it fails."""
        done = subprocess.run(
            [*self._words, "--once", "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S_MAX,
            env=self._with_url(),
            cwd=self._folder,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"a single pass ended with {done.returncode}: {done.stderr.strip()}")
        return msgspec.json.decode(done.stdout, type=dict[str, Any])

    def _end(self, how: signal.Signals) -> int | None:
        """Its exit code; None where it was not running."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.send_signal(how)
        try:
            return process.wait(WAIT_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"watcher {self.name} did not end: {self._last_words()}") from None

    def _with_url(self) -> dict[str, str]:
        return {**self._environment, "LEDGERD_URL": self._url()}

    @property
    def _errors(self) -> Path:
        return self._folder / f"watcher-{self.name}.err"

    def _last_words(self) -> str:
        return self._errors.read_text(errors="replace")[-500:]


def _listen(process: subprocess.Popen[str], follows: threading.Event) -> None:
    assert process.stdout is not None  # noqa: S101 — it is a pipe
    with process.stdout:
        for line in process.stdout:
            if line.startswith(FOLLOWS):
                follows.set()
