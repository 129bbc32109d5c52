"""A record as a point of an index: its id, what it is found and restricted by, and the record itself."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from hearth.memory.errors import BadInput
from hearth.memory.events.codec import micros
from hearth.memory.filters import fold_text, kind_of, metadata_of, tags_of
from hearth.memory.stores.terms import QueryTerms
from hearth.memory.tiers.indexed import record_text
from hearth.memory.types import Record

RECORD = "record"
"""The payload's field that holds the record, as JSON."""
_PRESENCE = 0x80000000
"""Added to a term's id: a second dimension of weight 1 for it, so that the engine itself sums coverage."""

_encode = msgspec.json.Encoder().encode


def point_digest(owner: str, record: str, *, size: int) -> bytes:
    """`size` bytes that name the record of that owner.

    Made of both, so that the same record id under two owners is two points and neither reaches the other.
    """
    return blake2b(f"{owner}\n{record}".encode(), digest_size=size).digest()


def payload_of(record: Record) -> dict[str, object]:
    """The record itself, and what a search can be restricted by. Raises BadInput for a lone surrogate."""
    scope = record.scope
    return {
        "owner": scope.owner,
        "person": scope.person,
        "tenant": scope.tenant,
        "user": scope.user,
        "kind": kind_of(record),
        "generation": record.generation,
        "agent": scope.agent,
        "session": scope.session,
        "at": micros(record.occurred_at),
        "tags": list(tags_of(record)),
        "metadata": metadata_of(record),
        "folded": fold_text(record_text(record)),
        RECORD: _stored(record),
    }


def record_of(payload: Mapping[str, object] | None) -> msgspec.Raw:
    """The record's JSON out of its payload."""
    return msgspec.Raw(str((payload or {})[RECORD]).encode())


def record_dimensions(weights: Mapping[int, float]) -> tuple[list[int], list[float]]:
    """Indices and values of a record's `lexical` vector: each term's weight, and that it is there."""
    terms = list(weights)
    return terms + [term | _PRESENCE for term in terms], list(weights.values()) + [1.0] * len(terms)


def query_dimensions(words: QueryTerms) -> tuple[list[int], list[float]]:
    """Indices and values whose product with a record's is its BM25 score."""
    return list(words.held), list(words.held.values())


def coverage_dimensions(words: QueryTerms) -> tuple[list[int], list[float]]:
    """Indices and values whose product with a record's is the share of the question that it holds, 0 to 1."""
    shares = [weight / words.mass for weight in words.held.values()]
    return [term | _PRESENCE for term in words.held], shares


def _stored(record: Record) -> str:
    try:
        return _encode(record).decode()
    except UnicodeEncodeError as error:
        raise BadInput("record", record.id, "text without lone surrogates") from error
