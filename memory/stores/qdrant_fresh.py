"""A collection of a Qdrant server filled beside the one in use, whose place it then takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from qdrant_client import QdrantClient, models

from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.points import record_of
from hearth.memory.stores.qdrant_calls import CollectionMissingError
from hearth.memory.stores.qdrant_index import open_index, terms_file
from hearth.memory.stores.qdrant_making import create, fresh_metadata
from hearth.memory.stores.qdrant_names import (
    FIRST,
    KEPT_AT,
    Standing,
    collection_name,
    collections_of,
    keep_place,
    lead,
    numbered,
    remove,
)
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.terms import TermStats
from hearth.memory.stores.vector_index import PART

_log = logging.getLogger(__name__)

T = TypeVar("T")

SECONDS = 30.0
"""For one request."""
OPTIMIZED_SECONDS = 600.0
"""For which the server may still order what it was given before searches come to it."""
_LOOK_SECONDS = 1.0
_TOGETHER = 1_000


class QdrantFresh:
    """The Fresh port over two collections, of which others search and write the one in use meanwhile.

    How far the filling is stands with the collection, so that any machine can go on with it.
    """

    def __init__(
        self,
        server: QdrantServer,
        directory: Path,
        terms: Callable[[], TermStats] | None,
        *,
        embedder: str,
        dimension: int,
        loader: str,
    ) -> None:
        """`directory`: of the term statistics, unless `terms` makes them. Raises StoreUnavailable."""
        self._server = server
        self._alias = collection_name(server.prefix, embedder, dimension)
        opened = partial(open_index, server, directory, embedder=embedder, dimension=dimension, loader=loader)
        self.source = opened(terms=terms and terms())
        self._calls = self.source.calls
        try:
            name, self._kept = self._begun(fresh_metadata(embedder, dimension, loader))
        except StoreUnavailable:
            self.source.close()
            raise
        self._terms = terms() if terms else terms_file(directory, self._alias)
        self.target = opened(terms=self._terms, made=True, beside=name)

    def place(self) -> bytes:
        """See Fresh."""
        return self._kept.encode()

    def keep_place(self, place: bytes) -> None:
        """See Fresh: with the collection."""
        keep_place(self._calls, self.target.name, place.decode(), by=_soon())

    def held(self) -> int:
        """See Fresh."""
        return self._ask(self.target.name, lambda client, name: client.count(name, exact=True)).count

    def hand_over(self) -> None:
        """See Fresh: the alias leads to the target from now on."""
        self._optimized()
        before = [one.name for one in self._mine() if one.live and one.name != self.target.name]
        lead(self._calls, self._alias, self.target.name, by=_soon())
        for name in before:
            self._forget_words(name)

    def switch(self) -> None:
        """See Fresh."""
        for one in self._mine():
            if not one.live:
                _log.info("the collection %s is removed: %s has its place", one.name, self.target.name)
                remove(self._calls, one.name, by=_soon())
        self.target.mark_rebuilt(self.target.unfilled)
        self.close()

    def close(self) -> None:
        """See Fresh."""
        self.target.close()
        self.source.close()

    def _begun(self, metadata: models.Payload) -> tuple[str, str]:
        """The collection to fill, and how far it is. One whose place was not kept yet is made anew."""
        found = self._mine()
        live = max((one.number for one in found if one.live), default=FIRST)
        for one in found:
            if one.number > live and one.place:
                return one.name, one.place
        for one in found:
            if one.number > live:
                remove(self._calls, one.name, by=_soon())
        name = numbered(self._alias, live + 1)
        create(self._calls, self._server, name, metadata | {KEPT_AT: time.time()}, by=_soon())
        return name, ""

    def _mine(self) -> list[Standing]:
        found = collections_of(self._calls, self._server, by=_soon())
        return [one for one in found if one.alias == self._alias]

    def _optimized(self) -> None:
        until = time.monotonic() + OPTIMIZED_SECONDS
        while time.monotonic() < until:
            info = self._ask(self.target.name, lambda client, name: client.get_collection(name))
            if info.status != models.CollectionStatus.YELLOW:
                return
            time.sleep(_LOOK_SECONDS)

    def _forget_words(self, before: str) -> None:
        """The statistics are of both collections: what only the one before has is counted no more."""
        for points in self._walk(before):
            there = {one.id for one in self._some(self.target.name, points)}
            gone = [point for point in points if point not in there]
            for one in self._some(before, gone, ["owner", "record"]) if gone else ():
                payload = one.payload or {}
                record = msgspec.json.decode(record_of(payload), type=_Named)
                self._terms.remove(str(payload["owner"]), [record.id])
        self._terms.commit()

    def _walk(self, name: str) -> Iterator[list[models.ExtendedPointId]]:
        after: models.ExtendedPointId | None = None
        while True:
            points, after = self._ask(name, partial(_scrolled, after))
            if points:
                yield [one.id for one in points]
            if after is None:
                return

    def _some(
        self, name: str, points: Sequence[models.ExtendedPointId], payload: Sequence[str] = ()
    ) -> list[models.Record]:
        only = models.Filter(must=[models.HasIdCondition(has_id=list(points))])
        found, _ = self._ask(
            name,
            lambda client, name: client.scroll(
                name, only, limit=len(points), with_payload=list(payload) or False
            ),
        )
        return found

    def _ask(self, name: str, work: Callable[[QdrantClient, str], T]) -> T:
        try:
            return self._calls(lambda client, _: work(client, name), by=_soon())
        except CollectionMissingError as error:
            raise StoreUnavailable(PART, f"the collection {name} is gone") from error


def _scrolled(
    after: models.ExtendedPointId | None, client: QdrantClient, name: str
) -> tuple[list[models.Record], models.ExtendedPointId | None]:
    return client.scroll(name, limit=_TOGETHER, offset=after, with_payload=False)


class _Named(msgspec.Struct, frozen=True):
    """What is wanted of a record."""

    id: str


def _soon() -> float:
    return time.monotonic() + SECONDS
