"""Which collection came before this embedder's: it answers until this one is filled, and then goes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hearth.memory.embed.load import load_embedder
from hearth.memory.errors import BadInput
from hearth.memory.ports import Embedder
from hearth.memory.stores.vector_index import VectorIndex
from hearth.memory.types import Vector

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a collection says of itself."""

    embedder: str
    """The embedder's own name."""
    dimension: int
    loader: str
    """What `load_embedder` takes; empty where nobody knows."""
    filled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The filled collection of another embedder."""

    embedder: Embedder
    index: VectorIndex
    dense: bool
    """False where that embedder is gone, so that only words can be looked for."""


class Succession(Protocol):
    """The collection in force, with its embedder, and the one before."""

    @property
    def embedder(self) -> Embedder:
        """The one in force."""
        ...

    @property
    def index(self) -> VectorIndex:
        """Its collection."""
        ...

    def before(self) -> Before | None:
        """Open the one before, if there is a filled one. Raises StoreUnavailable."""
        ...

    def retire(self) -> None:
        """Remove the collections of other embedders, which nothing reaches any more: neither what is new nor
        an erasure. The log can make them again.
        """
        ...

    def reach_all(self) -> None:
        """Return once what was removed stands in no other collection: what a replay left is removed. Raises
        StoreUnavailable while one is filled.
        """
        ...


def loaded(made: Made) -> tuple[Embedder, bool]:
    """The embedder of that collection, and whether it can embed: one that is gone still has a name."""
    if made.loader:
        try:
            found = load_embedder(made.loader)
        except BadInput as error:
            _log.warning("%s", error)
        else:
            if (found.name, found.dimension) == (made.embedder, made.dimension):
                return found, True
    _log.warning(
        "the embedder %s is gone: until the new collection is filled words alone find", made.embedder
    )
    return _Gone(made.embedder, made.dimension), False


@dataclass(frozen=True, slots=True)
class _Gone:
    """Stands for an embedder that can't be loaded. Its vectors are never searched, only stored."""

    name: str
    dimension: int
    holds_gil: bool = False

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """See Embedder."""
        return [[1.0, *[0.0] * (self.dimension - 1)] for _ in texts]

    embed_documents = embed_queries
