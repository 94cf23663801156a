"""Goes through a session once, moment by moment, and asks the families of rules about each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ledger.client.redaction import Redactor
from ledger.daemons.sweep.model import DONE, RISKS, Candidates, Moment, SessionText
from ledger.daemons.sweep.prefilter import behaviour
from ledger.daemons.sweep.prefilter.answers import asks
from ledger.daemons.sweep.prefilter.behaviour import Behaviour, Call, Digest
from ledger.daemons.sweep.prefilter.checks import check_of
from ledger.daemons.sweep.prefilter.clipping import SNIPPET_CHARS_MAX, Clipper
from ledger.daemons.sweep.prefilter.done import Destructive, commands_of, sql_of, written_by
from ledger.daemons.sweep.prefilter.gathering import Draft, Gathering, Turn
from ledger.daemons.sweep.prefilter.known import Known
from ledger.daemons.sweep.prefilter.matching import Hit, Rule
from ledger.daemons.sweep.prefilter.outputs import Outputs, likeness, worth_reading
from ledger.daemons.sweep.prefilter.said import REFUSED, Said
from ledger.daemons.sweep.prefilter.typed import refusal, typed
from ledger.events import kinds

WAITING_MAX = 1_000  # calls whose results have not come
THREADS_MAX = 500  # sessions within what a source calls one: subagents in the same file
SHOWN_CHARS_MAX = 2_000  # of a call, as it is held in mind

SECRET_IN_COMMAND = Rule("secret-in-command", DONE, RISKS, "A secret stands in a command, where logs show it.")


class Prefilter:
    """Which moments of a session may be damage. The same session gives the same candidates, however it was read.

    `redactor` takes the secrets out of all that candidates show; None leaves them in. The other arguments are
    patterns of the configuration (RE2). Raises InvalidField for a bad one, which names its place.
    """

    def __init__(
        self,
        redactor: Redactor | None = None,
        *,
        extra_destructive: Iterable[str] = (),
        extra_benign: Iterable[str] = (),
        extra_alarm: Iterable[str] = (),
    ) -> None:
        self._clipper = Clipper(redactor)
        self._said = Said(extra_alarm)
        self._destructive = Destructive(extra_destructive, extra_benign)
        self._outputs = Outputs()

    def candidates(self, session: SessionText) -> Candidates:
        """Goes through the moments. Raises SessionUnreadable where they cannot be read to the end."""
        gathering = Gathering(session.found)
        threads: dict[str, _Thread] = {}
        moments = 0
        for moment in session.moments:
            moments += 1
            thread = threads.pop(moment.session_id, None)
            if thread is None:
                thread = _Thread(self._clipper, self._said, self._destructive, self._outputs, gathering, session.cwd)
            threads[moment.session_id] = thread
            thread.take(moment)
            if len(threads) > THREADS_MAX:
                threads.pop(next(iter(threads))).end()
        for thread in threads.values():
            thread.end()
        return Candidates(
            session=session.found,
            title=self._clipper.line(session.title),
            cwd=None if session.cwd is None else self._clipper.line(session.cwd),
            found=gathering.candidates(),
            moments=moments,
            left_out=gathering.left_out,
        )


class _Thread:
    """One session's moments, in order."""

    def __init__(
        self,
        clipper: Clipper,
        said_: Said,
        destructive: Destructive,
        outputs_: Outputs,
        gathering: Gathering,
        cwd: str | None,
    ) -> None:
        self._clipper = clipper
        self._said = said_
        self._destructive = destructive
        self._outputs = outputs_
        self._gathering = gathering
        self._known = Known(cwd)
        self._behaviour = Behaviour()
        self._turn = Turn(clipper)
        self._waiting: dict[str, tuple[Call, list[Draft]]] = {}
        self._agent_spoke = self._agent_did = self._agent_asked = False
        self._last: Moment | None = None
        self._takers: dict[str, Callable[[Moment], None]] = {
            kinds.MESSAGE: self._message,
            kinds.COMMENT: self._comment,
            kinds.TOOL_CALL: self._call,
            kinds.TOOL_RESULT: self._result,
            kinds.OUTPUT: self._output,
            kinds.ERROR: self._error,
            kinds.USAGE: self._usage,
            kinds.RESULT: self._state,
        }

    def take(self, moment: Moment) -> None:
        taker = self._takers.get(moment.kind)
        if taker is not None:
            self._last = moment
            taker(moment)

    def end(self) -> None:
        if self._last is not None:
            self._digests(self._behaviour.end_of_streak(), self._last)

    # What was said

    def _message(self, moment: Moment) -> None:
        text, role = _text(moment.payload, "text"), moment.payload.get("role")
        if not text:
            return
        if role == "thinking":
            self._spoke(self._said.thought(text), text, moment, "agent, thinking")
        elif role == "user" and moment.actor not in ("model", "harness"):
            self._person(text, moment)
        elif role == "user":
            self._turn.line("order", text)
        elif role == "assistant" or (role != "harness" and moment.actor == "model"):
            self._agent(text, moment)
        else:
            self._turn.line("harness", text)

    def _comment(self, moment: Moment) -> None:
        self._agent(_text(moment.payload, "body"), moment)

    def _agent(self, text: str, moment: Moment) -> None:
        self._spoke(self._said.by_agent(text), text, moment, "agent")
        claim = self._behaviour.claimed(text)
        if claim is not None:
            self._disagreement(behaviour.CLAIM_DISAGREES, *claim, moment)
        self._turn.line("agent", text)
        self._agent_spoke, self._agent_asked = True, asks(text)

    def _person(self, text: str, moment: Moment) -> None:
        own = typed(text)
        if own:
            self._digests(self._behaviour.end_of_streak(), moment)
            hits = self._said.by_person(own, answers=self._agent_spoke, done=self._agent_did, asked=self._agent_asked)
            self._spoke(hits, own, moment, "user")
            self._agent_asked = False
        self._turn.line("user", own or text, asks=bool(own))

    # What was done

    def _call(self, moment: Moment) -> None:
        tool, args = _text(moment.payload, "tool"), moment.payload.get("args")
        self._agent_did = True
        commands = commands_of(tool, args)
        shown = _shown(tool, args)
        fired = list(self._destructive.fired(commands, self._known))
        if not commands and (sql := sql_of(tool, args)):
            fired = list(self._destructive.fired_sql(sql))
        self._turn.line("ran" if commands else "called", shown)
        drafts = [self._did(rule, source, moment) for rule, source in fired]
        if commands and self._clipper.holds_secret(shown):
            drafts.append(self._did(SECRET_IN_COMMAND, shown, moment))
        if any(rule.name.startswith(("kill", "stop")) for rule, _ in fired):
            self._behaviour.stopped_something()
        digest, writes = behaviour.digest_of(tool, args), written_by(tool, args)
        call = Call(tool, digest, tuple(commands), shown, check_of(commands), writes)
        self._digests(self._behaviour.called(call, args), moment)
        call_id = moment.payload.get("call_id")
        if isinstance(call_id, str):
            self._waiting[call_id] = call, [draft for draft in drafts if draft is not None]
            if len(self._waiting) > WAITING_MAX:
                del self._waiting[next(iter(self._waiting))]

    def _did(self, rule: Rule, source: str, moment: Moment) -> Draft | None:
        alike = likeness(source)
        if self._gathering.again(rule, alike):
            return None
        snippet = self._clipper.line(source, SNIPPET_CHARS_MAX)
        return self._gathering.add(rule, alike, moment, self._turn, who="ran", snippet=snippet)

    def _result(self, moment: Moment) -> None:
        payload = moment.payload
        output = "\n".join(filter(None, (_text(payload, name) for name in ("output", "stdout", "stderr"))))
        failed = payload.get("exit_code") not in (None, "", 0, "0") or payload.get("is_error") is True
        call_id = payload.get("call_id")
        known = self._waiting.pop(call_id, None) if isinstance(call_id, str) else None
        call, drafts = known or (Call(_text(payload, "tool"), b""), [])
        for draft in drafts:
            draft.evidence = (_outcome(payload, failed=failed), *self._clipper.ends(output))
        reason = refusal(output) if failed else None
        if reason is not None:
            self._refused(reason, call, moment)
        elif worth_reading(call.tool, call.commands, failed=failed):
            self._hits(self._outputs.hits(output, failed=failed), output, moment, "printed", evidence=True)
        if call.writes and not failed and "creat" in output[:200].lower():
            self._known.makes(call.writes, ".")
        if known is not None and reason is None:
            self._digests(self._behaviour.ended(call, output, failed=failed), moment)
        self._turn.line(_outcome(payload, failed=failed), output)

    def _refused(self, reason: str, call: Call, moment: Moment) -> None:
        text = f"{call.tool}: {call.shown}" + (f" — {reason}" if reason else "")
        alike = likeness(reason)
        if not self._gathering.again(REFUSED, alike):
            snippet = self._clipper.line(text, SNIPPET_CHARS_MAX)
            self._gathering.add(REFUSED, alike, moment, self._turn, who="user", snippet=snippet)

    # What failed, and how it went

    def _output(self, moment: Moment) -> None:
        text = _text(moment.payload, "text")
        self._hits(self._outputs.hits(text, failed=False), text, moment, "printed")
        self._turn.line("printed", text)

    def _error(self, moment: Moment) -> None:
        text = _text(moment.payload, "message")
        self._hits(self._outputs.hits(text, failed=True), text, moment, "error")
        self._turn.line("error", text)

    def _usage(self, moment: Moment) -> None:
        payload = moment.payload
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        counts = [payload.get(name) for name in names]
        tokens = sum(count for count in counts if isinstance(count, int))
        cost = payload.get("cost_usd")
        message_id = payload.get("message_id")
        id_ = message_id if isinstance(message_id, str) else f"{moment.session_id} {moment.seq}"
        self._behaviour.spent(id_, tokens, cost if isinstance(cost, int | float) else 0.0)

    def _state(self, moment: Moment) -> None:
        if moment.payload.get("state") == kinds.DONE:
            text = _text(moment.payload, "summary") or "done"
            if (against := self._behaviour.reported_done()) is not None:
                self._disagreement(behaviour.DONE_DISAGREES, text, *against, moment)
            self._turn.line("done", text)

    def _disagreement(self, rule: Rule, text: str, check: str, output: str, moment: Moment) -> None:
        alike = likeness(text)
        if not self._gathering.again(rule, alike):
            evidence = (f"ran: {self._clipper.line(check)}", *self._clipper.ends(output))
            snippet = self._clipper.line(text, SNIPPET_CHARS_MAX)
            self._gathering.add(rule, alike, moment, self._turn, who="agent", snippet=snippet, evidence=evidence)

    # From hits to candidates

    def _spoke(self, hits: Iterable[Hit], text: str, moment: Moment, who: str) -> None:
        """Of what is said at once the worst that is new counts: one look by a judge is enough."""
        ranked = sorted(hits, key=lambda hit: hit.rule.rank)
        new = [hit for hit in ranked if not self._gathering.holds(hit.rule, likeness(hit.match))]
        self._hits((new or ranked)[:1], text, moment, who)

    def _hits(self, hits: Iterable[Hit], text: str, moment: Moment, who: str, *, evidence: bool = False) -> None:
        for hit in hits:
            alike = likeness(hit.match)
            if not self._gathering.again(hit.rule, alike):
                snippet, lines = self._clipper.around(text, hit)
                self._gathering.add(
                    hit.rule, alike, moment, self._turn, who=who, snippet=snippet, evidence=lines if evidence else ()
                )

    def _digests(self, digests: Iterable[Digest], moment: Moment) -> None:
        for rule, alike, text in digests:
            digest = self._clipper.line(text, SNIPPET_CHARS_MAX)
            if not self._gathering.again(rule, alike, digest):
                self._gathering.add(rule, alike, moment, self._turn, who="", snippet=digest)


def _text(payload: dict[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _shown(tool: str, args: Any) -> str:
    """A call as one text: the command of a shell, else the tool and its arguments."""
    if isinstance(args, dict):
        for name in ("command", "cmd", "script"):
            given = args.get(name)
            if isinstance(given, str):
                return given[:SHOWN_CHARS_MAX]
            if isinstance(given, list):
                return " ".join(map(str, given))[:SHOWN_CHARS_MAX]
        texts = (f"{name}={value}" for name, value in args.items() if isinstance(value, str | int | float))
        return f"{tool} {' '.join(texts)}"[:SHOWN_CHARS_MAX]
    return tool[:SHOWN_CHARS_MAX]


def _outcome(payload: dict[str, Any], *, failed: bool) -> str:
    code = payload.get("exit_code")
    if isinstance(code, int):
        return f"exit {code}"
    return "failed" if failed else "gave"
