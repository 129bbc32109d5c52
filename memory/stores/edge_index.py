"""Hybrid search over one Qdrant Edge collection, without any embedding: vectors come in ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import assert_never

import msgspec
import qdrant_edge as qdrant

from hearth.memory.errors import BadInput, StoreUnavailable
from hearth.memory.ports import SearchRequest
from hearth.memory.stores.analyzer import Analyzer
from hearth.memory.stores.edge_collection import Collection
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
from hearth.memory.stores.telling import telling_text
from hearth.memory.stores.terms import QueryTerms, terms_of
from hearth.memory.stores.vector_index import PART, Embedded, KeptVectors
from hearth.memory.tiers.indexed import sides_of
from hearth.memory.types import Vector

_SHARD_NAME = "shard"
_VECTORS = 64
"""Read at once: some 0.6 ms at 512 dimensions."""


class EdgeIndex:
    """The VectorIndex port over one shard. One thread at a time, but for `sync`.

    Raises StoreUnavailable where the shard fails.
    """

    readers = 1
    together = 4
    """Records: some 2 ms."""
    problem = None

    def __init__(self, directory: Path, *, embedder: str, dimension: int, loader: str = "") -> None:
        with _translated():
            self.collection = Collection(directory, embedder=embedder, dimension=dimension, loader=loader)
        self._terms = self.collection.terms
        self._analyzer = Analyzer()

    @property
    def unfilled(self) -> str:
        """See VectorIndex."""
        return _SHARD_NAME if self.collection.needs_rebuild else ""

    @property
    def set_aside(self) -> str:
        """See VectorIndex: the folder of a shard that did not open."""
        return self.collection.set_aside

    @property
    def unclean(self) -> bool:
        """See VectorIndex."""
        return self.collection.unclean

    def mark_rebuilt(self, collection: str) -> None:
        """See VectorIndex."""
        if collection == _SHARD_NAME:
            self.collection.mark_rebuilt()

    def terms_of(self, request: SearchRequest) -> list[int]:
        """See VectorIndex."""
        return list(self._analyzer.terms(request.lexical or request.text))

    def weigh(self, owners: Sequence[str], terms: Sequence[int]) -> QueryTerms:
        """See VectorIndex."""
        with _translated():
            return self._terms.weigh(owners, terms)

    def telling(self, request: SearchRequest, words: QueryTerms) -> str:
        """See VectorIndex."""
        return telling_text(request.text, words.common, self._analyzer)

    def search(
        self, request: SearchRequest, vector: Vector | None, words: QueryTerms, *, by: float = 0.0
    ) -> list[Hit]:
        """See VectorIndex. There is nobody to wait for, so that `by` means nothing."""
        with _translated():
            return search(self, request, vector, words)

    def put(self, points: Sequence[Embedded]) -> None:
        """See VectorIndex."""
        words = [[self._analyzer.terms(side) for side in sides_of(one.item.record)] for one in points]
        made = [_point_of(one, sides) for one, sides in zip(points, words, strict=True)]
        counted = [terms_of(one.item.record, sides) for one, sides in zip(points, words, strict=True)]
        with _translated():
            self.collection.shard.update(qdrant.UpdateOperation.upsert_points(made))
            if self._terms.add(counted):
                self.collection.mark_unclean()
            self.collection.writes += len(points)

    def get(self, owner: str, ids: Sequence[str]) -> list[msgspec.Raw]:
        """See VectorIndex."""
        with _translated():
            points = self.collection.shard.retrieve([_point(owner, one) for one in ids], [RECORD], False)
        return [record_of(point.payload) for point in points]

    def walk(self, owner: str, after: str, limit: int) -> tuple[list[msgspec.Raw], str]:
        """See VectorIndex: by point."""
        only = qdrant.ScrollRequest(
            offset=int(after) if after else None,
            limit=limit,
            filter=_filter([owned_by(owner)]),
            with_payload=[RECORD],
            with_vector=False,
        )
        with _translated():
            points, following = self.collection.shard.scroll(only)
        return [record_of(point.payload) for point in points], "" if following is None else str(following)

    def vectors(
        self, owner: str, ids: Sequence[str], piece: Callable[[], AbstractContextManager[None]]
    ) -> dict[str, Vector]:
        """See VectorIndex: `_VECTORS` of them a piece."""
        found: dict[str, Vector] = {}
        for start in range(0, len(ids), _VECTORS):
            with piece():
                found |= self._vectors(owner, ids[start : start + _VECTORS])
        return found

    def kept(self, records: Sequence[tuple[str, str]]) -> dict[tuple[str, str], KeptVectors]:
        """See VectorIndex."""
        asked: dict[qdrant.PointId, tuple[str, str]] = {_point(*one): one for one in records}
        with _translated():
            points = self.collection.shard.retrieve(list(asked), [MADE_OF], ["text", "context"])
        found = ((asked[point.id], kept_vectors_of(point.payload, point.vector)) for point in points)
        return {one: vectors for one, vectors in found if vectors is not None}

    def delete(self, owner: str, ids: Sequence[str]) -> None:
        """See VectorIndex."""
        with _translated():
            self.collection.shard.update(
                qdrant.UpdateOperation.delete_points([_point(owner, one) for one in ids])
            )
            if self._terms.remove(owner, ids):
                self.collection.mark_unclean()
            self.collection.writes += len(ids)

    def clear(self, tenant: str, user: str) -> None:
        """See VectorIndex."""
        theirs = all_of(tenant, user)
        with _translated():
            self.collection.shard.update(qdrant.UpdateOperation.delete_points_by_filter(_filter([theirs])))
            if self._terms.clear(theirs.values[0]):
                self.collection.mark_unclean()
            self.collection.writes += 1

    def count(self, owner: str) -> int:
        """See VectorIndex."""
        with _translated():
            return self.collection.shard.count(qdrant.CountRequest(filter=_filter([owned_by(owner)])))

    def points(self) -> int:
        """See VectorIndex."""
        with _translated():
            return self.collection.shard.info().points_count

    def commit(self) -> None:
        """See VectorIndex."""
        with _translated():
            self.collection.commit()

    def sync(self) -> None:
        """See VectorIndex."""
        with _translated():
            self.collection.sync()

    def compact(self, piece: Callable[[], AbstractContextManager[None]]) -> None:
        """See VectorIndex: writes the collection anew without what was removed."""
        with _translated():
            self.collection.compact(piece)

    def close(self) -> None:
        """See VectorIndex."""
        with _translated():
            self.collection.close()

    def find(
        self, queries: Queries, where: Sequence[Condition], limit: int
    ) -> Mapping[str, Mapping[qdrant.PointId, float]]:
        """See Engine."""
        return self._scores(queries, _filter(where), limit)

    def score(
        self, queries: Queries, owners: AnyOf, points: Sequence[qdrant.PointId]
    ) -> tuple[Scores[qdrant.PointId], Mapping[qdrant.PointId, Kept]]:
        """See Engine. The points' ids are made of their owners, who need not be compared again."""
        only = qdrant.Filter(must=[qdrant.HasIdCondition(set(points))])
        scores = self._scores(queries, only, len(points))
        found = self.collection.shard.retrieve(list(points), [RECORD, WORDS], False)
        return scores, {point.id: kept_of(point.payload) for point in found}

    def _vectors(self, owner: str, ids: Sequence[str]) -> dict[str, Vector]:
        asked: dict[qdrant.PointId, str] = {_point(owner, one): one for one in ids}
        with _translated():
            points = self.collection.shard.retrieve(list(asked), False, ["text"])
            return {asked[point.id]: text_vector_of(point.vector) for point in points}

    def _scores(
        self, queries: Queries, only: qdrant.Filter, limit: int
    ) -> dict[str, dict[qdrant.PointId, float]]:
        requests = [
            qdrant.QueryRequest(limit=limit, query=_query(near), filter=only) for near in queries.values()
        ]
        answers = self.collection.shard.query_batch(qdrant.QueryBatchRequest(requests))
        return {
            name: {point.id: point.score for point in answer}
            for name, answer in zip(queries, answers, strict=True)
        }


@contextmanager
def _translated() -> Iterator[None]:
    # Qdrant Edge raises bare Exceptions for everything, and a panic of its engine is no Exception at all.
    try:
        yield
    except (StoreUnavailable, BadInput, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise StoreUnavailable(PART, str(error)) from error


def _point(owner: str, record: str) -> int:
    # A number, because a thousand UUID objects a search would take longer than the search itself; with a
    # million records the chance that any two of them share a number is 3 in 100 million.
    return int.from_bytes(point_digest(owner, record, size=8))


def _point_of(one: Embedded, sides: Sequence[Mapping[int, int]]) -> qdrant.Point:
    record = one.item.record
    vectors: dict[str, qdrant.NamedVector] = {
        "text": one.text,
        "context": one.context,
        "lexical": qdrant.SparseVector(*record_dimensions(sides)),
    }
    return qdrant.Point(_point(record.scope.owner, record.id), vectors, payload_of(one.item, sides))


def _query(near: Near) -> qdrant.Query:
    to = near.to
    if isinstance(to, Sparse):
        return qdrant.Query.Nearest(qdrant.SparseVector(to.indices, to.values), using=near.using)
    return qdrant.Query.Nearest(to, using=near.using)


def _filter(where: Sequence[Condition]) -> qdrant.Filter:
    return qdrant.Filter(must=[_condition(one) for one in where])


def _condition(condition: Condition) -> qdrant.FieldCondition:
    match condition:
        case AnyOf(field=field, values=values):
            return qdrant.FieldCondition(field, match=qdrant.MatchAny(list(values)))
        case Contains(field=field, word=word):
            return qdrant.FieldCondition(field, match=qdrant.MatchSubstring(word))
        case Between(field=field, low=low, high=high):
            return qdrant.FieldCondition(field, range=qdrant.RangeFloat(gte=low, lt=high))
        case _:
            assert_never(condition)
