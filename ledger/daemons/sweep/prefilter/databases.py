"""The destruction of data in databases: SQL that a client is given, and the commands that drop, reset or flush."""

from __future__ import annotations

import re
from collections.abc import Callable

from ledger.daemons.sweep.model import DESTROYS, DONE, RISKS
from ledger.daemons.sweep.prefilter.known import Known, operands
from ledger.daemons.sweep.prefilter.matching import Rule
from ledger.daemons.sweep.prefilter.shell import Command, words
from ledger.daemons.sweep.prefilter.wrapping import printed

SQL_CHARS_MAX = 256 * 1024

SQL_DROP = Rule("sql-drop", DONE, DESTROYS, "A table, a schema or a whole database is dropped.")
SQL_EMPTY = Rule("sql-empty", DONE, DESTROYS, "All rows of a table are deleted.")
SQL_ALL_ROWS = Rule("sql-update-all", DONE, DESTROYS, "All rows of a table are changed: no WHERE.")
SQL_FILE = Rule("sql-file", DONE, DESTROYS, "A file of SQL is run that by its name drops, resets or deletes.")
RESET = Rule("database-reset", DONE, DESTROYS, "A database is dropped, emptied or made anew.")
BACKWARDS = Rule("migration-backwards", DONE, RISKS, "A migration is taken back, and what it added is lost.")

_CLIENTS = words(
    "psql mysql mariadb sqlite3 sqlite sqlcmd duckdb clickhouse-client clickhouse cockroach pgcli mycli litecli cqlsh"
    " bq snowsql trino presto usql"
)
_NOISE = re.compile(r"--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|'(?:[^']|'')*+'")
_TEMPORARY = re.compile(r"\b(?:TEMP|TEMPORARY|IF\s+EXISTS\s+\W?(?:tmp|temp|test)_)", re.IGNORECASE)
_DROP = re.compile(
    r"(?:DROP\s+(?:TABLE|DATABASE|SCHEMA|VIEW|COLUMN|USER|ROLE|OWNED|KEYSPACE|COLLECTION|TYPE|FUNCTION)"
    r"|ALTER\s+TABLE\b.{1,300}?\bDROP\s+(?!CONSTRAINT|INDEX|DEFAULT|NOT))",
    re.IGNORECASE | re.DOTALL,
)
_EMPTY = re.compile(r"TRUNCATE\b|DELETE\s+FROM\b", re.IGNORECASE)
_UPDATE = re.compile(r"UPDATE\s+\S+\s+SET\b", re.IGNORECASE)
_WHERE = re.compile(r"\bWHERE\b|\bLIMIT\b", re.IGNORECASE)
_MONGO = re.compile(r"dropDatabase\(|\.drop\(|(?:deleteMany|remove|updateMany)\(\s{0,3}\{\s{0,3}\}")
_NAMED_FILE = re.compile(r"(?:drop|wipe|reset|truncate|purge|destroy|delete)[\w-]{0,80}\.sql$", re.IGNORECASE)
_IN_SCRATCH = (":memory:", "/tmp/", "/var/tmp/")  # noqa: S108

# What a command's words hold in a row, by its name
_RESETS: dict[str, tuple[tuple[str, ...], ...]] = {
    "dropdb": ((),),
    "dropuser": ((),),
    "mysqladmin": (("drop",),),
    "prisma": (("migrate", "reset"), ("--force-reset",), ("--accept-data-loss",)),
    "supabase": (("db", "reset"),),
    "drizzle-kit": (("drop",), ("push", "--force")),
    "typeorm": (("schema:drop",),),
    "sequelize": (("db:drop",),),
    "sequelize-cli": (("db:drop",),),
    "mix": (("ecto.drop",), ("ecto.reset",)),
    "diesel": (("database", "reset"),),
    "sqlx": (("database", "drop"), ("database", "reset")),
    "rails": (("db:drop",), ("db:reset",), ("db:purge",), ("db:schema:load",), ("db:migrate:reset",)),
    "rake": (("db:drop",), ("db:reset",), ("db:purge",), ("db:schema:load",), ("db:migrate:reset",)),
    "artisan": (("migrate:fresh",), ("migrate:refresh",), ("migrate:reset",), ("db:wipe",)),
    "manage.py": (("flush",), ("reset_db",)),
    "pg_restore": (("--clean",), ("-c",)),
    "influx": (("delete",), ("bucket", "delete")),
}
_BACKWARDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "alembic": (("downgrade",),),
    "rails": (("db:rollback",),),
    "rake": (("db:rollback",),),
    "artisan": (("migrate:rollback",),),
    "knex": (("migrate:rollback",), ("migrate:down",)),
    "manage.py": (("zero",),),
    "mix": (("ecto.rollback",),),
    "flyway": (("undo",), ("clean",)),
}


def rule_of(command: Command, known: Known) -> Rule | None:
    name, given = command.name, command.words[1:]
    if name in _CLIENTS or (name in ("wrangler", "turso", "supabase") and ("execute" in given or "shell" in given)):
        return _given_sql(command, known)
    if name == "redis-cli":
        return RESET if any(word.upper() in ("FLUSHALL", "FLUSHDB") for word in given) else None
    if name in ("mongosh", "mongo"):
        return SQL_DROP if _MONGO.search("\n".join([*given, command.stdin, printed(command.feeds)])) else None
    if name.startswith("python") or name in ("php", "bin/rails"):  # python manage.py flush
        given = operands(given)
        name, given = (given[0].rpartition("/")[2], given[1:]) if given else (name, given)
    elif name in ("npm", "yarn", "pnpm", "bun"):
        return RESET if any(word in ("db:reset", "db:drop", "db:wipe", "reset-db") for word in given) else None
    if any(_holds(given, row) for row in _RESETS.get(name, ())):
        return RESET
    return BACKWARDS if any(_holds(given, row) for row in _BACKWARDS.get(name, ())) else None


def sql_rule(sql: str) -> Rule | None:
    """The worst that a text of SQL does; comments and strings in it do nothing."""
    found: list[Rule] = []
    for statement in _NOISE.sub(" '' ", sql[:SQL_CHARS_MAX]).split(";"):
        text = statement.strip()
        if _TEMPORARY.search(text[:200]):
            continue
        if _starts(_DROP.match, text):
            found.append(SQL_DROP)
        elif _starts(_EMPTY.search, text[:2_000]) and _WHERE.search(text) is None and _begins_a_change(text):
            found.append(SQL_EMPTY)
        elif _starts(_UPDATE.match, text) and _WHERE.search(text) is None:
            found.append(SQL_ALL_ROWS)
    return min(found, key=(SQL_DROP, SQL_EMPTY, SQL_ALL_ROWS).index, default=None)


def _starts(matches: Callable[[str], object], text: str) -> bool:
    return matches(text) is not None


def _begins_a_change(text: str) -> bool:
    return text[:8].upper().startswith(("TRUNCATE", "DELETE", "WITH", "EXPLAIN"))


def _given_sql(command: Command, known: Known) -> Rule | None:
    operand = [word for word in command.words[1:] if not word.startswith("-")]
    if command.name in ("sqlite3", "sqlite", "duckdb", "litecli"):
        if not operand:
            return None
        place = known.place(operand[0], command.folder)
        if place.endswith(_IN_SCRATCH) or known.is_scratch(place) or known.made(place):
            return None
    files = [*command.words[1:], *(target for _, target in command.redirects)]
    if any(_NAMED_FILE.search(file) for file in files):
        return SQL_FILE
    return sql_rule(";".join([*_unfolded(command.words[1:]), command.stdin, printed(command.feeds)]))


def _unfolded(given: list[str]) -> list[str]:
    """Words, and what is said behind `-c`, `-e` or `--command=` without the option."""
    return [
        word.partition("=")[2] if word.startswith("--") and "=" in word else word.removeprefix("-e") for word in given
    ]


def _holds(given: list[str], row: tuple[str, ...]) -> bool:
    return not row or any(tuple(given[at : at + len(row)]) == row for at in range(len(given) - len(row) + 1))
