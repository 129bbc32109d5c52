"""Hybrid search over one Qdrant Edge collection, without any embedding: vectors come in ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

import msgspec
import qdrant_edge as qdrant

from hearth.memory.errors import BadInput, StoreUnavailable
from hearth.memory.events.codec import micros
from hearth.memory.filters import fold_text, kind_of, metadata_of, metadata_terms, tags_of
from hearth.memory.ports import Indexed, MemoryFilter, SearchRequest
from hearth.memory.stores.analyzer import Analyzer
from hearth.memory.stores.edge_collection import PART, Collection
from hearth.memory.stores.edge_hits import Hit
from hearth.memory.stores.edge_prefusion import best
from hearth.memory.stores.terms import QueryTerms, saturated
from hearth.memory.tiers.indexed import record_text
from hearth.memory.types import Record, Scope, Vector

Scores: TypeAlias = "dict[qdrant.PointId, float]"
"""Score by the point's id."""

_PRESENCE = 0x80000000
"""Added to a term's id: a second dimension of weight 1 for it, so that the engine itself sums coverage."""

_encode = msgspec.json.Encoder().encode


class EdgeIndex:
    """Records of many owners in one shard; every read and removal is bound to owners. One thread at a time.

    Raises StoreUnavailable where the shard fails.
    """

    def __init__(self, directory: Path, *, embedder: str, dimension: int) -> None:
        with _translated():
            self.collection = Collection(directory, embedder=embedder, dimension=dimension)
        self._terms = self.collection.terms
        self._analyzer = Analyzer()

    def search(self, request: SearchRequest, vector: Vector | None) -> list[Hit]:
        """The best candidates, each with all its scores; dense ones only with a `vector`.

        One batch of three queries finds them, the best by a rough fusion get their missing scores in a
        second one over those points alone. Raises BadInput without owners.
        """
        if not request.owners:
            raise BadInput("owners", request.owners, "at least one owner")
        words = self._terms.weigh(request.owners, self._analyzer.terms(request.lexical or request.text))
        with _translated():
            found = self._scores(_queries(vector, words), _filter(request), request.limit)
            kept = best(found, limit=request.limit)
            if not kept:
                return []
            only = qdrant.Filter(must=[qdrant.HasIdCondition(set(kept))])
            scores = self._scores(_queries(vector, words) | _coverage_query(words), only, len(kept))
            return self._hits(kept, scores)

    def put(self, item: Indexed, *, text: Vector, context: Vector) -> None:
        """Add or replace the record of that owner and id. Raises BadInput for a lone surrogate in it."""
        record = item.record
        owner, person = record.scope.owner, record.scope.person
        weights = saturated(self._analyzer.terms(item.text))
        vectors: dict[str, qdrant.NamedVector] = {
            "text": text,
            "context": context,
            "lexical": _sparse(weights),
        }
        with _translated():
            point = qdrant.Point(_point(owner, record.id), vectors, _payload(record))
            self.collection.shard.update(qdrant.UpdateOperation.upsert_points([point]))
            if self._terms.add(owner, person, record.id, weights):
                self.collection.mark_unclean()
            self.collection.writes += 1

    def get(self, owner: str, ids: Sequence[str]) -> list[msgspec.Raw]:
        """JSON of those of the ids that the owner has."""
        with _translated():
            points = self.collection.shard.retrieve([_point(owner, one) for one in ids], ["record"], False)
        return [_raw(point.payload) for point in points]

    def delete(self, owner: str, ids: Sequence[str]) -> None:
        """Remove those of the ids that the owner has."""
        with _translated():
            self.collection.shard.update(
                qdrant.UpdateOperation.delete_points([_point(owner, one) for one in ids])
            )
            if sum(self._terms.remove(owner, one) for one in ids):
                self.collection.mark_unclean()
            self.collection.writes += len(ids)

    def clear(self, tenant: str, user: str) -> None:
        """Remove everything of the user, of all agents."""
        person = Scope(tenant=tenant, user=user).person
        with _translated():
            theirs = qdrant.Filter(must=[_equal("person", (person,))])
            self.collection.shard.update(qdrant.UpdateOperation.delete_points_by_filter(theirs))
            if self._terms.clear(person):
                self.collection.mark_unclean()
            self.collection.writes += 1

    def count(self, owner: str) -> int:
        """How many records the owner has."""
        with _translated():
            return self.collection.shard.count(
                qdrant.CountRequest(filter=qdrant.Filter(must=[_equal("owner", (owner,))]))
            )

    def points(self) -> int:
        """How many records the collection has."""
        with _translated():
            return self.collection.shard.info().points_count

    def commit(self) -> None:
        """Make everything written so far survive a killed process."""
        with _translated():
            self.collection.commit()

    def sync(self) -> None:
        """Make what was committed survive a power cut; any thread may call this, beside reads."""
        with _translated():
            self.collection.sync()

    def compact(self, piece: Callable[[], AbstractContextManager[None]]) -> None:
        """Write the collection anew without what was removed; reads may go on between two `piece()`."""
        with _translated():
            self.collection.compact(piece)

    def close(self) -> None:
        """Flush and close."""
        with _translated():
            self.collection.close()

    def _scores(
        self, queries: Mapping[str, qdrant.Query], only: qdrant.Filter, limit: int
    ) -> dict[str, Scores]:
        if not queries:
            return {}
        requests = [qdrant.QueryRequest(limit=limit, query=query, filter=only) for query in queries.values()]
        answers = self.collection.shard.query_batch(qdrant.QueryBatchRequest(requests))
        return {
            name: {point.id: point.score for point in answer}
            for name, answer in zip(queries, answers, strict=True)
        }

    def _hits(self, kept: Sequence[qdrant.PointId], scores: Mapping[str, Scores]) -> list[Hit]:
        text, context = scores.get("text", {}), scores.get("context", {})
        lexical, coverage = scores.get("lexical", {}), scores.get("coverage", {})
        points = self.collection.shard.retrieve(list(kept), ["record"], False)
        return [
            Hit(
                record=_raw(point.payload),
                text_score=text.get(key := point.id),
                context_score=context.get(key),
                lexical_score=lexical.get(key, 0.0),
                coverage=min(coverage.get(key, 0.0), 1.0),
            )
            for point in points
        ]


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
    # Made of both, so that the same record id under two owners is two points and neither reaches the other.
    # A number, because a thousand UUID objects a search would take longer than the search itself; with a
    # million records the chance that any two of them share a number is 3 in 100 million.
    return int.from_bytes(blake2b(f"{owner}\n{record}".encode(), digest_size=8).digest())


def _payload(record: Record) -> dict[str, object]:
    """The record itself, and of it what a search can be restricted by."""
    scope = record.scope
    return {
        "owner": scope.owner,
        "person": scope.person,
        "tenant": scope.tenant,
        "user": scope.user,
        "kind": kind_of(record),
        "generation": record.generation,
        "agent": scope.agent,
        "session": scope.session,
        "at": micros(record.occurred_at),
        "tags": list(tags_of(record)),
        "metadata": metadata_of(record),
        "folded": fold_text(record_text(record)),
        "record": _stored(record),
    }


def _stored(record: Record) -> str:
    try:
        return _encode(record).decode()
    except UnicodeEncodeError as error:
        raise BadInput("record", record.id, "text without lone surrogates") from error


def _raw(payload: dict[str, object] | None) -> msgspec.Raw:
    return msgspec.Raw(str((payload or {})["record"]).encode())


def _sparse(weights: Mapping[int, float]) -> qdrant.SparseVector:
    terms = list(weights)
    return qdrant.SparseVector(
        terms + [term | _PRESENCE for term in terms], list(weights.values()) + [1.0] * len(terms)
    )


def _equal(field: str, values: Sequence[str]) -> qdrant.FieldCondition:
    return qdrant.FieldCondition(field, match=qdrant.MatchAny(list(values)))


def _filter(request: SearchRequest) -> qdrant.Filter:
    return qdrant.Filter(must=[_equal("owner", request.owners), *_conditions(request.where)])


def _conditions(where: MemoryFilter) -> list[qdrant.ConditionType]:
    """What `meets` tests, in the engine's own terms."""
    found: list[qdrant.ConditionType] = [_equal("kind", where.types)] if where.types else []
    for field, value in (("agent", where.agent), ("session", where.session)):
        found += [] if value is None else [_equal(field, (value,))]
    found += [_equal("tags", (tag,)) for tag in where.tags]
    found += [_equal("metadata", (term,)) for term in metadata_terms(where.metadata)]
    found += [
        qdrant.FieldCondition("folded", match=qdrant.MatchSubstring(word))
        for word in fold_text(where.words).split()
    ]
    if where.since is not None or where.until is not None:
        since = None if where.since is None else float(micros(where.since))
        until = None if where.until is None else float(micros(where.until))
        found.append(qdrant.FieldCondition("at", range=qdrant.RangeFloat(gte=since, lt=until)))
    return found


def _queries(vector: Vector | None, words: QueryTerms) -> dict[str, qdrant.Query]:
    queries = {}
    if vector is not None:
        queries = {name: qdrant.Query.Nearest(vector, using=name) for name in ("text", "context")}
    if words.held:
        sparse = qdrant.SparseVector(list(words.held), list(words.held.values()))
        queries["lexical"] = qdrant.Query.Nearest(sparse, using="lexical")
    return queries


def _coverage_query(words: QueryTerms) -> dict[str, qdrant.Query]:
    if not words.held:
        return {}
    shares = [weight / words.mass for weight in words.held.values()]
    sparse = qdrant.SparseVector([term | _PRESENCE for term in words.held], shares)
    return {"coverage": qdrant.Query.Nearest(sparse, using="lexical")}
