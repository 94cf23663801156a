"""From the bytes of a request to typed values: a chunk of events, or any other body.

A chunk that is as it should be is decoded in one go. Any other is taken apart, and each event is judged alone: one
bad event never costs its neighbours anything, and what strict JSON refuses but agents produce is mended.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, TypeVar

import msgspec
import orjson

from ledger.errors import InvalidField, MalformedBody
from ledger.events.content import content_digest, parse_payload
from ledger.events.ids import checked_id
from ledger.events.model import END_SEQ, Limits, NewEvent
from ledger.events.repair import BAD_TIME, CONTROL_CHARACTER, mend, mend_name
from ledger.events.scan import elements, members, nested_deeper
from ledger.events.times import parse_instant
from ledger.events.wire import Id, OpenIn, Rejected, Repaired, SeenSeq

# Why an event is rejected
INVALID_EVENT = "invalid_event"
INVALID_SEQ = "invalid_seq"
INVALID_KIND = "invalid_kind"
INVALID_ACTOR = "invalid_actor"
PAYLOAD_TOO_LARGE = "payload_too_large"
NESTED_TOO_DEEP = "nested_too_deep"

NAME_CHARS_MAX = 200  # of a kind or an actor

_BOM = b"\xef\xbb\xbf"
_ECHO_BYTES_MAX = 200  # of a seq that is no seq, in the receipt
_NO_PAYLOAD = b"{}"
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

T = TypeVar("T")
_Seq = Annotated[int, msgspec.Meta(ge=0, lt=END_SEQ)]
_Kind = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX)]
_Actor = Annotated[str, msgspec.Meta(max_length=NAME_CHARS_MAX)]


class Chunk(msgspec.Struct, frozen=True):
    """A decoded chunk: what can be stored, in the order sent, and what the receipt has to say about the rest."""

    session_id: str
    events: list[NewEvent]
    rejected: list[Rejected]
    repaired: list[Repaired]
    open: OpenIn | None
    expected_seq: int | None = None


class _EventIn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    seq: _Seq
    kind: _Kind
    actor: _Actor = ""
    payload: msgspec.Raw = msgspec.Raw(_NO_PAYLOAD)
    at: Any = None


class _ChunkIn(msgspec.Struct, gc=False):
    session_id: Id
    events: list[_EventIn]
    open: OpenIn | None = None
    expected_seq: SeenSeq | None = None


_CHUNK = msgspec.json.Decoder(_ChunkIn)
_EVENT = msgspec.json.Decoder(_EventIn)
_RAW = msgspec.json.Decoder(msgspec.Raw)
_FIELDS: tuple[tuple[str, str, msgspec.json.Decoder[Any]], ...] = (
    ("seq", INVALID_SEQ, msgspec.json.Decoder(_Seq)),
    ("kind", INVALID_KIND, msgspec.json.Decoder(_Kind)),
    ("actor", INVALID_ACTOR, msgspec.json.Decoder(_Actor)),
)


def decode_chunk(body: bytes, limits: Limits) -> Chunk:
    """The chunk that `body` holds. An unusable event is in `rejected`; the others can be stored.

    Raises MalformedBody where the body is no JSON (cut short, say), and InvalidField where it has no session_id, no
    list of events or more than `limits.chunk_events` of them. Then nothing of it may be stored.
    """
    text = body.removeprefix(_BOM)
    sorter = _Sorter(limits)
    try:
        chunk = _CHUNK.decode(text)
        _check_utf8(text)
    except _REFUSED:
        return _decode_apart(text, limits, sorter)
    if len(chunk.events) > limits.chunk_events:
        raise _too_many(limits)
    for index, event in enumerate(chunk.events):
        sorter.take(index, event)
    return sorter.chunk(checked_id(chunk.session_id, "session_id"), chunk.open, chunk.expected_seq)


def decode_body(body: bytes, type: type[T], *, empty_ok: bool = False) -> T:
    """The body of any other request as `type`; with `empty_ok`, no body at all stands for an empty object.

    What agents produce and strict JSON refuses is mended first. Raises MalformedBody where the body is no JSON, and
    InvalidField where it is not what `type` says, with a field such as `task.title`.
    """
    text = body.removeprefix(_BOM)
    if empty_ok and not text.strip():
        text = b"{}"
    value: T = _typed(text, type)
    return value


def new_event(seq: int, kind: str, actor: str, payload: object, at: int | None = None) -> NewEvent:
    """An event made from Python values; `at` in nanoseconds. The payload becomes strict JSON: lone surrogates are
    U+FFFD, NaN and Infinity null, and integers keep all their digits. The same values make the same bytes.

    Raises TypeError where the payload holds what JSON has no form for. Limits are judged by the ledger that takes it.
    """
    try:
        raw = orjson.dumps(payload)
    except TypeError:
        raw, _ = mend(json.dumps(payload, separators=(",", ":")).encode())
    kind, actor = mend_name(kind), mend_name(actor)
    return NewEvent(seq, kind, actor, raw, content_digest(kind, actor, raw), at)


class _Sorter:
    """Sorts the events of one chunk into those that can be stored, with what was mended, and those rejected."""

    def __init__(self, limits: Limits) -> None:
        self._payload_bytes = limits.payload_bytes
        self._nesting = limits.nesting
        # A payload this short breaks no limit: each level of nesting takes two bytes
        self._harmless_bytes = min(2 * limits.nesting, limits.payload_bytes)
        self._events: list[NewEvent] = []
        self._rejected: list[Rejected] = []
        self._repaired: list[Repaired] = []

    def chunk(self, session_id: str, open: OpenIn | None, expected_seq: int | None) -> Chunk:
        if expected_seq is not None:
            self._check_whole(expected_seq)
        return Chunk(session_id, self._events, self._rejected, self._repaired, open, expected_seq)

    def _check_whole(self, expected_seq: int) -> None:
        """A decision is stored whole or not at all, and lies behind what its writer has seen. Raises InvalidField."""
        for bad in self._rejected:
            hint = "A chunk with expected_seq is stored whole or not at all: mend this event, or leave it away."
            raise InvalidField(f"events[{bad.index}]", bad.detail, code=bad.code, hint=hint)
        before = expected_seq
        for index, event in enumerate(self._events):
            if event.seq <= before:
                detail = f"{event.seq} is not above {before}"
                raise InvalidField(
                    f"events[{index}].seq",
                    detail,
                    code=INVALID_SEQ,
                    hint="With expected_seq, the seqs of a chunk rise from above it.",
                )
            before = event.seq

    def take(self, index: int, event: _EventIn, extra: bytes | None = None, mended: tuple[str, ...] = ()) -> None:
        """Takes an event whose fields are of the right types and whose payload is strict JSON."""
        payload, kind, actor, at = bytes(event.payload), event.kind, event.actor, event.at
        if (len(payload) > self._harmless_bytes or extra) and not self._within_limits(index, event, payload, extra):
            return
        if not (kind.isprintable() and actor.isprintable()):
            kind, actor = mend_name(kind), mend_name(actor)
            if (kind, actor) != (event.kind, event.actor):
                mended = (*mended, CONTROL_CHARACTER)
        if at is not None:
            at = parse_instant(at)
            if at is None:
                mended = (*mended, BAD_TIME)
        digest = content_digest(kind, actor, payload)
        self._events.append(NewEvent(event.seq, kind, actor, payload, digest, at, extra))
        for what in mended:
            self._repaired.append(Repaired(event.seq, what))

    def judge(self, index: int, raw: bytes) -> None:
        """Takes, mends or rejects an event as it was sent. Raises MalformedBody where it is no JSON even so."""
        text = raw
        mended: tuple[str, ...] = ()
        event = _event(text)
        if event is None:
            text, mended = mend(raw)
            event = _event(text) if mended else None
        if event is None:
            self._judge_fields(index, text, mended)
        else:
            self.take(index, event, mended=mended)

    def _judge_fields(self, index: int, text: bytes, mended: tuple[str, ...]) -> None:
        if nested_deeper(text, self._nesting + 1):  # the event itself is one bracket
            self._reject(index, _seq_as_sent(text), NESTED_TOO_DEEP, f"nested deeper than {self._nesting}")
            return
        try:
            _RAW.decode(text)
        except msgspec.DecodeError as error:
            raise MalformedBody(f"events[{index}]: {error}") from error
        if not text.startswith(b"{"):
            self._reject(index, None, INVALID_EVENT, "an event is an object")
            return
        fields = members(text)
        known: dict[str, Any] = {}
        for name, code, decoder in _FIELDS:
            try:
                known[name] = decoder.decode(_field(fields, name))
            except msgspec.ValidationError as error:
                self._reject(index, _seq_as_sent(text), code, f"{name}: {error}")
                return
        at = parse_payload(fields.pop("at", b"null"))
        payload = msgspec.Raw(fields.pop("payload", _NO_PAYLOAD))
        extra = _object(fields) if fields else None
        self.take(index, _EventIn(**known, payload=payload, at=at), extra, mended)

    def _within_limits(self, index: int, event: _EventIn, payload: bytes, extra: bytes | None) -> bool:
        size = len(payload) + len(extra or b"")
        if size > self._payload_bytes:
            detail = f"{size} bytes, of at most {self._payload_bytes}"
            self._reject(index, event.seq, PAYLOAD_TOO_LARGE, detail)
            return False
        if nested_deeper(payload, self._nesting):
            self._reject(index, event.seq, NESTED_TOO_DEEP, f"nested deeper than {self._nesting}")
            return False
        return True

    def _reject(self, index: int, seq: Any, code: str, detail: str) -> None:
        self._rejected.append(Rejected(index, seq, code, detail))


def _decode_apart(text: bytes, limits: Limits, sorter: _Sorter) -> Chunk:
    """The careful way: finds the events by their brackets and judges each alone."""
    if not text.lstrip().startswith(b"{"):
        _typed(text, _ChunkIn)  # says what is wrong with it
    fields = members(text)
    session_id = checked_id(_typed(fields.pop("session_id", b"null"), Id, "session_id"), "session_id")
    events = fields.pop("events", b"null")
    opening = _typed(fields.pop("open", b"null"), OpenIn | None, "open")
    expected_seq = _typed(fields.pop("expected_seq", b"null"), SeenSeq | None, "expected_seq")
    for name, value in fields.items():
        _typed(value, msgspec.Raw, name)
    if not events.startswith(b"["):
        raise InvalidField("events", "is no list", hint="Send `events` as a list, empty if there are none.")
    for index, raw in enumerate(elements(events)):
        if index == limits.chunk_events:
            raise _too_many(limits)
        sorter.judge(index, raw)
    return sorter.chunk(session_id, opening, expected_seq)


def _too_many(limits: Limits) -> InvalidField:
    return InvalidField(
        "events", f"has more than {limits.chunk_events} events", hint="Split the chunk and send each part."
    )


def _event(text: bytes) -> _EventIn | None:
    """None if the event is not as it should be."""
    try:
        event = _EVENT.decode(text)
        _check_utf8(text)
    except _REFUSED:
        return None
    return event


def _check_utf8(text: bytes) -> None:
    """Raises UnicodeDecodeError. What is kept raw or skipped, the decoder takes as it is."""
    if not text.isascii():
        text.decode()


def _field(fields: dict[str, bytes], name: str) -> bytes:
    value = fields.pop(name, b"null")
    return b'""' if name == "actor" and value == b"null" else value


def _object(fields: dict[str, bytes]) -> bytes:
    return b"{" + b",".join(msgspec.json.encode(key) + b":" + value for key, value in fields.items()) + b"}"


def _seq_as_sent(text: bytes) -> Any:
    """The seq of an event that is rejected, if it is a scalar short enough to be said again, else None."""
    seq = members(text).get("seq", b"null") if text.startswith(b"{") else b"null"
    if len(seq) > _ECHO_BYTES_MAX or seq.startswith((b"[", b"{")):
        return None
    try:
        return parse_payload(seq)
    except ValueError as error:
        raise MalformedBody(f"a seq is no JSON: {error}") from error


_PLACE = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")


def _typed(text: bytes, type: Any, field: str = "") -> Any:
    """The JSON text as `type`, mended once if need be; `field` is where it stands in the body."""
    try:
        return msgspec.json.decode(text, type=type)
    except msgspec.ValidationError as error:
        raise _invalid(error, field) from error
    except _REFUSED:
        mended, _ = mend(text)
    try:
        return msgspec.json.decode(mended, type=type)
    except msgspec.ValidationError as error:
        raise _invalid(error, field) from error
    except msgspec.MsgspecError as error:
        raise MalformedBody(f"{field}: {error}" if field else str(error)) from error
    except RecursionError as error:
        raise InvalidField(field or "body", "is nested too deep", hint="Send a flatter value.") from error


def _invalid(error: msgspec.ValidationError, field: str) -> InvalidField:
    """The decoder's complaint, as in "Expected `str`, got `int` - at `$.task.title`", with the field in front."""
    message = str(error)
    place = _PLACE.search(message)
    path = [field, place["path"] if place else ""]
    detail = message[: place.start()] if place else message
    if missing := _MISSING.match(detail):
        path.append(missing["name"])
        detail = "is missing"
    return InvalidField(
        ".".join(filter(None, path)) or "body", detail, hint="/openapi.json describes the fields of each route."
    )
