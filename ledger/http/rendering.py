"""The web pages as pure functions: what the projections say in, HTML out.

Every page takes `me`, who is reading: `{who, role, csrf}`, or None for nobody; and `now`, nanoseconds since the
Unix epoch, from which ages are counted. Times inside are RFC 3339 texts. Whatever is put into a page passes
`agent_text.plain` and is escaped; only `agent_text.terminal` adds markup of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from ledger.events.model import END_SEQ
from ledger.events.times import format_instant
from ledger.http import page_words
from ledger.http.agent_text import first_sentence, plain, terminal
from ledger.http.diffs import drawn
from ledger.http.incidents_rows import HOW, dot_of, headline, high_unresolved
from ledger.http.loop_rows import brake_rows, next_steps, overdue, round_rows, scores_plot, stands
from ledger.http.page_rows import narrative_rows, session_tree
from ledger.http.remediation_rows import DOTS, status_of_run, story_rows
from ledger.http.session_rows import is_end_slot, session_entries, text_of
from projections.incidents import SEVERITIES

Json = Mapping[str, Any]
Me = Mapping[str, str] | None

STATIC = Path(__file__).with_name("static")
INLINE_CHARS_MAX = 4_000  # of one text shown on a page; the rest is a link away
STATUSES = (
    "created",
    "queued",
    "running",
    "working",
    "waiting",
    "suspended",
    "silent",
    "done",
    "failed",
    "cancelled",
)
SESSIONS_SHOWN = 50
_DAY_NS = 24 * 3600 * 10**9


def home_page(fleet: Json, me: Me, *, now: int) -> str:
    """The fleet: what needs a person, what failed, what fell silent, what runs and what ended."""
    day_ago = format_instant(now - _DAY_NS)
    new_incidents, high = high_unresolved(fleet["incidents"])
    return _render(
        "home.html",
        me,
        now,
        fleet=fleet,
        alarm=bool(fleet["failed"] or new_incidents),
        headline=page_words.headline(fleet, new_incidents),
        new_incidents=new_incidents,
        high=high,
        agents=page_words.agents_at_work(fleet),
        last_word=max((saddle["last_contact"] for saddle in fleet["saddles"]), default=None),
        questions={item["task_id"]: item["question"] for item in fleet["needs_you"]},
        silent={item["task_id"] for item in fleet["silent"]},
        ended_today=[item for item in fleet["ended"] if item["ended_at"] >= day_ago],
        ended_before=[item for item in fleet["ended"] if item["ended_at"] < day_ago],
    )


def goals_page(listing: Json, me: Me, *, now: int, status: str | None = None) -> str:
    """A page of goals: `{items, next}`; `status` is the filter that made it."""
    return _render("goals.html", me, now, listing=listing, status=status)


def tasks_page(listing: Json, me: Me, *, now: int, status: str | None = None) -> str:
    """A page of tasks: `{items, next}`; `status` is the filter that made it."""
    return _render("tasks.html", me, now, listing=listing, status=status)


def goal_page(goal: Json, me: Me, *, now: int, past: Sequence[Json] = (), then: str | None = None) -> str:
    """A goal as GET /api/goals/ID gives it. `past` are moments of its history, `{cursor, at, kind}`; `then` is the
    cursor of the one that is shown, None for now."""
    titles = {task["id"]: task["title"] or f"Task {task['id']}" for task in goal["tasks"]}
    titles.pop(goal["run_task_id"], None)
    rows = narrative_rows(goal["events"], titles)
    past_at = next((moment["at"] for moment in past if moment["cursor"] == then), None)
    alarm = goal["status"] == "failed"
    return _render("goal.html", me, now, goal=goal, rows=rows, past=past, then=then, past_at=past_at, alarm=alarm)


def task_page(task: Json, me: Me, *, now: int) -> str:
    """A task as GET /api/tasks/ID gives it; the newest SESSIONS_SHOWN of its sessions."""
    rows = narrative_rows(task["events"], {})
    tree = session_tree(task["sessions"][-SESSIONS_SHOWN:])
    return _render("task.html", me, now, task=task, rows=rows, tree=tree, alarm=task["status"] == "failed")


def session_page(session: Json, events: Sequence[Json], paging: Json, me: Me, *, now: int) -> str:
    """A session and a stretch of its events in seq order, payloads parsed. `paging` holds `previous` and `next`:
    the seq from which the page before or after this one starts, or None where there is none."""
    entries = session_entries(events)
    return _render("session.html", me, now, session=session, entries=entries, paging=paging)


def event_page(session: Json, event: Json, me: Me, *, now: int) -> str:
    """One event of a session with all of its text."""
    (entry,) = session_entries([event])
    return _render("event.html", me, now, session=session, entry=entry, payload=event["payload"], whole=True)


def runs_page(listing: Json, me: Me, *, now: int) -> str:
    """A page of runs: `{items, next}`, each with `dot` and `said` (`remediation_rows.status_of_run`)."""
    return _render("runs.html", me, now, listing=listing)


def run_page(run: Json, me: Me, *, now: int, title: str, sessions: Sequence[Json], plan_text: str) -> str:
    """A run as `projections.remediation.story.page` gives it, with `cancelled` and `cursor`; `sessions` are those of
    its task, `plan_text` its plan as JSON, empty where that is too long for a form."""
    dot, said = status_of_run(run)
    told = {"title": title, "sessions": sessions, "plan_text": plan_text, "dot": dot, "said": said, "dots": DOTS}
    rows = story_rows(run["rows"])
    path = _path_of_run(run)
    return _render("run.html", me, now, run=run, rows=rows, path=path, **told)


def exchange_page(run: Json, row: Json, me: Me, *, now: int) -> str:
    """One prompt of a run with its reply and its verdict, with all of their text."""
    [told] = story_rows([row])
    return _render("exchange.html", me, now, run=run, row=told, path=_path_of_run(run), whole=True)


def _path_of_run(run: Json) -> str:
    return f"/runs/{page_words.in_path(run['run_id'])}"


def loops_page(listing: Json, me: Me, *, now: int, name: str | None = None) -> str:
    """A page of loops as GET /api/loops gives it; all of one `name`, if that is given."""
    rows = [(one, *stands(one), overdue(one, now)) for one in listing["items"]]
    return _render("loops.html", me, now, listing=listing, rows=rows, name=name)


def loop_page(found: Json, me: Me, *, now: int) -> str:
    """A loop as GET /api/loops/ID gives it."""
    dot, said = stands(found)
    told = {"dot": dot, "said": said, "rounds": round_rows(found["rounds"]), "steps": next_steps(found, now)}
    told["brakes"] = brake_rows(found["brakes"], found["cost_usd"])
    path = f"/loops/{page_words.in_path(found['task_id'])}"
    return _render("loop.html", me, now, it=found, plot=scores_plot(found["scores"]), path=path, **told)


def incidents_page(listing: Json, asked: Json, me: Me, *, now: int, plots: Iterable[object]) -> str:
    """A page of incidents as GET /api/incidents gives it; `asked` are the filters that made it. `plots` as on the
    page of trends."""
    said = headline(listing["counts"], listing["registers"])
    shown = {severity: [one for one in listing["items"] if one["severity"] == severity] for severity in SEVERITIES}
    told = {"said": said, "shown": shown, "plots": plots, "asked_for": asked, "dot_of": dot_of, "how": HOW}
    return _render("incidents.html", me, now, listing=listing, **told)


def incident_page(found: Json, me: Me, *, now: int) -> str:
    """An incident as GET /api/incidents/ID gives it."""
    return _render("incident.html", me, now, one=found, dot_of=dot_of)


def search_page(answer: Json | None, asked: Json, me: Me, *, now: int, sorts: Iterable[str]) -> str:
    """The search form filled with what was `asked` (`q` and the filters), and the answer of GET /api/search to it;
    None where nothing was asked."""
    wanted = {name: value for name, value in asked.items() if value}
    return _render("search.html", me, now, answer=answer, asked=asked, wanted=wanted, sorts=sorts)


def trends_page(plots: Iterable[object], me: Me, *, now: int, days: int, offered: Iterable[int], behind: int) -> str:
    """The plots (`ledger.http.trends.Plot`) over the last `days`. `behind` counts the events that are not in them."""
    return _render("trends.html", me, now, plots=plots, days=days, offered=offered, behind=behind)


def login_page(*, now: int, problem: str = "", next_path: str = "/") -> str:
    """The form that takes a token, also from the fragment of its address. `problem` says why the last try failed;
    `next_path` is where to go afterwards."""
    return _render("login.html", None, now, problem=problem, next_path=next_path)


def problem_page(status: int, title: str, detail: str, hint: str, me: Me = None, *, now: int) -> str:
    """What went wrong, and what to do next."""
    plainly = page_words.problem(status)
    return _render("problem.html", me, now, status=status, heading=title, plainly=plainly, detail=detail, hint=hint)


def _render(template: str, me: Me, now: int, **values: object) -> str:
    return (
        _environment()
        .get_template(template)
        .render({"me": me, "now": now, "current_to": format_instant(now), "alarm": False, "whole": False, **values})
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
        "diff": drawn,
        "duration": page_words.duration,
        "first_sentence": lambda text: first_sentence(plain(text)),
        "json_text": text_of,
        "named": lambda title, noun, name: title.strip() or f"{noun} {name}",
        "plain_clock": lambda at: f"{at[:10]} {at[11:19]} UTC",
        "pathid": lambda text: page_words.in_path(str(text)),
        "query": _query,
        "seq_name": lambda seq: "end" if is_end_slot(seq) else str(seq),
        "short": _short,
        "terminal": terminal,
        "tokens": page_words.tokens,
    }
    environment.globals |= {
        "cut": _cut,
        "END_SEQ": END_SEQ,
        "seconds_between": page_words.seconds_between,
        "STATUSES": STATUSES,
    }
    return environment


def _visible(value: object) -> object:
    """What Jinja runs over everything it is about to escape."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _cut(text: str, whole: bool = False) -> tuple[str, int, str]:
    """(head, characters left out, tail) of a text: its beginning and its end, INLINE_CHARS_MAX together."""
    left_out = len(text) - INLINE_CHARS_MAX
    if left_out <= 0 or whole:
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
    return urlencode(
        {name: str(value).encode("utf-8", "replace") for name, value in values.items() if value is not None}
    )


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
