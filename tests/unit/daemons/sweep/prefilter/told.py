"""Sessions told moment by moment, for the tests of the prefilter."""

from __future__ import annotations

from typing import Any

from ledger.client.redaction import Redactor
from ledger.daemons.sweep.model import Candidate, Candidates, Found, Moment, SessionText
from ledger.daemons.sweep.prefilter.filtering import Prefilter
from ledger.events import kinds
from tests.corpus.damage import AGENT, COMMAND, FAILURE, PERSON, Sample

CWD = "/home/dev/app"
PREFILTER = Prefilter(Redactor())


class Story:
    """What happened in a session; each method adds to it and gives it back."""

    def __init__(self, session_id: str = "s-1", cwd: str | None = CWD) -> None:
        self.moments: list[Moment] = []
        self.session_id = session_id
        self.cwd = cwd

    def user(self, text: str) -> Story:
        return self.add(kinds.MESSAGE, "user", role="user", text=text)

    def agent(self, text: str) -> Story:
        return self.add(kinds.MESSAGE, "model", role="assistant", text=text)

    def thinks(self, text: str) -> Story:
        return self.add(kinds.MESSAGE, "model", role="thinking", text=text)

    def harness(self, text: str) -> Story:
        return self.add(kinds.MESSAGE, "harness", role="harness", text=text)

    def calls(self, tool: str, args: dict[str, Any], output: str = "", **result: Any) -> Story:
        call_id = f"call-{len(self.moments)}"
        self.add(kinds.TOOL_CALL, "model", tool=tool, args=args, call_id=call_id)
        return self.add(kinds.TOOL_RESULT, "harness", call_id=call_id, output=output, **result)

    def runs(self, command: str, output: str = "", code: int = 0, **args: Any) -> Story:
        return self.calls("Bash", {"command": command, **args}, output, exit_code=code)

    def spends(self, message_id: str, tokens: int, cost_usd: float = 0.0) -> Story:
        return self.add(kinds.USAGE, "model", message_id=message_id, output_tokens=tokens, cost_usd=cost_usd)

    def add(self, kind: str, actor: str, **payload: Any) -> Story:
        self.moments.append(Moment(self.session_id, len(self.moments), kind, actor, payload))
        return self

    def text(self) -> SessionText:
        found = Found("told", f"{self.session_id}:{len(self.moments)}", "told", "claude-code")
        return SessionText(found, "A session", self.cwd, iter(self.moments))

    def candidates(self, prefilter: Prefilter = PREFILTER) -> Candidates:
        return prefilter.candidates(self.text())

    def rules(self, prefilter: Prefilter = PREFILTER) -> list[str]:
        return [candidate.rule for candidate in self.candidates(prefilter).found]

    def only(self, rule: str, prefilter: Prefilter = PREFILTER) -> Candidate:
        """The one candidate of a rule."""
        found = [candidate for candidate in self.candidates(prefilter).found if candidate.rule == rule]
        assert len(found) == 1, found
        return found[0]


def told(sample: Sample) -> Story:
    """A session in which little else happens."""
    if sample.family == COMMAND:
        return Story().user("Go on.").runs(sample.text)
    if sample.family == AGENT:
        return Story().user("Go on.").agent(sample.text)
    if sample.family == PERSON:
        return Story().calls("Edit", {"file_path": "a"}).agent("That is done.").user(sample.text)
    return Story().runs("make thing", f"starting\n{sample.text}\nthe end", 1 if sample.family == FAILURE else 0)
