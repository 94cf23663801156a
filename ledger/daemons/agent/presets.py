"""How each agent is run without a person: its words, how it is given the prompt, and what it prints.

The flags are those that the agents document: `claude --help` and its CLI reference, docs/exec.md of openai/codex,
`opencode run --help`, docs/cli/headless.md and cli-reference.md of google-gemini/gemini-cli. Each takes its prompt on
standard input, which has no limit, prints one JSON object on a line, and goes on with a conversation by its id.

What the agents may do is theirs to say. The presets let them edit the folder that they work in, and nothing beyond
what their own settings allow: grant more there (`permissions.allow` of Claude Code, say), or give the words in full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ledger.daemons.agent.gemini_stream import GeminiStream
from ledger.errors import InvalidField
from ledger.transcripts.claude_stream import ClaudeStream
from ledger.transcripts.codex_stream import CodexStream
from ledger.transcripts.model import Report
from ledger.transcripts.opencode_stream import OpencodeStream
from ledger.transcripts.streams import StreamReader


class Preset(msgspec.Struct, frozen=True):
    """`start` begins a conversation, `resume` goes on with `{resume}`. Words that hold all of `streaming` print what
    `rows` reads."""

    start: tuple[str, ...]
    resume: tuple[str, ...]
    streaming: frozenset[str]
    rows: Callable[[Path], StreamReader]


_CLAUDE = ("claude", "-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits")
_CODEX = ("codex", "exec", "--json", "--sandbox", "workspace-write", "--skip-git-repo-check")
_OPENCODE = ("opencode", "run", "--format", "json")
_GEMINI = ("gemini", "--output-format", "stream-json", "--approval-mode", "auto_edit")

PRESETS = {
    "claude": Preset(
        _CLAUDE,
        (*_CLAUDE, "--resume", "{resume}"),
        frozenset({"stream-json"}),
        lambda path: ClaudeStream(path, Report()),
    ),
    "codex": Preset(
        (*_CODEX, "-"),
        (*_CODEX, "resume", "{resume}", "-"),
        frozenset({"exec", "--json"}),
        lambda path: CodexStream(path, Report()),
    ),
    "opencode": Preset(
        _OPENCODE, (*_OPENCODE, "--session", "{resume}"), frozenset({"run", "--format", "json"}), OpencodeStream
    ),
    "gemini": Preset(_GEMINI, (*_GEMINI, "--resume", "{resume}"), frozenset({"stream-json"}), GeminiStream),
}


def command_for(name: str, *, resume: bool = False) -> tuple[str, ...]:
    """The words of a preset, as a template. Raises InvalidField for a name that is none."""
    preset = preset_of(name)
    return preset.resume if resume else preset.start


def preset_of(name: str) -> Preset:
    if name not in PRESETS:
        raise InvalidField(
            "command",
            f"{name!r} is no agent that is known here",
            hint=f"Name one of {', '.join(sorted(PRESETS))}, or give the command as a list of words.",
        )
    return PRESETS[name]


def rows_of(words: Sequence[str], path: Path) -> StreamReader | None:
    """What reads the output of a command: that of the agent that it runs, if it was told to print its stream."""
    preset = PRESETS.get(Path(words[0]).name)
    if preset is None or not preset.streaming <= {part for word in words for part in (word, *word.split("=")[1:])}:
        return None
    return preset.rows(path)
