from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.client.redaction import REDACTED, Redactor, redact, redact_payload
from ledger.errors import InvalidField

# Made up, and put together here so that no scanner takes this file for a leak.
B64 = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
HEX = "0123456789abcdef" * 4

TOKENS = [
    "ghp_" + B64,
    "gho_" + B64 + "abc",
    "github_pat_" + B64 + "_" + B64,
    "glpat-" + B64[:20],
    "AKIA" + "ABCDEFGH12345678",
    "ASIA" + "ABCDEFGH12345678",
    "sk-ant-api03-" + B64,
    "sk-proj-" + B64,
    "sk-" + B64,
    "xoxb-123456789012-" + B64,
    "xapp-1-A012-" + B64,
    "AIza" + B64 + "12",
    "ya29." + B64,
    "sk_live_" + B64,
    "whsec_" + B64,
    "npm_" + B64 + "xyz",
    "pypi-" + B64 * 2,
    "hf_" + B64,
    "dop_v1_" + HEX,
    "SG." + B64[:22] + "." + B64 + "0123456789",
    "key-" + HEX[:32],
    "SK" + HEX[:32],
    "123456789:AA" + B64,
    "dapi" + HEX[:32],
    "shpat_" + HEX[:32],
    "hvs." + B64,
    "ATATT3" + B64,
    "https://hooks.slack.com/services/T0123ABCD/B0123ABCD/" + B64[:24],
    "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE",
    "ld_owner_" + B64,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + B64,
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_vendors_token_is_taken_out_wherever_it_stands(token: str) -> None:
    bare = token.removeprefix("https://")
    for text in (token, f"it is {token}, see", f'"{token}"', f"\n{token}\n", f"-{token}", f"é{token}"):
        clean = redact(text)
        assert bare not in clean
        assert REDACTED in clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [REDACTED]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [REDACTED]"),
        ("-H 'Authorization: token 12ab34cd'", "-H 'Authorization: token [REDACTED]'"),
        ('"Authorization": "Bearer abcd1234"', '"Authorization": "Bearer [REDACTED]"'),
        ("401 for bearer abcdefgh12345678", "401 for bearer [REDACTED]"),
        ("postgresql://app:hunter2@db/x", "postgresql://app:[REDACTED]@db/x"),
        ("redis://:s3cret@cache:6379", "redis://:[REDACTED]@cache:6379"),
        ("DB_PASSWORD=hunter2 make", "DB_PASSWORD=[REDACTED] make"),
        ("export API_KEY='two words'", "export API_KEY='[REDACTED]'"),
        ('password: "hunter2"', 'password: "[REDACTED]"'),
        ("password: hunter2", "password: [REDACTED]"),
        ('apiKey = "abc"; x', 'apiKey = "[REDACTED]"; x'),
        ('{\\"client_secret\\": \\"abc\\"}', '{\\"client_secret\\": \\"[REDACTED]\\"}'),
        ("https://x.org/?page=2&access_token=ab12&n=1", "https://x.org/?page=2&access_token=[REDACTED]&n=1"),
        ("login --password hunter2 --user me", "login --password [REDACTED] --user me"),
        ("aws_secret_access_key = wJalr/bPxRfi+CY", "aws_secret_access_key = [REDACTED]"),
    ],
)
def test_the_value_is_taken_out_and_what_says_what_it_was_stays(text: str, clean: str) -> None:
    assert redact(text) == clean


@pytest.mark.parametrize("newline", ["\n", "\\n", "\r\n"])
def test_a_private_key_goes_as_a_whole_even_when_it_is_cut(newline: str) -> None:
    key = newline.join(["-----BEGIN RSA PRIVATE KEY-----", B64, B64, "-----END RSA PRIVATE KEY-----"])
    assert redact(f"before {key} after") == "before [REDACTED] after"
    assert redact(f"before {key[:80]}") == "before [REDACTED]"
    public = key.replace("RSA PRIVATE", "PUBLIC")
    assert redact(public) == public


@pytest.mark.parametrize(
    "text",
    [
        "password=$DB_PASSWORD",
        "password=${DB_PASSWORD}",
        'TOKEN="$(cat file)"',
        "token: ${{ secrets.TOKEN }}",
        "password = {{ vault_password }}",
        "password=%PASSWORD%",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer <token>",
        "https://user:${PASS}@host/",
        "api_key = os.environ['API_KEY']",
        "apiKey: process.env.API_KEY,",
        "token = next_token(stream)",
        "token=token",
        "def login(user: str, password: str) -> Token: ...",
        "password: undefined",
        "use_token=true",
        "secret: false",
        "password: ********",
        "PASSWORD=xxxxxx",
        "max_token: 4096",
        "token=12345",
        "input_tokens: 12000, output_tokens: 7",
        "token_count=99",
        "PWD=/home/dev/project",
        "--token TOKEN",
        "the token is expired; see keyboard: qwerty1",
        "git@github.com:owner/name.git and http://localhost:8137/goals@2",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8 toolu_01ABCdefGHIjklMNOpqrST",
        "task-list-with-a-long-name-indeed risk-abcdefghijklmnopqrstuvw",
    ],
)
def test_what_gives_nothing_away_stays(text: str) -> None:
    assert redact(text) is text


def payload(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def test_a_payload_is_cleaned_in_its_strings_and_by_its_names() -> None:
    token = TOKENS[0]
    before = {
        "args": {"command": f"curl -H 'Authorization: Bearer {token}'", "env": {"DB_PASSWORD": "hunter2", "N": "1"}},
        "password": "p",
        "Authorization": "Basic dXNlcjpwYXNz",
        "accessToken": "abc",
        "token": None,
        "max_tokens": 5,
        "secret": ["x", {"api_key": "y"}],
        token: 1,
    }
    after = json.loads(redact_payload(payload(before)))
    assert after == {
        "args": {"command": "curl -H 'Authorization: Bearer [REDACTED]'", "env": {"DB_PASSWORD": REDACTED, "N": "1"}},
        "password": REDACTED,
        "Authorization": REDACTED,
        "accessToken": REDACTED,
        "token": None,
        "max_tokens": 5,
        "secret": ["x", {"api_key": REDACTED}],
        REDACTED: 1,
    }


def test_all_around_a_secret_stays_byte_for_byte() -> None:
    raw = b'{ "n" : 1e999, "big":12345678901234567890123, "u":"\\u00e9\\ud83d", "password" : "a\\"b",  "z":[ ] }'
    assert redact_payload(raw) == raw.replace(b'a\\"b', REDACTED.encode())


def test_a_payload_without_secrets_is_the_same_object() -> None:
    raw = payload({"text": "the token is gone", "tokens": 3, "key": "value", "pwd": "/home/dev"})
    assert redact_payload(raw) is raw


JSON = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from([*TOKENS, "password=hunter2", 'a"b\\', "x" * 50]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["password", "text", "token", "n"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(print_blob=True, max_examples=150)
@given(JSON)
def test_a_cleaned_payload_is_json_of_the_same_shape_and_clean(value: object) -> None:
    raw = payload(value)
    clean = redact_payload(raw)
    assert shape(json.loads(clean)) == shape(value)
    assert redact_payload(clean) == clean
    assert not any(token.removeprefix("https://").encode() in clean for token in TOKENS)
    assert Redactor().redact_payloads([b"{}", raw, b"[]", raw]) == [b"{}", clean, b"[]", clean]


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else type(value)


def test_a_further_pattern_is_found_behind_escapes_too() -> None:
    redactor = Redactor(["é-line", "a\nb"])
    assert json.loads(redactor.redact_payload(b'["x \\u00e9-line", "a\\nb"]')) == ["x [REDACTED]", "[REDACTED]"]


def test_further_patterns_are_taken_out_too() -> None:
    redactor = Redactor([r"ACME-\d+", "internal"])
    assert redactor.redact("ACME-12 is internal") == "[REDACTED] is [REDACTED]"
    assert redactor.redact_payload(b'{"a":"ACME-1"}') == b'{"a":"[REDACTED]"}'
    with pytest.raises(InvalidField, match="no regular expression"):
        Redactor(["("])
