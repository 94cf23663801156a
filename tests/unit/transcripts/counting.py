"""Tokens and tools of a raw transcript, counted from its text by nothing of the readers'."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from ledger.transcripts import formats


class Counted(NamedTuple):
    usage: dict[str, int]
    calls: int
    results: int


def counted_apart(path: Path, format_: formats.Format) -> Counted:
    text = path.read_text(encoding="utf-8")
    if format_ is formats.GEMINI:
        return _gemini(json.loads(text))
    rows = [json.loads(line) for line in text.splitlines()]
    counters = {
        formats.CLAUDE_CODE.open_transcript: _claude,
        formats.CLAUDE_STREAM.open_transcript: _claude,
        formats.CODEX.open_transcript: _codex,
        formats.CODEX_STREAM.open_transcript: _codex_stream,
        formats.OPENCODE_STREAM.open_transcript: _opencode_stream,
    }
    return counters[format_.open_transcript](rows)


def _usage(input_: int, output: int, read: int = 0, written: int = 0) -> dict[str, int]:
    return {
        "input_tokens": input_,
        "output_tokens": output,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
    }


def _claude(rows: list[Any]) -> Counted:
    """The last usage of each message; of a run that printed no message, what its result says."""
    last: dict[str, Any] = {}
    blocks: Counter[str] = Counter()
    sessions = {row["session_id"] for row in rows if row["type"] == "assistant" and "session_id" in row}
    for row in rows:
        if row["type"] == "assistant" and row["message"].get("model") != "<synthetic>":
            last[row["message"]["id"]] = row["message"]["usage"]
        if row["type"] == "result" and row["session_id"] not in sessions:
            last[row["session_id"]] = row["usage"]
        content = row.get("message", {}).get("content")
        blocks.update(block["type"] for block in content or () if isinstance(block, dict))
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    sums = [sum(usage.get(name, 0) for usage in last.values()) for name in names]
    return Counted(_usage(*sums), blocks["tool_use"], blocks["tool_result"])


def _codex(rows: list[Any]) -> Counted:
    """The highest running total."""
    totals = [
        row["payload"]["info"]["total_token_usage"]
        for row in rows
        if row["payload"].get("type") == "token_count" and row["payload"]["info"]
    ]
    whole = max(totals, key=lambda total: total["total_tokens"])
    types = Counter(row["payload"].get("type") for row in rows if row["type"] == "response_item")
    cached = whole["cached_input_tokens"]
    calls = types["function_call"] + types["custom_tool_call"] + types["web_search_call"]
    results = types["function_call_output"] + types["custom_tool_call_output"]
    return Counted(_usage(whole["input_tokens"] - cached, whole["output_tokens"], cached), calls, results)


def _codex_stream(rows: list[Any]) -> Counted:
    whole = [row["usage"] for row in rows if row["type"] == "turn.completed"][-1]
    items = {row["item"]["id"]: row["item"] for row in rows if row["type"] == "item.completed"}
    said = ("reasoning", "agent_message", "error")
    tools = [item for item in items.values() if item["type"] not in said]
    cached = whole["cached_input_tokens"]
    return Counted(
        _usage(whole["input_tokens"] - cached, whole["output_tokens"], cached),
        len(tools),
        sum("status" in item for item in tools),
    )


def _opencode_stream(rows: list[Any]) -> Counted:
    tokens = [row["part"]["tokens"] for row in rows if row["type"] == "step_finish"]
    tools = sum(row["type"] == "tool_use" for row in rows)
    return Counted(
        _usage(
            sum(one["input"] for one in tokens),
            sum(one["output"] + one["reasoning"] for one in tokens),
            sum(one["cache"]["read"] for one in tokens),
            sum(one["cache"]["write"] for one in tokens),
        ),
        tools,
        tools,
    )


def _gemini(document: Any) -> Counted:
    tokens = [message["tokens"] for message in document["messages"] if message.get("tokens")]
    tools = sum(len(message.get("toolCalls", ())) for message in document["messages"])
    whole = {name: sum(one[name] for one in tokens) for name in ("cached", "output", "thoughts", "total")}
    output = whole["output"] + whole["thoughts"]
    return Counted(_usage(whole["total"] - output - whole["cached"], output, whole["cached"]), tools, tools)
