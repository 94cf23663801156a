"""Commands that check the work (tests, builds, linters), how they ended, and claims that the work is good."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ledger.daemons.sweep.prefilter.shell import Command, words

_CHECKS = words(
    "pytest py.test tox nox unittest jest vitest mocha ava karma cypress playwright tsc eslint ruff mypy pyright"
    " flake8 pylint phpunit rspec ctest pre-commit golangci-lint biome standard stylelint ward behave bats xcodebuild"
)
_CHECKING: dict[str, frozenset[str]] = {
    "go": words("test vet build"),
    "cargo": words("test check build clippy nextest"),
    "make": words("test tests check lint build all ci verify"),
    "just": words("test tests check lint build all ci verify"),
    "gradle": words("test build check assemble"),
    "gradlew": words("test build check assemble assembleDebug"),
    "mvn": words("test verify package install compile"),
    "dotnet": words("test build"),
    "rake": words("test spec"),
    "rails": words("test spec"),
    "swift": words("test build"),
    "flutter": words("test analyze build"),
    "dart": words("test analyze"),
    "mix": words("test compile credo dialyzer"),
    "deno": words("test check lint"),
    "cmake": words("--build"),
    "ninja": words("test all"),
    "bazel": words("test build"),
    "next": words("build lint"),
    "vite": words("build"),
}
_SCRIPT_RUNNERS = words("npm yarn pnpm bun")
_SCRIPTS = re.compile(r"(?:test|tests|lint|build|typecheck|type-check|check|tsc|verify|ci|e2e)(?::[\w:-]{1,40})?")
_CHECK_FILES = re.compile(
    r"(?:^|/)(?:run[_-]?)?(?:tests?|checks?|ci|build|verify)\.(?:sh|py|js|ts)$|(?:^|/)test_\w+\.py$"
)

TESTS, BUILD, LINT = "tests", "build", "lint"
_LINTS = re.compile(
    r"\b(?:eslint|ruff|mypy|pyright|flake8|pylint|stylelint|golangci-lint|biome|credo|dialyzer|clippy|lint|vet"
    r"|typecheck|type-check|pre-commit|analyze)\b"
)
_BUILDS = re.compile(r"\b(?:build|compile|assemble\w*|package|install|tsc|xcodebuild|check|--build)\b")

_COUNTED = re.compile(r"\b(\d{1,6}) (?:tests? |specs? )?(?:failed|failing|failures?|errors?)\b", re.IGNORECASE)
_FAILED = re.compile(
    r"\bFAILED\b|^FAIL\b|--- FAIL|^not ok \d|error TS\d{4}|error\[E\d{4}\]|BUILD FAILED|npm ERR!|ELIFECYCLE"
    r"|\bFailed to compile\b|make(?:\[\d+\])?: \*\*\*|AssertionError|SyntaxError|Error: Cannot find module",
    re.MULTILINE,
)
_PASSED = re.compile(
    r"\b\d+ (?:tests? |specs? )?pass(?:ed|ing)\b|\bAll checks passed|\bno issues found", re.IGNORECASE
)

_CLAIM = re.compile(
    r"\ball (?:\w+ ){0,3}(?:tests?|checks?|specs?) (?:\w+ ){0,2}(?:pass|succeed|green)"
    r"|\b(?:tests?|checks?|suite|build|compilation|typecheck|lint) (?:\w+ ){0,2}(?:pass(?:es|ed|ing)?\b|succeed"
    r"|(?:is|are) (?:green|clean)|(?:is |was )?successful)"
    r"|\beverything (?:is |now |all ){0,3}(?:work|pass|green|done|in place|complete)"
    r"|\b(?:100%|fully) (?:work|pass|functional|complete)|\bsuccessfully (?:implement|fix|complet|resolv|migrat"
    r"|refactor|built)"
    r"|\b(?:is|are) now (?:fixed|working|complete|resolved|fully)|\bno (?:more )?(?:errors|failures|failing tests)\b"
    r"|\bthe (?:fix|implementation|feature|task) (?:is )?(?:now )?(?:works|complete|done)"
    r"|✅[^\n]{0,80}(?:pass|complete|work|success|done|fixed)",
    re.IGNORECASE,
)
_NO_CLAIM = re.compile(
    r"\b(?:not|should|once|if|until|will|would|ensure|make sure|need|verify|let me|let's|except|but|to see"
    r"|remaining|still)\b"
    r"|n['’]t\b|\bfail|\?|\bcheck (?:if|that|whether)\b",
    re.IGNORECASE,
)
_SUBJECTS = (
    (TESTS, re.compile(r"\b(?:tests?|specs?|suite)\b", re.IGNORECASE)),
    (BUILD, re.compile(r"\b(?:build|builds|compil\w*)\b", re.IGNORECASE)),
    (LINT, re.compile(r"\b(?:lint\w*|typecheck|types|format\w*)\b", re.IGNORECASE)),
)


def is_check(command: Command) -> bool:
    name, given = command.name, command.words[1:]
    if name in _CHECKS:
        return not {"--version", "--help", "--init", "install", "--fix"} & set(given[:2])
    if name in _SCRIPT_RUNNERS:
        plain = [word for word in given if not word.startswith("-") and word not in ("run", "run-script")]
        return bool(plain) and _SCRIPTS.fullmatch(plain[0]) is not None and given[:1] != ["install"]
    if name in _CHECKING:
        return bool(_CHECKING[name] & set(given[:4]))
    if name.startswith(("python", "node", "tsx")) or name in ("sh", "bash"):
        return any(_CHECK_FILES.search(word) for word in given[:3])
    return bool(command.words) and _CHECK_FILES.search(command.words[0]) is not None


def check_of(commands: Iterable[Command]) -> tuple[str, str] | None:
    """The last command that checks: its family (TESTS, BUILD, LINT), and as it was written; None if none does."""
    found = [command for command in commands if is_check(command)]
    if not found:
        return None
    return _family(" ".join(found[-1].words[:4])), found[-1].source


def _family(given: str) -> str:
    if _LINTS.search(given):
        return LINT
    return BUILD if "test" not in given and _BUILDS.search(given) else TESTS


def ended_badly(output: str, *, failed: bool) -> bool:
    """Whether a check failed: by its exit code, or, where a pipe hides that, by what it printed last."""
    if failed:
        return True
    tail = output[-4_000:]
    counts = [int(count) for count in _COUNTED.findall(tail)]
    if counts:
        return any(counts)
    return _PASSED.search(tail) is None and _FAILED.search(tail) is not None


def claim(text: str) -> tuple[str, frozenset[str]] | None:
    """The line in which an agent claims that the work is good, and the families of checks that it speaks of; None if
    it claims nothing."""
    for line in text[-8_000:].splitlines():
        if _CLAIM.search(line) is not None and _NO_CLAIM.search(line) is None:
            named = frozenset(family for family, subject in _SUBJECTS if subject.search(line))
            return line, named or frozenset({TESTS, BUILD, LINT})
    return None
