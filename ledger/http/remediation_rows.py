"""What a page says of a run: its state and the rows of its story in words, before they are markup."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.http.page_words import capital, seconds_between
from projections.payloads import text
from projections.remediation import words

Json = Mapping[str, Any]

# The dot before a run, a step, a repair: the classes are those of tasks
DOTS = {
    words.PENDING: "queued",
    words.WORKING: "working",
    words.CORRECTING: "working",
    words.REVIEWING: "running",
    words.APPROVED: "done",
    words.BLOCKED: "suspended",
    words.RUNNING: "running",
    words.COMPLETED: "done",
    words.SUCCEEDED: "done",
    words.NEEDS_USER: "waiting",
    words.SUPERSEDED: "cancelled",
}
VERDICTS = {
    words.APPROVE: "Approved",
    words.CORRECT: "Sent back",
    words.BLOCK: "Blocked",
    words.NO_VERDICT: "No verdict",
}
_PURPOSES = {
    "plan_review": "review of the plan",
    "review": "review",
    "review_restarted": "review, begun again",
    "final_review": "last look at the whole",
    "work": "work",
    "correct": "correction",
    "resumed": "goes on",
    "repaired": "goes on after the repair",
    "ask_again": "asked once more",
    "repair": "repair of the tool",
}
_TROUBLES = {
    "empty": "The answer was empty.",
    "too_long": "The answer was too long to be taken.",
    "not_utf8": "The answer was not UTF-8.",
}


def status_of_run(run: Json) -> tuple[str, str]:
    """(the class of its dot, how it stands in a sentence)."""
    if run["cancelled"]:
        return "cancelled", "Cancelled with its task."
    if run["status"] == words.COMPLETED:
        return "done", "Completed"
    steps = len(run["steps"])
    at_step = f"step {min(run['current'], steps)} of {steps}"
    if run["status"] == words.BLOCKED:
        where = {words.PLAN_REVIEW: "in the review of the plan", words.FINAL_REVIEW: "in the last look at the whole"}
        stands = where.get(run["stage"], f"at {at_step}")
        if run["waits_for"] is not None:
            return "waiting", f"Blocked {stands}: waits for you."
        return "suspended", f"Blocked {stands}; the tool is being repaired."
    said = {
        words.PLAN_REVIEW: "The master reviews the plan.",
        words.AGENT: f"The agent works on {at_step}.",
        words.SUPERVISOR: f"The master reviews {at_step}.",
        words.FINAL_REVIEW: "The master looks at the whole once more.",
    }
    return "running", said.get(run["stage"], capital(run["status"].lower()) + ".")


def story_rows(rows: list[Json]) -> list[dict[str, Any]]:
    """The rows with what is said of each: an exchange as `to` and `about`, any other as `head` and `body`, with a
    `tone`."""
    return [_exchange(row) if "queue_id" in row else _milestone(row) for row in rows]


def _exchange(row: Json) -> dict[str, Any]:
    to = {words.MASTER: "To the master", words.REPAIR: "To the repair"}.get(row["role"], f"To {row['project']}")
    about = [_PURPOSES.get(row["purpose"], row["purpose"].replace("_", " ")), *_of_step(row)]
    if row["attempt"] > 1:
        about.append(f"attempt {row['attempt']}")
    reply, verdict = row["reply"], row["verdict"]
    tone = ""
    if reply is not None and (reply["status"] != words.DONE or reply["trouble"]):
        tone = "failed"
    elif verdict is not None and verdict["decision"] == words.BLOCK:
        tone = "waiting"
    return {
        **row,
        "to": to,
        "about": ", ".join(part for part in about if part),
        "tone": tone,
        "took": seconds_between(row["started_at"], row["finished_at"]),
        "answered": "" if reply is None else _answered(row, reply),
        "trouble": "" if reply is None else _TROUBLES.get(reply["trouble"], reply["trouble"]),
        "judged": "" if verdict is None else VERDICTS.get(verdict["decision"], verdict["decision"]),
    }


def _answered(row: Json, reply: Json) -> str:
    who = {words.MASTER: "The master", words.REPAIR: "The repair"}.get(row["role"], row["project"])
    did = {words.FAILED: "failed", words.INTERRUPTED: "was interrupted"}.get(reply["status"], "answered")
    return f"{who} {did}"


def _of_step(row: Json) -> list[str]:
    return [] if row["step_number"] is None else [f"step {row['step_number']}"]


def _milestone(row: Json) -> dict[str, Any]:
    payload = row["payload"]
    said = {name: text(payload, name) for name in ("reason", "feedback", "prompt_addendum")}
    step = f"Step {row['step_number']}, {row['step_title']}," if row["step_number"] is not None else "The plan"
    by = text(payload, "by") or row["actor"] or "The owner"
    head, body, tone = row["kind"], "", ""
    match row["kind"]:
        case words.RUN_STARTED:
            count = len(payload["steps"]) if isinstance(payload.get("steps"), list) else 0
            head = f"Started by {row['actor']}, {count} {'step' if count == 1 else 'steps'}."
        case words.STEP_APPROVED:
            head, body, tone = f"{step} is approved.", said["feedback"], "done"
        case words.RUN_BLOCKED:
            head, body, tone = "Blocked.", said["reason"], "waiting"
        case words.RUN_RESUMED:
            rebased = payload.get("plan_rebased") is True
            head = f"{by} resumed it{', with a revised plan' if rebased else ''}."
        case words.OWNER_APPROVED:
            head, body = f"{by} approved what it waited for.", said["feedback"]
        case words.REVIEW_RESTARTED:
            head = "The review was interrupted, and begins again."
        case words.REPAIR_BEGUN:
            head = "A repair of the tool began."  # for what the row before says
        case words.REPAIR_CATCHUP:
            head, body = "A repair of the tool began, for a block that an older version had left.", said["reason"]
        case words.REPAIR_RESUMED:
            head, tone = "The tool is repaired, the run goes on.", "done"
            body = "\n\n".join(part for part in (said["feedback"], said["prompt_addendum"]) if part)
        case words.REPAIR_NEEDS_USER:
            head, body, tone = "The repair needs the owner.", said["feedback"], "waiting"
        case words.REPAIR_RESOLVED:
            head = f"{by} settled what the repair was begun for."
        case words.RUN_COMPLETED:
            head, tone = "Completed.", "done"
    return {**row, "head": head, "body": body, "tone": tone}
