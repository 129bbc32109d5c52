"""What the vector child asks of an index, embedded or in a server: vectors come in ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import msgspec

from hearth.memory.errors import StoreUnavailable
from hearth.memory.ports import Indexed, SearchRequest
from hearth.memory.stores.hits import Hit
from hearth.memory.stores.terms import QueryTerms
from hearth.memory.types import Vector

PART = "long-term memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A record with its vectors."""

    item: Indexed
    text: Vector
    context: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVectors:
    """The vectors of a record as they stand in an index."""

    made_of: tuple[str, str]
    """`text_key` of the text and of the context that they were made of."""
    text: Vector
    context: Vector


class VectorIndex(Protocol):
    """Records of many owners in one collection; every read and removal is bound to owners.

    Every method may raise StoreUnavailable.
    """

    @property
    def readers(self) -> int:
        """How many threads may read at once: 1 means one call at a time, writes among them."""
        ...

    @property
    def together(self) -> int:
        """How many records one `put` takes without holding up a search that comes meanwhile."""
        ...

    @property
    def unfilled(self) -> str:
        """Names the collection while it has not been filled from the log; empty afterwards."""
        ...

    @property
    def set_aside(self) -> str:
        """Where something that did not open was put; empty if nothing was."""
        ...

    @property
    def unclean(self) -> bool:
        """True while files of this process's own may hold bytes of what was removed."""
        ...

    @property
    def problem(self) -> StoreUnavailable | None:
        """Why the index can't be reached or refuses, when that was last tried; None if it answered."""
        ...

    def terms_of(self, request: SearchRequest) -> Sequence[int]:
        """The distinct terms that the request looks for."""
        ...

    def weigh(self, owners: Sequence[str], terms: Sequence[int]) -> QueryTerms:
        """What those terms are worth to the owners."""
        ...

    def telling(self, request: SearchRequest, words: QueryTerms) -> str:
        """The request's text without words that tell no records of the owners apart; empty if it has none."""
        ...

    def search(
        self, request: SearchRequest, vector: Vector | None, words: QueryTerms, *, by: float
    ) -> list[Hit]:
        """The best candidates, each with all its scores; dense ones only with a `vector`. A server has until
        `by` (CLOCK_MONOTONIC) to answer. Raises BadInput without owners.
        """
        ...

    def put(self, points: Sequence[Embedded]) -> None:
        """Add or replace each record of its owner and id. Raises BadInput for a lone surrogate in one."""
        ...

    def get(self, owner: str, ids: Sequence[str]) -> list[msgspec.Raw]:
        """JSON of those of the ids that the owner has."""
        ...

    def walk(self, owner: str, after: str, limit: int) -> tuple[list[msgspec.Raw], str]:
        """JSON of some of the owner's records, and the `after` of the next ones; that is empty at the end."""
        ...

    def vectors(
        self, owner: str, ids: Sequence[str], piece: Callable[[], AbstractContextManager[None]]
    ) -> dict[str, Vector]:
        """The `text` vectors of those of the ids that the owner has, by id; searches may go on between two
        `piece()`.
        """
        ...

    def kept(self, records: Sequence[tuple[str, str]]) -> dict[tuple[str, str], KeptVectors]:
        """The vectors of those of the records, named by owner and id, that the index has."""
        ...

    def delete(self, owner: str, ids: Sequence[str]) -> None:
        """Remove those of the ids that the owner has."""
        ...

    def clear(self, tenant: str, user: str) -> None:
        """Remove everything of the user, of all agents."""
        ...

    def count(self, owner: str) -> int:
        """How many records the owner has."""
        ...

    def points(self) -> int:
        """How many records the collection has, as far as this process knows without asking anybody."""
        ...

    def commit(self) -> None:
        """Make everything written so far survive a killed process."""
        ...

    def sync(self) -> None:
        """Make what was committed survive a power cut; any thread may call this, beside reads."""
        ...

    def compact(self, piece: Callable[[], AbstractContextManager[None]]) -> None:
        """Leave nothing of what was removed in files of one's own; reads may go on between two `piece()`."""
        ...

    def mark_rebuilt(self, collection: str) -> None:
        """That collection (see `unfilled`) holds all that the log says it should; without effect where
        another one has taken its place since.
        """
        ...

    def close(self) -> None:
        """Make everything durable and close."""
        ...
