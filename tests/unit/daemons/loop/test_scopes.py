from __future__ import annotations

import pytest

from ledger.daemons.loop.scopes import is_inside, outside


@pytest.mark.parametrize(
    ("scope", "name", "inside"),
    [
        ("src/**", "src/a.py", True),
        ("src/**", "src/b/c/d.py", True),
        ("src/**", "srcs/a.py", False),
        ("src/", "src/a.py", True),
        ("src/", "lib/src/a.py", True),
        ("/src/", "lib/src/a.py", False),
        ("src", "src", True),
        ("src", "src/a.py", True),
        ("*.md", "README.md", True),
        ("*.md", "docs/deep/a.md", True),
        ("/*.md", "docs/a.md", False),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/deep/a.md", False),
        ("docs/**/*.md", "docs/a.md", True),
        ("docs/**/*.md", "docs/x/y/a.md", True),
        ("**/tests/**", "a/tests/t.py", True),
        ("file?.txt", "file1.txt", True),
        ("file?.txt", "file/.txt", False),
        ("file[0-9].txt", "file7.txt", True),
        ("file[!0-9].txt", "file7.txt", False),
        ("a.b", "axb", False),
        ("**", "anything/at/all", True),
        ("**", "../outside", False),
        ("*", "/etc/passwd", False),
        ("a\\*b", "a*b", True),
        ("a\\*b", "axb", False),
    ],
)
def test_patterns_are_those_of_gitignore(scope: str, name: str, inside: bool) -> None:
    assert is_inside(name, [scope]) is inside


def test_the_last_pattern_that_fits_counts() -> None:
    scope = ["src/**", "!src/generated/**", "src/generated/keep.py"]
    names = ["src/a.py", "src/generated/b.py", "src/generated/keep.py", "README.md"]
    assert outside(names, scope) == ["src/generated/b.py", "README.md"]


def test_without_a_scope_nothing_is_outside() -> None:
    assert outside(["anything"], []) == []
