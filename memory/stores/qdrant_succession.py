"""The collections of several embedders in one Qdrant server, of which one is in force."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from qdrant_client import QdrantClient

from hearth.memory.errors import StoreUnavailable
from hearth.memory.ports import Embedder
from hearth.memory.stores.qdrant_calls import QdrantCalls
from hearth.memory.stores.qdrant_collection import OPEN_SECONDS, collections_of
from hearth.memory.stores.qdrant_index import open_index
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.succession import Before, loaded
from hearth.memory.stores.terms import TermStats

_log = logging.getLogger(__name__)


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
        calls = QdrantCalls(self._server)
        try:
            found = collections_of(calls, self._server, by=time.monotonic() + OPEN_SECONDS)
        except StoreUnavailable:
            _log.warning("whether there is an older collection is not known", exc_info=True)
            return None
        finally:
            calls.close()
        for name, made in found.items():
            if name != self.index.name and made.filled:
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
        calls, by = QdrantCalls(self._server), time.monotonic() + OPEN_SECONDS
        try:
            for name in collections_of(calls, self._server, by=by):
                if name != self.index.name:
                    _log.warning("the collection %s is removed: %s has its place", name, self.index.name)
                    calls(partial(_delete, name), by=by)
                    for file in self._directory.glob(f"{name}.terms.sqlite*"):
                        file.unlink()
        finally:
            calls.close()


def _delete(name: str, client: QdrantClient, _: int) -> bool:
    return client.delete_collection(name)
