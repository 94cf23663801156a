"""Plots as SVG, drawn here: marks with classes that the style sheet colours, no script and no style of their own.

Each is PLOT_WIDTH wide, so that its words can be read on a telephone; wider screens put plots side by side. Every
mark has a title, which a browser shows and a screen reader says; the whole has a title and a description.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec
from markupsafe import Markup

from ledger.http.agent_text import plain

PLOT_WIDTH, PLOT_HEIGHT = 350, 190
SERIES_MAX = 6  # colours that can be told apart

_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 4, 8, 20
_ROW, _BAR = 38, 12
_LABEL_CHARS_MAX = 34
_SHADES = 5

Words = Callable[[float], str]


class Series(msgspec.Struct, frozen=True):
    """One row of values. `look` is the class of its marks."""

    name: str
    look: str
    values: Sequence[float | None]


class Dot(msgspec.Struct, frozen=True):
    """One value, if there is one. `look` is the class of its mark, `said` what it stands for."""

    value: float | None
    look: str
    said: str


def columns(name: str, title: str, labels: Sequence[str], series: Sequence[Series], words: Words) -> Markup:
    """Bars from left to right, those of one label side by side. None and 0 draw nothing."""
    top = _top(series)
    marks = [_grid(top, words), _dates(labels)]
    band = (PLOT_WIDTH - _LEFT - _RIGHT) / max(1, len(labels))
    bar = band * 0.8 / max(1, len(series))
    for place, one in enumerate(series):
        for index, (label, value) in enumerate(zip(labels, one.values, strict=True)):
            if value:
                x, y = _LEFT + index * band + band * 0.1 + place * bar, _height_of(value, top)
                said = f"{label}: {words(value)} {one.name}"
                marks.append(_rect(one.look, x, y, bar, _base() - y, said))
    return _svg(name, title, _described(series, words), PLOT_HEIGHT, marks)


def spans(
    name: str, title: str, labels: Sequence[str], low: Series, high: Series, words: Words, tops: Sequence[float] = ()
) -> Markup:
    """For each label a stroke from `low` to `high`, and a dot at `low`. None draws nothing. `tops` are the values, in
    rising order, that may stand at the top of the scale."""
    top = _top([low, high], tops)
    marks = [_grid(top, words), _dates(labels)]
    band = (PLOT_WIDTH - _LEFT - _RIGHT) / max(1, len(labels))
    for index, (label, least, most) in enumerate(zip(labels, low.values, high.values, strict=True)):
        if least is None or most is None:
            continue
        x = _LEFT + (index + 0.5) * band
        y, y_most = _height_of(least, top), _height_of(most, top)
        said = f"{label}: {low.name} {words(least)}, {high.name} {words(most)}"
        stroke = _rect(high.look, x - 1.5, y_most, 3, max(0.0, y - y_most), said)
        dot = Markup('<circle class="{}" cx="{}" cy="{}" r="3.5"><title>{}</title></circle>')
        marks += [stroke, dot.format(low.look, _n(x), _n(y), said)]
    return _svg(name, title, _described([low, high], words), PLOT_HEIGHT, marks)


def rows(name: str, title: str, labels: Sequence[str], series: Sequence[Series], words: Words) -> Markup:
    """Bars below each other, each parted by series; its label and its sum stand above it."""
    sums = [sum(one.values[index] or 0 for one in series) for index in range(len(labels))]
    most = max(sums, default=0) or 1
    marks = []
    for index, (label, sum_) in enumerate(zip(labels, sums, strict=True)):
        y = index * _ROW
        marks += [_text("label", 0, y + 14, _short(label)), _text("amount", PLOT_WIDTH, y + 14, words(sum_))]
        x = 0.0
        for one in series:
            value = one.values[index] or 0
            width = value / most * PLOT_WIDTH
            if value:
                marks.append(_rect(one.look, x, y + 20, width, _BAR, f"{label}: {words(value)} {one.name}"))
            x += width
    return _svg(name, title, _described(series, words), max(1, len(labels)) * _ROW, marks)


def track(
    name: str, title: str, description: str, labels: Sequence[str], dots: Sequence[Dot], words: Words
) -> Markup:
    """Dots from left to right, those that follow each other joined by a line. The scale holds 0 and 1, and whatever
    the values are besides."""
    low, high = _range([dot.value for dot in dots if dot.value is not None])
    marks = [_grid(high, words, low), _dates(labels)]
    band = (PLOT_WIDTH - _LEFT - _RIGHT) / max(1, len(dots))
    radius = max(1.5, min(4.0, band / 2.5))
    line = Markup('<line class="track" x1="{}" y1="{}" x2="{}" y2="{}"></line>')
    circle = Markup('<circle class="{}" cx="{}" cy="{}" r="{}"><title>{}</title></circle>')
    circles: list[Markup] = []
    before: tuple[str, str] | None = None
    for index, dot in enumerate(dots):
        if dot.value is None:
            before = None
            continue
        here = _n(_LEFT + (index + 0.5) * band), _n(_height_of(dot.value, high, low))
        if before is not None:
            marks.append(line.format(*before, *here))
        circles.append(circle.format(dot.look, *here, _n(radius), plain(dot.said)))
        before = here
    return _svg(name, title, description, PLOT_HEIGHT, [*marks, *circles])


def heat(name: str, title: str, labels: Sequence[str], cells: Sequence[Sequence[int]], words: Words) -> Markup:
    """A grid of cells, the darker the more; one row for each label, one column for each hour."""
    most = max((value for row in cells for value in row), default=0)
    hours = max(map(len, cells), default=1)
    side = (PLOT_WIDTH - _LEFT - _RIGHT) / hours
    tall = (PLOT_HEIGHT - _TOP - _BOTTOM) / max(1, len(cells))
    marks = [
        _text("tick", _LEFT + hour * side + side / 2, PLOT_HEIGHT - 4, str(hour), "middle")
        for hour in range(0, hours, 6)
    ]
    for index, (label, row) in enumerate(zip(labels, cells, strict=True)):
        y = _TOP + index * tall
        marks.append(_text("tick", _LEFT - 6, y + tall / 2 + 4, label[:3], "end"))
        for hour, value in enumerate(row):
            shade = math.ceil(_SHADES * value / most) if most else 0
            said = f"{label} {hour}:00: {words(value)}"
            marks.append(_rect(f"h{shade}", _LEFT + hour * side + 0.5, y + 0.5, side - 1, tall - 1, said))
    sum_ = sum(map(sum, cells))
    return _svg(name, title, f"{words(sum_)} in all, at most {words(most)} in one hour.", PLOT_HEIGHT, marks)


def _svg(name: str, title: str, description: str, height: float, marks: Iterable[Markup]) -> Markup:
    frame = Markup(
        '<svg class="plot" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">{title}</title><desc id="{name}-desc">{description}</desc>{marks}</svg>'
    )
    return frame.format(
        width=PLOT_WIDTH,
        height=_n(height),
        name=name,
        title=plain(title),
        description=plain(description),
        marks=Markup("").join(marks),
    )


def _grid(top: float, words: Words, low: float = 0.0) -> Markup:
    """Lines at the bottom, half and the top, with what they stand for."""
    marks = []
    for value in (low, low / 2 + top / 2, top):
        y = _height_of(value, top, low)
        line = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"></line>')
        marks.append(line.format(_LEFT, PLOT_WIDTH - _RIGHT, _n(y), _n(y)))
        marks.append(_text("tick", _LEFT - 6, y + 4, words(value), "end"))
    return Markup("").join(marks)


def _dates(labels: Sequence[str]) -> Markup:
    """The first label, the one in the middle and the last."""
    if not labels:
        return Markup("")
    places: list[tuple[str, float, str]] = [(labels[0], _LEFT, "start")]
    if len(labels) > 1:
        places.append((labels[-1], PLOT_WIDTH - _RIGHT, "end"))
    if len(labels) > 4:
        middle = len(labels) // 2
        band = (PLOT_WIDTH - _LEFT - _RIGHT) / len(labels)
        places.append((labels[middle], _LEFT + (middle + 0.5) * band, "middle"))
    return Markup("").join(_text("tick", x, PLOT_HEIGHT - 4, label, anchor) for label, x, anchor in places)


def _rect(look: str, x: float, y: float, width: float, height: float, said: str) -> Markup:
    mark = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>')
    return mark.format(look, _n(x), _n(y), _n(width), _n(height), plain(said))


def _text(look: str, x: float, y: float, words: str, anchor: str = "") -> Markup:
    anchor = anchor or ("end" if look == "amount" else "start")
    mark = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>')
    return mark.format(look, _n(x), _n(y), anchor, plain(words))


def _top(series: Sequence[Series], tops: Sequence[float] = ()) -> float:
    """A round number, at least 2, that no value is above: one of `tops` if one is high enough."""
    most = max(2, *(value or 0 for one in series for value in one.values), 2)
    power = 10.0 ** math.floor(math.log10(most))
    rounds = [*tops, *(step * power for step in (1, 2, 4, 6, 8, 10))]
    return next(number for number in rounds if number >= most)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Round numbers that all values lie between, and 0 and 1 too."""
    return 0.0 - _round_up(-min([0.0, *values])), max(1.0, _round_up(max([0.0, *values])))


def _round_up(number: float) -> float:
    if number <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(number))
    rounds = [step * power for step in (1, 2, 4, 6, 8, 10)]
    return next((one for one in rounds if number <= one < math.inf), number)


def _height_of(value: float, top: float, low: float = 0.0) -> float:
    share = (value / 2 - low / 2) / (top / 2 - low / 2)  # of halves: the whole may be more than a float can hold
    return _base() - share * (_base() - _TOP)


def _base() -> float:
    return PLOT_HEIGHT - _BOTTOM


def _described(series: Sequence[Series], words: Words) -> str:
    parts = []
    for one in series:
        there = [value for value in one.values if value is not None]
        parts.append(f"{one.name}: at most {words(max(there))}" if any(there) else f"{one.name}: none")
    return "; ".join(parts) + "." if parts else "Nothing yet."


def _short(label: str) -> str:
    return label if len(label) <= _LABEL_CHARS_MAX else label[: _LABEL_CHARS_MAX - 1] + "…"


def _n(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
