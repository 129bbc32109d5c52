"""The facade: what a gateway, a command line or a program asks of memory."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import NAMESPACE_URL, uuid4, uuid5

import msgspec
from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState

from hearth.memory import metrics
from hearth.memory.capture import Capture, Receipt
from hearth.memory.dialogue import Dialogue, exchange_id, tails
from hearth.memory.erasure.eraser import Eraser
from hearth.memory.erasure.office import Office
from hearth.memory.erasure.receipt import Receipt as ErasureReceipt
from hearth.memory.erasure.receipt import What
from hearth.memory.errors import (
    BadInput,
    HearthError,
    LogUnavailable,
    NotFound,
    PrivateSession,
    StaleGeneration,
    StoreUnavailable,
)
from hearth.memory.events.kinds import (
    UNKNOWN,
    ActDone,
    ByKey,
    Event,
    ExchangeEnriched,
    HoldLifted,
    HoldPlaced,
    MemoryAdded,
    MemoryChanged,
    Payload,
    SegmentPinned,
    SessionSwitched,
    StepCaptured,
    happened,
)
from hearth.memory.events.lookup import open_unwritten
from hearth.memory.extract.clean import assistant_text, well_formed
from hearth.memory.filters import is_live
from hearth.memory.forgetting import undo
from hearth.memory.knowledge.library import Library
from hearth.memory.knowledge.records import everybody
from hearth.memory.knowledge.system import SystemMemory
from hearth.memory.outdating import outdated_pages
from hearth.memory.past import past
from hearth.memory.policies import Policies
from hearth.memory.portable.porter import Porter
from hearth.memory.ports import (
    Clock,
    Consumers,
    EventLog,
    LongTerm,
    MemoryFilter,
    MidTerm,
    SearchRequest,
    Shared,
    ShortTerm,
    TokenCounter,
)
from hearth.memory.reading import indexed, latest_memories
from hearth.memory.recall.block import detach
from hearth.memory.recall.comparing import Compared, compared
from hearth.memory.recall.judging import event_id, judged
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.policy import RecallPolicy, Weights
from hearth.memory.recall.query import needs_before, search_request
from hearth.memory.recall.ranking import ranking_of
from hearth.memory.recall.relevance import FITTED_FLOOR
from hearth.memory.recall.then import ranked, then
from hearth.memory.recall.time_search import merged, search_in_time
from hearth.memory.recall.traces import Trace, TraceRing, trace_of
from hearth.memory.tiers.facts import chain_of, changes, put
from hearth.memory.tiers.indexed import as_stored, record_text
from hearth.memory.tiers.outdated import as_of
from hearth.memory.tiers.persona import Persona, is_of, persona
from hearth.memory.types import (
    OFFICE,
    BudgetFrom,
    Candidate,
    Conditions,
    Embedding,
    Exchange,
    Forgetting,
    ImportedTurn,
    Judgement,
    Memory,
    MemoryType,
    Metadata,
    Page,
    Query,
    Recall,
    RetryHit,
    Scope,
    SearchResult,
    SessionInfo,
    SessionMode,
    Shelf,
    ShortTermView,
    Step,
    SummaryLine,
    Usage,
)
from hearth.memory.verify import Verifier
from hearth.memory.worker import Working

logger = logging.getLogger(__name__)

T = TypeVar("T")

_encode_trace = msgspec.msgpack.Encoder().encode
_decode_trace = msgspec.msgpack.Decoder(Trace).decode

TRACE = "trace"
TRACE_SECONDS = 3_600
"""How long other gateways can explain a recall; a thousand calls a second fill 10 GB in that time."""
PERSONA_FACTS = 2_000
"""Latest facts that a persona is made of."""
STORED_AGAIN = 32
"""Pages that a forgotten memory is taken out of at once; the worker comes to more."""
CLOCKS_APART = timedelta(minutes=1)
"""How far ahead of this machine's clock a caller's may be."""
THEN_SECONDS = 5.0
"""For the index to answer what is asked of an earlier moment, for which no call waits."""
PATIENT_SECONDS = 2.0
"""What a search may take that no call waits for."""
LATEST_PAGES = 20
"""Pages read from short-term memory for one recall."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request belongs: its session, exchange and causal parent."""

    scope: Scope
    """With its session."""
    exchange: str
    parent: str | None
    """The exchange before this one; None at a session's start and where a later step doesn't know it."""
    generation: int
    mode: SessionMode = "on"
    """What memory does in the session."""
    summary: tuple[SummaryLine, ...] = ()
    """What has left short-term memory of the session."""
    last_call: datetime | None = None
    """When the session's last reply was finished; None where this request's history does not tell."""


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a deletion: `done`, or `pending` on the named parts, where the worker completes it."""

    done: bool
    pending: tuple[str, ...] = ()
    receipt: str = ""
    """Its id."""


class Engine:
    """Memory over its ports. Start it, use it from one event loop, close it."""

    def __init__(
        self,
        *,
        log: EventLog,
        office: Office,
        mid_term: MidTerm,
        short_term: ShortTerm,
        long_term: LongTerm,
        capture: Capture,
        worker: Working,
        counter: TokenCounter,
        clock: Clock,
        policy: RecallPolicy,
        consumers: Consumers,
        policies: Policies,
        shared: Shared | None = None,
        weights: Mapping[str, Weights] | None = None,
        eraser: Eraser | None = None,
    ) -> None:
        """`weights`: of tenants that have their own in place of the policy's. `eraser`: over the same stores;
        one of the engine's own where none is given.
        """
        self.log = log
        self.office = office
        self.mid_term = mid_term
        self.short_term = short_term
        self.verifier = Verifier(log=log, consumers=consumers, short_term=short_term, long_term=long_term)
        self.long_term = long_term
        self.capture_path = capture
        self.worker = worker
        self.counter = counter
        self.clock = clock
        self.policy = policy
        self._policies = {
            tenant: msgspec.structs.replace(policy, weights=own) for tenant, own in (weights or {}).items()
        }
        self.policies = policies
        self.traces = TraceRing()
        self.shared = shared
        self.knowledge = Library(
            log=log, long_term=long_term, clock=clock, appended=worker.notify, mask=policies.mask
        )
        self.porter = Porter(log=log, clock=clock, appended=worker.notify, mask=policies.mask)
        self.eraser = eraser or Eraser(
            log=log, office=office, mid_term=mid_term, long_term=long_term, clock=clock
        )
        self.system = SystemMemory(
            log=log, library=self.knowledge, clock=clock, appended=worker.notify, mask=policies.mask
        )
        self._refilling: set[str] = set()
        self._stopgap = secrets.token_bytes(32)
        self._breakers = AsyncCircuitBreakerFactory(
            default_threshold=5, default_ttl=10, exclude=[BadInput, PrivateSession, StaleGeneration]
        )

    # -- the request path ------------------------------------------------------------------------------

    def due(self) -> float:
        """When all that one call asks of memory must have ended, if it begins now; as `time.monotonic`."""
        return time.monotonic() + self.policy.deadline_seconds

    async def open(
        self,
        scope: Scope,
        dialogue: Dialogue,
        *,
        secret: bytes,
        response_id: str = "",
        retry_key: str = "",
        marked_retry: bool = False,
        by: float | None = None,
    ) -> Opened:
        """Find the session, exchange and generation of a request. One look-up in the log, nothing written.

        What still waits for the log is found too. `secret` is the tenant's (`secret`); `marked_retry` says
        that the client calls this a retry. `by`: see `due`; None: that from now. Where the log can't be asked
        by then, only what waits for it is found, and the generation is UNKNOWN: nothing may be recalled then,
        for the user may have been erased.
        """
        asked: dict[str, Any] = {
            "tails": tails(dialogue.looked_up, secret),
            "retry_key": retry_key,
            "response_id": response_id,
            "now": self.clock.now(),
            "unwritten": self.capture_path.unwritten(),
        }
        try:
            state = await self._of_the_log("log", self.log.open_call(scope, **asked), by)
        except LogUnavailable as error:
            logger.warning("a call is captured without the event log: %s", error)
            metrics.FAILURES.labels("log.open").inc()
            state = open_unwritten(scope, **asked)
        hit = state.hit
        retry = _applies(state.retry, known=bool(scope.session or hit), marked=marked_retry)
        session = scope.session or (hit and hit.session) or (retry and retry.session) or uuid4().hex
        here = msgspec.structs.replace(scope, session=session)
        if hit is not None and not (dialogue.first_step and dialogue.user_text):
            exchange, parent = hit.exchange, None
        else:
            parent = hit.exchange if hit else None
            before = tails(dialogue.history, secret).last_pair or parent or ""
            exchange = exchange_id(here.conversation, before, dialogue.user_text, secret)
        return Opened(
            scope=here,
            exchange=exchange,
            parent=parent,
            generation=state.generation,
            mode=state.mode,
            summary=state.summary,
            last_call=hit.at if hit else None,
        )

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

    def look_up(
        self, scope: Scope, query: Query, *, deadline: float | None = None
    ) -> asyncio.Task[SearchResult]:
        """Begin the search of a recall while other things are found out. Hand it to `recall`, or cancel it.

        Never raises for a broken store. `deadline` in seconds; None: the policy's.
        """
        limit = deadline or self.policy.deadline_seconds
        return asyncio.create_task(self._search_long_term(scope, query, limit))

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

    # -- the reply path --------------------------------------------------------------------------------

    async def capture_step(
        self,
        opened: Opened,
        step: Step,
        *,
        event_id: str,
        page_reply: str = "",
        vector: Embedding | None = None,
    ) -> Receipt:
        """Make a step durable; when this returns it survives, or the receipt says that it is lost.

        `page_reply` is the visible assistant text of the whole exchange, this step's included. Never raises.
        """
        event = self._event(
            opened.scope, StepCaptured(step=step), opened.generation, id=event_id, parent=opened.parent
        )
        event = msgspec.structs.replace(event, occurred_at=step.started_at)
        metrics.CAPTURES.labels(step.outcome).inc()
        page = _short_term_page(opened, step, page_reply)
        return await self.capture_path.write(event, page=page, vector=vector, block=step.block)

    async def follow_private(self, opened: Opened, switched: SessionSwitched, *, event_id: str) -> Receipt:
        """Write down what memory does in the session of a call, and how its next call is found. Never raises.

        As durable as a capture; that of a call of the same session comes after it.
        """
        event = self._event(opened.scope, switched, opened.generation, id=event_id, parent=None)
        return await self.capture_path.write(event, page=None, vector=None, block=None)

    async def switch_session(self, scope: Scope, mode: SessionMode) -> SessionMode:
        """Switch what memory does in `scope.session` from now on; what was captured of it before stays.

        Raises LogUnavailable.
        """
        generation = await self.log.generation(scope.tenant, scope.user)
        switched = SessionSwitched(mode=mode, isolated=scope.isolated)
        await self._append(self._event(scope, switched, generation))
        return mode

    async def session_mode(self, scope: Scope) -> SessionMode:
        """What memory does in `scope.session`. Raises LogUnavailable."""
        return await self.log.session_mode(scope.tenant, scope.user, scope.session)

    async def enrich(
        self, opened: Opened, *, event_id: str, model: str, usage: Usage | None, cost: float | None
    ) -> None:
        """Add what is only known after the reply: the model that answered, tokens and cost in US dollars.

        It is in the log a quarter of a second later; a killed process may lose it.
        """
        payload = ExchangeEnriched(exchange=opened.exchange, model=model, usage=usage, cost=cost)
        same = uuid5(NAMESPACE_URL, f"hearth:enriched:{event_id}").hex
        self.capture_path.later(
            self._event(opened.scope, payload, opened.generation, id=same, parent=event_id)
        )

    async def capture(
        self, scope: Scope, user_text: str, reply_text: str, *, recall: Recall | None = None, model: str = ""
    ) -> Opened:
        """Write down one whole exchange, for a program that holds both texts; `recall` is what went into it.

        Exchanges of one `scope.session` follow one another; without a session each is one of its own. A block
        in the texts and a reply's visible reasoning are left out; secrets are masked, and what else the
        policy says. Durable and recallable when it returns. Raises BadInput for an empty user text,
        PrivateSession, LogUnavailable where nothing took it.
        """
        said, reply = well_formed(detach(user_text)).strip(), assistant_text(detach(reply_text))
        if not said:
            raise BadInput("user_text", user_text, "text that is not empty")
        opened = await self._next_in_session(scope, said)
        mask = self.policies.mask(scope.tenant)
        now = self.clock.now()
        step = Step(
            exchange=opened.exchange,
            isolated=scope.isolated,
            user_text=mask(said),
            reply_text=mask(reply),
            outcome="complete",
            closes=True,
            injected=recall.block.items if recall else (),
            trace=recall.trace if recall else "",
            ranking=ranking_of(recall.scored) if recall else None,
            route="library",
            model=model,
            started_at=now,
            finished_at=now,
        )
        vector = recall.vector if recall else None
        receipt = await self.capture_step(
            opened, step, event_id=uuid4().hex, page_reply=step.reply_text, vector=vector
        )
        if receipt.place == "lost":
            raise LogUnavailable
        if receipt.place == "private":
            raise PrivateSession
        return opened

    # -- memories --------------------------------------------------------------------------------------

    async def remember(
        self,
        scope: Scope,
        text: str,
        *,
        type: MemoryType = "fact",
        subject: str = "",
        attribute: str = "",
        value: str = "",
        tags: Sequence[str] = (),
        metadata: Metadata | None = None,
        importance: float = 0.5,
        pinned: bool = False,
        occurred_at: datetime | None = None,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        expires_at: datetime | None = None,
        key: str = "",
    ) -> Memory:
        """Add a memory by hand. Durable when it returns, recallable within a second.

        Of an `attribute` that has one value at a time it closes the value before. Without a `subject` such a
        fact is the user's. `key`: by which it comes; its policy says what is masked.

        Raises BadInput for an empty text, an importance outside 0 to 1 or a future time, LogUnavailable.
        """
        _check_text(text)
        _check_importance(importance)
        now, mask = self.clock.now(), self.policies.mask(scope.tenant, key)
        occurred_at = _past(occurred_at or now, now)
        _check_validity(valid_from, valid_to)
        memory = Memory(
            id=uuid4().hex,
            scope=scope,
            generation=await self.log.generation(scope.tenant, scope.user),
            type=type,
            text=mask(text.strip()),
            subject=subject or ("user" if attribute else ""),
            attribute=attribute,
            value=mask(value.strip()),
            tags=tuple(dict.fromkeys(tags)),
            metadata=metadata or {},
            importance=importance,
            pinned=pinned,
            occurred_at=occurred_at,
            created_at=now,
            updated_at=now,
            valid_from=valid_from,
            valid_to=valid_to,
            expires_at=expires_at,
        )
        payloads: list[Payload] = [MemoryAdded(memory=memory)]
        if attribute:
            about = await self.log.facts_about(scope.tenant, scope.user, [(memory.subject, attribute)])
            known = {one.id: one for one in about if one.scope.owner == scope.owner and is_of(one, scope)}
            after = put(known, memory)
            payloads = changes(known, after, now=now, forgotten=False)
            payloads += await outdated_pages(self.log, scope.tenant, scope.user, known, after)
        await self._append(*(self._event(scope, one, memory.generation) for one in payloads))
        return memory

    async def memory(self, tenant: str, user: str, memory_id: str) -> Memory:
        """One live memory. Raises NotFound, LogUnavailable."""
        found = await self.log.memory(tenant, user, memory_id)
        if found is None:
            raise NotFound
        return found

    async def memories(
        self,
        tenant: str,
        user: str,
        *,
        where: MemoryFilter | None = None,
        after: tuple[datetime, str] | None = None,
        limit: int = 50,
    ) -> list[Memory]:
        """Live memories, newest first, after the keyset position (created_at, id)."""
        return await self.log.memories(tenant, user, where=where or MemoryFilter(), after=after, limit=limit)

    async def count_memories(self, tenant: str, user: str, *, where: MemoryFilter | None = None) -> int:
        """How many live memories match."""
        return await self.log.count_memories(tenant, user, where=where or MemoryFilter())

    async def amend(self, tenant: str, user: str, memory_id: str, *, key: str = "", **changes: Any) -> Memory:
        """Change fields of a memory: text, value, type, tags, metadata, importance, pinned, valid_from,
        valid_to, expires_at. `key`: by which it comes; its policy says what is masked.

        What was changed by hand is no longer read from the user's words: they neither change nor withdraw it.
        Raises NotFound, BadInput, LogUnavailable.
        """
        old = await self.memory(tenant, user, memory_id)
        if "text" in changes:
            _check_text(changes["text"])
        for name in {"text", "value"} & changes.keys():
            changes[name] = self.policies.mask(tenant, key)(changes[name].strip())
        if "importance" in changes:
            _check_importance(changes["importance"])
        changed = tuple(sorted(name for name, value in changes.items() if getattr(old, name) != value))
        if not changed:
            return old
        new = msgspec.structs.replace(old, **changes, source="api", updated_at=self.clock.now())
        payloads: list[Payload] = [MemoryChanged(memory=new, changed=changed)]
        payloads += await outdated_pages(self.log, tenant, user, {old.id: old}, {new.id: new})
        await self._append(*(self._event(old.scope, one, old.generation) for one in payloads))
        await self._removed(("short_term", self.short_term.drop(old.scope, [memory_id])))
        return new

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

    async def forget(self, scope: Scope, memory_id: str, *, by: str = "", reason: str = "") -> Forgotten:
        """Remove a memory everywhere, and the words that it was read from out of what is recalled.

        `by`, `reason`: for the receipt. A store that is down is pending. Raises NotFound, Held,
        LogUnavailable.
        """
        return await self._forget("memory", scope, memory_id, by, reason)

    async def forget_exchange(
        self, scope: Scope, exchange_id: str, *, by: str = "", reason: str = ""
    ) -> Forgotten:
        """Remove one exchange, its page, and what rests on it alone or sums it up, everywhere.

        As `forget`.
        """
        return await self._forget("exchange", scope, exchange_id, by, reason)

    async def forget_session(
        self, scope: Scope, session: str, *, by: str = "", reason: str = ""
    ) -> Forgotten:
        """Remove a session: its exchanges, what rests on them alone, and what was added in it. What was begun
        in it before, and is on its way, is refused. As `forget`.
        """
        return await self._forget("session", scope, session, by, reason)

    async def _forget(self, what: What, scope: Scope, record: str, by: str, reason: str) -> Forgotten:
        erased = await self.eraser.begin(what, scope.tenant, scope.user, record, by=by, reason=reason)
        self.worker.notify()
        removal = erased.removal
        if removal is None:
            raise NotFound
        of, gone = removal.scope, removal.gone
        forgotten = await self._removed(
            ("long_term", self.long_term.delete(of.owner, gone)),
            ("short_term", self.short_term.drop(of, gone)),
            ("long_term", self._store_again(of, removal.marked)),
        )
        return msgspec.structs.replace(forgotten, receipt=erased.receipt.id)

    async def _store_again(self, scope: Scope, pages: Sequence[str]) -> None:
        """Bring the stores to what the log says of those pages. Raises StoreUnavailable."""
        if not pages:
            return
        found = [await self.log.record(scope.tenant, scope.user, id) for id in pages[:STORED_AGAIN]]
        held = [as_stored(page) for page in found if isinstance(page, Page) and page.state == "active"]
        await self.long_term.upsert([await indexed(self.log, page) for page in held])
        await self.long_term.flush()
        await self.short_term.settle(scope, held)

    async def history(self, tenant: str, user: str, memory_id: str) -> list[Memory]:
        """All that was said of what a memory is about, oldest first. Raises NotFound, LogUnavailable."""
        memory = await self.memory(tenant, user, memory_id)
        chain = chain_of(memory)
        beside = await self.log.facts_about(tenant, user, [(memory.subject, memory.attribute)])
        same = [
            one
            for one in beside
            if chain_of(one) == chain and one.scope.owner == memory.scope.owner and is_of(one, memory.scope)
        ]
        return sorted(same, key=lambda one: (one.occurred_at, one.id))

    async def persona(self, scope: Scope) -> Persona:
        """What is known of the user, and what the agent has agreed on with them. Raises LogUnavailable."""
        found = await latest_memories(
            self.log,
            scope.tenant,
            scope.user,
            MemoryFilter(types=("fact", "persona")),
            most=PERSONA_FACTS,
            wanted=lambda one: not scope.isolated or one.scope.owner == scope.owner,
        )
        return persona(found, scope, self.clock.now())

    async def forgetting(self, tenant: str, user: str, exchange_id: str) -> Forgetting | None:
        """What the user asked to forget in that exchange; None where nothing. Raises LogUnavailable."""
        return await self.log.forgetting(tenant, user, exchange_id)

    async def forgettings(self, tenant: str, user: str, *, limit: int = 50) -> list[Forgetting]:
        """The user's latest requests to forget, newest first. Raises LogUnavailable."""
        return await self.log.forgettings(tenant, user, limit=limit)

    async def undo(self, tenant: str, user: str, exchange_id: str) -> Forgetting:
        """Bring back what an exchange asked to forget; recalled again as soon as the worker comes to it.

        Raises NotFound, BadInput where it can't be undone any more, LogUnavailable.
        """
        asked = await self.log.forgetting(tenant, user, exchange_id)
        if asked is None:
            raise NotFound
        over = asked.until is not None and asked.until <= self.clock.now()
        if asked.state != "waiting" or over:
            state = "done" if over and asked.state == "waiting" else asked.state
            raise BadInput("id", exchange_id, f"a request to forget that can be undone; this one is: {state}")
        generation = await self.log.generation(tenant, user)
        made = await undo(self.log, asked)
        await self._append(*(self._event(asked.scope, one, generation) for one in made))
        return msgspec.structs.replace(asked, state="undone")

    async def pin_segment(self, scope: Scope, segment: str, *, pinned: bool) -> None:
        """Keep a live segment whatever its heat, or no longer; the worker sees to it within a moment.

        Raises NotFound, LogUnavailable.
        """
        found = await self.mid_term.segments_named(scope.tenant, scope.user, [segment])
        if not found or found[0].state != "live" or (scope.isolated and found[0].owner != scope.owner):
            raise NotFound
        generation = await self.log.generation(scope.tenant, scope.user)
        payload = SegmentPinned(segment=segment, pinned=pinned)
        await self._append(self._event(scope, payload, generation))

    async def erase(self, tenant: str, user: str, *, by: str = "", reason: str = "") -> Forgotten:
        """Remove all of a user: unreachable when this returns, purged from each store or named as pending.

        Raises Held, LogUnavailable. Erasing a user who does not exist is no error: its receipt says that
        nothing was there, and work in flight for the name is refused.
        """
        erased = await self.eraser.begin("user", tenant, user, by=by, reason=reason)
        self.worker.notify()
        self.traces.drop(tenant, user)
        forgotten = await self._removed(
            *([("shared", self.shared.drop(tenant, user))] if self.shared is not None else []),
            ("long_term", self.long_term.clear(tenant, user)),
            ("short_term", self.short_term.clear(tenant, user, before=erased.generation)),
        )
        return msgspec.structs.replace(forgotten, receipt=erased.receipt.id)

    async def erase_tenant(self, tenant: str, *, by: str = "", reason: str = "") -> Forgotten:
        """Remove all users of a tenant and its documents: unreachable when this returns, pending until the
        worker has come to each of them. What comes meanwhile of somebody who is not erased yet is refused.

        Raises Held where a hold is on any of them, LogUnavailable.
        """
        erased = await self.eraser.begin("tenant", tenant, by=by, reason=reason)
        self.worker.notify()
        self.traces.drop(tenant)
        await self.knowledge.look(tenant)
        return Forgotten(done=False, pending=erased.receipt.pending, receipt=erased.receipt.id)

    async def receipt(self, tenant: str, id: str) -> ErasureReceipt:
        """The receipt of an erasure. Raises NotFound, LogUnavailable."""
        found = await self.office.erasure(tenant, id)
        if found is None:
            raise NotFound
        return found

    async def hold(self, tenant: str, user: str, *, by: str, reason: str) -> None:
        """Place a legal hold on a user: nothing of them is erased or runs out. Raises LogUnavailable."""
        await self._manage(tenant, HoldPlaced(user=user, reason=reason, by=by))

    async def lift_hold(self, tenant: str, user: str, *, by: str, reason: str) -> None:
        """Lift it; erasures that waited for that follow. Raises NotFound for none, LogUnavailable."""
        if not await self.office.holds(tenant, user=user):
            raise NotFound
        await self._manage(tenant, HoldLifted(user=user, reason=reason, by=by))

    async def note(self, tenant: str, act: ByKey, *, by: str, user: str = "", about: str = "") -> None:
        """Write down that somebody is about to do something with the key `by`. Raises LogUnavailable."""
        await self._manage(tenant, ActDone(act=act, by=by, user=user, about=about))

    async def _manage(self, tenant: str, payload: Payload) -> None:
        """Write down what an operator does."""
        office = Scope(tenant=tenant, user=OFFICE)
        await self._append(self._event(office, payload, await self.log.generation(tenant, OFFICE)))

    async def import_turns(self, scope: Scope, turns: Sequence[ImportedTurn]) -> tuple[int, int]:
        """Bring in dated turns held elsewhere; returns (exchanges, turns). A second import changes nothing.

        Raises BadInput for a turn in the future, LogUnavailable.
        """
        now = self.clock.now()
        for number, turn in enumerate(turns):
            if turn.at > now:
                raise BadInput(f"turns[{number}].at", turn.at.isoformat(), "a time that is not in the future")
        brought = await self.porter.turns(scope, turns)
        return brought.exchanges, brought.turns

    # -- reading ---------------------------------------------------------------------------------------

    async def exchange(self, tenant: str, user: str, exchange_id: str) -> Exchange:
        """One exchange. Raises NotFound, LogUnavailable."""
        found = await self.log.exchange(tenant, user, exchange_id)
        if found is None:
            raise NotFound
        return found

    async def exchanges(
        self,
        tenant: str,
        user: str,
        *,
        session: str | None = None,
        after: tuple[datetime, str] | None = None,
        limit: int = 50,
    ) -> list[Exchange]:
        """Exchanges, newest first, after the keyset position (started_at, id)."""
        return await self.log.exchanges(tenant, user, session=session, after=after, limit=limit)

    async def sessions(
        self, tenant: str, user: str, *, after: tuple[datetime, str] | None = None, limit: int = 50
    ) -> list[SessionInfo]:
        """Sessions, newest first, after the keyset position (last_at, id)."""
        return await self.log.sessions(tenant, user, after=after, limit=limit)

    async def drain(self) -> None:
        """Wait until everything acknowledged so far stands in every projection."""
        await self.capture_path.drain()
        await self.worker.drain()
        await self.knowledge.refresh()

    # -- inside ----------------------------------------------------------------------------------------

    async def _next_in_session(self, scope: Scope, user_text: str) -> Opened:
        """Open an exchange after the latest one of `scope.session`, or in a new session if none is named."""
        here = msgspec.structs.replace(scope, session=scope.session or uuid4().hex)
        parent = await self.log.last_exchange(here)
        secret = await self.log.secret(scope.tenant)
        return Opened(
            scope=here,
            exchange=exchange_id(here.conversation, parent or "", user_text, secret),
            parent=parent,
            generation=await self.log.generation(scope.tenant, scope.user),
        )

    def _query(self, text: str, history: Sequence[str]) -> Query:
        return Query(
            text=text,
            before=history[-1] if history else "",
            at=self.clock.now(),
            present=tuple(history),
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

    async def _append(self, *events: Event) -> None:
        await self.log.append(events)
        self.worker.notify()

    def _event(
        self,
        scope: Scope,
        payload: Payload,
        generation: int,
        *,
        id: str | None = None,
        parent: str | None = None,
    ) -> Event:
        return happened(scope, payload, generation, at=self.clock.now(), id=id or "", parent=parent)

    async def secret(self, tenant: str, *, by: float | None = None) -> bytes:
        """The tenant's `EventLog.secret`; `by` as for `open`.

        Where the log can't be asked, one of this process's own, by which later requests find what was
        captured meanwhile, and nothing else.
        """
        try:
            return await self._of_the_log("secret", self.log.secret(tenant), by)
        except LogUnavailable as error:
            logger.warning("the secret of tenant %s is not known: %s", tenant, error)
            metrics.FAILURES.labels("log.secret").inc()
            return self._stopgap

    async def _of_the_log(self, what: str, work: Awaitable[T], by: float | None) -> T:
        """What the log answers before a call.

        A breaker each: a secret that is known already must not make a broken log look well.
        """
        try:
            return await self._in_time(what, work, self._left(by))
        except (TimeoutError, OpenedState) as error:
            raise LogUnavailable("the event log does not answer in time") from error

    def _left(self, by: float | None) -> float:
        """Seconds until `by`, or those of the policy."""
        return self.policy.deadline_seconds if by is None else max(0.0, by - time.monotonic())

    async def _guard(
        self,
        part: str,
        work: Awaitable[T],
        fallback: T,
        limit: float,
    ) -> T:
        """The request path's boundary: a store's failure becomes `fallback`, logged, counted and named."""
        try:
            return await self._in_time(part, work, limit)
        except (TimeoutError, OpenedState, HearthError) as error:
            logger.warning("recall goes on without %s: %s", part, str(error) or type(error).__name__)
        except Exception:
            logger.exception("recall goes on without %s", part)
        metrics.RECALL_MISSING.labels(part).inc()
        return fallback

    async def _in_time(self, part: str, work: Awaitable[T], limit: float) -> T:
        """What `work` gives within so many seconds; not even begun while the part's breaker is open."""
        try:
            async with await self._breakers.get_breaker(part), asyncio.timeout(limit):
                return await work
        finally:
            if asyncio.iscoroutine(work):
                work.close()

    async def _removed(self, *removals: tuple[str, Awaitable[None]]) -> Forgotten:
        pending: list[str] = []
        for part, removal in removals:
            try:
                await removal
            except StoreUnavailable:
                logger.warning("%s is down; the worker completes the deletion", part, exc_info=True)
                metrics.FAILURES.labels(f"{part}.delete").inc()
                pending.append(part)
        return Forgotten(done=not pending, pending=tuple(dict.fromkeys(pending)))

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


def _applies(retry: RetryHit | None, *, known: bool, marked: bool) -> RetryHit | None:
    """A retry counts if the earlier capture was cut short, the client says so, or the session is known."""
    if retry is None or not (known or marked or retry.outcome != "complete"):
        return None
    return retry


def _status(missing: Sequence[str]) -> Any:
    if "long_term" in missing and "short_term" in missing:
        return "failed"
    return "partial" if missing else "ok"


def _short_term_page(opened: Opened, step: Step, page_reply: str) -> Page | None:
    """The page for short-term memory: whole where the exchange closes, else for its block alone."""
    readable = step.closes and step.outcome != "failed" and bool(step.user_text)
    if opened.generation == UNKNOWN or (not readable and step.block is None):
        return None
    return as_stored(
        Page(
            id=step.exchange,
            scope=opened.scope,
            generation=opened.generation,
            user_text=step.user_text if readable else "",
            reply_text=page_reply if readable else "",
            occurred_at=step.started_at,
            previous=opened.parent,
            kind=step.kind,
            timezone=step.timezone,
            injected=step.injected,
        )
    )


def _check_text(text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise BadInput("text", text, "text that is not empty")


def _past(moment: datetime, now: datetime) -> datetime:
    """The moment, or now where a clock that runs ahead a little gave it. Raises BadInput."""
    if moment > now + CLOCKS_APART:
        raise BadInput("occurred_at", moment.isoformat(), "a time that is not in the future")
    return min(moment, now)


def _check_validity(since: datetime | None, until: datetime | None) -> None:
    if since is not None and until is not None and until < since:
        raise BadInput("valid_to", until.isoformat(), "a time that is not before valid_from")


def _check_importance(importance: float) -> None:
    if not 0 <= importance <= 1:
        raise BadInput("importance", importance, "a number from 0 to 1")


__all__ = ["Engine", "Forgotten", "Opened"]
