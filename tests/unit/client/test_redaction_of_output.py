"""Redaction of texts as terminals and JSON leave them: coloured, escaped, cut, very long; and its time."""

from __future__ import annotations

import json
import time

import pytest

from ledger.client.redaction import REDACTED, redact, redact_line, redact_payload

# Made up, and put together here so that no scanner takes this file for a leak.
BODY = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
TOKEN = "ghp_" + BODY


def pieces_left(text: str, secret: str = BODY, size: int = 6) -> list[str]:
    return [secret[at : at + size] for at in range(len(secret) - size + 1) if secret[at : at + size] in text]


@pytest.mark.parametrize(
    "before", ["", "\n", "\t", "\r\n", '"', "\\n", "\\t", "\\\\n", "\u00e9", "\x1b[32m", "\\u001b[1;31m"]
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_token_goes_whatever_escape_stands_before_it(before: str, ascii_only: bool) -> None:
    text = f"out{before}{TOKEN} rest" if before else TOKEN
    payload = json.dumps({"output": text}, ensure_ascii=ascii_only).encode()
    cleaned = json.loads(redact_payload(payload))["output"]
    assert cleaned == redact(text)
    assert not pieces_left(cleaned)
    assert REDACTED in cleaned


@pytest.mark.parametrize(
    "colour", ["\x1b[0m", "\x1b[01;31m\x1b[K", "\x1b[38;5;208m", "\\u001b[0m", "\\x1b[0m", "\\033[0m"]
)
def test_a_colour_within_a_secret_hides_nothing(colour: str) -> None:
    coloured = TOKEN[:4] + colour + TOKEN[4:9] + colour + TOKEN[9:]
    assert redact(f"1:{coloured}!") == "1:[REDACTED]!"
    assert redact(f"DB_PASSWORD{colour}={colour}hunter2{colour}x") == f"DB_PASSWORD{colour}={colour}{REDACTED}"
    assert json.loads(redact_payload(json.dumps([coloured]).encode())) == [REDACTED]


@pytest.mark.parametrize("dash", ["\\u002d", "\\\\u002d", "\\u002D"])
def test_an_escaped_character_within_a_secret_hides_nothing(dash: str) -> None:
    token = "glpat" + dash + BODY[:20]
    assert redact(f"a {token} b") == "a [REDACTED] b"
    assert redact_payload(b'{"a":"glpat\\u002d%b"}' % BODY[:20].encode()) == b'{"a":"[REDACTED]"}'


def test_escapes_and_colours_that_hide_nothing_stay_byte_for_byte() -> None:
    text = "\x1b[31mred\x1b[0m a\\u002db \\/ c\\u00e9"
    assert redact(text) is text
    payload = json.dumps([text]).replace("red", "r\\/d").encode()
    assert redact_payload(payload) is payload


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_quote_within_a_quoted_secret_does_not_end_it(depth: int) -> None:
    text = '{"password": "hun\\"ter2-longer", "n": 1}'
    for _ in range(depth):
        text = json.dumps({"inner": text})
    cleaned = redact(text)
    assert not pieces_left(cleaned, "ter2-longer")
    for _ in range(depth):
        cleaned = json.loads(cleaned)["inner"]
    assert json.loads(cleaned) == {"password": REDACTED, "n": 1}


def test_a_secret_in_code_that_stays_is_found_all_the_same() -> None:
    assert redact("token = connect(password='hunter2')") == "token = connect(password='[REDACTED]')"
    assert redact(f"token = parse({TOKEN})") == "token = parse([REDACTED])"


def test_a_secret_goes_from_a_line_of_a_megabyte() -> None:
    padding = "x y " * 250_000
    cleaned = redact_payload(json.dumps({"output": f"{padding}\n{TOKEN}\n{padding}"}).encode())
    assert json.loads(cleaned) == {"output": f"{padding}\n{REDACTED}\n{padding}"}


@pytest.mark.parametrize(
    ("line", "clean"),
    [
        (f"token {TOKEN}\n".encode(), b"token [REDACTED]\n"),
        (b'{"password":"a\\"b"}\r\n', b'{"password":"[REDACTED]"}\r\n'),
        (b"\xff\xfe DB_PASSWORD=hunter2 \xff", b"\xff\xfe DB_PASSWORD=[REDACTED] \xff"),
        (f'{{"cut": "{TOKEN}'.encode(), b'{"cut": "[REDACTED]'),
        (b'[1, 2] password: "x1"', b'[1, 2] password: "[REDACTED]"'),
    ],
)
def test_a_line_of_output_is_cleaned_as_json_or_as_text(line: bytes, clean: bytes) -> None:
    assert redact_line(line) == clean


@pytest.mark.parametrize("line", [b"", b"\n", b"plain \xff\n", b'{"a": 1e999}', b"[" * 100_000])
def test_a_line_without_secrets_is_the_same_object(line: bytes) -> None:
    assert redact_line(line) is line


def test_a_private_key_that_is_only_spoken_of_stays() -> None:
    text = 'grep -c "-----BEGIN PRIVATE KEY-----" *.py && echo found\n' + "words of prose " * 20
    assert redact(text) is text


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "://",
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY",
        "password=",
        'password="',
        "authorization: ",
        "bearer ",
        "eyJ",
        "eyJabcdefghijk.",
        "ghp_",
        "sk-",
        "--a-",
        "-token ",
        '\\"',
        "key\\\\\\\\",
    ],
)
def test_the_time_is_linear_in_the_text(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        best = float("inf")
        for _ in range(2):
            began = time.process_time()
            redact(text)
            redact_payload(json.dumps({"password": text, "text": text}).encode())
            best = min(best, time.process_time() - began)
        return best

    assert seconds(40_000) < 8 * seconds(10_000) + 0.05  # four times the text: sixteen times the time, were it square
