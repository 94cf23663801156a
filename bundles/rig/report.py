"""What a run has shown: its checks, each with what was seen, and a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Verdict = Literal["ok", "FAIL", "unknown"]
LINE_CHARS_MAX = 118


@dataclass(frozen=True)
class Check:
    """One sentence that holds, does not hold, or could not be judged; `seen` says by what, `expected` what it was
    held against."""

    sentence: str
    verdict: Verdict
    seen: str = ""
    expected: str = ""


@dataclass
class Report:
    """The checks of one run. `variant` says how the run differed, `stderr` is the server's, kept where the run
    is not green."""

    name: str
    title: str
    variant: str
    seed: int
    checks: list[Check] = field(default_factory=list)
    seconds: float = 0.0
    stderr: str = ""

    @property
    def verdict(self) -> Verdict:
        """FAIL where any check failed, else unknown where any is, else ok. A run without checks shows nothing."""
        verdicts = {check.verdict for check in self.checks}
        if "FAIL" in verdicts:
            return "FAIL"
        return "ok" if verdicts == {"ok"} else "unknown"

    def lines(self) -> list[str]:
        """The report for a person."""
        how = f" ({self.variant})" if self.variant else ""
        lines = [f"{self.name}{how}: {self.title} [seed {self.seed}]"]
        for check in self.checks:
            lines += _check_lines(check)
        lines.append(f"  {self.verdict}: {len(self.checks)} checks in {self.seconds:.1f} s")
        if self.stderr:
            lines += ["  the server's last words:", *(f"    {line}" for line in self.stderr.splitlines())]
        return lines

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def _check_lines(check: Check) -> list[str]:
    line = f"  {check.verdict:<7} {check.sentence}"
    if check.verdict == "ok":
        fits = check.seen and len(line) + len(check.seen) < LINE_CHARS_MAX
        return [f"{line}  ({check.seen})" if fits else line]
    found = (("saw", check.seen), ("expected", check.expected))
    return [line, *(f"          {word} {what}" for word, what in found if what)]
