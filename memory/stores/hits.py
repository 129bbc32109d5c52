"""Candidates on their way from index to caller: a record stays JSON until the one place that reads it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hearth.memory.types import Candidate, Record

_encode = msgspec.json.Encoder().encode
_candidates = msgspec.json.Decoder(tuple[Candidate, ...]).decode
_record: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


class Hit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Candidate whose record is still the JSON that the store holds."""

    record: msgspec.Raw
    text_score: float | None = None
    context_score: float | None = None
    lexical_score: float | None = None
    coverage: float = 0.0
    said_score: float = 0.0
    replied_score: float = 0.0
    said_related: float = 0.0
    replied_related: float = 0.0


def encode_hits(hits: Sequence[Hit]) -> bytes:
    """JSON that `decode_hits` reads; no record is parsed for it."""
    return _encode(hits)


def decode_hits(raw: bytes) -> tuple[Candidate, ...]:
    """The candidates of `encode_hits`: about 1 µs each."""
    return _candidates(raw)


def decode_record(raw: bytes | str) -> Record:
    """A record from the JSON that the store holds."""
    return _record.decode(raw)
