"""Keeps a payload within what the ledger takes: the longest texts are cut, and the payload says by how much."""

from __future__ import annotations

from typing import Any

import orjson

PAYLOAD_BYTES_MAX = 4 * 2**20 - 2**12  # a little under the ledger's limit: what escapes add differs by writer

_KEPT_BYTES_MIN = 1024


def bounded(payload: dict[str, Any], bytes_max: int = PAYLOAD_BYTES_MAX) -> tuple[dict[str, Any], int]:
    """The payload in at most `bytes_max` bytes of JSON, and that size. Where texts had to be cut, `truncated_bytes`
    says how many bytes (UTF-8) are missing; a payload that stays too large is given as its keys alone."""
    size = _size(payload)
    if size <= bytes_max:
        return payload, size
    whole = size
    share = bytes_max // 2
    while size > bytes_max and share >= _KEPT_BYTES_MIN:
        lost = 0

        def cut(text: str, share: int = share) -> str:
            nonlocal lost
            data = text.encode(errors="replace")
            if len(data) <= share:
                return text
            kept = data[:share].decode(errors="ignore")
            lost += len(data) - len(kept.encode())
            return kept

        shorter = _with_texts(payload, cut)
        shorter["truncated_bytes"] = payload.get("truncated_bytes", 0) + lost
        size = _size(shorter)
        share //= 2
    if size > bytes_max:
        shorter = {"keys": [key[:100] for key in list(payload)[:100]], "truncated_bytes": whole}
        size = _size(shorter)
    return shorter, size


def _size(payload: dict[str, Any]) -> int:
    return len(orjson.dumps(payload, option=orjson.OPT_NON_STR_KEYS))


def _with_texts(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_with_texts(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _with_texts(item, change) for key, item in value.items()}
    return value
