"""The one gate to the disk: whatever the sweep writes by itself goes through here.

A path is taken part by part from the root, each part opened without following a link, and the new text is put in the
file's place in one step. So `..`, a name that merely begins like an allowed one, and a symbolic link, at whatever
moment it appeared, are refused before a byte is written; and what other names point at the old file (hard links)
keeps the old text. Two write by a path that was checked here: SQLite the state, and git what is the repository's own.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ledger.errors import LedgerError

FILE_MODE, FOLDER_MODE = 0o600, 0o700  # of what is new: registers hold what was said in private
NAME_BYTES_MAX = 255

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FOLDER = os.O_RDONLY | _FOLDER
_PASS_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | _FOLDER  # of one that need not be listed
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in its place keeps nobody waiting
_NOT_OURS = frozenset({".git"})


class WriteRefused(LedgerError):
    """A path that the sweep may not write to."""

    code = "write_refused"
    hint = "`ledgerd sweep config` lists every path that it writes; links among them are never followed."


class NotWritten(LedgerError):
    code = "not_written"
    hint = "Make the folder writable and see that its disk has room; nothing was half written."


class WriteGuard:
    """Lets through the `folders` with all below them but repositories' own files, and the `files`; nothing else.

    The folders above them are those of whoever set the sweep up, and links there are followed, once, now.
    """

    def __init__(self, folders: Sequence[Path], files: Sequence[Path]) -> None:
        self._folders = tuple(map(_fixed, folders))
        self._files = frozenset(map(_fixed, files))

    def check(self, path: Path) -> Path:
        """The path as it would be written to. Raises WriteRefused."""
        with self._opened(path, make=False):
            return self._placed(path)[0] / path.name

    def write(self, path: Path, data: bytes) -> None:
        """Puts `data` in the file's place, in one step and durably; folders are made as they are needed. Raises
        WriteRefused, NotWritten."""
        try:
            with self._opened(path, make=True) as folder:
                assert folder is not None  # noqa: S101 — it was made
                _replace(folder, path.name, data)
        except OSError as error:
            raise NotWritten(f"{path}: {error.strerror}") from error

    def open_file(self, path: Path) -> int:
        """The file as a descriptor to read and write; it and its folder are made as they are needed. Raises
        WriteRefused, NotWritten."""
        try:
            with self._opened(path, make=True) as folder:
                assert folder is not None  # noqa: S101 — it was made
                return os.open(path.name, os.O_RDWR | os.O_CREAT | _FILE, FILE_MODE, dir_fd=folder)
        except OSError as error:
            raise _unfit(error, path) from error

    def make_folder_of(self, path: Path) -> None:
        """Makes the folder that an allowed path lies in, and those above it. Raises WriteRefused, NotWritten."""
        try:
            with self._opened(path, make=True):
                pass
        except OSError as error:
            raise NotWritten(f"{path}: {error.strerror}") from error

    def read(self, path: Path, bytes_max: int) -> bytes | None:
        """What stands in the file now; None where there is none. The same links are refused as for writing, and
        so is what is larger than `bytes_max`: it was not written here."""
        try:
            with self._opened(path, make=False) as folder:
                if folder is None:
                    return None
                return _read(folder, path, bytes_max)
        except OSError as error:
            raise NotWritten(f"{path}: {error.strerror}", hint="Make the file readable.") from error

    @contextmanager
    def _opened(self, path: Path, *, make: bool) -> Iterator[int | None]:
        """The folder of an allowed path, as a descriptor; None where it is not there and not to be made. The file
        itself is no link, nor anything but a file."""
        with _walked(*self._placed(path), path, make=make) as folder:
            if folder is not None:
                _refuse_all_but_files(folder, path)
            yield folder

    def _placed(self, path: Path) -> tuple[Path, tuple[str, ...]]:
        """The allowed folder that the path lies in, and the folders on the way down from there."""
        if ".." in path.parts or not path.name or "\0" in str(path):
            raise WriteRefused(f"{path} leads elsewhere")
        if not path.is_absolute():
            raise WriteRefused(f"{path} is not absolute")
        for folder in self._folders:  # first: what lies in there is never reached through a link
            parts = _below(folder, path)
            if parts is not None:
                if _NOT_OURS & {part.lower() for part in parts}:
                    raise WriteRefused(f"{path} belongs to a repository")
                return folder, parts[:-1]
        fixed = _fixed(path)
        if fixed in self._files:
            return fixed.parent, ()
        raise WriteRefused(f"{path} is none of the paths that the sweep writes")


def _below(folder: Path, path: Path) -> tuple[str, ...] | None:
    """The parts of `path` below `folder`; None where it lies elsewhere. Links above the folder count as what they
    lead to; below it they are met later, and refused."""
    for above in reversed(path.parents):
        if above.name == folder.name and _fixed(above) == folder:
            return path.relative_to(above).parts
    return None


def _fixed(path: Path) -> Path:
    """The path with all links above it followed; it itself may be one."""
    return Path(os.path.realpath(path.parent)) / path.name


@contextmanager
def _walked(top: Path, parts: tuple[str, ...], path: Path, *, make: bool) -> Iterator[int | None]:
    """The folder at the end of the way down to `top`, which was found to lead through no link, and on through
    `parts`, as a descriptor; None where it is not there. A link that has come into the way since is not followed."""
    way = (*top.parts[1:], *parts)
    folder: int | None = os.open(top.anchor, _PASS_FOLDER if way else _OPEN_FOLDER)
    try:
        for number, part in enumerate(way, 1):
            if folder is None:
                break
            above, folder = folder, None
            try:
                folder = _stepped(above, part, path, _OPEN_FOLDER if number == len(way) else _PASS_FOLDER, make=make)
            finally:
                os.close(above)
        yield folder
    finally:
        if folder is not None:
            os.close(folder)


def _stepped(above: int, part: str, path: Path, how: int, *, make: bool) -> int | None:
    """The folder `part` in another."""
    try:
        try:
            return os.open(part, how, dir_fd=above)
        except FileNotFoundError:
            if not make:
                return None
        with suppress(FileExistsError):
            os.mkdir(part, FOLDER_MODE, dir_fd=above)
        return os.open(part, how, dir_fd=above)
    except OSError as error:
        raise _unfit(error, path) from error


def _unfit(error: OSError, path: Path) -> LedgerError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return WriteRefused(f"{path}: a link, or something else than a folder, is in its way")
    return NotWritten(f"{path}: {error.strerror}")


def _refuse_all_but_files(folder: int, path: Path) -> None:
    try:
        found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        what = "a link" if stat.S_ISLNK(found.st_mode) else "no file"
        raise WriteRefused(f"{path} is {what}")


def _replace(folder: int, name: str, data: bytes) -> None:
    mode = FILE_MODE
    with suppress(FileNotFoundError):
        before = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        mode = stat.S_IMODE(before) & 0o777 if stat.S_ISREG(before) else FILE_MODE
    draft = f".{name[: NAME_BYTES_MAX - 40]}.{secrets.token_hex(8)}"
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with open(opened, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise


def _read(folder: int, path: Path, bytes_max: int) -> bytes | None:
    try:
        opened = os.open(path.name, os.O_RDONLY | _FILE, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unfit(error, path) from error
    with open(opened, "rb") as file:
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise NotWritten(f"{path} is larger than {bytes_max} bytes", hint="Move it aside: it was not written here.")
    return data
