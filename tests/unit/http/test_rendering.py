from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from ledger.http import rendering
from tests.unit.http import loop_samples as loops
from tests.unit.http import page_samples as samples
from tests.unit.http import run_samples as runs
from tests.unit.http.page_samples import NOW, OWNER, READER, event, row


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


HOSTILE = (
    "<script>window.pwned = 1</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</pre></details></title></main></body>",
    "javascript:alert(1)",
    "{{ 7 * 191 }}{% raw %}",
    "\x1b[31mred\x1b[r\x1b[1;1H\x1b]8;;http://evil.example\x07click\x1b]8;;\x07",
    "\x00\x08\x7f\x9b\u202eexe.txt\u2066\u200f\ud83d",
    "&lt;&#x3c;script>",
    "../../x?y#z",
)
TAGS = words(
    """a abbr aside b bdi body br button circle code dd desc details div dl dt figcaption figure footer form h1 h2 h3
    head header html i input label li line link main meta nav ol option p pre rect script section select small span
    summary sup svg table tbody td text textarea th thead time title tr ul"""
)
ATTRIBUTES = words(
    """action aria-current aria-hidden aria-keyshortcuts aria-label aria-labelledby autocomplete autofocus charset
    class content cx cy data-at data-cursor data-hold data-part data-root data-show datetime for height hidden href id
    lang maxlength method name open placeholder preserveaspectratio r rel required reversed role rows selected
    spellcheck src tabindex text-anchor title type value viewbox width x x1 x2 y y1 y2"""
)
OPEN_ENDED = frozenset({"br", "input", "link", "meta"})


class Parsed(HTMLParser):
    """The tags of a page with their attributes, and its text. Fails where tags do not nest."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def classed(self, name: str) -> list[dict[str, str]]:
        return [attributes for _, attributes in self.tags if name in attributes.get("class", "").split()]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in OPEN_ENDED:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def goal_page(**more: Any) -> Parsed:
    return Parsed(rendering.goal_page(samples.goal(**more), OWNER, now=NOW))


def task_page(**more: Any) -> Parsed:
    return Parsed(rendering.task_page(samples.task(**more), OWNER, now=NOW))


def session_page(events: list[dict[str, Any]], me: dict[str, str] = OWNER, **more: Any) -> Parsed:
    paging = {"previous": None, "next": None}
    return Parsed(rendering.session_page(samples.session(**more), events, paging, me, now=NOW))


ALL_ROWS = [
    row(kind, "why", position=position, task_id=("12", "13")[position % 2])
    for position, kind in enumerate(
        words(
            """goal-created goal-started task-started comment waiting suspended resumed error task-done task-failed
        task-cancelled goal-done goal-failed goal-cancelled of-a-later-version"""
        )
    )
]
PAGES: dict[str, Callable[[Callable[[Any], Any]], str]] = {
    "home": lambda f: rendering.home_page(f(samples.fleet()), f(OWNER), now=NOW),
    "empty home": lambda f: rendering.home_page(f(samples.empty_fleet()), f(OWNER), now=NOW),
    "goals": lambda f: rendering.goals_page(f(samples.goals()), f(OWNER), now=NOW, status=f("done")),
    "tasks": lambda f: rendering.tasks_page(f(samples.tasks()), f(OWNER), now=NOW),
    "no goals": lambda f: rendering.goals_page({"items": [], "next": None}, OWNER, now=NOW, status=f("done")),
    "no tasks": lambda f: rendering.tasks_page({"items": [], "next": None}, OWNER, now=NOW, status=f("done")),
    "goal": lambda f: rendering.goal_page(f(samples.goal(events=ALL_ROWS)), OWNER, now=NOW),
    "goal as it stood": lambda f: rendering.goal_page(
        f(samples.goal(events=ALL_ROWS)), OWNER, now=NOW, past=f(samples.past()), then="c1"
    ),
    "event": lambda f: rendering.event_page(
        f(samples.session()), event(4, "tool_result", {"output": f("x" * 5000)}), OWNER, now=NOW
    ),
    "task": lambda f: rendering.task_page(f(samples.task(events=ALL_ROWS)), OWNER, now=NOW),
    "login": lambda f: rendering.login_page(now=NOW, problem=f("no"), next_path=f("/goals/7")),
    "problem": lambda f: rendering.problem_page(404, f("Gone"), f("no goal"), f("look"), f(OWNER), now=NOW),
    **loops.PAGES,
    **runs.PAGES,
}
for shape in samples.events():
    PAGES[f"session with {shape['kind']} {shape['seq']}"] = lambda f, shape=shape: rendering.session_page(
        f(samples.session()),
        [{**shape, "payload": f(shape["payload"]), "actor": f("model"), "at": f(shape["at"])}],
        {"previous": 1, "next": 2},
        OWNER,
        now=NOW,
    )


def poisoned(value: Any, poison: str) -> Any:
    """The value with every string in it replaced; the names of fields stay."""
    if isinstance(value, str):
        return poison
    if isinstance(value, dict):
        return {name: poisoned(inner, poison) for name, inner in value.items()}
    return [poisoned(inner, poison) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("poison", HOSTILE, ids=lambda text: ascii(text)[:24])
@pytest.mark.parametrize("page", PAGES)
def test_no_field_of_any_page_is_markup(page: str, poison: str) -> None:
    html = PAGES[page](lambda value: poisoned(value, poison))
    html.encode()  # a lone surrogate would fail here
    parsed = Parsed(html)
    for tag, attributes in parsed.tags:
        assert tag in TAGS
        assert attributes.keys() <= set(ATTRIBUTES), tag
        for address in (attributes.get(name) for name in ("href", "src", "action")):
            assert address is None or address.startswith(("#", "?", "/")), address
            assert not (address or "").startswith("//")
        if tag == "script":
            assert attributes["src"] in ("/static/live.js", "/static/login.js", "/static/find.js")
    shown = "".join(parsed.texts) + "".join("".join(attributes.values()) for _, attributes in parsed.tags)
    assert not any(ord(character) < 32 and character not in "\n\t" for character in shown)
    assert not any(mark in shown for mark in "\x7f\x9b\u202e\u2066\u200f\ud83d")
    assert "1337" not in shown


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_one_heading_a_main_part_and_a_title(page: str) -> None:
    tags = [tag for tag, _ in Parsed(PAGES[page](lambda value: value)).tags]
    assert [tags.count(name) for name in ("h1", "main")] == [1, 1]
    assert tags[: tags.index("body")].count("title") == 1  # plots have titles of their own


@pytest.mark.parametrize("page", PAGES)
def test_no_page_carries_inline_scripts_or_styles(page: str) -> None:
    parsed = Parsed(PAGES[page](lambda value: value))
    assert all("src" in attributes for tag, attributes in parsed.tags if tag == "script")
    assert not any(tag == "style" or "style" in attributes for tag, attributes in parsed.tags)


def test_a_title_says_the_status_first() -> None:
    assert "<title>failed · Fuzz it · ledgerd</title>" in rendering.task_page(samples.task(), OWNER, now=NOW)
    assert "<title>1 need you · ledgerd</title>" in rendering.home_page(samples.fleet(), OWNER, now=NOW)


def test_the_icon_is_red_where_something_failed() -> None:
    def icon(html: str) -> str:
        return next(attributes["href"] for tag, attributes in Parsed(html).tags if attributes.get("rel") == "icon")

    assert icon(rendering.task_page(samples.task(), OWNER, now=NOW)) == "/static/favicon-failed.svg"
    assert icon(rendering.task_page(samples.task(status="done"), OWNER, now=NOW)) == "/static/favicon.svg"


def test_a_short_remark_stands_whole_in_its_row() -> None:
    page = goal_page(events=[row("comment", "It builds now.")])
    assert len(page.classed("remark")) == 1
    assert "It builds now." in page.text
    assert page.classed("footnote") == []


def test_a_longer_remark_shows_its_first_sentence_and_is_whole_in_a_footnote() -> None:
    body = "It builds now. The linker needed more memory.\nNext: the tests."
    page = goal_page(events=[row("comment", body, position=40)])
    assert page.text.count("It builds now.") == 2
    assert " ".join(body.split()) in page.text
    assert [part["id"] for part in page.classed("footnote")] == ["f-40"]
    assert {"m-40", "f-40"} <= {attributes.get("id") for _, attributes in page.tags}


def test_footnotes_are_numbered_from_the_oldest() -> None:
    rows = [row("comment", f"Step {name}. And more.", position=number) for number, name in enumerate("ab")]
    page = goal_page(events=rows)
    assert "Step b.2 " in page.text
    assert page.text.index("Step b.2") < page.text.index("Step a.1")


def test_a_failure_says_its_explanation_once_and_how_often_it_came() -> None:
    goal = {"status": "failed", "summary": "the harness collapsed", "ended_at": samples.AT}
    said_by = ["s-1", "s-2"]
    failed = row("goal-failed", "the harness collapsed\nsignal 9", copies=4, deliveries=115, said_by=said_by)
    page = goal_page(events=[failed], **goal)
    assert page.text.count("signal 9") == 1
    assert "× 115 deliveries, 4 sessions" in page.text
    assert "and 2 more" in page.text
    assert any(attributes.get("href", "").startswith("/sessions/s-2?from=") for _, attributes in page.tags)


def test_a_task_page_says_why_it_failed_once() -> None:
    page = task_page(events=[row("task-failed", "out of memory", task_id="13", said_by=["s-1"], deliveries=3)])
    assert page.text.count("out of memory") == 1


def test_a_row_said_once_counts_no_copies() -> None:
    assert "×" not in task_page().text


def test_a_row_of_a_further_task_names_it() -> None:
    page = goal_page(events=[row("task-failed", "oom", task_id="13"), row("goal-done", "", task_id="12")])
    assert "Fuzz it failed." in page.text
    assert "The goal is done." in page.text


def test_what_runs_is_shown_only_while_it_runs() -> None:
    assert "cargo test" in goal_page().text
    assert "cargo test" not in goal_page(status="failed", ended_at=samples.AT).text


def test_blocks_are_shown_with_their_reason() -> None:
    assert "waits for the key" in goal_page().text
    assert goal_page(blocks=[]).classed("block") == []


def test_the_open_decisions_are_buttons_of_the_owner_and_carry_the_csrf_token() -> None:
    page = goal_page()
    forms = [attributes for tag, attributes in page.tags if tag == "form"]
    assert {"method": "post", "action": "/goals/7/cancel"} in forms
    tokens = [attributes["value"] for tag, attributes in page.tags if tag == "input" and attributes["name"] == "csrf"]
    assert tokens == [OWNER["csrf"]] * sum(form["method"] == "post" for form in forms)


def test_a_reader_is_offered_no_decisions() -> None:
    page = Parsed(rendering.goal_page(samples.goal(), READER, now=NOW))
    forms = [attributes for tag, attributes in page.tags if tag == "form"]
    assert [form["action"] for form in forms if form["method"] == "post"] == ["/logout"]


def test_older_rows_are_a_link_away() -> None:
    assert any(attributes.get("href") == "/tasks/13?before=17" for _, attributes in task_page().tags)


def test_a_tool_call_and_its_result_are_one_entry_with_the_command_said_once() -> None:
    page = session_page(samples.events()[2:4])
    assert page.text.count("make test") == 1
    assert len(page.classed("exchange")) == 1
    assert {"e-1", "e-2"} <= {attributes.get("id") for _, attributes in page.tags}
    assert "exit 1" in page.text


def test_a_failed_exchange_stands_open_and_a_good_one_folded() -> None:
    call = event(1, "tool_call", {"tool": "shell", "args": {"command": "make"}, "call_id": "c"})
    for exit_code, is_open in ((1, True), (0, False)):
        page = session_page([call, event(2, "tool_result", {"call_id": "c", "exit_code": exit_code})])
        opened = [
            "open" in attributes
            for tag, attributes in page.tags
            if attributes.get("id") == "d-1" and tag == "details"
        ]
        assert opened == [is_open]


def test_a_command_that_carries_a_remark_is_no_activity() -> None:
    command = "cat << 'EOF' | ledgerd comment\nIt builds.\nEOF"
    html = rendering.session_page(
        samples.session(),
        [event(1, "tool_call", {"tool": "shell", "args": {"command": command}})],
        {"previous": None, "next": None},
        OWNER,
        now=NOW,
    )
    summary = html[html.index("<summary>") : html.index("</summary>")]
    assert "carried a remark" in summary
    assert "EOF" not in summary


def test_a_long_output_is_cut_and_the_rest_a_link_away() -> None:
    output = "first line\n" + "x" * 1_200_000 + "\nlast line"
    page = session_page([event(4, "tool_result", {"output": output, "exit_code": 0})])
    text = "".join(page.texts)
    assert len(text) < 10_000
    assert "first line" in text
    assert "last line" in text
    assert f"{len(output) - rendering.INLINE_CHARS_MAX:,} characters left out" in text
    assert any(attributes.get("href") == "/sessions/s-1?whole=4" for _, attributes in page.tags)


def test_the_page_of_one_event_has_all_of_its_text() -> None:
    output = "first line\n" + "x" * 100_000 + "\nlast line"
    html = rendering.event_page(
        samples.session(), event(4, "tool_result", {"output": output, "exit_code": 0}), OWNER, now=NOW
    )
    assert "x" * 100_000 in html
    assert "left out" not in html


def test_a_long_text_and_the_whole_of_it_are_known_by_the_same_name() -> None:
    said = event(4, "tool_result", {"stdout": "x" * 9_000, "stderr": "y" * 9_000})
    whole = Parsed(rendering.event_page(samples.session(), said, OWNER, now=NOW))
    for page in (session_page([said]), whole):
        names = [attributes["data-part"] for _, attributes in page.tags if "data-part" in attributes]
        assert names == ["4 stdout", "4 stderr"]


def test_a_goal_as_it_stood_says_so_and_offers_no_decisions_and_no_news() -> None:
    html = rendering.goal_page(samples.goal(), OWNER, now=NOW, past=samples.past(), then="c2")
    page = Parsed(html)
    assert "This is how it stood 1 Dec 02:07:30" in page.text or "This is how it stood 02:07:30" in page.text
    body = next(attributes for tag, attributes in page.tags if tag == "body")
    assert body == {}
    assert page.classed("actions") == []
    chosen = [attributes["value"] for tag, attributes in page.tags if tag == "option" and "selected" in attributes]
    assert chosen == ["c2"]


def test_a_session_says_what_was_asked_and_what_was_said_last() -> None:
    for page in (task_page(), session_page([])):
        assert "Fuzz it." in page.text
        assert "It holds." in page.text
        assert "3 messages, 9 calls, 2 failed, $ 3.07" in page.text


def test_counts_lead_to_the_sessions_they_are_of() -> None:
    addresses = {attributes.get("href") for _, attributes in goal_page().tags}
    assert {"/sessions/s-1#missing", "/sessions/s-1#conflicts"} <= addresses


def test_what_is_silent_says_its_last_words_and_stands_so_among_what_runs() -> None:
    runs = [{**samples.fleet()["running"][0], "status": "running"}]
    page = Parsed(rendering.home_page(samples.fleet(running=runs), OWNER, now=NOW))
    assert "Last said: cargo test" in page.text
    assert "Silent, 2 min" in page.text
    assert len(page.classed("silent")) == 1


def test_what_ended_longer_than_a_day_ago_stands_apart() -> None:
    old = {**samples.fleet()["ended"][0], "id": "8", "ended_at": "2025-11-29T00:00:00Z"}
    page = Parsed(rendering.home_page(samples.fleet(ended=[*samples.fleet()["ended"], old]), OWNER, now=NOW))
    assert page.text.index("Ended in the last 24 hours") < page.text.index("Ended before")


def test_ten_thousand_colour_changes_leave_the_page_small() -> None:
    output = "".join(f"\x1b[3{number % 8}mx" for number in range(10_000))
    html = rendering.session_page(
        samples.session(),
        [event(4, "tool_result", {"output": output})],
        {"previous": None, "next": None},
        OWNER,
        now=NOW,
    )
    assert len(html) < 100_000


def test_a_session_pages_both_ways_and_to_the_newest() -> None:
    html = rendering.session_page(samples.session(), samples.events(), {"previous": 4, "next": 204}, OWNER, now=NOW)
    addresses = {attributes.get("href") for _, attributes in Parsed(html).tags}
    assert {"/sessions/s-1?from=4", "/sessions/s-1?from=204", "/sessions/s-1?from=801"} <= addresses


def test_what_was_lost_to_a_conflict_is_shown_on_the_session() -> None:
    assert "other" in session_page([]).text
    assert "In conflict" not in session_page([], conflicts=[]).text


def test_ids_with_slashes_and_marks_keep_to_their_own_link() -> None:
    page = goal_page(events=[row("comment", "Hello.", session_id="a/../b?c#d")])
    links = [
        attributes["href"] for _, attributes in page.tags if "/b" in attributes.get("href", "").replace("%2F", "/")
    ]
    assert links == ["/sessions/a%2F..%2Fb%3Fc%23d?around=5#e-5"]


def test_times_are_relative_in_a_time_element_that_says_the_instant() -> None:
    html = rendering.goal_page(samples.goal(), OWNER, now=NOW)
    assert '<time datetime="2025-12-01T02:07:30.250+00:00"' in html
    assert 'title="1 December 2025, 02:07:30 UTC" data-show="age">2 min</time>' in html


def test_a_time_of_another_day_names_the_day() -> None:
    html = rendering.goal_page(samples.goal(created_at="2024-11-30T23:05:00Z"), OWNER, now=NOW)
    assert ">30 Nov 2024 23:05</time>" in html


def test_the_page_of_a_time_that_cannot_be_read_stands_all_the_same() -> None:
    assert "no time" in goal_page(created_at="soon").text


def test_an_empty_ledger_says_what_to_do_next() -> None:
    text = Parsed(rendering.home_page(samples.empty_fleet(), OWNER, now=NOW)).text
    assert "Nothing needs you" in text
    assert "ledgerd demo" in text


def test_the_headline_counts_what_needs_a_person() -> None:
    assert "One thing needs you, one failed" in rendering.home_page(samples.fleet(), OWNER, now=NOW)


def test_a_page_listens_to_its_root_from_its_cursor_on() -> None:
    for html in (
        rendering.goal_page(samples.goal(), OWNER, now=NOW),
        rendering.task_page(samples.task(), OWNER, now=NOW),
    ):
        body = next(attributes for tag, attributes in Parsed(html).tags if tag == "body")
        assert body == {"data-root": "goal/7", "data-cursor": "c1"}
    html = rendering.task_page(samples.task(goal_id=None), OWNER, now=NOW)
    assert 'data-root="task/13"' in html


def test_a_goal_of_ten_thousand_tasks_is_a_bounded_page() -> None:
    one = samples.goal()["tasks"][1]
    html = rendering.goal_page(
        samples.goal(tasks=[{**one, "id": str(number)} for number in range(10_000)]), OWNER, now=NOW
    )
    assert len(html) < 200_000
    assert "All 10,000 as JSON" in html
