"""The lines of an exported ledger, written and read."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ledger.events.content import content_digest
from ledger.events.model import END_SEQ, ID_CHARS_MAX, OPENING_SEQ, NewEvent, Recorded
from ledger.events.times import format_instant, parse_instant
from ledger.store.base import Loser, Opening, StreamInfo

FORMAT = 1

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARS_MAX)]
Seq = Annotated[int, msgspec.Meta(ge=OPENING_SEQ, le=END_SEQ)]
Kind = Annotated[str, msgspec.Meta(min_length=1)]


class Header(msgspec.Struct):
    """`ledgerd` is the version of the format."""

    ledgerd: int
    ledger_id: str
    buckets: int


class StreamLine(msgspec.Struct):
    name: Id
    root: Annotated[str, msgspec.Meta(pattern=r"^(goal|task|project)/.")]
    task_id: Id | None
    saddle: str
    contiguous: bool

    def opening(self) -> Opening:
        return Opening(self.root, self.task_id, self.saddle, self.contiguous)


class EventLine(msgspec.Struct, omit_defaults=True):
    """Of `payload` and `payload_text` one is there; of `extra` and `extra_text` one or none."""

    position: int
    session_id: Id
    seq: Seq
    kind: Kind
    actor: str
    at: str | None
    recorded_at: str
    task_id: Id | None
    payload: msgspec.Raw | UnsetType = UNSET
    payload_text: str | UnsetType = UNSET
    extra: msgspec.Raw | UnsetType = UNSET
    extra_text: str | UnsetType = UNSET

    def event(self) -> NewEvent:
        """Raises ValueError."""
        extra = _json(self.extra, self.extra_text)
        return replace(_event(self, self.recorded_at), extra=extra)


class LoserLine(msgspec.Struct, omit_defaults=True):
    session_id: Id
    seq: Seq
    kind: Kind
    actor: str
    at: str | None
    received_at: str
    payload: msgspec.Raw | UnsetType = UNSET
    payload_text: str | UnsetType = UNSET

    def event(self) -> NewEvent:
        """Raises ValueError."""
        return _event(self, self.received_at)


class Counts(msgspec.Struct, frozen=True):
    """How much of each an exported ledger holds."""

    streams: int = 0
    events: int = 0
    conflicts: int = 0


class _Wrapped(msgspec.Struct, omit_defaults=True):
    """Any line but the first and an event's: exactly one of these is there."""

    stream: StreamLine | None = None
    conflict: LoserLine | None = None
    end: Counts | None = None
    position: int | None = None  # an event's


Line = StreamLine | EventLine | LoserLine | Counts

_encode = msgspec.json.Encoder().encode
_decode_header = msgspec.json.Decoder(Header).decode
_decode_wrapped = msgspec.json.Decoder(_Wrapped).decode
_decode_event = msgspec.json.Decoder(EventLine).decode


def header_line(ledger_id: str, buckets: int) -> bytes:
    return _encode(Header(FORMAT, ledger_id, buckets)) + b"\n"


def stream_line(info: StreamInfo) -> bytes:
    line = StreamLine(info.stream, info.root, info.task_id, info.saddle, info.contiguous)
    return _encode(_Wrapped(stream=line)) + b"\n"


def event_line(event: Recorded) -> bytes:
    line = EventLine(
        position=event.position,
        session_id=event.session_id,
        seq=event.seq,
        kind=event.kind,
        actor=event.actor,
        at=None if event.at is None else format_instant(event.at),
        recorded_at=format_instant(event.recorded_at),
        task_id=event.task_id,
        **_spliced("payload", event.payload),
        **({} if event.extra is None else _spliced("extra", event.extra)),
    )
    return _encode(line) + b"\n"


def loser_line(loser: Loser) -> bytes:
    line = LoserLine(
        session_id=loser.stream,
        seq=loser.seq,
        kind=loser.kind,
        actor=loser.actor,
        at=None if loser.at is None else format_instant(loser.at),
        received_at=format_instant(loser.received_at),
        **_spliced("payload", loser.payload),
    )
    return _encode(_Wrapped(conflict=line)) + b"\n"


def end_line(counts: Counts) -> bytes:
    return _encode({"end": counts}) + b"\n"


def read_header(line: bytes) -> Header:
    """The first line. Raises ValueError if the file is no exported ledger, or one of another version."""
    try:
        header = _decode_header(line)
    except msgspec.MsgspecError as error:
        raise ValueError("this is not the first line of an exported ledger") from error
    if header.ledgerd != FORMAT:
        raise ValueError(f"the export has version {header.ledgerd}; this ledgerd reads version {FORMAT}")
    return header


def read_line(line: bytes) -> Line:
    """Any other line. Raises ValueError for one that is not of the format."""
    line.decode()  # what is spliced is not looked into otherwise
    wrapped = _decode_wrapped(line)
    if wrapped.position is not None:
        return _decode_event(line)
    found = wrapped.stream or wrapped.conflict or wrapped.end
    if found is None:
        raise ValueError("it is none of the lines that an exported ledger has")
    return found


def _spliced(name: str, json: bytes) -> dict[str, Any]:
    if b"\n" in json or b"\r" in json or json != json.strip():
        return {f"{name}_text": json.decode()}
    return {name: msgspec.Raw(json)}


def _event(line: EventLine | LoserLine, recorded_at: str) -> NewEvent:
    payload = _json(line.payload, line.payload_text)
    if payload is None:
        raise ValueError("it has no payload")
    return NewEvent(
        seq=line.seq,
        kind=line.kind,
        actor=line.actor,
        payload=payload,
        digest=content_digest(line.kind, line.actor, payload),
        at=None if line.at is None else _instant(line.at),
        recorded_at=_instant(recorded_at),
    )


def _json(raw: msgspec.Raw | UnsetType, text: str | UnsetType) -> bytes | None:
    if text is not UNSET:
        msgspec.json.decode(text, type=msgspec.Raw)
        return text.encode()
    return None if raw is UNSET else bytes(raw)


def _instant(text: str) -> int:
    instant = parse_instant(text)
    if instant is None:
        raise ValueError(f"{text!r} is no time")
    return instant
