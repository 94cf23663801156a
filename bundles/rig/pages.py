"""Reading a page as a person would: its visible text, and the text of its parts."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
)
_UNSEEN = frozenset({"script", "style", "template", "head"})


class Page(HTMLParser):
    """A parsed page. `text` is what `main` shows, white space collapsed, without scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[tuple[str, frozenset[str]]] = []
        self._main: list[str] = []
        self._parts: list[tuple[frozenset[str], list[str]]] = []
        self._collecting: list[tuple[int, list[str]]] = []
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        return _collapse(self._main)

    def parts(self, css_class: str) -> list[str]:
        """The text of every element of a class, in the page's order."""
        return [_collapse(texts) for classes, texts in self._parts if css_class in classes]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            return
        classes = frozenset((dict(attrs).get("class") or "").split())
        self._open.append((tag, classes))
        if classes:
            texts: list[str] = []
            self._parts.append((classes, texts))
            self._collecting.append((len(self._open), texts))

    def handle_endtag(self, tag: str) -> None:
        if tag not in [name for name, _ in self._open]:
            return
        while self._open:
            depth = len(self._open)
            name, _ = self._open.pop()
            if self._collecting and self._collecting[-1][0] == depth:
                self._collecting.pop()
            if name == tag:
                return

    def handle_data(self, data: str) -> None:
        tags = [name for name, _ in self._open]
        if not _UNSEEN.isdisjoint(tags):
            return
        if "main" in tags:
            self._main.append(data)
        for _, texts in self._collecting:
            texts.append(data)


def _collapse(texts: list[str]) -> str:
    return " ".join(" ".join(texts).split())
