"""Long-term memory in the process itself, exact, for small use and tests: nothing outlives the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hearth.memory.errors import BadInput
from hearth.memory.filters import meets
from hearth.memory.ports import Embedder, Indexed, SearchRequest
from hearth.memory.stores.analyzer import Analyzer
from hearth.memory.stores.sqlite_terms import SqliteTerms
from hearth.memory.stores.terms import QueryTerms, saturated, terms_of
from hearth.memory.types import Candidate, Record, Scope, SearchResult, Vector

_Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    record: Record
    text: _Array
    context: _Array
    weights: dict[int, float]


class MemoryLongTerm:
    """The LongTerm port by exact search over everything that the owners have. Calls embed on the spot."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._analyzer = Analyzer()
        self._terms = SqliteTerms()
        self._entries: dict[str, dict[str, _Entry]] = {}

    async def search(self, request: SearchRequest) -> SearchResult:
        """See LongTerm: the `limit` best by each score. The deadline is not kept.

        Raises BadInput without owners.
        """
        if not request.owners:
            raise BadInput("owners", request.owners, "at least one owner")
        vector = request.vector or self._embedder.embed_queries([request.text])[0]
        terms: Counter[int] = self._analyzer.terms(request.lexical or request.text)
        words = self._terms.weigh(request.owners, terms)
        query = np.asarray(vector, dtype=np.float32)
        found = [_candidate(entry, query, words) for entry in self._mine(request)]
        return SearchResult(candidates=tuple(_best(found, request.limit)), vector=vector)

    async def upsert(self, records: Sequence[Indexed]) -> None:
        """See LongTerm."""
        for item in records:
            scope = item.record.scope
            text, context = self._embedder.embed_documents([item.text, item.context])
            counts = self._analyzer.terms(item.text)
            self._entries.setdefault(scope.owner, {})[item.record.id] = _Entry(
                record=item.record, text=_array(text), context=_array(context), weights=saturated(counts)
            )
            self._terms.add([terms_of(item.record, counts)])

    async def flush(self) -> None:
        """See LongTerm. There is nothing to do."""

    async def get(self, owner: str, ids: Sequence[str]) -> list[Record]:
        """See LongTerm."""
        mine = self._entries.get(owner, {})
        return [mine[one].record for one in ids if one in mine]

    async def delete(self, owner: str, ids: Sequence[str]) -> None:
        """See LongTerm."""
        for one in ids:
            self._entries.get(owner, {}).pop(one, None)
        self._terms.remove(owner, ids)

    async def clear(self, tenant: str, user: str) -> None:
        """See LongTerm."""
        for entries in self._entries.values():
            for key, entry in list(entries.items()):
                if (entry.record.scope.tenant, entry.record.scope.user) == (tenant, user):
                    del entries[key]
        self._terms.clear(Scope(tenant=tenant, user=user).person)

    async def count(self, owner: str) -> int:
        """See LongTerm."""
        return len(self._entries.get(owner, {}))

    async def close(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._terms.close()

    def _mine(self, request: SearchRequest) -> list[_Entry]:
        entries = [entry for owner in dict.fromkeys(request.owners) for entry in self._owned(owner)]
        return [entry for entry in entries if meets(entry.record, request.where)]

    def _owned(self, owner: str) -> list[_Entry]:
        return list(self._entries.get(owner, {}).values())


def _array(vector: Vector) -> _Array:
    return np.asarray(vector, dtype=np.float32)


def _candidate(entry: _Entry, query: _Array, words: QueryTerms) -> Candidate:
    shared = [term for term in words.held if term in entry.weights]
    return Candidate(
        record=entry.record,
        text_score=float(entry.text @ query),
        context_score=float(entry.context @ query),
        lexical_score=sum(words.held[term] * entry.weights[term] for term in shared),
        coverage=sum(words.held[term] for term in shared) / words.mass if shared else 0.0,
    )


def _best(found: Sequence[Candidate], limit: int) -> list[Candidate]:
    kept: dict[str, Candidate] = {}
    for score in ("text_score", "context_score", "lexical_score"):
        ranked = sorted(found, key=lambda one: (-getattr(one, score), one.record.id))
        kept |= {f"{one.record.scope.owner}\n{one.record.id}": one for one in ranked[:limit]}
    return list(kept.values())
