"""Hybrid search in two batches, in terms that each engine translates into its own: one meaning for all."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from hearth.memory.errors import BadInput
from hearth.memory.events.codec import micros
from hearth.memory.filters import fold_text, metadata_terms
from hearth.memory.ports import MemoryFilter, SearchRequest
from hearth.memory.stores.hits import Hit
from hearth.memory.stores.points import Kept, query_dimensions
from hearth.memory.stores.prefusion import best
from hearth.memory.stores.terms import QueryTerms
from hearth.memory.stores.words import score_words
from hearth.memory.types import Scope, Vector

K = TypeVar("K", bound=Hashable)
Scores: TypeAlias = Mapping[str, Mapping[K, float]]
"""Name of the query to score by point."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The field has, or holds, one of the values."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contains:
    """The word occurs somewhere in the field's text."""

    field: str
    word: str


@dataclass(frozen=True, slots=True)
class Between:
    """The field's number is at least `low` and less than `high`."""

    field: str
    low: float | None
    high: float | None


Condition: TypeAlias = AnyOf | Contains | Between


@dataclass(frozen=True, slots=True)
class Sparse:
    """A sparse vector."""

    indices: list[int]
    values: list[float]


@dataclass(frozen=True, slots=True)
class Near:
    """A query for what is nearest to `to` in the vectors of that name."""

    using: str
    to: Vector | Sparse


Queries: TypeAlias = dict[str, Near]


class Engine(Protocol[K]):
    """What an index does for a search, both times for owners that were asked for alone."""

    def find(self, queries: Queries, where: Sequence[Condition], limit: int) -> Scores[K]:
        """The `limit` best points of each query that meet every condition, best first."""
        ...

    def score(
        self, queries: Queries, owners: AnyOf, points: Sequence[K]
    ) -> tuple[Scores[K], Mapping[K, Kept]]:
        """Scores of those points alone by each query, and what they hold: nothing of a point that the first
        query does not score, since it was removed meanwhile.
        """
        ...


def search(engine: Engine[K], request: SearchRequest, vector: Vector | None, words: QueryTerms) -> list[Hit]:
    """The best candidates, each with all its scores; dense ones only with a `vector`.

    One batch of three queries finds them, by words that tell something; the best by a rough fusion get all
    their dense scores in a second one over those points alone, and those of their words from what they hold:
    the engine would walk the lists of everybody's words again. Raises BadInput without owners.
    """
    owners = owned_by(*request.owners)
    telling = _queries(vector, words.telling)
    if not telling:
        return []
    found = engine.find(telling, [owners, *_conditions(request.where)], request.limit)
    kept = best(found, limit=request.limit)
    if not kept:
        return []
    # Without a vector, any query will do that brings the points.
    return _hits(kept, *engine.score(_dense(vector) or telling, owners, kept), words)


def owned_by(*owners: str) -> AnyOf:
    """The condition that every read carries. Raises BadInput without owners."""
    if not owners:
        raise BadInput("owners", owners, "at least one owner")
    return AnyOf("owner", owners)


def all_of(tenant: str, user: str) -> AnyOf:
    """The condition that means everything of a user, of all agents."""
    return AnyOf("person", (Scope(tenant=tenant, user=user).person,))


def _conditions(where: MemoryFilter) -> list[Condition]:
    """What `meets` tests."""
    found: list[Condition] = [AnyOf("kind", where.types)] if where.types else []
    for field, value in (("agent", where.agent), ("session", where.session)):
        found += [] if value is None else [AnyOf(field, (value,))]
    found += [AnyOf("tags", (tag,)) for tag in where.tags]
    found += [AnyOf("metadata", (term,)) for term in metadata_terms(where.metadata)]
    found += [Contains("folded", word) for word in fold_text(where.words).split()]
    if where.since is not None or where.until is not None:
        since = None if where.since is None else float(micros(where.since))
        until = None if where.until is None else float(micros(where.until))
        found.append(Between("at", since, until))
    return found


def _dense(vector: Vector | None) -> Queries:
    return {} if vector is None else {name: Near(name, vector) for name in ("text", "context")}


def _queries(vector: Vector | None, words: QueryTerms) -> Queries:
    queries = _dense(vector)
    if words.held:
        queries["lexical"] = Near("lexical", Sparse(*query_dimensions(words)))
    return queries


def _hits(kept: Sequence[K], scores: Scores[K], held: Mapping[K, Kept], words: QueryTerms) -> list[Hit]:
    text, context = scores.get("text", {}), scores.get("context", {})
    there = [point for point in kept if point in held]
    return [
        Hit(
            record=held[point].record,
            text_score=text.get(point),
            context_score=context.get(point),
            **lexical.fields(),
        )
        for point, lexical in zip(there, score_words([held[p].words for p in there], words), strict=True)
    ]
