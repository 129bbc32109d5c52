"""One collection of a Qdrant server: made where it is missing, and known to be filled from the log or not.

It is one for all owners, as Qdrant advises for many tenants ("Configure Multitenancy" in its documentation):
`owner` is a keyword index with `is_tenant`, which keeps an owner's points together on the disk; `m` is 0 and
`payload_m` is set, so that there is no graph over everybody, only one within each owner who has more than a
scan of them takes. The other indexes get no graph.

Its metadata hold a name of its own, made at random, and whether it was filled. So one that was lost and made
anew, by whichever process, is told from the one before. They also say whose vectors it has, so that a program
with another embedder can ask it until its own is filled.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import blake2b
from threading import Lock
from typing import Any, TypeVar
from uuid import uuid4

from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.qdrant_calls import CollectionMissingError, QdrantCalls
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.succession import Made
from hearth.memory.stores.terms import TermStats
from hearth.memory.stores.vector_index import PART

_log = logging.getLogger(__name__)

T = TypeVar("T")

FORMAT = 2
"""Ends the collection's name: a program of another format fills one of its own from the log."""
OPEN_SECONDS = 10.0
"""For looking after the collection; making one takes a server about a second."""
_PAYLOAD_M = 16
"""Edges of a point in its owner's graph; Qdrant's own value for `m`."""
_MADE, _FILLED = "hearth_made", "hearth_filled"
_EMBEDDER, _LOADER, _DIMENSION = "hearth_embedder", "hearth_loader", "hearth_dimension"
_INDEXES = {
    "owner": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "person": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False),
    "kind": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False),
}
_EXISTS = frozenset({400, 409})


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
    ) -> None:
        """`made`: it is there or was, and is not to be made anew. `loader`: as `load_embedder` takes it."""
        self.name = collection_name(server.prefix, embedder, dimension)
        self.problem: StoreUnavailable | None = None
        self.points = 0
        self._calls, self._server, self._terms, self._dimension = calls, server, terms, dimension
        self._whose = {_EMBEDDER: embedder, _LOADER: loader, _DIMENSION: dimension}
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
        self._calls(lambda client, _: client.update_collection(self.name, metadata={_FILLED: True}), by=by)
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
        self._made = str(metadata[_MADE])
        self._filled = bool(metadata.get(_FILLED)) and self._is_counted()

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
        """Make the collection; that another process does so at the same moment is as good."""

        def create(client: QdrantClient, seconds: int) -> None:
            try:
                client.create_collection(self.name, timeout=seconds, **self._options())
            except UnexpectedResponse as error:
                if error.status_code not in _EXISTS or b"already exists" not in error.content:
                    raise

        self._calls(create, by=by)

    def _options(self) -> dict[str, Any]:
        server = self._server
        dense = models.VectorParams(
            size=self._dimension,
            distance=models.Distance.COSINE,
            on_disk=server.on_disk or server.quantization != "none",
        )
        sparse = models.SparseVectorParams(index=models.SparseIndexParams(on_disk=server.on_disk))
        return {
            "vectors_config": {"text": dense, "context": dense},
            "sparse_vectors_config": {"lexical": sparse},
            "hnsw_config": models.HnswConfigDiff(m=0, payload_m=_PAYLOAD_M),
            "quantization_config": _quantization(server),
            "shard_number": server.shards,
            "replication_factor": server.replicas,
            "write_consistency_factor": server.write_consistency,
            # Conditions beside the owner are tested on the owner's points alone and need no index.
            "strict_mode_config": models.StrictModeConfig(enabled=False),
            "metadata": self._fresh(),
        }

    def _fresh(self) -> models.Payload:
        return {_MADE: uuid4().hex, _FILLED: False, **self._whose}

    def _metadata(self, info: models.CollectionInfo | None, by: float) -> models.Payload:
        if found := _made_metadata(info):
            return found
        fresh = self._fresh()
        self._calls(lambda client, _: client.update_collection(self.name, metadata=fresh), by=by)
        if found := _made_metadata(self._info(by)):
            return found
        cause = f"the collection {self.name} keeps no metadata; Qdrant 1.20 or newer is needed"
        raise StoreUnavailable(PART, cause)

    def _index(self, info: models.CollectionInfo | None, by: float) -> None:
        present = info.payload_schema if info else {}
        for field, schema in _INDEXES.items():
            if field not in present:
                create = partial(self._create_index, field, schema)
                self._calls(create, by=by)

    def _create_index(
        self, field: str, schema: models.KeywordIndexParams, client: QdrantClient, seconds: int
    ) -> None:
        client.create_payload_index(self.name, field, schema, timeout=seconds)


def collection_name(prefix: str, embedder: str, dimension: int) -> str:
    """`<prefix><embedder>-<dimension>-<format>`, of letters, digits, `_`, `.` and `-`.

    An embedder whose name has other signs gets a digest of it too, so that no two embedders share one.
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", embedder)[:100]
    if plain != embedder:
        plain += "-" + blake2b(embedder.encode(), digest_size=6).hexdigest()
    return f"{prefix}{plain}-{dimension}-{FORMAT}"


def collections_of(calls: QdrantCalls, server: QdrantServer, *, by: float) -> dict[str, Made]:
    """The server's collections of this prefix and format, by name. Raises StoreUnavailable."""
    names = [one.name for one in calls(lambda client, _: client.get_collections(), by=by).collections]
    found: dict[str, Made] = {}
    for name in names:
        if name.startswith(server.prefix) and name.endswith(f"-{FORMAT}"):
            with suppress(CollectionMissingError):
                info = calls(partial(_get, name), by=by)
                if (made := _made_of(name, server.prefix, info)) is not None:
                    found[name] = made
    return found


def _get(name: str, client: QdrantClient, _: int) -> models.CollectionInfo:
    return client.get_collection(name)


def _made_of(name: str, prefix: str, info: models.CollectionInfo) -> Made | None:
    """None of a collection that another installation, whose prefix is longer, or another program has made."""
    said = _made_metadata(info) or {}
    embedder, dimension = str(said.get(_EMBEDDER, "")), int(said.get(_DIMENSION, 0))
    if collection_name(prefix, embedder, dimension) != name:
        return None
    loader, filled = str(said.get(_LOADER, "")), bool(said.get(_FILLED))
    return Made(embedder=embedder, dimension=dimension, loader=loader, filled=filled)


def _made_metadata(info: models.CollectionInfo | None) -> models.Payload | None:
    found = info.config.metadata if info else None
    return found if found and found.get(_MADE) else None


def _quantization(server: QdrantServer) -> models.QuantizationConfig | None:
    match server.quantization:
        case "scalar":
            scalar = models.ScalarQuantizationConfig(
                type=models.ScalarType.INT8, quantile=0.99, always_ram=True
            )
            return models.ScalarQuantization(scalar=scalar)
        case "binary":
            return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
        case _:
            return None
