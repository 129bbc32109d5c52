"""The reply path: where a request belongs, and how what was said is written down."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

import msgspec

from hearth.memory import metrics
from hearth.memory.capture import Receipt
from hearth.memory.dialogue import Dialogue, exchange_id, tails
from hearth.memory.engine.answers import Opened
from hearth.memory.engine.parts import Parts
from hearth.memory.errors import BadInput, LogUnavailable, PrivateSession
from hearth.memory.events.kinds import UNKNOWN, ExchangeEnriched, SessionSwitched, StepCaptured
from hearth.memory.events.lookup import open_unwritten
from hearth.memory.extract.clean import assistant_text, well_formed
from hearth.memory.recall.block import detach
from hearth.memory.recall.ranking import ranking_of
from hearth.memory.tiers.indexed import as_stored
from hearth.memory.types import (
    Embedding,
    ImportedTurn,
    Page,
    Recall,
    RetryHit,
    Scope,
    SessionMode,
    Step,
    Usage,
)

logger = logging.getLogger(__name__)


class Capturing(Parts):
    """Finds the exchange of a call and captures it."""

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


def _applies(retry: RetryHit | None, *, known: bool, marked: bool) -> RetryHit | None:
    """A retry counts if the earlier capture was cut short, the client says so, or the session is known."""
    if retry is None or not (known or marked or retry.outcome != "complete"):
        return None
    return retry


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
