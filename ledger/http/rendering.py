"""The web pages as pure functions: what the projections say in, HTML out.

Every page takes `me`, who is reading: `{name, role, csrf}`, or None for nobody; and `now`, nanoseconds since the
Unix epoch, from which ages are counted. Times inside are RFC 3339 texts. Whatever is put into a page passes
`agent_text.plain` and is escaped; only `agent_text.terminal` adds markup of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from ledger.events.times import format_instant
from ledger.http.agent_text import first_sentence, plain, terminal
from ledger.http.page_rows import is_end_slot, narrative_rows, session_entries, text_of

Json = Mapping[str, Any]
Me = Mapping[str, str] | None

STATIC = Path(__file__).with_name("static")
INLINE_CHARS_MAX = 4_000  # of one text shown on a page; the rest is a link away
STATUSES = ("created", "queued", "running", "working", "waiting", "suspended", "done", "failed", "cancelled")
_NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def home_page(fleet: Json, me: Me, *, now: int) -> str:
    """The fleet: what needs a person, what failed, what fell silent, what runs and what ended."""
    said = {"headline": _headline(fleet), "at_work": _at_work(fleet), "alarm": bool(fleet["failed"])}
    return _render("home.html", me, now, fleet=fleet, **said)


def goals_page(listing: Json, me: Me, *, now: int, status: str | None = None) -> str:
    """A page of goals: `{items, next}`; `status` is the filter that made it."""
    return _render("goals.html", me, now, listing=listing, status=status)


def tasks_page(listing: Json, me: Me, *, now: int, status: str | None = None) -> str:
    """A page of tasks: `{items, next}`; `status` is the filter that made it."""
    return _render("tasks.html", me, now, listing=listing, status=status)


def goal_page(goal: Json, me: Me, *, now: int) -> str:
    """A goal as GET /api/goals/ID gives it."""
    titles = {task["id"]: task["title"] or f"Task {task['id']}" for task in goal["tasks"]}
    titles.pop(goal["run_task_id"], None)
    rows = narrative_rows(goal["events"], titles)
    return _render("goal.html", me, now, goal=goal, rows=rows, alarm=goal["status"] == "failed")


def task_page(task: Json, me: Me, *, now: int) -> str:
    """A task as GET /api/tasks/ID gives it."""
    rows = narrative_rows(task["events"], {})
    return _render("task.html", me, now, task=task, rows=rows, alarm=task["status"] == "failed")


def session_page(session: Json, events: list[Json], paging: Json, me: Me, *, now: int) -> str:
    """A session and a stretch of its events in seq order, payloads parsed. `paging` holds `previous` and `next`:
    the seq from which the page before or after this one starts, or None where there is none."""
    entries = session_entries(events)
    return _render("session.html", me, now, session=session, entries=entries, paging=paging)


def login_page(*, now: int, problem: str = "", next_path: str = "/") -> str:
    """The form that takes a token, also from the fragment of its address. `problem` says why the last try failed;
    `next_path` is where to go afterwards."""
    return _render("login.html", None, now, problem=problem, next_path=next_path)


def problem_page(status: int, title: str, detail: str, hint: str, me: Me = None, *, now: int) -> str:
    """What went wrong, and what to do next."""
    return _render("problem.html", me, now, status=status, heading=title, detail=detail, hint=hint)


def _render(template: str, me: Me, now: int, **values: object) -> str:
    return (
        _environment()
        .get_template(template)
        .render({"me": me, "now": now, "current_to": format_instant(now), "alarm": False, **values})
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "age": _age,
        "cents": _dollars,
        "clock": _clock,
        "count": _count,
        "first_sentence": lambda text: first_sentence(plain(text)),
        "json_text": text_of,
        "named": lambda title, noun, name: title.strip() or f"{noun} {name}",
        "pathid": lambda text: quote(_encodable(str(text)), safe="@"),
        "query": _query,
        "seq_name": lambda seq: "end" if is_end_slot(seq) else str(seq),
        "short": _short,
        "terminal": terminal,
    }
    environment.globals |= {"cut": _cut, "STATUSES": STATUSES}
    return environment


def _visible(value: object) -> object:
    """What Jinja runs over everything it is about to escape."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _headline(fleet: Json) -> str:
    needs, failed = len(fleet["needs_you"]), len(fleet["failed"])
    parts = []
    if needs:
        parts.append(f"{_number(needs)} {'thing needs' if needs == 1 else 'things need'} you")
    if failed:
        parts.append(f"{_number(failed)} failed")
    return _sentence(", ".join(parts) or "nothing needs you")


def _at_work(fleet: Json) -> str:
    running, silent = len(fleet["running"]), len(fleet["silent"])
    said = f"{_number(running) if running else 'nothing'} {'are' if running > 1 else 'is'} under way"
    return _sentence(f"{said}, {_number(silent)} silent." if silent else f"{said}.")


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _number(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def _cut(text: str) -> tuple[str, int, str]:
    """(head, characters left out, tail) of a text: its beginning and its end, INLINE_CHARS_MAX together."""
    left_out = len(text) - INLINE_CHARS_MAX
    if left_out <= 0:
        return text, 0, ""
    return text[: INLINE_CHARS_MAX // 2], left_out, text[-INLINE_CHARS_MAX // 2 :]


def _short(text: str, chars_max: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= chars_max else text[: chars_max - 1].rstrip() + "…"


def _count(number: int) -> str:
    return f"{number:,}"


def _dollars(amount: float) -> str:
    return f"$ {amount:,.2f}" if amount >= 0.01 or amount == 0 else "under $ 0.01"


def _query(values: Json) -> str:
    return urlencode({name: _encodable(str(value)) for name, value in values.items() if value is not None})


def _instant(at: str | None) -> datetime | None:
    """A time as the projections write it; fractions below a microsecond are dropped."""
    try:
        return datetime.fromisoformat(at).astimezone(UTC) if at else None
    except ValueError:
        return None


def _time_element(at: str | None, show: str, said: Iterable[str]) -> Markup:
    when = _instant(at)
    if when is None:
        return Markup('<span class="faint">no time</span>')
    title = f"{when.day} {when:%B %Y, %H:%M:%S} UTC"
    element = Markup('<time datetime="{}" title="{}" data-show="{}">{}</time>')
    return element.format(when.isoformat(timespec="milliseconds"), title, show, " ".join(said))


def _now(context: Context) -> datetime:
    return datetime.fromtimestamp(context["now"] / 1e9, UTC)


@pass_context
def _age(context: Context, at: str | None) -> Markup:
    """How long ago, in one unit: `4 s`, `12 min`, `3 h`, `2 d`. static/times.js counts on by the same rule."""
    when = _instant(at)
    seconds = max(0, int((_now(context) - when).total_seconds())) if when else 0
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return _time_element(at, "age", [f"{seconds // length} {unit}"])
    return _time_element(at, "age", [f"{seconds} s"])


@pass_context
def _clock(context: Context, at: str | None, seconds: bool = False) -> Markup:
    """The time of day, with the date where that is not today. UTC; static/times.js turns it to local time."""
    when = _instant(at)
    if when is None:
        return _time_element(at, "clock", [])
    today = when.date() == _now(context).date()
    date = [] if today else [_date(when, _now(context))]
    return _time_element(
        at, "seconds" if seconds else "clock", [*date, f"{when:%H:%M:%S}" if seconds else f"{when:%H:%M}"]
    )


def _date(when: datetime, now: datetime) -> str:
    return f"{when.day} {when:%b}" if when.year == now.year else f"{when.day} {when:%b %Y}"
