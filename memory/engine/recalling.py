"""The request path: what a call is given of memory, within its deadline."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec

from hearth.memory import metrics
from hearth.memory.engine.parts import Parts
from hearth.memory.errors import HearthError, StoreUnavailable
from hearth.memory.knowledge.records import everybody
from hearth.memory.ports import Shared
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.query import needs_before, search_request
from hearth.memory.recall.relevance import FITTED_FLOOR
from hearth.memory.recall.time_search import merged, search_in_time
from hearth.memory.recall.traces import Trace, trace_of
from hearth.memory.tiers.indexed import as_stored
from hearth.memory.types import (
    BudgetFrom,
    Conditions,
    Query,
    Recall,
    Scope,
    SearchResult,
    Shelf,
    ShortTermView,
)

logger = logging.getLogger(__name__)

_encode_trace = msgspec.msgpack.Encoder().encode
TRACE = "trace"
TRACE_SECONDS = 3_600
"""How long other gateways can explain a recall; a thousand calls a second fill 10 GB in that time."""
LATEST_PAGES = 20
"""Pages read from short-term memory for one recall."""


class Recalling(Parts):
    """Recall before a call is forwarded."""

    async def view(self, scope: Scope, *, by: float | None = None) -> ShortTermView:
        """The user's short-term memory; an empty view, logged and counted, where the store is down or late.

        `by` as for `open`.
        """
        seen = await self._latest(scope, self._left(by))
        if not seen.known and scope.owner not in self._refilling:
            self._refilling.add(scope.owner)
            self.capture_path.beside(self._refill(scope))
        return seen

    async def recall(
        self,
        scope: Scope,
        query: Query | str,
        *,
        history: Sequence[str] = (),
        generation: int | None = None,
        budget: int | None = None,
        budget_from: BudgetFrom = "request",
        model: str = "",
        deadline: float | None = None,
        view: ShortTermView | None = None,
        search: asyncio.Task[SearchResult] | None = None,
    ) -> Recall:
        """Find what helps with `query` and render it within `budget` tokens. Never raises for a broken store.

        A plain question is asked now, with `history`: the texts that the prompt already holds, oldest first,
        none of which is recalled again; a `Query` says that itself. A store that is late or down is named in
        `reasons` and the rest is used. `budget_from` says whose a given budget is. `deadline` in seconds;
        `search` is one of `look_up` for it. Raises LogUnavailable unless `generation` is given.
        """
        started = time.perf_counter()
        if isinstance(query, str):
            query = self._query(query, history)
        generation = generation or await self.log.generation(scope.tenant, scope.user)
        missing: list[str] = []
        limit = deadline or self.policy.deadline_seconds
        search = search or self.look_up(scope, query, deadline=limit)
        seen, found = await self._seen(scope, view, limit, missing), await search
        missing.extend(found.missing)
        conditions = self._conditions(query, budget, budget_from, model)
        block, scored = recall_block(
            query,
            found,
            seen,
            scope=scope,
            generation=generation,
            policy=self._policies.get(scope.tenant, self.policy),
            counter=self.counter,
            model=model,
            budget=conditions.budget,
            shelf=self.knowledge.shelf(scope.tenant),
        )
        recall = Recall(
            trace=uuid4().hex,
            scope=scope,
            query=query,
            block=block,
            scored=scored,
            vector=found.vector,
            status=_status(missing),
            reasons=tuple(missing),
            milliseconds=(time.perf_counter() - started) * 1000,
            at=self.clock.now(),
            generation=generation,
            conditions=conditions,
        )
        self._account(recall)
        return recall

    def look_up(
        self, scope: Scope, query: Query, *, deadline: float | None = None
    ) -> asyncio.Task[SearchResult]:
        """Begin the search of a recall while other things are found out. Hand it to `recall`, or cancel it.

        Never raises for a broken store. `deadline` in seconds; None: the policy's.
        """
        limit = deadline or self.policy.deadline_seconds
        return asyncio.create_task(self._search_long_term(scope, query, limit))

    def _query(self, text: str, history: Sequence[str]) -> Query:
        return Query(
            text=text, before=history[-1] if history else "", at=self.clock.now(), present=tuple(history)
        )

    def _conditions(
        self, query: Query, budget: int | None, budget_from: BudgetFrom, model: str
    ) -> Conditions:
        floor = self.policy.floor
        return Conditions(
            before=bool(query.before.strip()) and needs_before(query.text, self.policy),
            timezone=query.timezone,
            budget=self.policy.budget_tokens if budget is None else budget,
            budget_from="settings" if budget is None else budget_from,
            floor=FITTED_FLOOR if floor is None else floor,
            floor_from="embedder" if floor is None else "settings",
            model=model,
        )

    async def _seen(
        self, scope: Scope, view: ShortTermView | None, limit: float, missing: list[str]
    ) -> ShortTermView:
        """Short-term memory, read unless it is given; what is missing is added to `missing`."""
        if view is None:
            view = await self._latest(scope, limit)
        if not view.reachable:
            missing.append("short_term")
        if view.lagging:
            missing.append("lag")
        return view

    async def _latest(self, scope: Scope, limit: float) -> ShortTermView:
        latest = self.short_term.latest(scope, limit=LATEST_PAGES)
        return await self._guard("short_term", latest, ShortTermView(reachable=False), limit)

    async def _search_long_term(self, scope: Scope, query: Query, limit: float) -> SearchResult:
        started = time.perf_counter()
        owners = await self._owners(scope, limit / 2)
        left = max(limit - (time.perf_counter() - started), 0.0)
        request = search_request(query, owners=owners, deadline=left, policy=self.policy)
        nothing = SearchResult(missing=("long_term",))
        found = await self._guard("long_term", self.long_term.search(request), nothing, left)
        if (within := search_in_time(request, query, found)) is None:
            return found
        left = max(limit - (time.perf_counter() - started), 0.0)
        within = msgspec.structs.replace(within, deadline=left)
        more = await self._guard("long_term", self.long_term.search(within), SearchResult(), left)
        return merged(found, more)

    async def _owners(self, scope: Scope, limit: float) -> tuple[str, ...]:
        """Whose records a recall looks among: the user's, and all users' where the tenant has documents."""
        shelf = self.knowledge.shelf(scope.tenant)
        if shelf is None:  # the tenant's first recall in this process
            none = Shelf(tenant=scope.tenant)
            shelf = await self._guard("knowledge", self.knowledge.look(scope.tenant), none, limit)
        return (scope.owner, everybody(scope.tenant).owner) if shelf.versions else (scope.owner,)

    async def _refill(self, scope: Scope) -> None:
        """Give short-term memory back what the log knows; the vectors are in long-term memory."""
        try:
            pages = await self.log.pages(scope.tenant, scope.user, limit=LATEST_PAGES)
            for page in pages:
                await self.short_term.push(as_stored(page), vector=None, block=None)
            await self.short_term.settle(scope, [])
            metrics.SHORT_TERM_REFILLED.inc(bool(pages))
        except HearthError:
            logger.warning("short-term memory could not be refilled for a user", exc_info=True)
            metrics.FAILURES.labels("short_term.refill").inc()
        finally:
            self._refilling.discard(scope.owner)

    def _account(self, recall: Recall) -> None:
        metrics.RECALLS.labels(recall.status).inc()
        metrics.RECALL_SECONDS.observe(recall.milliseconds / 1000)
        for part in set(recall.reasons) - {"short_term", "long_term"}:  # those were counted where they failed
            metrics.RECALL_MISSING.labels(part).inc()
        trace = trace_of(recall)
        self.traces.add(trace)
        if self.shared is not None:
            self.capture_path.beside(self._share(self.shared, trace))

    async def _share(self, shared: Shared, trace: Trace) -> None:
        whose = {"tenant": trace.scope.tenant, "user": trace.scope.user}
        try:
            await shared.keep(TRACE, trace.id, _encode_trace(trace), seconds=TRACE_SECONDS, **whose)
        except StoreUnavailable as error:
            logger.warning("a recall is explained by this process alone: %s", error)
            metrics.FAILURES.labels("traces.keep").inc()


def _status(missing: Sequence[str]) -> Any:
    if "long_term" in missing and "short_term" in missing:
        return "failed"
    return "partial" if missing else "ok"
