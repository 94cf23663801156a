"""Runs scenarios: each against a live server of its own, and reports what it has shown."""

from __future__ import annotations

import importlib
import pkgutil
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import bundles
from bundles.rig.deadline import Deadline, OutOfTime
from bundles.rig.pages import Page
from bundles.rig.postgres import NoPostgres
from bundles.rig.proxy import Link, Proxy
from bundles.rig.report import Check, Report
from bundles.rig.saddle import Saddle
from bundles.rig.server import Server
from bundles.rig.wire import Answer, Wire, new_client

T = TypeVar("T")

RUN_S_MAX = 300.0
DEFAULT_STORE = "sqlite:///{folder}/ledger.db"


class Scenario:
    """What a scenario is handed: a running server on a new store, clients of it, and where to say what it saw.

    `random` is seeded with the run's seed; `restart` stops the server, or kills it where the run is the kill
    variant; `folder` is the run's own and is removed after it; `store` is the URL of the store with its braces, for
    a scenario that runs others.
    """

    def __init__(self, report: Report, store: str, folder: Path, *, kill: bool, deadline: Deadline) -> None:
        self.store = store
        self.random = Random(f"{report.seed} {report.name} {report.variant}")
        self.folder = folder
        url = store.format(folder=folder, run=folder.name.replace("-", "_"))
        self.server = Server(url, folder, deadline)
        self._report = report
        self._kill = kill
        self._deadline = deadline
        self._cleanup = ExitStack()
        self._client = self._cleanup.enter_context(new_client())
        self._cleanup.callback(self.server.close)
        self._saddles: dict[str, Saddle] = {}
        self.owner = self.wire(self.server.owner_token)

    def start(self) -> None:
        """Starts the server for the first time; raises ServerFailed."""
        self.server.start()
        self.reader = self.wire(self.token("reader", "bundle-reader"))

    def close(self) -> None:
        self._cleanup.close()

    def restart(self) -> None:
        """A real end and start of the server on the same store."""
        if self._kill:
            self.server.kill()
        else:
            self.server.stop()
        self.server.start()

    def serve(self, store: str, name: str, **how: Any) -> Server:
        """One more server, on another store, with the same owner's token; started, and there until the run ends.
        `name` is that of its folder."""
        folder = self.folder / name
        folder.mkdir()
        server = Server(store, folder, self._deadline, owner_token=self.server.owner_token, **how)
        self._cleanup.callback(server.close)
        server.start()
        return server

    def held(self, thing: AbstractContextManager[T]) -> T:
        """Holds something until the run ends."""
        return self._cleanup.enter_context(thing)

    def wire(self, token: str | None, *, through: Proxy | None = None, url: Callable[[], str] | None = None) -> Wire:
        """A client with a token, or with none; `through` puts a faulty link in between, `url` leads to another
        server."""
        return Wire(self._client, url or (lambda: (through or self.server).url), token, self._deadline)

    def link(self, link: Link) -> Proxy:
        """A faulty link to this server, there until the run ends."""
        return self._cleanup.enter_context(Proxy(lambda: self.server.url, link, self.random))

    def token(self, role: str, name: str) -> str:
        """A new token, made by the owner."""
        answer = self.owner.post("/api/tokens", {"role": role, "name": name})
        if answer.status != 201:
            raise AssertionError(f"no {role} token for {name}: {answer}")
        return str(answer.json["token"])

    def saddle(self, name: str = "saddle-1") -> Saddle:
        """The saddle of that name; its token is made when it is first asked for."""
        if name not in self._saddles:
            self._saddles[name] = Saddle(name, self.wire(self.token("saddle", name)))
        return self._saddles[name]

    def page(self, path: str) -> Page:
        """A page as a reader sees it."""
        answer = self.reader.get(path, headers={"Accept": "text/html"})
        if answer.status != 200:
            raise AssertionError(f"the page {path} cannot be read: {answer}")
        return Page(answer.text)

    def read(self, path: str) -> Any:
        """What the API says to a reader; raises where it is not 200."""
        return _expect(self.reader.get(path), 200)

    def create(self, what: str, **body: Any) -> str:
        """Makes a project, goal or task as the owner; gives its id."""
        return str(_expect(self.owner.post(f"/api/{what}", body), 201)["id"])

    def check(self, sentence: str, holds: bool, seen: object = "") -> bool:
        """Writes one line of the report; gives `holds` back."""
        self._report.checks.append(Check(sentence, "ok" if holds else "FAIL", str(seen)))
        return holds

    def equal(self, sentence: str, seen: object, expected: object) -> bool:
        """A check that two things are equal; the report shows both."""
        holds = seen == expected
        self._report.checks.append(Check(sentence, "ok" if holds else "FAIL", repr(seen), repr(expected)))
        return holds


@dataclass(frozen=True)
class Entry:
    """A scenario that can be run. `restarts` says that it ends and starts the server, so that it is run once more
    with SIGKILL."""

    name: str
    title: str
    restarts: bool
    run: Callable[[Scenario], None]


def discover() -> list[Entry]:
    """The scenarios among the modules of this package, by name: those that have NAME, TITLE, RESTARTS and run."""
    entries = []
    for found in pkgutil.iter_modules(bundles.__path__):
        module = importlib.import_module(f"bundles.{found.name}")
        if hasattr(module, "NAME"):
            entries.append(Entry(module.NAME, module.TITLE, module.RESTARTS, module.run))
    return sorted(entries, key=lambda entry: entry.name)


def run(entry: Entry, *, store: str = DEFAULT_STORE, seed: int, kill: bool = False, variant: str = "") -> Report:
    """Runs one scenario and reports. `store` is the URL of the store, in which `{folder}` and `{run}` stand for the
    run's own folder and a name of its own. Never raises on what the server does."""
    how = variant or ("restarts by SIGKILL" if kill else "")
    report = Report(entry.name, entry.title, how, seed)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ledgerd-bundle-") as name:
        folder = Path(name)
        scenario = Scenario(report, store, folder, kill=kill, deadline=Deadline(RUN_S_MAX))
        with closing(scenario):
            _judge(entry, scenario, report)
    report.seconds = time.monotonic() - started
    return report


def _judge(entry: Entry, scenario: Scenario, report: Report) -> None:
    try:
        scenario.start()
        entry.run(scenario)
    except NoPostgres as error:
        report.checks.append(Check("there is a PostgreSQL to run it on", "unknown", str(error)))
    except OutOfTime as error:
        report.checks.append(Check("the run ends in its time", "unknown", str(error)))
    except Exception as error:  # whatever a broken server makes a scenario stumble over is a finding
        seen = f"{type(error).__name__} at {_where(error)}: {error}"
        report.checks.append(Check("the run comes to its end", "FAIL", seen))
    if report.verdict != "ok":
        report.stderr = scenario.server.stderr_tail()


def _where(error: Exception) -> str:
    """The line of the scenario that stumbled, however deep in its helpers the error was raised."""
    _, *frames = traceback.extract_tb(error.__traceback__)
    of_scenario = [frame for frame in frames if frame.filename == frames[0].filename]
    last = of_scenario[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _expect(answer: Answer, status: int) -> Any:
    if answer.status != status:
        raise AssertionError(f"{answer}, expected {status}")
    return answer.json
