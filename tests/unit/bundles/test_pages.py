"""Reading a page as a person would."""

from __future__ import annotations

from bundles.rig.pages import Page

HTML = """<!doctype html><html><head><title>no</title><style>p { color: red }</style></head><body>
<nav class="row">elsewhere</nav>
<main><h1>Port   the
 parser</h1><ul><li class="row remark">Found <b>it</b> &lt;now&gt;<br>at last</li><li class="row">done</li></ul>
<script>not("seen")</script></main><footer>below</footer></body></html>"""


def test_the_text_is_what_main_shows() -> None:
    assert Page(HTML).text == "Port the parser Found it <now> at last done"


def test_parts_are_found_by_class_in_order() -> None:
    assert Page(HTML).parts("row") == ["elsewhere", "Found it <now> at last", "done"]
    assert Page(HTML).parts("remark") == ["Found it <now> at last"]
    assert Page(HTML).parts("block") == []
