"""The turns of a run's agents on this host: started by the harness, told in the session of their conversation.

A reply is written to disk as soon as the turn has ended, and taken from there where the runner ended before it could
say so: an agent's work is neither lost nor done twice because a server was away.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from ledger.client.redaction import redact
from ledger.client.saddle import Saddle, Session
from ledger.daemons import agent
from ledger.daemons.remediation import blocking
from ledger.daemons.remediation.runner import Stopping
from ledger.daemons.remediation.settings import Command, RemediationSettings
from ledger.events import kinds
from projections.remediation import words
from projections.remediation.plan import Rules
from projections.remediation.state import Prompt, Reply, Run

ERROR_CHARS_MAX = 4_000
OUTPUT_BYTES_MAX = 16 * 2**20


class Agents:
    """The workers that the settings name. Prompts and replies lie below `state_dir`; `saddle` is of the owner whose
    run it is."""

    def __init__(self, settings: RemediationSettings, saddle: Saddle, state_dir: Path) -> None:
        self._settings = settings
        self._saddle = saddle
        self._state_dir = state_dir

    def folder(self, project: str) -> Path:
        return self._settings.folder(project)

    def run(self, run: Run, prompt: Prompt, stop: Stopping) -> Reply:
        command = self._settings.agent(prompt.project, reviews=prompt.role == words.MASTER)
        folder = self._folder_of(run)
        output, kept = folder / f"{prompt.queue_id}.out", folder / f"{prompt.queue_id}.reply"
        for path in (output, kept):  # a turn that begins has no reply yet, whoever has put one there
            with suppress(FileNotFoundError):
                path.unlink()
        turn = agent.Turn(
            command,
            prompt.text,
            folder / f"{prompt.queue_id}.md",
            self.folder(prompt.project),
            output=output,
            resume=None if prompt.role == words.MASTER else run.handles.get(prompt.conversation),
            limits=agent.Limits(time_s=self._settings.turn_s, output_bytes=OUTPUT_BYTES_MAX),
        )
        ended = agent.run_turn(turn, self._session(run, prompt), actor=prompt.role, stop=stop)
        reply = reply_of(_with_output(ended, command, output), run.rules, self._settings.turn_s)
        self._keep(kept, reply)
        return reply

    def left_behind(self, run: Run, prompt: Prompt) -> Reply | None:
        path = self._folder_of(run) / f"{prompt.queue_id}.reply"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Reply)
        except (OSError, msgspec.DecodeError):
            return None

    def ended(self, run: Run) -> None:
        """Ends the sessions of the run's conversations that were opened on this host."""
        for conversation in {prompt.conversation for prompt in run.prompts.values()}:
            session_id = _session_id(run, conversation)
            if self._saddle.outbox.has_session(session_id):
                self._saddle.session(session_id).result(kinds.DONE, "the run has ended")

    def _session(self, run: Run, prompt: Prompt) -> Session:
        """Where the run was taken over from another host, its conversations go on behind what that one has sent."""
        session_id = _session_id(run, prompt.conversation)
        if _is_continued(run, prompt) and not self._saddle.outbox.has_session(session_id):
            high_seq = self._high_seq(session_id)
            if high_seq is not None:
                self._saddle.outbox.adopt(session_id, run.id, high_seq=high_seq)
        return self._saddle.open_session(
            session_id,
            task_id=run.id,
            parent_session_id=run.id,
            agent=_name_of(self._settings.agent(prompt.project, reviews=prompt.role == words.MASTER)),
            cwd=str(self.folder(prompt.project)),
        )

    def _high_seq(self, session_id: str) -> int | None:
        from ledger.client.api import ApiError

        try:
            with self._saddle.api(attempts_max=1) as api:
                answer = api.push(session_id, [])
        except ApiError:  # unknown there, or nobody answers
            return None
        high_seq = answer["high_seq"]
        return high_seq if isinstance(high_seq, int) else -1

    def _folder_of(self, run: Run) -> Path:
        folder = self._state_dir / "runs" / quote(run.id, safe="")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def _keep(self, path: Path, reply: Reply) -> None:
        unfinished = path.with_name(path.name + ".new")
        with unfinished.open("wb") as file:
            file.write(msgspec.json.encode(reply))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)


def reply_of(ended: agent.Reply, rules: Rules, turn_s: float) -> Reply:
    """What the run is told of a turn, without secrets, and bounded."""
    text = redact(ended.text)
    content = text[: rules.reply_chars_max]
    status, error = words.DONE, ""
    if ended.interrupted is not None:
        status, error = words.INTERRUPTED, f"stopped by {ended.interrupted.name}"
    elif ended.timed_out:
        status, error = words.FAILED, f"it took longer than {turn_s:g} s"
    elif ended.exit_code != 0:
        said = ended.last_words.strip()
        status, error = words.FAILED, f"exit code {ended.exit_code}{f': {said}' if said else ''}"
    return Reply(
        status,
        content,
        redact(error)[:ERROR_CHARS_MAX],
        _trouble(ended, text, rules) if status == words.DONE else "",
        ended.resume,
        ended.cost_usd,
        ended.exit_code,
    )


def _trouble(ended: agent.Reply, text: str, rules: Rules) -> str:
    if ended.undecodable:
        return blocking.NOT_UTF8
    if len(text) > rules.reply_chars_max:
        return blocking.TOO_LONG
    return "" if text.strip() else blocking.EMPTY


def _with_output(ended: agent.Reply, command: Command, output: Path) -> agent.Reply:
    """An agent that is told where to write its reply may do so; else what it printed is the reply."""
    if isinstance(command, str) or not any("{output}" in word for word in command) or not output.is_file():
        return ended
    with output.open("rb") as file:
        data = file.read(OUTPUT_BYTES_MAX)
    text = data.decode(errors="replace")
    return msgspec.structs.replace(ended, text=text, undecodable="\ufffd" in text and not _is_utf8(data))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_continued(run: Run, prompt: Prompt) -> bool:
    """Whether something was said in the conversation before this prompt."""
    others = (one for one in run.prompts.values() if one.queue_id != prompt.queue_id)
    return any(one.conversation == prompt.conversation and one.started_at is not None for one in others)


def _name_of(command: Command) -> str:
    return command if isinstance(command, str) else Path(command[0]).name


def _session_id(run: Run, conversation: str) -> str:
    return f"{run.id}/{conversation}"
