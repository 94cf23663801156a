"""Why a loop was skipped or halted: every code there is, each with a sentence for people."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    # Of a skip: the loop goes on at its next tick, if it can
    UNTRACKED = "untracked"
    LOCKED = "locked"
    MAX_ITERATIONS = "max_iterations"
    BUDGET_EXHAUSTED = "budget_exhausted"
    WALL_TIME_EXHAUSTED = "wall_time_exhausted"
    SCORE_PLATEAU = "score_plateau"
    NO_PROGRESS = "no_progress"
    PASSED = "passed"
    GATE_SUBPROCESS_FAILED = "gate_subprocess_failed"
    NO_CURRENT_TASK = "no_current_task"
    CONTEXT_PROBE_FAILED = "context_probe_failed"
    INTERRUPTED = "interrupted"
    SUPERSEDED = "superseded"
    # Of a halt: the loop stands until a person resumes it
    HUMAN_INTERVENTION = "human_intervention"
    CONTEXT_BELOW_FLOOR = "context_below_floor"
    IMPLEMENT_FAILED = "implement_failed"
    VERIFIER_FAILED = "verifier_failed"
    VERIFIER_CHANGED = "verifier_changed"
    SCOPE_VIOLATION = "scope_violation"
    BROKEN_OFF = "broken_off"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Reason.UNTRACKED: "There is no such loop in this project.",
    Reason.LOCKED: "Another tick of this loop is running.",
    Reason.MAX_ITERATIONS: "It has had as many rounds as brakes.max_iterations allows.",
    Reason.BUDGET_EXHAUSTED: "Its agents have cost as much as brakes.max_budget_usd allows.",
    Reason.WALL_TIME_EXHAUSTED: "Its agents have run for as long as brakes.max_wall_s allows.",
    Reason.SCORE_PLATEAU: "The scores of a whole brakes.score_plateau_window have brought no gain.",
    Reason.NO_PROGRESS: "Two rounds in a row have changed nothing in the repository.",
    Reason.PASSED: "The verifier has passed the current task; set the next one.",
    Reason.GATE_SUBPROCESS_FAILED: "The gate's command gave no answer that can be read.",
    Reason.NO_CURRENT_TASK: "No task is set.",
    Reason.CONTEXT_PROBE_FAILED: "The context probe gave no answer that can be read.",
    Reason.INTERRUPTED: "The runner was asked to end in the middle of a round; the next tick goes on with it.",
    Reason.SUPERSEDED: "Another runner has taken the round over.",
    Reason.HUMAN_INTERVENTION: "A person has to decide.",
    Reason.CONTEXT_BELOW_FLOOR: "The context probe says that no round may be run.",
    Reason.IMPLEMENT_FAILED: "The implementing agent failed.",
    Reason.VERIFIER_FAILED: "The verifying agent gave no verdict that can be read.",
    Reason.VERIFIER_CHANGED: "What the verifier goes by was changed during a round.",
    Reason.SCOPE_VIOLATION: "A round touched files outside of blast_radius.file_scope.",
    Reason.BROKEN_OFF: "The runner was broken off again and again in the middle of one round.",
}


def sentence_of(code: str) -> str:
    """The sentence for a reason as an event has it: `halted:CODE` is CODE's, and a code that is not known, such as
    one of a configured gate, stands for itself."""
    name = code.removeprefix("halted:")
    try:
        return Reason(name).sentence
    except ValueError:
        return name
