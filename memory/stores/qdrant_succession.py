"""The collections of several embedders in one Qdrant server, of which one is in force."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from hearth.memory.errors import StoreUnavailable
from hearth.memory.ports import Embedder
from hearth.memory.stores.qdrant_collection import OPEN_SECONDS
from hearth.memory.stores.qdrant_index import open_index
from hearth.memory.stores.qdrant_names import Standing, collections_of, remove
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.succession import Before, loaded
from hearth.memory.stores.terms import TermStats
from hearth.memory.stores.vector_index import PART

_log = logging.getLogger(__name__)

GIVEN_UP_SECONDS = 3600.0
"""After so long without a word a replay counts as given up, and no erasure waits for it any more."""


class QdrantSuccession:
    """The Succession port over a server that other processes use too, maybe still with another embedder."""

    def __init__(
        self,
        server: QdrantServer,
        directory: Path,
        embedder: Embedder,
        loader: str,
        *,
        terms: Callable[[], TermStats] | None = None,
    ) -> None:
        """`directory`: of the term statistics, unless `terms` makes them."""
        self.embedder = embedder
        self._server, self._directory, self._terms = server, directory, terms
        self.index = open_index(
            server,
            directory,
            embedder=embedder.name,
            dimension=embedder.dimension,
            loader=loader,
            terms=terms() if terms else None,
        )

    def before(self) -> Before | None:
        """See Succession. While the server can't be asked there is none."""
        try:
            others = [one for one in self._standing() if one.alias != self.index.name and one.live]
        except StoreUnavailable:
            _log.warning("whether there is an older collection is not known", exc_info=True)
            return None
        for one in others:
            if (made := one.made).filled:
                embedder, dense = loaded(made)
                index = open_index(
                    self._server,
                    self._directory,
                    embedder=made.embedder,
                    dimension=made.dimension,
                    loader=made.loader,
                    terms=self._terms() if self._terms else None,
                    made=True,
                )
                return Before(embedder=embedder, index=index, dense=dense)
        return None

    def retire(self) -> None:
        """See Succession. By the process that has filled this one's: others see that and ask no older one."""
        for one in self._standing():
            if one.alias != self.index.name:
                self._remove(one)
                for file in self._directory.glob(f"{one.alias}.terms.sqlite*"):
                    file.unlink()
        self._left_over()

    def reach_all(self) -> None:
        """See Succession."""
        if beside := self._left_over():
            cause = f"a replay is under way, and {beside} stands beside it until that is over"
            raise StoreUnavailable(PART, cause)

    def _left_over(self) -> str:
        """Remove what a replay left that was killed in its switch, or given up long before; a collection that
        one still works with.
        """
        mine = [one for one in self._standing() if one.alias == self.index.name]
        live = next((one for one in mine if one.live), None)
        if live is None:
            return ""
        needed = ""
        for one in mine:
            if _is_needed(one, live):
                needed = one.name
            elif one != live:
                self._remove(one)
        return needed

    def _standing(self) -> list[Standing]:
        return collections_of(self.index.calls, self._server, by=time.monotonic() + OPEN_SECONDS)

    def _remove(self, one: Standing) -> None:
        _log.warning("the collection %s is removed: %s has its place", one.name, self.index.name)
        remove(self.index.calls, one.name, by=time.monotonic() + OPEN_SECONDS)


def _is_needed(one: Standing, live: Standing) -> bool:
    """Whether a replay fills it, or has just put the one that is in use in its place."""
    worked_with = one if one.number > live.number else live
    return (
        one != live and not worked_with.made.filled and time.time() - worked_with.kept_at < GIVEN_UP_SECONDS
    )
