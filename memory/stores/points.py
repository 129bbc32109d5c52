"""A record as a point of an index: its id, what it is found and restricted by, and the record itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import cast

import msgspec

from hearth.memory.errors import BadInput
from hearth.memory.events.codec import micros
from hearth.memory.filters import fold_text, kind_of, metadata_of, tags_of
from hearth.memory.ports import Indexed
from hearth.memory.stores.terms import QueryTerms, saturated, together
from hearth.memory.stores.vector_index import KeptVectors
from hearth.memory.stores.words import packed_words
from hearth.memory.tiers.indexed import record_text
from hearth.memory.types import Record, Vector

RECORD = "record"
"""The payload's field that holds the record, as JSON."""
WORDS = "words"
"""The payload's field that holds the record's counted words by side, packed."""

MADE_OF = "made_of"
"""The payload's field that tells what texts the point's vectors were made of."""

_encode = msgspec.json.Encoder().encode


def point_digest(owner: str, record: str, *, size: int) -> bytes:
    """`size` bytes that name the record of that owner.

    Made of both, so that the same record id under two owners is two points and neither reaches the other.
    """
    return blake2b(f"{owner}\n{record}".encode(), digest_size=size).digest()


def payload_of(item: Indexed, sides: Sequence[Mapping[int, int]]) -> dict[str, object]:
    """The record itself, its sides' counted terms, what its vectors were made of, and what a search can be
    restricted by.

    Raises BadInput for a lone surrogate.
    """
    record = item.record
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
        "folded": fold_text(record_text(record)) if item.stored is None else "",
        MADE_OF: [text_key(text, item.digest_key) for text in (item.text, item.context)],
        WORDS: packed_words(sides),
        RECORD: _stored(item.stored or record),
    }


@dataclass(frozen=True, slots=True)
class Kept:
    """What a search reads of a point."""

    record: msgspec.Raw
    words: str


def kept_of(payload: Mapping[str, object] | None) -> Kept:
    """What a search reads, out of a payload."""
    return Kept(record_of(payload), str((payload or {})[WORDS]))


def record_of(payload: Mapping[str, object] | None) -> msgspec.Raw:
    """The record's JSON out of its payload."""
    return msgspec.Raw(str((payload or {})[RECORD]).encode())


def text_vector_of(vectors: object) -> Vector:
    """The `text` vector out of the named ones that an index returns of a point."""
    return cast("Mapping[str, Vector]", vectors)["text"]


def text_key(text: str, key: bytes) -> str:
    """Tells a text from others of the same record, so that a vector is used again for the text that it was
    made of alone. It stands beside the record and goes with it.
    """
    return blake2b(text.encode(errors="surrogatepass"), key=key, digest_size=12).hexdigest()


def kept_vectors_of(payload: Mapping[str, object] | None, vectors: object) -> KeptVectors | None:
    """A point's vectors with what they were made of; None for a point that does not say it."""
    made_of = (payload or {}).get(MADE_OF)
    if not isinstance(made_of, list):
        return None
    text, context = made_of
    named = cast("Mapping[str, Vector]", vectors)
    return KeptVectors(made_of=(str(text), str(context)), text=named["text"], context=named["context"])


def record_dimensions(sides: Sequence[Mapping[int, int]]) -> tuple[list[int], list[float]]:
    """Indices and values of the `lexical` vector of a record whose sides have those counted terms."""
    weights = saturated(together(sides))
    return list(weights), list(weights.values())


def query_dimensions(words: QueryTerms) -> tuple[list[int], list[float]]:
    """Indices and values whose product with a record's is its BM25 score."""
    return list(words.held), list(words.held.values())


def _stored(record: Record) -> str:
    try:
        return _encode(record).decode()
    except UnicodeEncodeError as error:
        raise BadInput("record", record.id, "text without lone surrogates") from error
