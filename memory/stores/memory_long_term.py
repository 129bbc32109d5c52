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
from hearth.memory.stores.telling import embed_telling, telling_text
from hearth.memory.stores.terms import QueryTerms, terms_of
from hearth.memory.stores.words import WordScores, packed_words, score_words
from hearth.memory.tiers.indexed import sides_of
from hearth.memory.types import Candidate, Embedding, Record, Scope, SearchResult, Vector

_Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    record: Record
    text: _Array
    context: _Array
    words: str


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
        terms: Counter[int] = self._analyzer.terms(request.lexical or request.text)
        words = self._terms.weigh(request.owners, terms)
        vector = request.vector_by(self._embedder.name) or self._embed(request.text, words)
        query, mine = np.asarray(vector, dtype=np.float32), self._mine(request)
        scores = score_words([entry.words for entry in mine], words)
        found = [_candidate(entry, query, held) for entry, held in zip(mine, scores, strict=True)]
        return SearchResult(
            candidates=tuple(_best(found, request.limit)), vector=Embedding(self._embedder.name, vector)
        )

    async def upsert(self, records: Sequence[Indexed]) -> None:
        """See LongTerm."""
        for item in records:
            scope = item.record.scope
            text, context = self._embedder.embed_documents([item.text, item.context])
            sides = [self._analyzer.terms(side) for side in sides_of(item.record)]
            self._entries.setdefault(scope.owner, {})[item.record.id] = _Entry(
                record=item.record, text=_array(text), context=_array(context), words=packed_words(sides)
            )
            self._terms.add([terms_of(item.record, sides)])

    async def flush(self) -> None:
        """See LongTerm. There is nothing to do."""

    async def get(self, owner: str, ids: Sequence[str]) -> list[Record]:
        """See LongTerm."""
        mine = self._entries.get(owner, {})
        return [mine[one].record for one in ids if one in mine]

    async def walk(self, owner: str, *, after: str = "", limit: int) -> tuple[list[Record], str]:
        """See LongTerm: by id."""
        mine = sorted((id, entry.record) for id, entry in self._entries.get(owner, {}).items() if id > after)
        return [record for _, record in mine[:limit]], mine[limit - 1][0] if len(mine) > limit else ""

    async def vectors(self, owner: str, ids: Sequence[str]) -> dict[str, Embedding]:
        """See LongTerm."""
        mine = self._entries.get(owner, {})
        name = self._embedder.name
        return {one: Embedding(name, mine[one].text.tolist()) for one in ids if one in mine}

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

    async def purge(self) -> None:
        """See LongTerm. There is nothing to do."""

    async def count(self, owner: str) -> int:
        """See LongTerm."""
        return len(self._entries.get(owner, {}))

    async def close(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._terms.close()

    def _embed(self, text: str, words: QueryTerms) -> Vector:
        return embed_telling(self._embedder, text, telling_text(text, words.common, self._analyzer))

    def _mine(self, request: SearchRequest) -> list[_Entry]:
        entries = [entry for owner in dict.fromkeys(request.owners) for entry in self._owned(owner)]
        return [entry for entry in entries if meets(entry.record, request.where)]

    def _owned(self, owner: str) -> list[_Entry]:
        return list(self._entries.get(owner, {}).values())


def _array(vector: Vector) -> _Array:
    return np.asarray(vector, dtype=np.float32)


def _candidate(entry: _Entry, query: _Array, held: WordScores) -> Candidate:
    return Candidate(
        record=entry.record,
        text_score=float(entry.text @ query),
        context_score=float(entry.context @ query),
        **held.fields(),
    )


def _best(found: Sequence[Candidate], limit: int) -> list[Candidate]:
    kept: dict[str, Candidate] = {}
    for score in ("text_score", "context_score", "lexical_score"):
        ranked = sorted(found, key=lambda one: (-getattr(one, score), one.record.id))
        kept |= {f"{one.record.scope.owner}\n{one.record.id}": one for one in ranked[:limit]}
    return list(kept.values())
