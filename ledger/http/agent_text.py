"""What agents wrote, made fit for a page: nothing of it is markup, nothing of it is invisible.

Terminal sequences follow ECMA-48 (CSI, OSC, DCS); of these only SGR, the colours, is drawn. Every other control
character is shown by its picture (U+2400–2421), or by its number where it has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from markupsafe import Markup, escape

SPANS_MAX = 200  # colour changes drawn in one text; beyond them the text goes on uncoloured
SENTENCE_CHARS_MAX = 240

# Strings (OSC, DCS, …) count only if they end: an unfinished one must not swallow the text after it.
_SEQUENCE = re.compile(
    r"\x1b(?:\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|[PX^_][^\x1b]*\x1b\\"
    r"|[ -/]*[0-~])"
)
# C0 but tab and line feed, DEL, C1, line separators, what has no width or turns the direction, lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_SENTENCE_END = re.compile(r"[.!?…][\"')\]]*(?=\s+[^\sa-z]|\s*$)|[。！？]|(?=\n)")


def plain(text: str) -> str:
    """The text without terminal sequences, its other control characters as visible marks. Tabs and line feeds
    stay; CR LF is a line feed."""
    if _HIDDEN.search(text) is None:
        return text
    return _mark(_SEQUENCE.sub("", text))


def terminal(text: str) -> Markup:
    """The text as a terminal would colour it: escaped, with `<span class="…">` of a fixed list of classes
    (`fg0`–`fg15`, `bg0`–`bg15`, `bold`, `dim`, `italic`, `underline`, `strike`, `inverse`) around what is
    coloured, at most SPANS_MAX of them. A lone carriage return is marked and ends the line."""
    runs = _runs(text.replace("\r\n", "\n").replace("\r", "␍\n"))
    drawn = [f'<span class="{classes}">{escape(said)}</span>' if classes else escape(said) for classes, said in runs]
    return Markup("".join(drawn))  # noqa: S704 – the classes are ours, the rest was escaped


def first_sentence(text: str) -> str:
    """The first sentence of a remark, at most SENTENCE_CHARS_MAX characters, then with an ellipsis."""
    start = text.strip()[: 2 * SENTENCE_CHARS_MAX]
    end = _SENTENCE_END.search(start)
    sentence = start[: end.end()].rstrip() if end else start
    if len(sentence) <= SENTENCE_CHARS_MAX:
        return sentence
    return sentence[:SENTENCE_CHARS_MAX].rsplit(None, 1)[0] + " …"


def _mark(text: str) -> str:
    return _HIDDEN.sub(_picture, text.replace("\r\n", "\n"))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"‹U+{code:04X}›"


def _runs(text: str) -> list[tuple[str, str]]:
    """Stretches of (classes, text), neighbours of one look joined."""
    runs: list[tuple[str, list[str]]] = []
    pen = _Pen()
    coloured = 0
    start = 0
    for sequence in [*_SEQUENCE.finditer(text), None]:
        said = _mark(text[start : sequence.start() if sequence else len(text)])
        classes = pen.classes() if coloured < SPANS_MAX else ""
        if said and runs and runs[-1][0] == classes:
            runs[-1][1].append(said)
        elif said:
            runs.append((classes, [said]))
            coloured += bool(classes)
        if sequence:
            start = sequence.end()
            if sequence["final"] == "m":
                pen.take(sequence["parameters"])
    return [(classes, "".join(said)) for classes, said in runs]


_CODES_MAX = 64  # of one sequence
_MARKS_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike"}
_MARKS_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",), 29: ("strike",)}


@dataclass
class _Pen:
    """What SGR has set so far. Concealed and blinking text is drawn as any other."""

    colours: dict[str, int] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)

    def classes(self) -> str:
        colours = [f"{ground}{number}" for ground, number in sorted(self.colours.items())]
        return " ".join([*colours, *sorted(self.marks)])

    def take(self, parameters: str) -> None:
        codes = [int(code) if code.isdigit() and len(code) < 4 else 0 for code in re.split("[;:]", parameters)]
        del codes[_CODES_MAX:]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.colours.clear()
                self.marks.clear()
            elif code in _MARKS_ON:
                self.marks.add(_MARKS_ON[code])
            elif code in _MARKS_OFF:
                self.marks.difference_update(_MARKS_OFF[code])
            else:
                self._colour(code, codes)

    def _colour(self, code: int, rest: list[int]) -> None:
        tens, ones = divmod(code, 10)
        ground = "fg" if tens in (3, 9) else "bg"
        if tens in (3, 4) and ones < 8:
            self.colours[ground] = ones
        elif tens in (9, 10) and ones < 8:
            self.colours[ground] = ones + 8
        elif tens in (3, 4) and ones == 9:
            self.colours.pop(ground, None)
        elif code in (38, 48) and (nearest := _nearest(rest)) is not None:
            self.colours[ground] = nearest


def _nearest(rest: list[int]) -> int | None:
    """Of the 16 colours the one nearest to `5;n` or `2;r;g;b`, whose codes are taken from `rest`; None if they
    name none."""
    way = rest.pop(0) if rest else 0
    values = rest[: 1 if way == 5 else 3]
    del rest[: len(values)]
    if way not in (2, 5) or len(values) < (1 if way == 5 else 3):
        return None
    if way == 5 and values[0] < 16:
        return values[0]
    red, green, blue = _cube(values[0]) if way == 5 else values
    brightest = max(red, green, blue)
    if brightest < 64:
        return 0
    bits = sum(1 << bit for bit, part in enumerate((red, green, blue)) if part > brightest * 0.6)
    return bits + 8 if brightest > 191 and bits != 7 else bits


_CUBE_STEPS = (0, 95, 135, 175, 215, 255)


def _cube(number: int) -> tuple[int, int, int]:
    """Red, green and blue of a colour 16–255 of xterm's palette: a 6×6×6 cube, then 24 greys."""
    if number >= 232:
        grey = 8 + (number - 232) * 10
        return grey, grey, grey
    red, green, blue = (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6
    return _CUBE_STEPS[red], _CUBE_STEPS[green], _CUBE_STEPS[blue]
