"""Payloads to and from their stored form: a kind, a version and zstd-compressed JSON."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, cast, get_args

import msgspec
import zstandard

from hearth.memory.errors import BadInput, UnknownEvent
from hearth.memory.events.kinds import VERSIONS, Event, Payload

Upcaster: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Turns the parsed JSON of one version into that of the next."""

UPCASTERS: dict[tuple[str, int], Upcaster] = {}
"""By (kind, version to start from). A kind needs one for every version below its own in `VERSIONS`."""

MAX_BYTES = 1 << 28
"""Largest payload, in bytes of JSON: far above any request that a gateway lets in."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_TYPES: dict[str, type[msgspec.Struct]] = {str(t.__struct_config__.tag): t for t in get_args(Payload)}
_DECODERS = {kind: msgspec.json.Decoder(type_) for kind, type_ in _TYPES.items()}
_ENCODER = msgspec.json.Encoder()


class _Zstd(threading.local):
    """One compressor and decompressor a thread: they keep state and are costly to make."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
        self.decompressor = zstandard.ZstdDecompressor()


_zstd = _Zstd()


class Encoded(msgspec.Struct, frozen=True, kw_only=True):
    """A payload as it is stored, and the payload that decoding it will give."""

    kind: str
    version: int
    raw: bytes
    """As JSON, of which the body is the compressed form."""
    body: bytes
    payload: Payload


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """An event outside the log: its envelope, with the payload as parsed JSON of `version`."""

    version: int
    event: msgspec.Raw


class _Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """All of an event but its payload."""

    id: str
    tenant: str
    user: str
    agent: str
    session: str
    generation: int
    occurred_at: datetime
    parent: str | None
    payload: msgspec.Raw


class _Tag(msgspec.Struct, frozen=True, kw_only=True):
    kind: str


def micros(moment: datetime) -> int:
    """Whole microseconds since 1970 in UTC."""
    return (moment - EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """The datetime in UTC of `micros`."""
    return EPOCH + timedelta(microseconds=value)


def encode(payload: Payload) -> Encoded:
    """The stored form. A lone surrogate, which UTF-8 can't hold, becomes U+FFFD.

    Raises BadInput for a payload of more than `MAX_BYTES`.
    """
    try:
        raw = _ENCODER.encode(payload)
    except UnicodeEncodeError:
        payload = _without_surrogates(payload)
        raw = _ENCODER.encode(payload)
    kind = str(payload.__struct_config__.tag)
    if len(raw) > MAX_BYTES:
        raise BadInput(kind, f"{len(raw)} bytes", f"at most {MAX_BYTES}")
    return Encoded(kind=kind, version=VERSIONS[kind], raw=raw, body=pack(raw), payload=payload)


def pack(raw: bytes) -> bytes:
    """The body of a payload that is JSON."""
    return _zstd.compressor.compress(raw)


def content(body: bytes) -> bytes:
    """The JSON of a body, whose checksum does not depend on how it is compressed.

    Raises ValueError for a damaged body.
    """
    try:
        return _decompress(body)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def decode(kind: str, version: int, body: bytes) -> Payload:
    """The payload of a stored form, an older version's through the upcasters.

    Raises UnknownEvent for a kind or version that this program does not know, and for a damaged body.
    """
    _check_known(kind, version)
    try:
        return _parse(kind, version, _decompress(body))
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        raise UnknownEvent(kind, version, f"its body is damaged ({error})") from error


def encode_line(event: Event) -> bytes:
    """The whole event as one line of JSON, its newline included."""
    try:
        raw = _ENCODER.encode(event)
    except UnicodeEncodeError:
        event = msgspec.structs.replace(event, payload=_without_surrogates(event.payload))
        raw = _ENCODER.encode(event)
    return _ENCODER.encode(_Line(version=VERSIONS[event.kind], event=msgspec.Raw(raw))) + b"\n"


def decode_line(line: bytes) -> Event:
    """The event of a line from `encode_line`.

    Raises UnknownEvent as `decode` does, and msgspec.DecodeError for a line that is no such JSON.
    """
    outer = msgspec.json.decode(line, type=_Line)
    envelope = msgspec.json.decode(outer.event, type=_Envelope)
    kind = msgspec.json.decode(envelope.payload, type=_Tag).kind
    _check_known(kind, outer.version)
    fields = {name: getattr(envelope, name) for name in envelope.__struct_fields__}
    return Event(**{**fields, "payload": _parse(kind, outer.version, bytes(envelope.payload))})


def _decompress(body: bytes) -> bytes:
    """A damaged header may claim any size, and the memory is taken before the damage shows.

    What came from an archive is JSON already.
    """
    if body.startswith(b"{"):
        return body
    size = zstandard.frame_content_size(body)
    if size > MAX_BYTES:
        raise zstandard.ZstdError(f"it claims {size} bytes")
    return _zstd.decompressor.decompress(body)


def _check_known(kind: str, version: int) -> None:
    known = VERSIONS.get(kind)
    if known is None:
        raise UnknownEvent(kind, version, "this program does not know the kind")
    if version > known:
        raise UnknownEvent(kind, version, f"this program knows versions up to {known}")


def _parse(kind: str, version: int, raw: bytes) -> Payload:
    known = VERSIONS[kind]
    if version == known:
        return cast("Payload", _DECODERS[kind].decode(raw))
    parsed = msgspec.json.decode(raw)
    for step in range(version, known):
        if (kind, step) not in UPCASTERS:
            raise UnknownEvent(kind, version, f"there is no upcaster from version {step}")
        parsed = UPCASTERS[kind, step](parsed)
    return cast("Payload", msgspec.convert(parsed, _TYPES[kind]))


def _without_surrogates(payload: Payload) -> Payload:
    return msgspec.convert(_scrub(msgspec.to_builtins(payload)), type(payload))


def _scrub(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_scrub(key): _scrub(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scrub(item) for item in value]
    return value
