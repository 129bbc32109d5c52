"""What the vector store alone is asked, and what an open store answers it by, whichever kind it is."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from hearth.memory.stores.hybrid import Near, Sparse
from hearth.memory.stores.vector_index import VectorIndex
from hearth.memory.types import Vector

LIMIT = 100
"""Results of each query: what a recall asks for."""
Result = tuple[Any, float, Any]
"""Point, score and, where it was asked for, the record's JSON."""


class Words(msgspec.Struct, frozen=True, tag="words"):
    """What are the text's words worth to the owner?"""

    owner: str
    text: str


class Search(msgspec.Struct, frozen=True, tag="search"):
    """The batch of a recall, ready made."""

    owner: str
    vector: Vector
    terms: list[int]
    weights: list[float]
    records: bool
    """Whether the answer holds the records."""

    @property
    def queries(self) -> list[Near]:
        """The three that a recall begins with; two where the owner has none of the words."""
        dense = [Near(name, self.vector) for name in ("text", "context")]
        return [*dense, Near("lexical", Sparse(self.terms, self.weights))] if self.terms else dense


Ask = Words | Search


class RawIndex(Protocol):
    """A store that this process has opened, for as many threads as its place has connections."""

    @property
    def index(self) -> VectorIndex:
        """Hearth's index over it: fills it, and knows what words are worth."""
        ...

    def search(self, ask: Search) -> list[list[Result]]:
        """The store's own answer to each query of the batch, best first; nothing is made of it."""
        ...

    def close(self) -> None:
        """Close it."""
        ...
