"""Hybrid search over a collection in a Qdrant server, without any embedding: vectors come in ready."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar, assert_never
from uuid import UUID

import msgspec
from qdrant_client import QdrantClient, models

from hearth.memory.errors import StoreUnavailable
from hearth.memory.ports import SearchRequest
from hearth.memory.stores.analyzer import Analyzer
from hearth.memory.stores.hits import Hit
from hearth.memory.stores.hybrid import (
    AnyOf,
    Between,
    Condition,
    Contains,
    Near,
    Queries,
    Scores,
    Sparse,
    all_of,
    owned_by,
    search,
)
from hearth.memory.stores.points import (
    MADE_OF,
    RECORD,
    WORDS,
    Kept,
    kept_of,
    kept_vectors_of,
    payload_of,
    point_digest,
    record_dimensions,
    record_of,
    text_vector_of,
)
from hearth.memory.stores.qdrant_calls import QdrantCalls
from hearth.memory.stores.qdrant_collection import OPEN_SECONDS, QdrantCollection
from hearth.memory.stores.qdrant_names import collection_name
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.sqlite_terms import SqliteTerms
from hearth.memory.stores.telling import telling_text
from hearth.memory.stores.terms import QueryTerms, TermStats, terms_of
from hearth.memory.stores.vector_index import PART, Embedded, KeptVectors
from hearth.memory.tiers.indexed import sides_of
from hearth.memory.types import Vector

T = TypeVar("T")
_Id: TypeAlias = models.ExtendedPointId
_Points: TypeAlias = "list[models.PointStruct]"

WRITE_SECONDS = 10.0
"""For one request and its further attempts; what fails is written again by the worker."""
READ_SECONDS = 5.0
"""For a read that has no deadline of its own."""
FIRST_LOOK_SECONDS = 3.0
"""How much longer a start takes at most while the server does not answer."""
LOOK_SECONDS = 10.0
"""Between two looks at the collection."""
EARLY = 0.06
"""Of a search's time that the server does not get, so that the caller still hears in time that it does not
answer, and takes it for down instead of the search for late: 9 ms of 150.
"""
REQUEST_CHARACTERS = 4_000_000
"""Of the records in one request: a server takes 32 MB, and a record is in it twice, in up to 4 bytes each."""
_EXACT = models.SearchParams(exact=True, quantization=models.QuantizationSearchParams(ignore=True))


class QdrantIndex:
    """The VectorIndex port over one collection of a server. Any thread may call, but only one may write.

    A server that is down when this is made is tried again, every `LOOK_SECONDS` and at every call.
    """

    together = 64
    set_aside = ""

    def __init__(
        self,
        server: QdrantServer,
        terms: TermStats,
        *,
        embedder: str,
        dimension: int,
        loader: str = "",
        made: bool = False,
        beside: str = "",
    ) -> None:
        """`loader`, `made` and `beside` as QdrantCollection takes them."""
        self.readers = server.connections
        self._server, self._terms = server, terms
        self.calls = QdrantCalls(server)
        """Of the server, until `close`."""
        self._collection = QdrantCollection(
            self.calls,
            server,
            terms,
            embedder=embedder,
            dimension=dimension,
            loader=loader,
            made=made,
            beside=beside,
        )
        self._analyzer, self._analyzing = Analyzer(), threading.Lock()
        self._removed = False
        self._closing = threading.Event()
        self._look(FIRST_LOOK_SECONDS)
        threading.Thread(target=self._keep_looking, daemon=True, name="hearth-qdrant").start()

    @property
    def name(self) -> str:
        """By which the server is asked for the collection."""
        return self._collection.name

    @property
    def unfilled(self) -> str:
        """See VectorIndex."""
        return self._collection.unfilled

    @property
    def unclean(self) -> bool:
        """See VectorIndex: the statistics' own file. The server cleans its own."""
        return self._removed

    @property
    def problem(self) -> StoreUnavailable | None:
        """See VectorIndex."""
        return self._collection.problem

    def mark_rebuilt(self, collection: str) -> None:
        """See VectorIndex."""
        self._collection.mark_filled(collection)

    def terms_of(self, request: SearchRequest) -> list[int]:
        """See VectorIndex."""
        return list(self._counts(request.lexical or request.text))

    def weigh(self, owners: Sequence[str], terms: Sequence[int]) -> QueryTerms:
        """See VectorIndex."""
        return self._terms.weigh(owners, terms)

    def telling(self, request: SearchRequest, words: QueryTerms) -> str:
        """See VectorIndex."""
        with self._analyzing:
            return telling_text(request.text, words.common, self._analyzer)

    def search(
        self, request: SearchRequest, vector: Vector | None, words: QueryTerms, *, by: float
    ) -> list[Hit]:
        """See VectorIndex: two round trips."""
        by -= (by - time.monotonic()) * EARLY
        within = _Search(self._collection, self._server, by, exact=len(request.owners) > 1)
        return search(within, request, vector, words)

    def put(self, points: Sequence[Embedded]) -> None:
        """See VectorIndex: one request, more only for huge records. Applied when this returns."""
        words = [[self._counts(side) for side in sides_of(one.item.record)] for one in points]
        made = [_point_of(one, sides) for one, sides in zip(points, words, strict=True)]
        for some in _requests(made):
            self._write(partial(_upsert, some))
        counted = [terms_of(one.item.record, sides) for one, sides in zip(points, words, strict=True)]
        self._removed |= self._terms.add(counted)

    def get(self, owner: str, ids: Sequence[str]) -> list[msgspec.Raw]:
        """See VectorIndex."""
        if not ids:
            return []
        points: list[_Id] = [_point(owner, one) for one in ids]
        only = models.Filter(must=[_condition(owned_by(owner)), models.HasIdCondition(has_id=points)])
        found, _ = self._read(
            lambda client, name, seconds: client.scroll(
                name, only, limit=len(points), with_payload=_RECORD_ONLY, timeout=seconds
            )
        )
        records = {one.id: record_of(one.payload) for one in found}
        return [records[point] for point in points if point in records]

    def walk(self, owner: str, after: str, limit: int) -> tuple[list[msgspec.Raw], str]:
        """See VectorIndex: by point."""
        found, following = self._read(
            lambda client, name, seconds: client.scroll(
                name,
                _filter([owned_by(owner)]),
                limit=limit,
                offset=after or None,
                with_payload=_RECORD_ONLY,
                timeout=seconds,
            )
        )
        return [record_of(one.payload) for one in found], "" if following is None else str(following)

    def vectors(
        self, owner: str, ids: Sequence[str], piece: Callable[[], AbstractContextManager[None]]
    ) -> dict[str, Vector]:
        """See VectorIndex: one request, one piece."""
        if not ids:
            return {}
        asked: dict[_Id, str] = {_point(owner, one): one for one in ids}
        only = models.Filter(must=[_condition(owned_by(owner)), models.HasIdCondition(has_id=list(asked))])
        with piece():
            found, _ = self._read(
                lambda client, name, seconds: client.scroll(
                    name,
                    only,
                    limit=len(asked),
                    with_payload=False,
                    with_vectors=["text"],
                    timeout=seconds,
                )
            )
        return {asked[one.id]: text_vector_of(one.vector) for one in found}

    def kept(self, records: Sequence[tuple[str, str]]) -> dict[tuple[str, str], KeptVectors]:
        """See VectorIndex: one request."""
        if not records:
            return {}
        asked: dict[_Id, tuple[str, str]] = {_point(*one): one for one in records}
        owners = _condition(owned_by(*dict.fromkeys(owner for owner, _ in records)))
        only = models.Filter(must=[owners, models.HasIdCondition(has_id=list(asked))])
        points, _ = self._read(
            lambda client, name, seconds: client.scroll(
                name,
                only,
                limit=len(asked),
                with_payload=_MADE_OF_ONLY,
                with_vectors=["text", "context"],
                timeout=seconds,
            )
        )
        found = ((asked[point.id], kept_vectors_of(point.payload, point.vector)) for point in points)
        return {one: vectors for one, vectors in found if vectors is not None}

    def delete(self, owner: str, ids: Sequence[str]) -> None:
        """See VectorIndex."""
        if ids:
            self._delete(models.PointIdsList(points=[_point(owner, one) for one in ids]))
            self._removed |= self._terms.remove(owner, ids)

    def clear(self, tenant: str, user: str) -> None:
        """See VectorIndex."""
        theirs = all_of(tenant, user)
        self._delete(models.FilterSelector(filter=_filter([theirs])))
        self._removed |= self._terms.clear(theirs.values[0])

    def count(self, owner: str) -> int:
        """See VectorIndex."""
        only = _filter([owned_by(owner)])
        return self._read(
            lambda client, name, seconds: client.count(name, only, exact=True, timeout=seconds)
        ).count

    def points(self) -> int:
        """See VectorIndex: as of the last look."""
        return self._collection.points

    def commit(self) -> None:
        """See VectorIndex: the statistics. The server has written down what it confirmed."""
        self._terms.commit()

    def sync(self) -> None:
        """See VectorIndex: nothing more to do."""

    def compact(self, piece: Callable[[], AbstractContextManager[None]]) -> None:
        """See VectorIndex: the statistics' own file."""
        with piece():
            self._removed = False
            self._terms.purge()

    def close(self) -> None:
        """See VectorIndex."""
        self._closing.set()
        self.calls.close()
        self._terms.close()

    def _counts(self, text: str) -> Mapping[int, int]:
        with self._analyzing:
            return self._analyzer.terms(text)

    def _delete(self, which: models.PointsSelector) -> None:
        self._write(
            lambda client, name, seconds: client.delete(
                name, which, wait=True, ordering=_ORDERING, timeout=seconds
            )
        )

    def _write(self, work: Callable[[QdrantClient, str, int], models.UpdateResult]) -> None:
        result = self._collection.do(work, by=time.monotonic() + WRITE_SECONDS)
        if result.status != models.UpdateStatus.COMPLETED:
            raise StoreUnavailable(PART, f"{self._server.address}: a write is {result.status.value} only")

    def _read(self, work: Callable[[QdrantClient, str, int], T]) -> T:
        return self._collection.do(work, by=time.monotonic() + READ_SECONDS)

    def _look(self, seconds: float) -> None:
        with suppress(StoreUnavailable):  # the collection keeps it in mind
            self._collection.look(by=time.monotonic() + seconds)

    def _keep_looking(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            self._look(OPEN_SECONDS)


@dataclass(frozen=True, slots=True)
class _Search:
    """One search's requests, which share its deadline.

    `exact`: of several owners, since a search enters a graph at one point and an owner's has no way out.
    """

    collection: QdrantCollection
    server: QdrantServer
    by: float
    exact: bool

    def find(self, queries: Queries, where: Sequence[Condition], limit: int) -> Scores[_Id]:
        """See Engine."""
        only, params = _filter(where), _params(self.server, exact=self.exact)
        answers = self._batch([_request(near, only, params, limit) for near in queries.values()])
        return _scores(queries, answers)

    def score(
        self, queries: Queries, owners: AnyOf, points: Sequence[_Id]
    ) -> tuple[Scores[_Id], Mapping[_Id, Kept]]:
        """See Engine. What the points hold comes with the first query's answer."""
        only = models.Filter(must=[_condition(owners), models.HasIdCondition(has_id=list(points))])
        requests = [_request(near, only, _EXACT, len(points)) for near in queries.values()]
        requests[0].with_payload = _RECORD_AND_WORDS
        answers = self._batch(requests)
        return _scores(queries, answers), {one.id: kept_of(one.payload) for one in answers[0].points}

    def _batch(self, requests: list[models.QueryRequest]) -> list[models.QueryResponse]:
        batch = models.QueryRequestBatch(searches=requests)
        # By the generated interface: the client's own method first copies every vector, in search of texts to
        # embed, which costs a third of a search's processor time.
        return self.collection.do(
            lambda client, name, seconds: (
                client.http.search_api.query_batch_points(
                    name, timeout=seconds, query_request_batch=batch
                ).result
                or []
            ),
            by=self.by,
        )


_ORDERING = models.WriteOrdering.MEDIUM
"""In a cluster: so that a removal is not overtaken by the write before it, which another node was given."""
_RECORD_ONLY = models.PayloadSelectorInclude(include=[RECORD])
_MADE_OF_ONLY = models.PayloadSelectorInclude(include=[MADE_OF])
_RECORD_AND_WORDS = models.PayloadSelectorInclude(include=[RECORD, WORDS])


def open_index(
    server: QdrantServer,
    directory: Path,
    *,
    embedder: str,
    dimension: int,
    loader: str = "",
    made: bool = False,
    beside: str = "",
    terms: TermStats | None = None,
) -> QdrantIndex:
    """The index in the server; its term statistics, unless they are given, in a file in `directory`."""
    if terms is None:
        terms = terms_file(directory, collection_name(server.prefix, embedder, dimension))
    return QdrantIndex(
        server, terms, embedder=embedder, dimension=dimension, loader=loader, made=made, beside=beside
    )


def terms_file(directory: Path, name: str) -> TermStats:
    """The statistics of the collection that is addressed so, in a file of this process."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SqliteTerms(directory / f"{name}.terms.sqlite")


def _upsert(points: _Points, client: QdrantClient, name: str, seconds: int) -> models.UpdateResult:
    return client.upsert(name, points, wait=True, ordering=_ORDERING, timeout=seconds)


def _point(owner: str, record: str) -> str:
    # 128 bits: among a billion records of a whole company the 64 of a number might meet.
    return str(UUID(bytes=point_digest(owner, record, size=16)))


def _point_of(one: Embedded, sides: Sequence[Mapping[int, int]]) -> models.PointStruct:
    record = one.item.record
    indices, values = record_dimensions(sides)
    return models.PointStruct(
        id=_point(record.scope.owner, record.id),
        vector={
            "text": one.text,
            "context": one.context,
            "lexical": models.SparseVector(indices=indices, values=values),
        },
        payload=payload_of(one.item, sides),
    )


def _requests(points: _Points) -> Iterator[_Points]:
    """The points in order, no more at once than a request may hold."""
    some: _Points = []
    characters = 0
    for point in points:
        size = len(str((point.payload or {})[RECORD]))
        if some and characters + size > REQUEST_CHARACTERS:
            yield some
            some, characters = [], 0
        some.append(point)
        characters += size
    if some:
        yield some


def _request(
    near: Near, only: models.Filter, params: models.SearchParams | None, limit: int
) -> models.QueryRequest:
    to = near.to
    nearest = models.SparseVector(indices=to.indices, values=to.values) if isinstance(to, Sparse) else to
    return models.QueryRequest(
        query=models.NearestQuery(nearest=nearest), using=near.using, filter=only, params=params, limit=limit
    )


def _params(server: QdrantServer, *, exact: bool) -> models.SearchParams | None:
    if exact:
        return _EXACT
    if server.quantization == "none":
        return None
    chosen = models.QuantizationSearchParams(rescore=server.rescore, oversampling=server.oversampling)
    return models.SearchParams(quantization=chosen)


def _scores(queries: Queries, answers: Sequence[models.QueryResponse]) -> dict[str, dict[_Id, float]]:
    return {
        name: {point.id: point.score for point in answer.points}
        for name, answer in zip(queries, answers, strict=True)
    }


def _filter(where: Sequence[Condition]) -> models.Filter:
    return models.Filter(must=[_condition(one) for one in where])


def _condition(condition: Condition) -> models.FieldCondition:
    match condition:
        case AnyOf(field=field, values=values):
            return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))
        case Contains(field=field, word=word):
            return models.FieldCondition(key=field, match=models.MatchSubstring(substring=word))
        case Between(field=field, low=low, high=high):
            return models.FieldCondition(key=field, range=models.Range(gte=low, lt=high))
        case _:
            assert_never(condition)
