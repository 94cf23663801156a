"""The kinds of events that the ledger gives a meaning. Any other kind is stored and shown plainly."""

from __future__ import annotations

# What agents push
MESSAGE = "message"  # {role, text, message_id?, model?}
TOOL_CALL = "tool_call"  # {tool, args, call_id?, turn?}
TOOL_RESULT = "tool_result"  # {call_id?, tool?, exit_code?, stdout? | output?, is_error?, turn?}
COMMENT = "comment"  # {body}: a remark for people
USAGE = "usage"  # {message_id?, model?, input_tokens, output_tokens, cache_{read,write}_tokens?, cost_usd?}
ERROR = "error"  # {message}: an API error, an overload, a limit
WAITING = "waiting"  # {question?}: the agent waits for a person
COMPACTION = "compaction"  # {trigger?, tokens_before?}
OUTPUT = "output"  # {stream, text}: one line that a command wrote
RESULT = "result"  # {state, summary?}: a state push

# What the ledger writes in a session
SESSION_OPENED = "session.opened"  # seq -1: {task_id, saddle, resumed_from?, parent_session_id?, same_run_as?, …}

# What the ledger writes in its own streams
PROJECT_CREATED = "project.created"  # {id, title}
GOAL_CREATED = "goal.created"  # {id, project_id, title, brief, branch_name}
GOAL_STARTED = "goal.started"  # {run_task_id}
GOAL_CANCELLED = "goal.cancelled"  # {reason}
GOAL_REOPENED = "goal.reopened"  # {run_task_id}
TASK_CREATED = "task.created"  # {id, kind, title, brief, project_id, goal_id}
TASK_CLAIMED = "task.claimed"  # {session_id, saddle}
TASK_REQUEUED = "task.requeued"  # {}: opens the next attempt
TASK_CANCELLED = "task.cancelled"  # {reason}
TASK_BLOCKED = "task.blocked"  # {reason}
TASK_UNBLOCKED = "task.unblocked"  # {}
LOOP_HALT_REQUESTED = "loop.halt_requested"  # {reason}: in the loop's task; its runner reads it and decides
LOOP_RESUME_REQUESTED = "loop.resume_requested"  # {reason}

# The states of a result
WORKING, SUSPENDED, DONE, FAILED, CANCELLED = "working", "suspended", "done", "failed", "cancelled"
STATES = frozenset({WORKING, WAITING, SUSPENDED, DONE, FAILED, CANCELLED})
TERMINAL_STATES = frozenset({DONE, FAILED, CANCELLED})

_DECISIVE_IN_SESSIONS = frozenset({SESSION_OPENED, RESULT, WAITING})


def is_own_stream(stream: str) -> bool:
    """True for the ledger's own streams (`@goal/7`, `@task/12`, …), which no saddle can write."""
    return stream.startswith("@")


def is_decisive(stream: str, kind: str) -> bool:
    """True where an event can change a status. The catalog reads these alone; the store indexes them."""
    return is_own_stream(stream) or kind in _DECISIVE_IN_SESSIONS
