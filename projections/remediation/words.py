"""The words of a run: statuses, stages, roles, and the kinds of events on its stream."""

from __future__ import annotations

import re

from projections import daemons

AGENT_NAME = daemons.REMEDIATION  # `agent` of a run's session: what the server finds runs by
STREAM = "@remediation"  # the ledger's own stream: which run is active, and how remediation is configured
RUN_ID = re.compile(r"run-[0-9a-f]{12}")  # as the server makes them; that of the run's task and session, too

# Run status
NOT_STARTED, RUNNING, BLOCKED, COMPLETED = "NOT_STARTED", "RUNNING", "BLOCKED", "COMPLETED"

# Stage
PLAN_REVIEW, AGENT, SUPERVISOR, FINAL_REVIEW, IDLE = "PLAN_REVIEW", "AGENT", "SUPERVISOR", "FINAL_REVIEW", "IDLE"
REVIEWS = frozenset({PLAN_REVIEW, SUPERVISOR, FINAL_REVIEW})

# Step status; BLOCKED is one, too
PENDING, WORKING, REVIEWING, CORRECTING, APPROVED = "PENDING", "WORKING", "REVIEWING", "CORRECTING", "APPROVED"

# Repair status; RUNNING is one, too
SUCCEEDED, NEEDS_USER, SUPERSEDED = "SUCCEEDED", "NEEDS_USER", "SUPERSEDED"

# Roles of a prompt
MASTER, WORKER, REPAIR = "master", "agent", "repair"

# How a turn finished
DONE, FAILED, INTERRUPTED = "done", "failed", "interrupted"

# Decisions
APPROVE, CORRECT, BLOCK, NO_VERDICT = "approve", "correct", "block", "none"
FIXED, ASKS_USER = "fixed", "needs_user"

# Why a run is blocked
BY_VERDICT = "verdict"
BY_NO_VERDICT = "no_verdict"
BY_NO_REPLY = "no_reply"  # empty, too long or not UTF-8, twice
BY_ROUNDS = "correction_rounds"
BY_FAILURE = "worker_failed"
BY_INTERRUPTION = "worker_interrupted"
BY_CRASH = "runner_crashed"

# Whether a block started a repair
REPAIR_STARTED, REPAIR_NOT_CONFIGURED, REPAIRS_USED_UP = "started", "not_configured", "used_up"

# Kinds of events on a run's stream
RUN_STARTED = "run.started"
RUN_RESUMED = "run.resumed"
RUN_BLOCKED = "run.blocked"
RUN_COMPLETED = "run.completed"
PROMPT_ENQUEUED = "prompt.enqueued"
TURN_STARTED = "turn.started"
TURN_FINISHED = "turn.finished"
VERDICT = "supervision.verdict"
STEP_APPROVED = "step.approved"
REVIEW_RESTARTED = "master.review_restarted"
REPAIR_BEGUN = "self_repair.started"
REPAIR_CATCHUP = "self_repair.catchup_started"
REPAIR_RESUMED = "self_repair.resumed"
REPAIR_NEEDS_USER = "self_repair.needs_user"
REPAIR_RESOLVED = "self_repair.owner_resolved"
OWNER_APPROVED = "owner.approved"
LEASE_TAKEN = "lease.taken"
LEASE_RELEASED = "lease.released"

# Kinds of events on STREAM
CONFIGURED = "remediation.configured"
