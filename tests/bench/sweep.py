"""What a sweep's prefilter finds of a corpus of damage and look-alikes, and what it costs beside merely reading the
same transcripts.

The corpus (`tests/corpus/damage.py`) was written by those who wrote the rules: its recall says that nothing has got
worse, not how much real damage is found.

The speed is that of the transcripts in the folder LEDGERD_TRANSCRIPTS, with what the prefilter finds in them, rule by
rule; without one, of made-up transcripts in which a moment of damage stands among much work.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import orjson

from ledger.client.redaction import Redactor
from ledger.daemons.sweep.model import Candidates, Found
from ledger.daemons.sweep.prefilter.filtering import Prefilter
from ledger.daemons.sweep.sources.files import TYPES, FileSource
from tests.bench.processes import BenchFailed
from tests.bench.results import Finding, Report, Sample, ratio, row
from tests.corpus.damage import FAMILIES, samples
from tests.unit.daemons.sweep.prefilter.told import told

ROUNDS = 7
SEED = 20_260_303
SESSIONS, SESSION_BYTES = 8, 500_000

PARSED, READ, FILTERED = "orjson alone", "read by the importers", "read and filtered"
_WORDS = (
    "def",
    "return",
    "token",
    "import",
    "self.value",
    "parse(line)",
    "for each",
    "event",
    "in",
    "{}",
    "==",
    "line",
)


def run(folder: Path, progress: Callable[[str], None]) -> Report:
    """Measures in `folder`. Raises BenchFailed where the same session gives other candidates."""
    root = _transcripts(folder / "sweep")
    found = [(source, one) for source in _sources(root) for one in source.sessions() if isinstance(one, Found)]
    megabytes = sum(one.size for _, one in found) / 1e6
    prefilter = Prefilter(Redactor())
    first = [prefilter.candidates(source.read(one)) for source, one in found]
    moments = sum(one.moments for one in first)
    taken: dict[str, list[Sample]] = defaultdict(list)
    for number in range(ROUNDS):
        progress(f"sweep, round {number + 1} of {ROUNDS}")
        taken[PARSED].append(_sample(moments, lambda: [_parse(Path(one.where)) for _, one in found]))
        taken[READ].append(_sample(moments, lambda: [sum(1 for _ in s.read(one).moments) for s, one in found]))
        again: list[Candidates] = []
        work = lambda again=again: again.extend(prefilter.candidates(s.read(one)) for s, one in found)  # noqa: E731
        taken[FILTERED].append(_sample(moments, work))
        if again != first:
            raise BenchFailed("the same sessions gave other candidates")
    return Report(
        _title(first, megabytes, [sample.seconds for sample in taken[FILTERED]]),
        ROUNDS,
        [row(name, taken[name]) for name in (PARSED, READ, FILTERED)],
        [
            ratio("read and filtered / read", taken[FILTERED], taken[READ]),
            ratio("read and filtered / parsed", taken[FILTERED], taken[PARSED]),
        ],
        [_finding(family) for family in FAMILIES],
    )


def _title(sessions: list[Candidates], megabytes: float, seconds: Iterable[float]) -> str:
    rules = Counter(candidate.rule for session in sessions for candidate in session.found)
    count = sum(rules.values())
    told_ = ", ".join(f"{rule} {times}" for rule, times in rules.most_common()) or "none"
    speed = sorted(seconds)[ROUNDS // 2] * 1000 / megabytes
    return (
        f"{megabytes:.1f} MB in {len(sessions)} sessions (a request is one pass over them): {speed:.0f} ms a MB;\n"
        f"{count} candidates, {count / len(sessions):.2f} a session: {told_}"
    )


def _finding(family: str) -> Finding:
    damage, alike = samples(family, damage=True), samples(family, damage=False)
    found = sum(sample.rule in told(sample).rules() for sample in damage)
    return Finding(family, len(damage), found, len(alike), sum(bool(told(one).rules()) for one in alike), aim=1.0)


def _sample(events: int, work: Callable[[], object]) -> Sample:
    began, cpu_began = time.perf_counter(), time.process_time()
    work()
    return Sample(events, 1, time.perf_counter() - began, time.process_time() - cpu_began)


def _parse(path: Path) -> None:
    with path.open("rb") as file:
        if path.suffix == ".json":
            orjson.loads(file.read())
            return
        for line in file:
            orjson.loads(line)


def _sources(root: Path) -> list[FileSource]:
    """A source for each agent's folder, where there is one of its name; else all as Claude Code's."""
    folders = [(type_, root / type_) for type_ in sorted(TYPES) if (root / type_).is_dir()]
    return [FileSource(type_, type_, folder) for type_, folder in folders or [("claude-code", root)]]


def _transcripts(folder: Path) -> Path:
    given = os.environ.get("LEDGERD_TRANSCRIPTS")
    if given:
        return Path(given)
    random = Random(SEED)
    commands = [sample.text for sample in samples(FAMILIES[0], damage=True)]
    folder.mkdir()
    for number in range(SESSIONS):
        with (folder / f"session-{number}.jsonl").open("wb") as file:
            turn = 0
            while file.tell() < SESSION_BYTES:
                turn += 1
                command = random.choice(commands) if turn == 50 else f"rg -n {_words(random, 3)} src{turn}"
                for one in _turn(f"{number}-{turn}", command, random):
                    file.write(orjson.dumps(one) + b"\n")
    return folder


def _turn(name: str, command: str, random: Random) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"toolu_{name}", "name": "Bash", "input": {"command": command}}
    output = "\n".join(_words(random, 12) for _ in range(int(random.paretovariate(0.9) * 3) % 400))
    result = {"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": output}
    usage = {"input_tokens": 9, "output_tokens": 90, "cache_read_input_tokens": 40_000}
    words = {"type": "text", "text": _words(random, 40)}
    return [
        _row("user", {"role": "user", "content": f"Add {_words(random, 30)}"}),
        _row("assistant", {"id": f"msg_{name}", "model": "bench-1", "content": [words, call], "usage": usage}),
        _row("user", {"role": "user", "content": [result]}, toolUseResult={"stdout": output, "interrupted": False}),
    ]


def _row(type_: str, message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    about = {"sessionId": "bench-session", "cwd": "/home/dev/app", "timestamp": "2026-03-01T10:00:00.000Z"}
    return {**about, "type": type_, "message": message, **fields}


def _words(random: Random, count: int) -> str:
    return " ".join(random.choices(_WORDS, k=count))
