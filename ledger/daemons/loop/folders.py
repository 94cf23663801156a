"""Where a loop's files lie in a project, and how they are read and written safely.

Agents can write nearly all of them. So what is read must be a regular file of bounded size in its place, and what is
written replaces a file whole, and never follows a link.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ledger.daemons.agent.files import read_regular, write_anew
from ledger.errors import InvalidRequest, StorageError

HOME = ".ledgerd"
CONFIG_FILE = "loop.json"
PROMPT_BYTES_MAX = 2**20
CONFIG_BYTES_MAX = 2**20

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEPT_OUT_OF_GIT = (b"/outbox.db*", b"/worktrees/", b"/loops/*/outputs/", b"/loops/*/.*")


class InvalidLoop(InvalidRequest):
    """A loop's files are not as they should be; nothing was changed, and no agent was started."""

    code = "invalid_loop"


class LoopFolder:
    """The files of the loop `name` in the folder `project`. Raises InvalidLoop for a name that is none."""

    def __init__(self, project: Path, name: str) -> None:
        if not _NAME.fullmatch(name):
            hint = "Use letters, digits, dots, dashes and underscores, 64 of them at most."
            raise InvalidLoop(f"{name!r} is no name for a loop", hint=hint)
        self.project = project.absolute()
        self.name = name
        self.ledgerd = self.project / HOME
        self.home = self.ledgerd / "loops" / name
        self.config = self.home / CONFIG_FILE
        self.outputs = self.home / "outputs"
        self.lock = self.home / ".lock"
        self.state_view = self.home / ".state.loop"
        self.log_view = self.home / ".state.log"
        self.outbox = self.ledgerd / "outbox.db"
        self.worktree = self.ledgerd / "worktrees" / name

    @property
    def is_there(self) -> bool:
        return self.config.is_file()

    def prompt(self, tick: int, role: str) -> Path:
        return self.outputs / f"tick{tick}-{role}-prompt.md"

    def output(self, tick: int, role: str) -> Path:
        """Where the role's agent may write what it has to hand on."""
        return self.outputs / f"tick{tick}-{role}.json"

    def reply(self, tick: int, role: str) -> Path:
        """Where what the agent printed is kept, for people."""
        return self.outputs / f"tick{tick}-{role}-reply.txt"

    def base(self, tick: int) -> Path:
        """What the repository was like before the round."""
        return self.outputs / f"tick{tick}-base.json"

    def make(self) -> None:
        """Makes the folders, and keeps out of git what is not for it. Raises StorageError, InvalidLoop."""
        try:
            self.outputs.mkdir(parents=True, exist_ok=True)
            _keep_out_of_git(self.ledgerd / ".gitignore")
        except OSError as error:
            raise StorageError(f"{error.filename}: {error.strerror}", hint="Make the folder writable.") from error
        if self.outputs.is_symlink() or self.outputs.resolve().parent != self.home.resolve():
            raise InvalidLoop(
                f"{self.outputs} is a link", hint="Remove it: the agents' outputs lie in a folder there."
            )


def read_text(path: Path, bytes_max: int) -> str:
    """A regular file of at most `bytes_max` bytes as text in UTF-8, without a byte order mark. Raises OSError, and
    ValueError in words for people."""
    data = read_regular(path, bytes_max + 1)
    if len(data) > bytes_max:
        raise ValueError(f"has more than {bytes_max} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start})") from error


def read_inside(folder: Path, name: str, what: str) -> str:
    """The text of a file that must lie inside `folder`, whatever links lead to it. Raises InvalidLoop."""
    path = folder / name
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            hint = f"Put the file into {folder}."
            raise InvalidLoop(f"{what}: {name!r} leads out of the loop's folder, to {real}", hint=hint)
        text = read_text(real, PROMPT_BYTES_MAX)
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidLoop(f"{what}: {path}: {why}", hint="Write the prompt there, or name another file.") from error
    except ValueError as error:
        raise InvalidLoop(f"{what}: {path} {error}", hint="A prompt is a file of text.") from error
    if "\0" in text:
        raise InvalidLoop(f"{what}: {path} holds a NUL character", hint="A prompt is a file of text.")
    return text


def write_whole(path: Path, text: str) -> None:
    """Replaces the file, or makes it: whoever reads sees the old text or the new one. Raises StorageError."""
    try:
        write_anew(path, text.encode())
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}", hint="Make room, or make the folder writable.") from error


def clear(path: Path) -> None:
    """Takes away whatever is there: a file, a link, or a folder. Raises StorageError."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}", hint="Remove it, or make its folder writable.") from error


def _keep_out_of_git(path: Path) -> None:
    try:
        before = read_regular(path, CONFIG_BYTES_MAX)
    except (FileNotFoundError, ValueError):
        before = b""
    missing = [line for line in _KEPT_OUT_OF_GIT if line not in before.splitlines()]
    if missing:
        start = before if not before or before.endswith(b"\n") else before + b"\n"
        write_anew(path, start + b"\n".join(missing) + b"\n")
