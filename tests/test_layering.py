"""The house rules that a machine can check: who may import whom, and how large a module may grow."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
PACKAGES = ("ledger", "projections", "bundles")
MODULE_LINES_MAX = 450

# What each room may import of ours, itself aside. The longest room that fits a module is the one that counts.
MAY_IMPORT = {
    "ledger": (),
    "ledger.errors": (),
    "ledger.events": ("ledger.errors",),
    "ledger.store": ("ledger.events", "ledger.errors"),
    "ledger.commands": (
        "ledger.store.base",
        "ledger.store.judging",
        "ledger.reader",
        "projections",
        "ledger.events",
        "ledger.errors",
    ),
    "ledger.reader": ("ledger.store.base", "projections", "ledger.events", "ledger.errors"),
    "ledger.following": ("ledger.store.base", "projections", "ledger.events", "ledger.errors"),
    "ledger.searching": ("ledger.store.base", "ledger.store.search_base", "projections", "ledger.events"),
    "ledger.prices": (),
    "ledger.moving": ("ledger.store.base", "ledger.events", "ledger.errors"),
    "ledger.http": (
        "ledger",  # the version
        "ledger.store.base",
        "ledger.store.cursors",
        "ledger.store.search_base",
        "ledger.reader",
        "ledger.following",
        "ledger.prices",
        "ledger.commands",
        "projections",
        "ledger.events",
        "ledger.errors",
    ),
    "ledger.client": ("ledger.events", "ledger.errors"),
    "ledger.client.outbox": ("ledger.client", "ledger.store", "ledger.events", "ledger.errors"),
    "ledger.hooks": ("ledger.client", "ledger.transcripts", "ledger.events", "ledger.errors"),
    "ledger.entry": ("ledger.hooks", "ledger.cli"),
    "ledger.transcripts": ("ledger.events", "ledger.errors"),
    "ledger.daemons": ("ledger.client", "ledger.transcripts", "projections", "ledger.events", "ledger.errors"),
    "projections": ("ledger.events",),
    "bundles": ("ledger.client", "projections", "ledger.events", "ledger.errors"),
}
MAY_IMPORT["ledger.cli"] = (*MAY_IMPORT, "ledger.cli")  # everything meets there
BACKENDS = ("ledger.store.memory", "ledger.store.sqlite", "ledger.store.postgres")
DRIVERS = {"sqlite3", "aiosqlite", "asyncpg", "psycopg"}
DRIVERS_ONLY_IN = ("ledger.store", "ledger.transcripts.opencode_db")  # a database of opencode's, not of ours
CHEAP_TO_IMPORT = {"ledger.cli", "ledger.client.api"}
COSTLY = {"httpx", "starlette", "uvicorn", "rich", "jinja2", "aiosqlite"}
IMPURE = {"asyncio", "logging", "os", "random", "secrets", "socket", "subprocess", "threading", "time", "uuid"}


def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((TOP / package).rglob("*.py")):
            parts = path.relative_to(TOP).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def imports(path: Path) -> list[tuple[int, str]]:
    """Every module that a file imports, with the line; those inside functions too."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found += ((node.lineno, name if name in MODULES else str(node.module)) for name in names)
    return found


def lies_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def room_of(module: str) -> str:
    fitting = [room for room in MAY_IMPORT if lies_in(module, room)]
    return max(fitting, key=len)


def allowed(room: str, imported: str) -> bool:
    """Whether a module of `room` may import a module of ours. `ledger` alone is the file that holds the version."""
    rooms = [room, *MAY_IMPORT[room]]
    return imported in rooms or any(lies_in(imported, other) for other in rooms if other != "ledger")


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in (*PACKAGES, "tests")


def families(module: str) -> set[str]:
    """The backends that a module is part of: ledger.store.sqlite_writer is part of ledger.store.sqlite."""
    return {backend for backend in BACKENDS if module.startswith(backend)}


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("projections.goal", "ledger.store.base"),
        ("ledger.http.read", "ledger.store.sqlite"),
        ("ledger.client.api", "ledger.http.problems"),
        ("ledger.store.sqlite", "ledger.http"),
        ("ledger.transcripts.model", "ledger.client.api"),
        ("ledger.some_new_module", "ledger.events"),
        ("bundles.runner", "ledger.cli"),
    ],
)
def test_the_rules_refuse_what_the_design_forbids(module: str, imported: str) -> None:
    assert not allowed(room_of(module), imported)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_the_rooms_it_may(module: str) -> None:
    room = room_of(module)
    wrong = [
        f"line {line}: {imported}"
        for line, imported in imports(MODULES[module])
        if is_ours(imported) and not allowed(room, imported)
    ]
    assert not wrong, f"{module} (of {room}) must not import {wrong}"


def test_no_backend_imports_another() -> None:
    wrong = [
        (module, imported)
        for module, path in MODULES.items()
        for _, imported in imports(path)
        if families(module) and families(imported) and families(module) != families(imported)
    ]
    assert not wrong


def test_only_the_stores_know_a_database_driver() -> None:
    wrong = [
        (module, imported)
        for module, path in MODULES.items()
        for _, imported in imports(path)
        if imported.partition(".")[0] in DRIVERS and not any(lies_in(module, room) for room in DRIVERS_ONLY_IN)
    ]
    assert not wrong


def test_a_projection_has_no_clock_no_chance_and_no_world() -> None:
    wrong = [
        (module, imported)
        for module, path in MODULES.items()
        if lies_in(module, "projections")
        for _, imported in imports(path)
        if imported.partition(".")[0] in IMPURE
    ]
    assert not wrong


def test_what_a_daemon_embeds_and_the_command_start_fast() -> None:
    for module in CHEAP_TO_IMPORT & MODULES.keys():
        tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
        at_the_top = {
            name.partition(".")[0]
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
        }
        assert not at_the_top & COSTLY, module


def python_files() -> list[Path]:
    return [*MODULES.values(), *sorted((TOP / "tests").rglob("*.py"))]


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(TOP)))
def test_a_module_stays_small(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MODULE_LINES_MAX, f"{lines} lines: part it by duty"


def test_nothing_names_a_path_of_one_machine() -> None:
    path_of_a_home = re.compile(r"(?<![\w.])/(?:home|root|Users|work)/\w")
    wrong = [
        f"{path.relative_to(TOP)}:{number}"
        for path in MODULES.values()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if path_of_a_home.search(line)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "path", sorted((TOP / "tests").rglob("test_*.py")), ids=lambda path: str(path.relative_to(TOP))
)
def test_a_test_file_asserts_something(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    asserts = any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    raises = any(isinstance(node, ast.Attribute) and node.attr == "raises" for node in ast.walk(tree))
    borrows = any(imported.startswith("tests.") for _, imported in imports(path))
    assert asserts or raises or borrows
