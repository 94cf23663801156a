"""What a script would run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.daemons.sweep.prefilter.shell import COMMANDS_MAX, SCRIPT_CHARS_MAX, parsed
from ledger.daemons.sweep.prefilter.wrapping import unwrapped


def run(script: str) -> list[list[str]]:
    """The words of each command, wrappers taken off."""
    return [inner.words for command in parsed(script) for inner in unwrapped(command)]


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ('echo "rm -rf /"', [["echo", "rm -rf /"]]),
        ("echo 'a; rm b'", [["echo", "a; rm b"]]),
        ("ls # rm x", [["ls"]]),
        ("a && b || c; d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("rm a\\\n b", [["rm", "a", "b"]]),
        ("rm a\\ b 'c'\"d\"", [["rm", "a b", "cd"]]),
        ("rm $'a\\'b'", [["rm", "a'b"]]),
        ("(cd a; rm b)", [["cd", "a"], ["rm", "b"]]),
        ("echo $(rm a)", [["rm", "a"], ["echo", "$(rm a)"]]),
        ("echo `rm a`", [["rm", "a"], ["echo", "`rm a`"]]),
        ('echo "$(rm "a b")"', [["rm", "a b"], ["echo", '$(rm "a b")']]),
        ("diff <(rm a) b", [["rm", "a"], ["diff", "b"]]),
        ("X=/tmp/a; rm $X/b ${X} $Y", [["rm", "/tmp/a/b", "/tmp/a", "$Y"]]),
        ("X=1 rm '$X'", [["rm", "$X"]]),
        ("export D=/srv; rm $D", [["export", "D=/srv"], ["rm", "/srv"]]),
        ("if [ -f x ]; then rm x; else rm y; fi", [["rm", "x"], ["rm", "y"]]),
        ("for f in *; do rm $f; done", [["rm", "$f"]]),
        ("while true; do rm x; done", [["true"], ["rm", "x"]]),
        ("case $x in a) rm q;; esac", [["rm", "q"]]),
        ("f() { rm x; }", [["f"], ["rm", "x"]]),
        ("a=(1 2); rm ${a[0]}", [["rm", "${a[0]}"]]),
        ("cat <<EOF\nrm x\nEOF\nls", [["cat"], ["ls"]]),
        ("cat <<-'E' > f\n\trm x\n\tE\nls", [["cat"], ["ls"]]),
        ("git commit -m \"$(cat <<'EOF'\ndon't ( rm x\nEOF\n)\" && ls", [["cat"], None, ["ls"]]),
        ("rm x > y 2>&1 < z", [["rm", "x"]]),
        ("echo $((1 + 2)) && rm x", [["echo", "$((1 + 2))"], ["rm", "x"]]),
        ('echo "not closed; rm x', [["echo", "not closed; rm x"]]),
        ("((((", []),
        ("", []),
    ],
)
def test_a_script_gives_its_commands_and_nothing_that_only_looks_like_one(
    script: str, commands: list[list[str] | None]
) -> None:
    found = run(script)
    assert len(found) == len(commands), found
    assert all(expected is None or words == expected for words, expected in zip(found, commands, strict=True))


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("sudo -u x rm a", ["rm", "a"]),
        ("sudo env A=b C=d nice -n 5 timeout 10 rm a", ["rm", "a"]),
        ("nohup rm a", ["rm", "a"]),
        ("xargs -n 1 rm -f < list", ["rm", "-f", "$…"]),
        ("bash -c 'rm a'", ["rm", "a"]),
        ('bash -lc "sudo rm a"', ["rm", "a"]),
        ("bash <<E\nrm a\nE", ["rm", "a"]),
        ("eval 'rm a'", ["rm", "a"]),
        ("ssh -p 22 host 'rm a'", ["rm", "a"]),
        ("docker exec -it -u root box rm a", ["rm", "a"]),
        ("kubectl exec -n x pod -- rm a", ["rm", "a"]),
        ("find . -name '*.c' -exec rm {} \\;", ["rm", "./*.c"]),
        ("uv run pytest -q", ["pytest", "-q"]),
        ("python3 -m pytest -q", ["pytest", "-q"]),
    ],
)
def test_a_wrapper_is_taken_off(script: str, command: list[str]) -> None:
    assert command in run(script)


def test_what_is_echoed_into_a_shell_is_run() -> None:
    assert run("echo 'rm a' | sh")[-1] == ["rm", "a"]


def test_folders_are_followed_where_they_can_be() -> None:
    folders = [command.folder for command in parsed("ls; cd a; ls; cd ..; cd /x; ls; cd $Y; ls; (cd /z); ls")]
    assert folders == [".", ".", "a", "a", ".", "/x", "/x", None, None, None]


def test_a_variable_that_holds_itself_does_not_grow_without_end() -> None:
    script = "X=aaaaaaaaaa\n" + "X=$X$X$X$X\n" * 100 + "rm $X"
    (command,) = parsed(script)
    assert len(command.words[1]) <= 4_000


@given(st.text(alphabet="ab \t\n'\"\\$`(){};|&<>#=EOF-", max_size=200))
def test_any_text_is_parsed_without_an_error(script: str) -> None:
    for command in parsed(script):
        list(unwrapped(command))


@pytest.mark.parametrize("piece", ["$(", "(", "`", '"', "<<A ", "$((", "a=(", "'", "{", "|", "$($(", 'bash -c "'])
def test_nothing_that_is_repeated_without_end_ends_the_parser(piece: str) -> None:
    assert len(parsed(piece * 5_000)) <= COMMANDS_MAX


def test_of_a_long_script_the_beginning_counts() -> None:
    assert len(parsed("rm x\n" * (SCRIPT_CHARS_MAX // 5))) == COMMANDS_MAX
