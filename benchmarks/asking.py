"""One person's long-term memory, filled and asked as the engine does it, without the rest of the engine."""

from __future__ import annotations

from collections.abc import Iterable

from hearth.memory.ports import LongTerm, TokenCounter
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.query import search_request
from hearth.memory.recall.time_search import merged, search_in_time
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Block, Memory, Page, Query, Scope, Scored, SearchResult, ShortTermView

_DEADLINE = 5.0
"""Seconds: what is measured is what is found, not how soon."""


class Asking:
    """What the person of `scope` is told by `store`."""

    def __init__(self, store: LongTerm, scope: Scope, counter: TokenCounter) -> None:
        self._store = store
        self._scope = scope
        self._counter = counter

    async def hold(self, pages: Iterable[Page], facts: Iterable[Memory] = ()) -> None:
        """Take the person's pages and facts in."""
        held = list(pages)
        before = {page.id: page for page in held}
        records = [index_record(page, before.get(page.previous or "")) for page in held]
        await self._store.upsert([*records, *(index_record(fact, None) for fact in facts)])

    async def search(self, query: Query, policy: RecallPolicy) -> SearchResult:
        """The candidates, those of the asked time among them."""
        owners = (self._scope.owner,)
        request = search_request(query, owners=owners, deadline=_DEADLINE, policy=policy)
        found = await self._store.search(request)
        if (within := search_in_time(request, query, found)) is None:
            return found
        return merged(found, await self._store.search(within))

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
            counter=self._counter,
            budget=budget,
        )
