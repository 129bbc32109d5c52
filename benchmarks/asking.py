"""One person's long-term memory, filled and asked as the engine does it, without the rest of the engine."""

from __future__ import annotations

from collections.abc import Iterable

from hearth.memory.ports import LongTerm, TokenCounter
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.query import search_request
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Block, Page, Query, Scope, Scored, SearchResult, ShortTermView

_DEADLINE = 5.0
"""Seconds: what is measured is what is found, not how soon."""


class Asking:
    """What the person of `scope` is told by `store`, whose vectors are those of the embedder of that name."""

    def __init__(self, store: LongTerm, scope: Scope, embedder: str, counter: TokenCounter) -> None:
        self._store = store
        self._scope = scope
        self._embedder = embedder
        self._counter = counter

    async def hold(self, pages: Iterable[Page]) -> None:
        """Take the person's pages in."""
        held = list(pages)
        before = {page.id: page for page in held}
        await self._store.upsert([index_record(page, before.get(page.previous or "")) for page in held])

    async def search(self, query: Query, policy: RecallPolicy) -> SearchResult:
        """The candidates."""
        owners = (self._scope.owner,)
        return await self._store.search(
            search_request(query, owners=owners, deadline=_DEADLINE, policy=policy)
        )

    def block(
        self, query: Query, found: SearchResult, policy: RecallPolicy, budget: int | None = None
    ) -> tuple[Block, tuple[Scored, ...]]:
        """The block and every candidate with what became of it, best first; `budget` None: the policy's."""
        return recall_block(
            query,
            found,
            ShortTermView(),
            scope=self._scope,
            generation=1,
            policy=policy,
            embedder=self._embedder,
            counter=self._counter,
            budget=budget,
        )
