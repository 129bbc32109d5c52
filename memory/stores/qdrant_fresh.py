"""A collection in a Qdrant server that is written anew where it stands: a server has no names to exchange."""

from __future__ import annotations

from pathlib import Path

from hearth.memory.stores.qdrant_index import open_index
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.terms import TermStats
from hearth.memory.stores.whole import write_whole

_PLACE = "replay.place"


class QdrantFresh:
    """The Fresh port over one collection, which is searched and written by others meanwhile.

    Each record takes the place of the one of its id, with the vectors that it has. What the log does not have
    stays: to be rid of that too, drop the collection first, and it is made and filled.
    """

    def __init__(
        self,
        server: QdrantServer,
        directory: Path,
        terms: TermStats | None,
        *,
        embedder: str,
        dimension: int,
        loader: str,
    ) -> None:
        self.source = self.target = open_index(
            server, directory, embedder=embedder, dimension=dimension, loader=loader, terms=terms
        )
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._place = directory / _PLACE

    def place(self) -> bytes:
        """See Fresh."""
        return self._place.read_bytes() if self._place.exists() else b""

    def keep_place(self, place: bytes) -> None:
        """See Fresh."""
        write_whole(self._place, place)

    def exact(self) -> bool:
        """See Fresh: others write too."""
        return False

    def switch(self) -> None:
        """See Fresh: the collection counts as filled."""
        self.target.mark_rebuilt(self.target.unfilled)
        self._place.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """See Fresh."""
        self.target.close()
