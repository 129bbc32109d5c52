"""One collection of a Qdrant server: made where it is missing, and known to be filled from the log or not.

It is addressed by an alias (`qdrant_names`), so that another process may put another one in its place at
any moment. Its metadata hold a name of its own, made at random, and whether it was filled. So one that was
lost and made anew, or exchanged, by whichever process, is told from the one before. They also say whose
vectors it has, so that a program with another embedder can ask it until its own is filled.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TypeVar

from qdrant_client import QdrantClient, models

from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.qdrant_calls import CollectionMissingError, QdrantCalls
from hearth.memory.stores.qdrant_making import INDEXES, create, fresh_metadata
from hearth.memory.stores.qdrant_names import (
    FILLED,
    FIRST,
    MADE,
    collection_name,
    lead,
    made_metadata,
    numbered,
)
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.terms import TermStats
from hearth.memory.stores.vector_index import PART

_log = logging.getLogger(__name__)

T = TypeVar("T")

OPEN_SECONDS = 10.0
"""For looking after the collection; making one takes a server about a second."""


class QdrantCollection:
    """The collection for one embedder. Any thread may call; every method may raise StoreUnavailable."""

    def __init__(
        self,
        calls: QdrantCalls,
        server: QdrantServer,
        terms: TermStats,
        *,
        embedder: str,
        dimension: int,
        loader: str = "",
        made: bool = False,
        beside: str = "",
    ) -> None:
        """`made`: it is there or was, and is not to be made anew. `loader`: as `load_embedder` takes it.
        `beside`: the name of one that no alias leads to yet.
        """
        self.name = beside or collection_name(server.prefix, embedder, dimension)
        self.problem: StoreUnavailable | None = None
        self.points = 0
        self._calls, self._server, self._terms = calls, server, terms
        self._fresh = partial(fresh_metadata, embedder, dimension, loader)
        self._is_made = made
        self._turn = Lock()
        self._made = ""
        self._filled = False

    @property
    def unfilled(self) -> str:
        """The collection's random name while it is not filled from the log; empty if it is, or is unknown."""
        return "" if self._filled else self._made

    def do(self, work: Callable[[QdrantClient, str, int], T], *, by: float) -> T:
        """What `work` returns, which gets client, collection and the seconds that the server may take. Where
        the collection is missing it is made first.
        """
        try:
            result = self._done(work, by)
        except StoreUnavailable as error:
            self._note(error)
            raise
        self._note(None)
        return result

    def _done(self, work: Callable[[QdrantClient, str, int], T], by: float) -> T:
        if not self._made:
            self._look(by)
        try:
            return self._calls(lambda client, seconds: work(client, self.name, seconds), by=by)
        except CollectionMissingError:
            _log.warning("the collection %s is gone; it is made anew, to be filled from the log", self.name)
            self._look(by)
            return self._again(work, by)

    def look(self, *, by: float) -> None:
        """See what the collection is now, make it where it is missing, and keep `problem` up to date."""
        try:
            self._look(by)
        except StoreUnavailable as error:
            self._note(error)
            raise
        self._note(None)

    def mark_filled(self, made: str) -> None:
        """The collection of that name is filled; without effect where another one has taken its place."""
        by = time.monotonic() + OPEN_SECONDS
        self.look(by=by)
        if self._made != made:
            _log.warning("the collection %s was made anew while it was filled", self.name)
            return
        self._calls(lambda client, _: client.update_collection(self.name, metadata={FILLED: True}), by=by)
        self._terms.mark_filled(made)
        self._terms.commit()
        self._filled = True

    def _look(self, by: float) -> None:
        with self._alone(by):
            self._open(by)

    def _note(self, problem: StoreUnavailable | None) -> None:
        if problem and not self.problem:
            _log.warning("long-term memory is not available: %s", problem.cause)
        elif self.problem and not problem:
            _log.info("long-term memory is available again")
        self.problem = problem

    @contextmanager
    def _alone(self, by: float) -> Iterator[None]:
        """One thread at a time, none longer than its own time."""
        if not self._turn.acquire(timeout=max(by - time.monotonic(), 0.0)):
            raise StoreUnavailable(PART, f"{self._server.address}: no answer in time")
        try:
            yield
        finally:
            self._turn.release()

    def _again(self, work: Callable[[QdrantClient, str, int], T], by: float) -> T:
        try:
            return self._calls(lambda client, seconds: work(client, self.name, seconds), by=by)
        except CollectionMissingError as error:
            raise StoreUnavailable(PART, f"the collection {self.name} vanishes again and again") from error

    def _open(self, by: float) -> None:
        info = self._info(by)
        if info is None:
            if self._is_made:
                raise StoreUnavailable(PART, f"the collection {self.name} is gone")
            self._create(by)
            info = self._info(by)
        metadata = self._metadata(info, by)
        self._index(info, by)
        self.points = (info.points_count if info else None) or 0
        self._made = str(metadata[MADE])
        self._filled = bool(metadata.get(FILLED)) and self._is_counted()

    def _is_counted(self) -> bool:
        """Whether the statistics are of this collection; taken as given where they can't be asked now."""
        try:
            return self._terms.is_filled(self._made)
        except StoreUnavailable:
            return True

    def _info(self, by: float) -> models.CollectionInfo | None:
        try:
            return self._calls(lambda client, _: client.get_collection(self.name), by=by)
        except CollectionMissingError:
            return None

    def _create(self, by: float) -> None:
        """Make the first one. Another process that does so at the same moment makes and calls it the same."""
        name = numbered(self.name, FIRST)
        create(self._calls, self._server, name, self._fresh(), by=by)
        lead(self._calls, self.name, name, by=by)

    def _metadata(self, info: models.CollectionInfo | None, by: float) -> models.Payload:
        if found := made_metadata(info):
            return found
        fresh = self._fresh()
        self._calls(lambda client, _: client.update_collection(self.name, metadata=fresh), by=by)
        if found := made_metadata(self._info(by)):
            return found
        cause = f"the collection {self.name} keeps no metadata; Qdrant 1.20 or newer is needed"
        raise StoreUnavailable(PART, cause)

    def _index(self, info: models.CollectionInfo | None, by: float) -> None:
        present = info.payload_schema if info else {}
        for field, schema in INDEXES.items():
            if field not in present:
                create = partial(self._create_index, field, schema)
                self._calls(create, by=by)

    def _create_index(
        self, field: str, schema: models.KeywordIndexParams, client: QdrantClient, seconds: int
    ) -> None:
        client.create_payload_index(self.name, field, schema, timeout=seconds)
