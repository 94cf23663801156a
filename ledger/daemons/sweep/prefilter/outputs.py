"""What failed or warned, as outputs show it. Patterns are data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ledger.daemons.sweep.model import FAILED, WARNED, WENT_WRONG
from ledger.daemons.sweep.prefilter.matching import Hit, Patterns, table
from ledger.daemons.sweep.prefilter.shell import Command, words

_ERRORS = {
    "corruption": (
        "What is stored is damaged.",
        (
            r"(?i:database disk image is malformed|file is not a database|index file corrupt"
            r"|loose object .{1,80} corrupt)",
            r"(?i:checksum (?:mismatch|error|failed|does not match)|invalid checksum|CRC (?:error|failed)"
            r"|unexpected end of archive)",
            r"(?i:\b(?:is|file|data|archive|index|table|heap) corrupt(?:ed)?\b|corruption detected)",
            r"fatal: (?:not a valid object|unable to read tree|missing blob|bad object)|error: bad object",
        ),
    ),
    "disk-full": (
        "The disk is full.",
        (
            r"No space left on device|\bENOSPC\b",
            r"(?i:disk quota exceeded|\bdisk (?:is )?full\b|database or disk is full)",
        ),
    ),
    "out-of-memory": (
        "Memory ran out.",
        (
            r"(?i:out of memory|OOM-?Killed|oom-kill|Killed process \d+|cannot allocate memory|heap out of memory)",
            r"\bMemoryError\b|(?i:exit(?:ed with)?(?: status| code)? 137\b)",
        ),
    ),
    "segfault": (
        "A program crashed.",
        (
            r"(?i:segmentation fault|core dumped|access violation|stack smashing detected|double free or corruption)",
            r"\bSIG(?:SEGV|BUS|ABRT|ILL)\b|(?:Address|Thread|Memory)Sanitizer:",
        ),
    ),
    "spend-limit": (
        "A limit of spend, credit or quota was reached.",
        (
            r"(?i:(?:usage|spend(?:ing)?|credit|billing|monthly|weekly|5-hour"
            r"|account) (?:hard )?limit (?:has been |was )?"
            r"(?:reached|exceeded|hit))|(?i:hit your (?:\w+ )?limit)",
            r"(?i:insufficient[_ ](?:quota|credit|funds|balance)|credit balance is too low"
            r"|exceeded your current quota)",
            r"(?i:quota exceeded|out of (?:extra )?(?:usage|credits))",
        ),
    ),
    "divergence": (
        "Two histories went apart, or a merge stands in conflict.",
        (
            r"have diverged|divergent branches|CONFLICT \(|Automatic merge failed|needs merge"
            r"|could not apply [0-9a-f]{7}|stale info",
        ),
    ),
    "denied": (
        "A path or a permission was denied.",
        (
            r"(?i:permission denied|operation not permitted|read-only file system|access is denied|\b403 forbidden)",
            r"\b(?:EACCES|EPERM|EROFS|AccessDenied)\b|(?i:permission to use \S+ .{0,200}has been denied)",
            r"(?i:(?:blocked|denied) by (?:\w+ )?(?:hook|policy|sandbox|permission)|protected branch"
            r"|outside (?:of )?the (?:allowed|permitted|working))",
        ),
    ),
    "traceback": (
        "A program ended in an exception or a panic.",
        (
            r"Traceback \(most recent call last\)|panicked at |^panic: |^fatal error: |^goroutine \d+ \[running\]",
            r"Unhandled ?(?:Promise ?)?[Rr]ejection|Uncaught (?:\w+)?(?:Error|Exception)|Exception in thread"
            r"|Unhandled exception",
        ),
    ),
}
_REFUSALS = {
    "push-refused": ("A push was refused.", (r"non-fast-forward|\[(?:remote )?rejected\]|Updates were rejected",))
}
_WARNINGS = {
    "embedded-repository": ("A repository was added inside another.", (r"embedded (?:git )?repository",)),
    "overwrites": (
        "Something was, or would be, written over.",
        (
            r"(?i:(?:would|will) be overwritten|(?:has been|was|were|being) overwritten"
            r"|local changes .{0,40}(?:lost|discarded))",
            r"(?i:overwr(?:ote|iting) (?:existing|file|the|changes|\S+\.\w+)|already exists[,;.:]? (?:overwriting"
            r"|replacing))",
        ),
    ),
    "forced-update": ("A ref was moved by force.", (r"\(forced update\)|^\s*\+ [0-9a-f]{7,}\.\.\.[0-9a-f]{7,}",)),
    "non-fast-forward": ("A push or a fetch did not follow on.", (r"non-fast-forward|\(fetch first\)|\[rejected\]",)),
    "detached-head": (
        "Work goes on outside of any branch.",
        (r"detached HEAD|HEAD detached at|leaving \d+ commits? behind",),
    ),
    "lost-refs": (
        "A branch or a stash went away.",
        (r"^Deleted (?:remote-tracking )?branch \S+ \(was|^Dropped refs/stash",),
    ),
}
_READERS = words(
    "cat head tail less more bat sed awk grep egrep fgrep rg ag ack find fd ls tree wc sort uniq cut tr jq yq echo"
    " printf pwd which type file stat du df date diff cmp nl xxd od strings basename dirname realpath readlink column"
    " tee true cd test [ sleep export set column fold rev paste join xargs man history"
)
_GIT_READS = words("log show diff blame grep cat-file ls-files ls-tree shortlog config describe rev-parse")
_QUIET_TOOLS = words(
    "read grep glob ls notebookread webfetch websearch todowrite task agent search list_directory read_file"
    " read_many_files view search_file_content web_search web_fetch list fetch edit write multiedit"
    " notebookedit update_plan skill"
)
_LOGS = re.compile(r"\.log\b|/log/|/logs/|journal|stderr|nohup\.out|\.out\b", re.IGNORECASE)
_NUMBERS = re.compile(r"0x[0-9a-f]+|[0-9a-f]{7,40}|\d+", re.IGNORECASE)


class Outputs:
    def __init__(self) -> None:
        self._errors = Patterns(table(FAILED, WENT_WRONG, _ERRORS))
        self._refusals = Patterns(table(FAILED, WENT_WRONG, _REFUSALS))
        self._warnings = Patterns(table(WARNED, WENT_WRONG, _WARNINGS))

    def hits(self, text: str, *, failed: bool) -> Iterator[Hit]:
        yield from self._errors.hits(text)
        yield from (self._refusals if failed else self._warnings).hits(text)


def worth_reading(tool: str, commands: Iterable[Command], *, failed: bool) -> bool:
    """Whether what a call printed tells what happened, and not what stands in some file that was looked at."""
    commands = list(commands)
    if not commands:
        return failed or not (tool.lower() in _QUIET_TOOLS or tool.startswith("mcp__"))
    return any(_LOGS.search(command.source) or not _only_reads(command) for command in commands)


def likeness(line: str) -> str:
    """What two lines that say the same have in common: their words, not their numbers."""
    return " ".join(_NUMBERS.sub("0", line[:400]).lower().split())


def _only_reads(command: Command) -> bool:
    if command.name == "git":
        return any(word in _GIT_READS for word in command.words[1:4])
    return command.name in _READERS
