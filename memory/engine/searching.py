"""What is asked of memory beside calls: search, earlier moments, comparisons, and what became of a recall."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from functools import partial

import msgspec

from hearth.memory import metrics
from hearth.memory.engine.answers import CLOCKS_APART
from hearth.memory.engine.recalling import TRACE, Recalling
from hearth.memory.errors import BadInput, NotFound
from hearth.memory.filters import is_live
from hearth.memory.past import past
from hearth.memory.ports import MemoryFilter, SearchRequest
from hearth.memory.recall.comparing import Compared, compared
from hearth.memory.recall.judging import event_id, judged
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.query import search_request
from hearth.memory.recall.then import ranked, then
from hearth.memory.recall.traces import Trace
from hearth.memory.tiers.indexed import record_text
from hearth.memory.tiers.outdated import as_of
from hearth.memory.types import Candidate, Judgement, Page, Query, Recall, Scope, SearchResult, ShortTermView

logger = logging.getLogger(__name__)

_decode_trace = msgspec.msgpack.Decoder(Trace).decode
THEN_SECONDS = 5.0
"""For the index to answer what is asked of an earlier moment, for which no call waits."""
PATIENT_SECONDS = 2.0
"""What a search may take that no call waits for."""


class Searching(Recalling):
    """Questions that no call waits for."""

    async def recall_then(
        self, scope: Scope, query: Query, *, budget: int | None = None, model: str = ""
    ) -> Recall:
        """What `recall` would have found at the query's moment, with what memory knew then. It takes longer.

        Raises LogUnavailable.
        """
        seen, view = await self._then(scope, query)
        search = asyncio.create_task(_given(seen))
        return await self.recall(scope, query, budget=budget, model=model, view=view, search=search)

    async def search_then(
        self, scope: Scope, text: str, at: datetime, *, where: MemoryFilter | None = None, limit: int = 10
    ) -> list[Candidate]:
        """What `search` would have found at that moment, with what memory knew then.

        Raises BadInput for an empty text, LogUnavailable.
        """
        if not text.strip():
            raise BadInput("query", text, "text that is not empty")
        found, view = await self._then(scope, Query(text=text, at=at))
        where = where or MemoryFilter()
        ranking = partial(ranked, found, view, text, where, limit=limit)
        return await asyncio.to_thread(ranking)

    async def _then(self, scope: Scope, query: Query) -> tuple[SearchResult, ShortTermView]:
        (known,) = await past(self.log, scope.tenant, scope.user, query.at)
        request = search_request(query, owners=(scope.owner,), deadline=THEN_SECONDS, policy=self.policy)
        said = MemoryFilter(until=query.at + CLOCKS_APART)
        request = msgspec.structs.replace(request, where=said)
        nothing = SearchResult(missing=("long_term",))
        found = await self._guard("long_term", self.long_term.search(request), nothing, THEN_SECONDS)
        return await asyncio.to_thread(then, found, known, scope)

    async def compare(
        self, scope: Scope, query: Query | str, *, budget: int | None = None, model: str = ""
    ) -> Compared:
        """The blocks with and without concepts for `query`, from one search. Nothing of it is kept.

        Raises LogUnavailable; a store that is late or down gives nothing to both.
        """
        if isinstance(query, str):
            query = self._query(query, ())
        answer = partial(
            recall_block,
            query,
            await self.look_up(scope, query, deadline=PATIENT_SECONDS),
            await self._latest(scope, PATIENT_SECONDS),
            scope=scope,
            generation=await self.log.generation(scope.tenant, scope.user),
            policy=self._policies.get(scope.tenant, self.policy),
            counter=self.counter,
            model=model,
            budget=budget,
            shelf=self.knowledge.shelf(scope.tenant),
        )
        return compared(answer(compact=False), answer(compact=True))

    async def trace(self, tenant: str, user: str, trace: str) -> Trace:
        """The explanation of an earlier recall, by whichever process.

        Raises NotFound for another scope's or an expired one and for one from before the user's erasure,
        LogUnavailable, StoreUnavailable.
        """
        found = self.traces.get(trace)
        if found is None and self.shared is not None and (body := await self.shared.get(TRACE, trace)):
            found = _decode_trace(body)
        if found is None or (found.scope.tenant, found.scope.user) != (tenant, user):
            raise NotFound
        # an erasure reaches the ring of its own process alone
        if found.generation != await self.log.generation(tenant, user):
            raise NotFound
        return found

    async def judge(
        self,
        trace: Trace,
        judgement: Judgement | None = None,
        *,
        items: Mapping[str, Judgement] | None = None,
        note: str = "",
        key: str = "",
    ) -> str:
        """Keep what somebody thinks of an earlier recall, as a whole or item by item; returns the event's id.

        The same said again changes nothing. `key`: by which it comes.

        Raises BadInput where nothing is said and for an item that was no
        candidate, StaleGeneration, LogUnavailable.
        """
        payload = judged(trace, judgement, items or {}, note, self.policies.mask(trace.scope.tenant, key))
        event = self._event(trace.scope, payload, trace.generation, id=event_id(trace, payload))
        await self._append(event)
        for said in ([] if judgement is None else [judgement]) + list(payload.items.values()):
            metrics.JUDGEMENTS.labels(said).inc()
        return event.id

    async def search(
        self, scope: Scope, text: str, *, where: MemoryFilter | None = None, limit: int = 10
    ) -> list[Candidate]:
        """Memories and pages near in meaning or words to `text`, best first, that pass `where`.

        Raises BadInput for an empty text, StoreUnavailable.
        """
        if not text.strip():
            raise BadInput("query", text, "text that is not empty")
        where = where or MemoryFilter()
        request = SearchRequest(owners=(scope.owner,), text=text, where=where, deadline=PATIENT_SECONDS)
        found = await self.long_term.search(request)
        generation = await self.log.generation(scope.tenant, scope.user)
        now = self.clock.now()
        live = [
            _as_of(candidate, where.as_of or now, past=where.include_superseded)
            for candidate in found.candidates
            if candidate.record.generation == generation and is_live(candidate.record, now, where)
        ]
        said = [candidate for candidate in live if record_text(candidate.record)]
        return sorted(said, key=_search_rank, reverse=True)[:limit]


def _as_of(candidate: Candidate, at: datetime, *, past: bool) -> Candidate:
    """The candidate without words of its page that hold no more."""
    if not isinstance(candidate.record, Page):
        return candidate
    page = as_of(candidate.record, at, past=past, timezone="UTC")
    return msgspec.structs.replace(candidate, record=page)


async def _given(found: SearchResult) -> SearchResult:
    return found


def _search_rank(candidate: Candidate) -> float:
    return (candidate.text_score or 0.0) + candidate.coverage
