"""What a shell script would run: its simple commands, parsed and not matched as text, so that what stands in quotes,
comments and documents is no command, and what stands in `bash -c "…"`, `$(…)` or a heredoc for a shell is one.

It follows the grammar of POSIX and bash as far as it decides which commands there are and what they are given.
Variables that the script itself sets are put in; all others stay as `$NAME`. The time is linear in the text but for
nested substitutions, whose depth is bounded. What does not parse gives the commands up to there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

import msgspec

SCRIPT_CHARS_MAX = 256 * 1024
COMMANDS_MAX = 2_000
DEPTH_MAX = 12
VALUE_CHARS_MAX = 1_000  # of a variable that is put in; a value may hold itself twice

_ACTIVE = "\ue000"  # stands for a `$` that the shell would expand, while words are put together
_PLAIN = re.compile(r"[^\s'\"\\$`;|&()<>#]+")
_QUOTED = re.compile(r'[^"\\$`]+')
_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+")
_OPERATOR = re.compile(r"&&|\|\||;;&?|;&|\|&|&(?!>)|[;|()]")
_REDIRECT = re.compile(r"\d*(?:<<<|<<-?|<>|<&|>>|>\||>&|[<>])|&>>?")
_ANSI_QUOTED = re.compile(r"\$'((?:[^'\\]|\\.)*+)(?:'|\Z)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_EXPANSION = re.compile(_ACTIVE + r"(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_LEADING = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "time", "{", "coproc"})
_NO_COMMAND = frozenset({"for", "select", "case", "function", "done", "fi", "esac", "}", "[[", "[", "test"})
_DECLARES = frozenset({"export", "local", "declare", "readonly", "typeset"})


class Command(msgspec.Struct):
    """A simple command. `words` are without quotes; `redirects` are pairs of operator and target; `source` is as it
    was written. `stdin` is a document given to it, `feeds` the command whose output it reads. `folder` is where `cd`
    has led within the script (`.` at its beginning), None where that is not known. `remote`: on another machine."""

    words: list[str]
    redirects: list[tuple[str, str]] = []
    source: str = ""
    stdin: str = ""
    feeds: Command | None = None
    folder: str | None = "."
    background: bool = False
    remote: bool = False

    @property
    def name(self) -> str:
        return self.words[0].rpartition("/")[2] if self.words else ""


def parsed(script: str, folder: str | None = ".") -> list[Command]:
    """The simple commands of a script, in the order in which they are written, wrappers (`sudo`, `env`, …) still on.
    It begins in `folder`."""
    parser = _Parser(script[:SCRIPT_CHARS_MAX].replace(_ACTIVE, "\ufffd"), {}, folder, 0)
    parser.script()
    return parser.found


class _Parser:
    def __init__(self, text: str, variables: dict[str, str], folder: str | None, depth: int) -> None:
        self.found: list[Command] = []
        self._text = text
        self._at = 0
        self._variables = variables
        self._folder = folder
        self._depth = depth
        self._documents: list[tuple[Command, str]] = []  # heredocs whose bodies come after this line

    def script(self, closing: str = "") -> None:
        """Reads up to `closing`, or to the end."""
        text = self._text
        command, began = Command([], folder=self._folder), self._at
        while self._at < len(text) and len(self.found) < COMMANDS_MAX:
            if blank := _BLANK.match(text, self._at):
                self._at = blank.end()
                continue
            if not command.words and not command.redirects:
                began = self._at
            char = text[self._at]
            if char == "\n":
                command, _ = self._finished(command, began, "\n")
                self._at += 1
                self._read_documents()
            elif char == "#":
                end = text.find("\n", self._at)
                self._at = len(text) if end < 0 else end
            elif redirect := _REDIRECT.match(text, self._at):
                self._at = redirect.end()
                self._redirect(command, redirect[0])
            elif operator := _OPERATOR.match(text, self._at):
                command, ended = self._finished(command, began, operator[0])
                self._at = operator.end()
                if operator[0] == ")" and closing == ")":
                    return
                if operator[0] == "(" and not (ended and text.startswith(")", self._at)):
                    self._subshell()
            else:
                command.words.append(self._word())
        self._finished(command, began, "")

    def _subshell(self) -> None:
        if self._depth >= DEPTH_MAX:
            self._at = len(self._text)
            return
        folder, self._depth = self._folder, self._depth + 1
        self.script(")")
        self._folder, self._depth = folder, self._depth - 1

    def _finished(self, command: Command, began: int, operator: str) -> tuple[Command, bool]:
        """The next command, and whether there was one before it."""
        words = [self._expanded(word) for word in command.words]
        first = 0
        while first < len(words) and (words[first] in _LEADING or _ASSIGNMENT.match(words[first])):
            self._set(words[first])
            first += 1
        words = words[first:]
        following = Command([], folder=self._folder)
        is_command = bool(words or command.redirects) and (not words or words[0] not in _NO_COMMAND)
        if is_command:
            command.words = words
            command.redirects = [(sign, self._expanded(target)) for sign, target in command.redirects]
            command.source = self._text[began : self._at].strip()
            command.background = operator == "&"
            self.found.append(command)
            if command.name in _DECLARES:
                for word in words[1:]:
                    self._set(word)
            self._move(command)
            following.folder = self._folder
        if operator in ("|", "|&"):
            following.feeds = command if is_command else (self.found[-1] if self.found else None)
        return following, is_command

    def _set(self, word: str) -> None:
        name, sign, value = word.partition("=")
        if sign and name.isidentifier():
            self._variables[name] = value if len(value) <= VALUE_CHARS_MAX else f"${name}"

    def _move(self, command: Command) -> None:
        if command.name == "popd":
            self._folder = None
        elif command.name in ("cd", "pushd"):
            targets = [word for word in command.words[1:] if word == "-" or not word.startswith("-")]
            target = targets[0] if targets else "~"
            if target.startswith(("/", "~")):
                self._folder = posixpath.normpath(target)
            elif target == "-" or target.startswith(("$", "`")) or self._folder is None:
                self._folder = None
            else:
                self._folder = posixpath.normpath(posixpath.join(self._folder, target))

    def _redirect(self, command: Command, operator: str) -> None:
        if self._text.startswith("(", self._at) and operator in ("<", ">"):  # <(…)
            self._at += 1
            self._subshell()
            return
        if blank := _BLANK.match(self._text, self._at):
            self._at = blank.end()
        target = self._word()
        sign = operator.lstrip("0123456789")
        if sign in ("<<", "<<-"):
            self._documents.append((command, target.replace(_ACTIVE, "$")))
        elif sign == "<<<":
            command.stdin += self._expanded(target) + "\n"
        else:
            command.redirects.append((operator, target))

    def _read_documents(self) -> None:
        documents, self._documents = self._documents, []
        for command, delimiter in documents:
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = min(end + 1, len(self._text))
                if line.strip("\t\r ") == delimiter:
                    break
                lines.append(line)
            command.stdin += "\n".join(lines)

    # Words

    def _word(self) -> str:
        text, pieces, began = self._text, [], self._at
        while self._at < len(text):
            char = text[self._at]
            if plain := _PLAIN.match(text, self._at):
                self._at = plain.end()
                pieces.append(plain[0])
            elif char == "'":
                end = text.find("'", self._at + 1)
                end = len(text) if end < 0 else end
                pieces.append(text[self._at + 1 : end])
                self._at = end + 1
            elif char == '"':
                pieces.append(self._double_quoted())
            elif char == "\\":
                pieces.append("" if text.startswith("\\\n", self._at) else text[self._at + 1 : self._at + 2])
                self._at += 2
            elif char == "$":
                pieces.append(self._dollar())
            elif char == "`":
                pieces.append(self._backticks())
            elif char == "#":
                pieces.append(char)
                self._at += 1
            elif char == "(" and pieces and pieces[-1].endswith("=") and self._depth < DEPTH_MAX:  # an array
                self._at += 1
                self._array()
            else:
                break
        if self._at == began:  # an operator where a word was due
            self._at += 1
        self._at = min(self._at, len(text))
        return "".join(pieces)

    def _array(self) -> None:
        self._depth += 1
        while self._at < len(self._text) and self._text[self._at] != ")":
            if self._text[self._at] in " \t\r\n":
                self._at += 1
            else:
                self._word()
        self._at += 1
        self._depth -= 1

    def _double_quoted(self) -> str:
        text, pieces = self._text, []
        self._at += 1
        while self._at < len(text) and text[self._at] != '"':
            if quoted := _QUOTED.match(text, self._at):
                self._at = quoted.end()
                pieces.append(quoted[0])
            elif text[self._at] == "\\":
                escaped = text[self._at + 1 : self._at + 2]
                pieces.append(escaped if escaped in '"\\$`' else "" if escaped == "\n" else "\\" + escaped)
                self._at += 2
            elif text[self._at] == "$":
                pieces.append(self._dollar())
            else:
                pieces.append(self._backticks())
        self._at += 1
        return "".join(pieces)

    def _dollar(self) -> str:
        text, began = self._text, self._at
        if text.startswith("$((", began):
            end = text.find("))", began)
            self._at = len(text) if end < 0 else end + 2
            return text[began : self._at]
        if text.startswith("$(", began):
            self._at += 2
            self._subshell()
            return _ACTIVE + text[began + 1 : self._at]
        if text.startswith("${", began):
            end = text.find("}", began)
            self._at = len(text) if end < 0 else end + 1
            return _ACTIVE + text[began + 1 : self._at]
        if quoted := _ANSI_QUOTED.match(text, began):
            self._at = quoted.end()
            return quoted[1].replace("\\'", "'")
        name = _NAME.match(text, began + 1)
        self._at = began + 1 if name is None else name.end()
        return "$" if name is None else _ACTIVE + name[0]

    def _backticks(self) -> str:
        began = self._at
        end = self._text.find("`", began + 1)
        end = len(self._text) if end < 0 else end
        self._at = end + 1
        if self._depth < DEPTH_MAX:
            inner = _Parser(self._text[began + 1 : end], self._variables, self._folder, self._depth + 1)
            inner.script()
            self.found += inner.found
        return self._text[began : end + 1]

    def _expanded(self, word: str) -> str:
        if _ACTIVE not in word:
            return word

        def value(match: re.Match[str]) -> str:
            return self._variables.get(match[1] or match[2], match[0])

        return _EXPANSION.sub(value, word).replace(_ACTIVE, "$")


def flow(command: Command) -> Iterator[Command]:
    """The command and those whose output flows into it."""
    one: Command | None = command
    while one is not None:
        yield one
        one = one.feeds


def words(text: str = "") -> frozenset[str]:
    """A set of words, written as one text."""
    return frozenset(text.split())
