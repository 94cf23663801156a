from __future__ import annotations

from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from ledger.http import plots
from ledger.http.plots import Dot, Series
from ledger.http.trends import csv_text

HOSTILE = '</title><script>x</script>" onload="x'
SVG = "{http://www.w3.org/2000/svg}"


def words(value: float) -> str:
    return f"{value:g}"


def drawn(plot: Markup) -> ElementTree.Element:
    text = str(plot).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return ElementTree.fromstring(text)  # noqa: S314 — our own drawing


def drawings(label: str, values: list[float | None]) -> dict[str, Markup]:
    series = [Series(label, "s0", values), Series("b", "s1", values)]
    labels = [label for _ in values]
    return {
        "columns": plots.columns("n", label, labels, series, words),
        "spans": plots.spans("n", label, labels, *series, words),
        "rows": plots.rows("n", label, labels, series, words),
        "heat": plots.heat("n", label, labels, [[int(value or 0)] * 24 for value in values], words),
    }


@pytest.mark.parametrize("values", [[], [None], [0.0], [1.0, None, 3.0], [1e12, 1e-9]])
@pytest.mark.parametrize("name", ["columns", "spans", "rows", "heat"])
def test_whatever_the_values_are_a_plot_is_drawn_within_its_frame(name: str, values: list[float | None]) -> None:
    svg = drawn(drawings("a", values)[name])
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    for rect in svg.iter(f"{SVG}rect"):
        x, y, wide, tall = (float(rect.attrib[side]) for side in ("x", "y", "width", "height"))
        assert min(x, y, wide, tall) >= 0
        assert x + wide <= width + 0.1
        assert y + tall <= height + 0.1


@pytest.mark.parametrize("name", ["columns", "spans", "rows", "heat"])
def test_a_plot_names_itself_and_holds_no_style_script_or_foreign_markup(name: str) -> None:
    plot = drawings(HOSTILE, [2.0])[name]
    svg = drawn(plot)
    assert svg.attrib["role"] == "img"
    named = svg.attrib["aria-labelledby"].split()
    assert [one.attrib.get("id") for one in list(svg)[:2]] == named
    assert svg.findtext(f"{SVG}title") == HOSTILE
    assert {one.tag.removeprefix(SVG) for one in svg.iter()} <= {
        *("svg", "title", "desc", "rect", "text", "line", "circle")
    }
    assert not any({"style", "onload"} & set(one.attrib) for one in svg.iter())


def test_the_tallest_column_is_as_tall_as_the_largest_value_says() -> None:
    svg = drawn(plots.columns("n", "t", ["a", "b"], [Series("s", "s0", [10, 5])], words))
    tall, half = (float(rect.attrib["height"]) for rect in svg.iter(f"{SVG}rect"))
    assert tall == pytest.approx(2 * half)


def test_each_mark_says_what_it_stands_for() -> None:
    svg = drawn(plots.rows("n", "t", ["anvil"], [Series("stored", "s0", [3]), Series("again", "s1", [1])], words))
    assert [rect.findtext(f"{SVG}title") for rect in svg.iter(f"{SVG}rect")] == ["anvil: 3 stored", "anvil: 1 again"]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1"])
def test_no_cell_of_a_csv_is_a_formula(text: str) -> None:
    assert "'" + text in csv_text(["a"], [[text]])


def test_a_csv_holds_numbers_as_they_are_and_null_as_nothing() -> None:
    assert csv_text(["a", "b", "c"], [[-1.5, None, 'say "x", y']]) == 'a,b,c\r\n-1.5,,"say ""x"", y"\r\n'


HUGE = 1.7e308


@pytest.mark.parametrize(
    "values", [[], [None], [0.0], [0.2, None, 0.9], [-3.0, 250.0], [-HUGE, HUGE], [5e-324, -5e-324], [7.0] * 60]
)
def test_whatever_the_scores_are_a_track_is_drawn_within_its_frame(values: list[float | None]) -> None:
    dots = [Dot(value, "passed", HOSTILE) for value in values]
    svg = drawn(plots.track("n", HOSTILE, HOSTILE, [HOSTILE for _ in values], dots, words))
    circles = list(svg.iter(f"{SVG}circle"))
    assert len(circles) == sum(value is not None for value in values)
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    for circle in circles:
        x, y, radius = (float(circle.attrib[name]) for name in ("cx", "cy", "r"))
        assert radius <= x <= width - radius
        assert radius <= y <= height - radius
    assert [circle.findtext(f"{SVG}title") for circle in circles] == [HOSTILE] * len(circles)


def test_dots_of_a_track_are_joined_but_over_a_gap_and_stand_as_high_as_their_values_say() -> None:
    dots = [Dot(value, "passed", "") for value in (0.0, 0.5, None, 1.0)]
    svg = drawn(plots.track("n", "t", "d", ["1", "2", "3", "4"], dots, words))
    low, half, top = (float(circle.attrib["cy"]) for circle in svg.iter(f"{SVG}circle"))
    assert low - half == pytest.approx(half - top)
    assert len([line for line in svg.iter(f"{SVG}line") if line.attrib["class"] == "track"]) == 1
