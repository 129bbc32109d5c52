"""The extraction decider: has a model read pages, some of a user's at once, and notes what they state."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import NAMESPACE_URL, uuid4, uuid5

from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import OpenedState
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from hearth.memory import metrics
from hearth.memory.errors import BadAnswer, ModelUnavailable, StaleGeneration
from hearth.memory.events.kinds import (
    Event,
    ExtractionReplied,
    PageClosed,
    PageRead,
    Payload,
    Reading,
    happened,
    is_decided,
)
from hearth.memory.extract.answer import Claim, claims
from hearth.memory.extract.grounding import Shown, counted, grounded, shown
from hearth.memory.extract.question import INSTRUCTION, SCHEMA, longest_answer, question
from hearth.memory.fact_decider import page_of, reading_of
from hearth.memory.policies import PolicyOf
from hearth.memory.ports import ChatModel, Clock, EventLog, Extractor, ModelReply, ModelRequest
from hearth.memory.tiers.facts import fact_id
from hearth.memory.tiers.indexed import as_stored
from hearth.memory.tiers.life import ExtractionPolicy, LifePolicy
from hearth.memory.types import Page

logger = logging.getLogger(__name__)

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:extraction")
_AT_ONCE: Final = 4
"""Calls under way at once, for different users."""
_CHARACTERS: Final = 24_000
"""Of the users' words in one call, unless a single page has more."""
_TRIES: Final = 2
"""Calls for one batch before the runner's own, longer waits."""


class _Waiting(NamedTuple):
    """A page that no model has read, and what the log said of it."""

    event: Event
    shown: Shown
    policy: ExtractionPolicy | None
    """None: rules are to read it."""


class ExtractionDecider:
    """Asks the model beside everything else: what it answers is an event before anything is made of it, and
    what the pages state by it are events too, so that no replay and no second run ever asks again.

    A model that does not answer is waited for. One whose answer can't be used is asked anew, page by page,
    and after three times the page is set aside. Of a tenant that has spent its tokens of the day rules read
    the pages.
    """

    name = "extraction"
    kinds = ("page.closed", "page.moved")

    def __init__(
        self,
        *,
        log: EventLog,
        model: ChatModel | None,
        rules: Extractor,
        clock: Clock,
        policy: PolicyOf,
    ) -> None:
        self._log = log
        self._model = model
        self._rules = rules
        self._clock = clock
        self._policy = policy
        self._breakers = AsyncCircuitBreakerFactory(default_threshold=5, default_ttl=10, exclude=[BadAnswer])
        self._sure = False
        self._turns = asyncio.Semaphore(_AT_ONCE)

    @property
    def in_use(self) -> bool:
        """Whether there is a model that may be asked."""
        return self._model is not None

    def ripe(self, events: Sequence[Event]) -> bool:
        """False while more of a user's pages may come, to be read by the same call."""
        asked = [(event, self._policy_for(event)) for event in events]
        asked = [(event, policy) for event, policy in asked if policy.facts == "model"]
        users: dict[tuple[str, str], int] = {}
        for event, policy in asked:
            who = (event.tenant, event.user)
            users[who] = users.get(who, 0) + 1
            waited = (self._clock.now() - (event.recorded_at or event.occurred_at)).total_seconds()
            if waited >= policy.extraction.gather_seconds or users[who] >= policy.extraction.pages:
                return True
        return not asked

    def together(self, events: Sequence[Event]) -> int:
        """How many of the head may be handled at once: all, for each page is read for itself."""
        return len(events)

    async def probe(self, event: Event) -> None:
        """Raise ModelUnavailable if the model does not answer, where it did not last or was not asked yet."""
        policy = self._policy_for(event)
        if policy.facts == "model" and not self._sure:
            await self._complete(event.tenant, _greeting(policy.extraction))

    async def handle(self, events: Sequence[Event]) -> list[Event]:
        """Have each page read that was not. What was made out is in the log when this returns.

        Raises ModelUnavailable, BadAnswer, LogUnavailable; what was read until then stays.
        """
        own = [event for event in events if not is_decided(event.payload)]
        waiting = [one for event in _latest(own) if (one := await self._waiting(event)) is not None]
        results = await asyncio.gather(*map(self._read, _batches(waiting)), return_exceptions=True)
        failed = [result for result in results if isinstance(result, BaseException)]
        for error in failed:
            if not isinstance(error, BadAnswer):
                raise error
        if failed:
            raise failed[0]
        return []

    async def _waiting(self, event: Event) -> _Waiting | None:
        """The page of the event, if it stands, is for a model to read, and was not read as it is now; or was
        left to one and is for rules to read now.
        """
        found = await self._log.record(event.tenant, event.user, page_of(event))
        if not isinstance(found, Page) or not found.is_told:
            return None
        policy = self._policy_of(found)
        if policy.facts == "off":
            return None
        page = as_stored(found)
        read = await reading_of(self._log, page)
        if policy.facts == "rules" and (read is None or read.by):
            return None
        words = await asyncio.to_thread(shown, page)
        if not any(map(str.isalnum, words.words)) or (read is not None and read.digest == _digest(words)):
            return None
        if policy.facts == "rules":
            return _Waiting(event, words, None)
        before = await self._log.previous_page(page)
        if before is not None and self._policy_of(before).facts == "model":
            words = words._replace(before=before.reply_text)
        return _Waiting(event, words, policy.extraction)

    def _policy_of(self, page: Page) -> LifePolicy:
        return self._policy(page.scope.tenant, page.scope.agent, page.key)

    def _policy_for(self, event: Event) -> LifePolicy:
        """As far as the event alone tells: of a page that moved not what its key says."""
        match event.payload:
            case PageClosed(page=page):
                return self._policy_of(page)
            case _:
                return self._policy(event.tenant, event.agent, "")

    async def _read(self, batch: Sequence[_Waiting]) -> None:
        """One call and what follows from it, in one append."""
        async with self._turns:
            policy, tenant = batch[0].policy, batch[0].event.tenant
            if policy is None or await self._spent(tenant) >= policy.daily_tokens:
                metrics.EXTRACTION_CALLS.labels(tenant, "by rules").inc()
                await self._append([await self._by_rules(one) for one in batch])
                return
            reply = await self._ask(tenant, policy, [one.shown for one in batch])
            try:
                found = claims(reply.text)
            except BadAnswer as error:
                metrics.EXTRACTION_CALLS.labels(tenant, "bad").inc()
                await self._append([_replied(batch, reply, problem=str(error))])
                raise
            metrics.EXTRACTION_CALLS.labels(tenant, "used").inc()
            answered = _replied(batch, reply)
            await self._append([answered, *_readings(batch, found, reply, answered.id)])

    async def _spent(self, tenant: str) -> int:
        today = self._clock.now().date()
        return sum(one.tokens for one in await self._log.spending(tenant, since=today))

    async def _ask(self, tenant: str, policy: ExtractionPolicy, pages: Sequence[Shown]) -> ModelReply:
        retrying = AsyncRetrying(
            wait=wait_exponential_jitter(multiplier=0.5, max=5),
            stop=stop_after_attempt(_TRIES),
            retry=retry_if_exception_type(ModelUnavailable),
            reraise=True,
        )
        request = ModelRequest(
            model=policy.model,
            system=INSTRUCTION,
            prompt=question(pages),
            schema=SCHEMA,
            max_tokens=longest_answer(len(pages)),
            seconds=policy.timeout_seconds,
        )
        reply: ModelReply = await retrying(self._complete, tenant, request)
        return reply

    async def _complete(self, tenant: str, request: ModelRequest) -> ModelReply:
        if self._model is None:
            raise ModelUnavailable("facts are to be read by a model, and none is given")
        try:
            async with await self._breakers.get_breaker(request.model), asyncio.timeout(request.seconds):
                reply = await self._model.complete(request)
        except (TimeoutError, OpenedState, ModelUnavailable) as error:
            self._sure = False
            metrics.EXTRACTION_CALLS.labels(tenant, "failed").inc()
            if isinstance(error, ModelUnavailable):
                raise
            raise ModelUnavailable(f"{request.model} does not answer in time") from error
        self._sure = True
        _count(tenant, reply)
        return reply

    async def _by_rules(self, one: _Waiting) -> Event:
        page = one.shown.page
        said = await asyncio.to_thread(self._rules.extract, page)
        return _read_event(
            one, by=self._rules.name, said=[Reading(fact=fact_id(page, it), said=it) for it in said]
        )

    async def _append(self, events: Sequence[Event]) -> None:
        try:
            await self._log.append(events)
        except StaleGeneration:
            logger.info("what a model was asked about is erased, and its answer is dropped")


def _latest(events: Iterable[Event]) -> list[Event]:
    """The last event of each page."""
    return list({(event.tenant, event.user, page_of(event)): event for event in events}.values())


def _digest(words: Shown) -> str:
    return hashlib.sha256(words.words.encode()).hexdigest()[:32]


def _batches(waiting: Sequence[_Waiting]) -> Iterator[list[_Waiting]]:
    """Pages of one user and agent, in their order, as many as one call takes."""
    groups: dict[tuple[str, ExtractionPolicy | None], list[_Waiting]] = {}
    for one in waiting:
        groups.setdefault((one.shown.page.scope.owner, one.policy), []).append(one)
    for (_, policy), group in groups.items():
        most = policy.pages if policy is not None else len(group)
        batch: list[_Waiting] = []
        for one in group:
            size = sum(len(other.shown.words) for other in [*batch, one])
            if batch and (len(batch) >= most or size > _CHARACTERS):
                yield batch
                batch = []
            batch.append(one)
        yield batch


def _greeting(policy: ExtractionPolicy) -> ModelRequest:
    """A request that costs next to nothing, by which one sees whether the model answers."""
    return ModelRequest(
        model=policy.model,
        system='Answer {"facts": []}.',
        prompt="[]",
        max_tokens=16,
        seconds=policy.timeout_seconds,
    )


def _readings(
    batch: Sequence[_Waiting], found: Sequence[Claim], reply: ModelReply, answered: str
) -> Iterator[Event]:
    """What each page of the batch states by the answer."""
    pages = [one.shown for one in batch]
    said: dict[str, dict[str, Reading]] = {one.page.id: {} for one in pages}
    refused: list[str] = []
    for claim in found:
        held = grounded(claim, pages)
        if isinstance(held, str):
            refused.append(held)
            metrics.EXTRACTION_REFUSED.labels(held).inc()
        else:
            page = held.shown.page
            reading = Reading(fact=fact_id(page, held.said), said=held.said)
            said[page.id].setdefault(reading.fact, reading)
    for place, one in enumerate(batch):
        yield _read_event(
            one,
            by=f"model:{reply.model}",
            said=list(said[one.shown.page.id].values()),
            refused=dict(counted(refused)) if place == 0 else {},
            reply=answered,
        )


def _replied(batch: Sequence[_Waiting], reply: ModelReply, *, problem: str = "") -> Event:
    payload = ExtractionReplied(
        pages=tuple(one.shown.page.id for one in batch),
        text="" if problem else reply.text,
        problem=problem,
        model=reply.model,
        usage=reply.usage,
        cost=reply.cost,
    )
    last = batch[-1]
    return _event(last, payload, id=uuid4().hex, at=last.event.occurred_at)


def _read_event(one: _Waiting, **fields: object) -> Event:
    payload = PageRead(page=one.shown.page.id, digest=_digest(one.shown), **fields)  # type: ignore[arg-type]
    id = uuid5(_NAMESPACE, f"{one.event.id}/{payload.digest}").hex
    return _event(one, payload, id=id, at=one.event.occurred_at)


def _event(one: _Waiting, payload: Payload, *, id: str, at: datetime) -> Event:
    page = one.shown.page
    return happened(page.scope, payload, page.generation, at=at, id=id, parent=one.event.id)


def _count(tenant: str, reply: ModelReply) -> None:
    labels = (tenant, "memory")
    metrics.EXTRACTION_TOKENS.labels(*labels, "input").inc(reply.usage.input)
    metrics.EXTRACTION_TOKENS.labels(*labels, "output").inc(reply.usage.output)
    metrics.EXTRACTION_COST.labels(*labels).inc(reply.cost or 0.0)
