"""The JSON schema of a plan, from the same bounds that plans are checked with."""

from __future__ import annotations

from typing import Any

from projections.remediation import plan

Schema = dict[str, Any]


def plan_schema() -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A plan of supervised remediation",
        "description": "Steps are worked on one after the other, in rising order.",
        "type": "object",
        "required": ["steps"],
        "additionalProperties": False,
        "properties": {
            "steps": {"type": "array", "minItems": 1, "maxItems": plan.STEPS_MAX, "items": _step()},
        },
    }


def _step() -> Schema:
    return {
        "type": "object",
        "required": ["id", "order", "target", "title", "prompt", "risk"],
        "additionalProperties": False,
        "properties": {
            "id": _text(plan.ID_CHARS_MAX, "What the step is known by; no two have the same.", pattern="^[^/]*$"),
            "order": {
                "type": "integer",
                "minimum": 0,
                "maximum": plan.ORDER_MAX,
                "description": "Where it stands; no two stand at the same place.",
            },
            "phase": {
                "anyOf": [{"type": ["integer", "null"]}, {"type": "string", "maxLength": plan.WORD_CHARS_MAX}],
                "description": "The part of the plan that it belongs to.",
            },
            "phaseLabel": _optional(plan.WORD_CHARS_MAX, "The name of that part, for people."),
            "target": _text(plan.WORD_CHARS_MAX, "The project: its name or one of its aliases."),
            "aliases": {
                "type": ["array", "null"],
                "maxItems": plan.ALIASES_MAX,
                "items": _text(plan.WORD_CHARS_MAX, "Another name of the target, tried where the first is unknown."),
            },
            "title": _text(plan.TITLE_CHARS_MAX, "What is to be done, in a line."),
            "summary": _optional(plan.SUMMARY_CHARS_MAX, "The same in a few sentences."),
            "risk": _text(40, "What it touches: code, infrastructure, production …", pattern="^[a-z][a-z0-9_-]*$"),
            "prompt": _text(plan.PROMPT_CHARS_MAX, "What the project's agent is told."),
        },
    }


def _text(chars_max: int, description: str, *, pattern: str = "") -> Schema:
    found: Schema = {"type": "string", "minLength": 1, "maxLength": chars_max, "description": description}
    return {**found, "pattern": pattern} if pattern else found


def _optional(chars_max: int, description: str) -> Schema:
    return {"type": ["string", "null"], "maxLength": chars_max, "description": description}
