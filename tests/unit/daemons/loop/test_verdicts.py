from __future__ import annotations

import pytest

from ledger.daemons.loop.verdicts import REASONS_MAX, Unreadable, read_verdict
from projections.loop_state import Verdict


@pytest.mark.parametrize(
    "text",
    [
        '{"pass": true, "score": 0.9, "reasons": ["a"]}',
        '```json\n{"pass": true, "score": 0.9, "reasons": ["a"]}\n```\n',
        '~~~\n{"pass": true,\n "score": 0.9,\n "reasons": ["a"]}\n~~~',
        '# My verdict\n// by me\n\n{"pass": true, "score": 0.9, "reasons": "a"}',
        '\ufeff```\n# verdict\n{"pass": true, "score": 0.9, "reasons": ["a"], "more": 1}\n```',
    ],
)
def test_a_verdict_is_one_object_but_for_fences_and_leading_comments(text: str) -> None:
    assert read_verdict(text) == Verdict(True, 0.9, ("a",))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "said nothing"),
        ("```\n```", "said nothing"),
        ("# all fine", "said nothing"),
        ("I pass it.", "no JSON object"),
        ('Here it is:\n```json\n{"pass": true}\n```', "no JSON object"),
        ('{"pass": true}\nIt quotes {"pass": false}', "no JSON object"),
        ('{"pass": true} {"pass": true}', "no JSON object"),
        ('{"pass": tru', "no JSON object"),
        ("[true]", "no JSON object"),
        ("true", "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ('{"score": 1}', "no `pass`"),
        ('{"pass": "true"}', "`pass`"),
        ('{"pass": 1}', "`pass`"),
        ('{"pass": null}', "`pass`"),
        ('{"pass": false, "pass": true}', "twice"),
        ('{"pass": true, "score": "0.9"}', "`score`"),
        ('{"pass": true, "score": true}', "`score`"),
        ('{"pass": true, "score": NaN}', "NaN"),
        ('{"pass": true, "score": Infinity}', "Infinity"),
        ('{"pass": true, "score": 1e999}', "finite"),
        ('{"pass": true, "score": 1' + "0" * 400 + "}", "finite"),
        ('{"pass": true, "score": 1' + "0" * 5000 + "}", "no JSON object"),
        ('{"pass": true, "reasons": [1]}', "`reasons`"),
        ('{"pass": true, "reasons": {"a": 1}}', "`reasons`"),
    ],
)
def test_what_is_not_beyond_doubt_is_no_verdict(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_verdict(text)


def test_only_a_line_feed_ends_a_line() -> None:
    reason = "a\u2028b\u2029c\x85d"
    assert read_verdict(f'```json\r\n{{"pass": false, "reasons": ["{reason}"]}}\r\n```\r\n').reasons == (reason,)


def test_score_and_reasons_may_be_left_away_and_reasons_are_bounded() -> None:
    assert read_verdict('{"pass": false}') == Verdict(False)
    assert read_verdict('{"pass": false, "score": null, "reasons": null}') == Verdict(False)
    many = ", ".join(['"r"'] * (REASONS_MAX + 5))
    assert len(read_verdict(f'{{"pass": false, "reasons": [{many}]}}').reasons) == REASONS_MAX
