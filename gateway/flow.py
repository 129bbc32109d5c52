"""What happens to a model call before it is forwarded and after its reply."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

import msgspec

from hearth.config.switches import MODES, narrow
from hearth.gateway.call import Call, Draft, Private
from hearth.gateway.chains import Chains
from hearth.gateway.daily import DailyTokens
from hearth.gateway.identity import Identity
from hearth.gateway.replay import alive, allowance, run_of, stays
from hearth.gateway.retries import Retries
from hearth.gateway.wire import WIRES
from hearth.gateway.wire.types import Body, WireReply, WireRequest
from hearth.memory import metrics
from hearth.memory.admission import masked
from hearth.memory.dialogue import Dialogue, exchange_ids, read, retry_key, tails
from hearth.memory.engine import Engine, Opened
from hearth.memory.events.kinds import UNKNOWN, SessionSwitched
from hearth.memory.extract.personal import Mask
from hearth.memory.recall.ranking import ranking_of
from hearth.memory.types import BudgetFrom, PlacedBlock, Query, ShortTermView, Step, Tails, ToolUse

logger = logging.getLogger(__name__)

LARGE_REDACTED = 5_000
"""The same where personal data is masked too. That takes milliseconds where a text is full of digits."""
PRIVATE = "private session"
"""Why a call has no memory in a session that was switched off."""
LARGE_TEXT = 100_000
"""Characters of an exchange from which it is made ready in a thread: 5 ms of masking and digests."""


class Flow:
    """Puts memory around a model call. One instance serves all calls of a process."""

    def __init__(self, engine: Engine, *, full_tools: bool = False) -> None:
        self.engine = engine
        self.daily = DailyTokens(engine.shared)
        self._retries = Retries()
        self.chains = Chains(shared=engine.shared)
        self._full_tools = full_tools

    async def before(
        self, call: Call, request: WireRequest, identity: Identity, body: Body, *, window: int
    ) -> Body:
        """The body to forward: with a block where memory has one to give, else the same object.

        `window`: the smallest, in tokens, of the deployments that may serve the call; 0 where unknown.
        Fail-open: whatever goes wrong is logged, counted and shown in the call's status.
        """
        started = time.perf_counter()
        call.due = self.engine.due()
        try:
            return await self._before(call, request, identity, body, window)
        except Exception:
            logger.exception("memory failed before the call; it goes on without")
            metrics.FAILURES.labels("before").inc()
            call.status, call.reason = "failed", "error"
            return body
        finally:
            call.milliseconds = (time.perf_counter() - started) * 1000
            if call.status == "failed" and (call.recall is None or call.recall.status != "failed"):
                metrics.RECALLS.labels("failed").inc()  # it came to no recall that would have been counted
            if call.search is not None:
                call.search.cancel()
                call.search = None

    async def after(self, call: Call, reply: WireReply) -> None:
        """Write the exchange down; when this returns it is durable or counted as lost. Never raises."""
        if call.opened is None:
            return
        if call.private is not None:
            await self._follow(call, call.opened, call.private, reply)
        if call.draft is None:
            return
        said = call.draft.dialogue
        redacts = self.engine.policies.of(call.opened.scope.tenant, "", call.draft.key).capture.redact
        most = LARGE_REDACTED if redacts else LARGE_TEXT
        large = len(said.user_text) + len(said.reply_so_far) + len(reply.text) > most
        work = self._captured(call, call.opened, call.draft, reply, large=large)
        if large:  # takes its time in a thread, where a client that hangs up must not end it
            await asyncio.shield(self.engine.capture_path.beside(work))
        else:
            await work

    async def headroom(self, call: Call, request: WireRequest, identity: Identity, *, window: int) -> int:
        """Most tokens that `before` would add to this prompt; `call` says why it is none. Only reads.

        Tokens are counted as a block's are.
        """
        call.status, call.reason = "ok", ""
        dialogue = read(request.turns)
        if not (identity.policy.place and request.placeable and dialogue.user_text):
            call.reason = "no block"
            return 0
        if not self._may_spend(call, identity):
            call.reason = "daily tokens spent"
            return 0
        by = self.engine.due()
        secret = await self.engine.secret(identity.scope.tenant, by=by)
        opened = await self.engine.open(identity.scope, dialogue, secret=secret, by=by)
        if not _within(identity, opened).policy.place:
            call.reason = PRIVATE
            return 0
        if opened.generation == UNKNOWN:
            call.status, call.reason = "failed", "log"
            return 0
        view = await self.engine.view(opened.scope, by=by)
        current, earlier = self._standing(request, dialogue, opened, secret, view)
        tokens = sum(block.tokens for block in earlier.values())
        if current is not None:
            return tokens + current.tokens
        room, _ = _room(request, dialogue, identity, earlier, window)
        return tokens + (room if dialogue.asks_anew else 0)

    def _may_spend(self, call: Call, identity: Identity) -> bool:
        return self.daily.left(identity.key, identity.policy.daily_tokens, call.started_at)

    # -- before ----------------------------------------------------------------------------------------

    async def _before(
        self, call: Call, request: WireRequest, identity: Identity, body: Body, window: int
    ) -> Body:
        dialogue = read(request.turns)
        speaks = bool(dialogue.user_text or request.previous_response_id)
        if not speaks and identity.policy.session is None:
            call.off("nothing to remember")
            return body
        self._look_up(call, identity, dialogue)
        secret = await self.engine.secret(identity.scope.tenant, by=call.due)
        key = retry_key(
            identity.scope.owner,
            request.turns,
            secret,
            about=(request.route, request.model, request.previous_response_id),
        )
        opened = await self.engine.open(
            identity.scope,
            dialogue,
            secret=secret,
            response_id=request.previous_response_id,
            retry_key=key,
            marked_retry=self._retries.marked(identity.scope.owner, call.headers, call.started_at),
            by=call.due,
        )
        if call.without_block and call.placed and call.recall is not None:
            # the provider refused it
            self.daily.spend(identity.key, -call.recall.block.tokens, call.started_at)
        if identity.policy.waits:
            opened = msgspec.structs.replace(opened, generation=UNKNOWN)
        call.opened, call.status, call.reason = opened, "ok", ""
        call.recall, call.block, call.placed = None, None, False
        call.private = _private(identity, opened, dialogue, secret)
        identity = _within(identity, opened)
        if not (identity.policy.mode and speaks):
            call.off(PRIVATE if speaks else "nothing to remember")
            return body
        if identity.policy.capture:
            call.draft = self._draft(dialogue, identity, secret=secret, retry_key=key)
        if call.without_block:
            call.status, call.reason = "partial", "refused with block"
            return body
        if opened.generation == UNKNOWN:
            call.status, call.reason = "failed", (identity.policy.waits and identity.policy.reason) or "log"
            metrics.RECALL_MISSING.labels("log").inc()
            return body
        if not identity.policy.recall:
            return body
        if not self._may_spend(call, identity):
            call.reason = "daily tokens spent"
            return body
        return await self._recalled(call, request, identity, dialogue, opened, secret, body, window)

    def _look_up(self, call: Call, identity: Identity, dialogue: Dialogue) -> None:
        """Begin the search where there will be a recall, as far as the request alone tells."""
        wanted = identity.policy.recall and self._may_spend(call, identity)
        if dialogue.user_text and dialogue.asks_anew and wanted and not call.without_block:
            query = Query(text=dialogue.user_text, before=dialogue.before, at=call.started_at)
            call.search = self.engine.look_up(identity.scope, query)

    async def _recalled(
        self,
        call: Call,
        request: WireRequest,
        identity: Identity,
        dialogue: Dialogue,
        opened: Opened,
        secret: bytes,
        body: Body,
        window: int,
    ) -> Body:
        view = await self.engine.view(opened.scope, by=call.due)
        current, earlier = self._standing(request, dialogue, opened, secret, view)
        if current is None and dialogue.asks_anew:
            current = await self._block(
                call, request, identity, dialogue, opened, secret, view, earlier, window
            )
        call.block = current
        if not identity.policy.place:
            call.shadow, call.reason = True, "shadow"
            return body
        if not request.placeable:
            return body
        blocks = {index: block.text for index, block in earlier.items()}
        if current is not None and current.text and dialogue.user_text:
            blocks[dialogue.user_index] = current.text
        if not blocks:
            return body
        if not _fits(request, blocks, window):
            call.reason = "no room in the model's window"
            return body
        call.placed = True
        if call.recall is not None:
            self.daily.spend(identity.key, call.recall.block.tokens, call.started_at)
            metrics.BLOCK_TOKENS.labels(opened.scope.tenant).inc(call.recall.block.tokens)
        return WIRES[request.route].place(body, blocks)

    async def _block(
        self,
        call: Call,
        request: WireRequest,
        identity: Identity,
        dialogue: Dialogue,
        opened: Opened,
        secret: bytes,
        view: ShortTermView,
        earlier: Mapping[int, PlacedBlock],
        window: int,
    ) -> PlacedBlock:
        """Recall for a new exchange, without what the request or a server-held chain already holds."""
        budget, budget_from = _room(request, dialogue, identity, earlier, window)
        if not request.previous_response_id:  # else the provider holds all of the session
            view = msgspec.structs.replace(view, summary=opened.summary)
        query = Query(
            text=dialogue.user_text,
            before=dialogue.before,
            at=call.started_at,
            timezone=identity.policy.timezone,
            present=dialogue.present,
            present_ids=_present_ids(request, dialogue, opened, secret, view, earlier),
        )
        recall = await self.engine.recall(
            opened.scope,
            query,
            generation=opened.generation,
            budget=budget,
            budget_from=budget_from,
            model=request.model,
            view=view,
            search=call.search,
        )
        call.recall = recall
        call.status, call.reason = recall.status, ", ".join(recall.reasons)
        if call.draft is not None:
            call.draft = dataclasses.replace(call.draft, vector=recall.vector)
        return PlacedBlock(
            exchange=opened.exchange,
            text=recall.block.text,
            tokens=recall.block.tokens,
            items=recall.block.items,
            at=call.started_at,
            alone=not earlier,
        )

    def _standing(
        self,
        request: WireRequest,
        dialogue: Dialogue,
        opened: Opened,
        secret: bytes,
        view: ShortTermView,
    ) -> tuple[PlacedBlock | None, dict[int, PlacedBlock]]:
        """The block that this exchange already has, and earlier ones that go back (see `_earlier`)."""
        current = next((block for block in view.blocks if block.exchange == opened.exchange), None)
        return current, self._earlier(request, dialogue, opened, secret, view, current)

    def _earlier(
        self,
        request: WireRequest,
        dialogue: Dialogue,
        opened: Opened,
        secret: bytes,
        view: ShortTermView,
        current: PlacedBlock | None,
    ) -> dict[int, PlacedBlock]:
        """This session's earlier blocks by message index, where putting them back is cheaper than not."""
        if not stays(request, dialogue):
            return {}
        blocks = {block.exchange: block for block in view.blocks}
        placed = [
            (index, blocks[exchange])
            for index, exchange in exchange_ids(dialogue.history, opened.scope.conversation, secret)
            if exchange in blocks
        ]
        now = self.engine.clock.now()
        warm = alive(request, opened.last_call, now)
        return run_of(placed, current, alive=warm, most=allowance(request))

    def _draft(self, dialogue: Dialogue, identity: Identity, *, secret: bytes, retry_key: str) -> Draft:
        return Draft(
            dialogue=dialogue,
            kind="carry-over" if dialogue.carry_over else "dialogue",
            timezone=identity.policy.timezone,
            tags=identity.policy.tags,
            tails_before=tails(dialogue.history, secret),
            retry_key=retry_key,
            secret=secret,
            full_tools=self._full_tools,
            key=identity.key,
        )

    async def _follow(self, call: Call, opened: Opened, private: Private, reply: WireReply) -> None:
        """Write the session's switch down before anything of the call is; a failure captures nothing."""
        answered = private.dialogue.answered(reply.text) if private.dialogue.user_text else ()
        switched = SessionSwitched(
            mode=private.mode,
            exchange=opened.exchange if private.mode != "on" else "",
            isolated=opened.scope.isolated,
            response_id=reply.response_id if call.route == "responses" else "",
            tails=tails(answered, private.secret) if private.mode != "on" else Tails(),
        )
        receipt = await self.engine.follow_private(
            opened, switched, event_id=uuid5(NAMESPACE_URL, f"hearth:switched:{call.id}").hex
        )
        if receipt.place == "lost":
            self.engine.capture_path.count_lost()

    # -- after -----------------------------------------------------------------------------------------

    async def _captured(
        self, call: Call, opened: Opened, draft: Draft, reply: WireReply, *, large: bool
    ) -> None:
        try:
            await self._after(call, opened, draft, reply, large=large)
        except Exception:
            logger.exception("an exchange could not be captured; it is lost")
            metrics.FAILURES.labels("after").inc()
            self.engine.capture_path.count_lost()

    async def _after(
        self, call: Call, opened: Opened, draft: Draft, reply: WireReply, *, large: bool
    ) -> None:
        if reply.unparsed:
            logger.warning("%d events of a reply could not be read", reply.unparsed)
            metrics.FAILURES.labels("reply.unparsed").inc(reply.unparsed)
        mask = self.engine.policies.mask(opened.scope.tenant, draft.key)
        if large:
            step, page_reply = await asyncio.to_thread(_written, call, opened, draft, reply, mask)
        else:
            step, page_reply = _written(call, opened, draft, reply, mask)
        untouched = step.user_text == draft.dialogue.user_text
        vector = draft.vector if untouched else None  # nothing made of what is masked is kept
        await self.engine.capture_step(opened, step, event_id=call.id, page_reply=page_reply, vector=vector)


def _private(identity: Identity, opened: Opened, dialogue: Dialogue, secret: bytes) -> Private | None:
    """What is to be written down of the session: a switch, and where a private one is found by its words."""
    mode = identity.policy.session or opened.mode
    if mode == opened.mode and (mode == "on" or identity.scope.session):
        return None
    return Private(mode=mode, dialogue=dialogue, secret=secret)


def _within(identity: Identity, opened: Opened) -> Identity:
    """The identity with what memory may do in this session."""
    mode = narrow(identity.policy.mode, MODES[identity.policy.session or opened.mode])
    return msgspec.structs.replace(identity, policy=msgspec.structs.replace(identity.policy, mode=mode))


def _present_ids(
    request: WireRequest,
    dialogue: Dialogue,
    opened: Opened,
    secret: bytes,
    view: ShortTermView,
    earlier: Mapping[int, PlacedBlock],
) -> frozenset[str]:
    """Ids of what the request already holds: its history, or the chain that the provider keeps for it."""
    history = {exchange for _, exchange in exchange_ids(dialogue.history, opened.scope.conversation, secret)}
    history |= {item for block in earlier.values() for item in block.items}
    if not request.previous_response_id:
        return frozenset(history | {opened.exchange})
    session = {page.id for page in view.pages if page.scope.session == opened.scope.session}
    shown = {item for block in view.blocks for item in block.items}
    return frozenset(history | session | shown | {opened.exchange})


def _room(
    request: WireRequest,
    dialogue: Dialogue,
    identity: Identity,
    earlier: Mapping[int, PlacedBlock],
    window: int,
) -> tuple[int, BudgetFrom]:
    """Most tokens that a new block may have beside the earlier ones, and what bounds them."""
    policy = identity.policy
    bounds: list[tuple[int, BudgetFrom]] = [(policy.budget, policy.budget_from)]
    if window:
        bounds.append((int(window * policy.budget_share), "window"))
    if stays(request, dialogue):
        taken = sum(block.tokens for block in earlier.values())
        bounds.append((max(0, allowance(request) - taken), "earlier blocks"))
    return min(bounds, key=lambda bound: bound[0])


def _written(call: Call, opened: Opened, draft: Draft, reply: WireReply, mask: Mask) -> tuple[Step, str]:
    """The step to capture, and the visible text of all its exchange's replies."""
    step = masked(_step(call, opened, draft, reply), mask)
    replies = (mask(draft.dialogue.reply_so_far), step.reply_text)
    return step, "\n\n".join(text for text in replies if text)


def _step(call: Call, opened: Opened, draft: Draft, reply: WireReply) -> Step:
    """All that was said, as it was said."""
    usage = reply.usage
    if usage is not None and call.block is not None and call.placed:
        usage = msgspec.structs.replace(usage, memory=call.block.tokens)
    return Step(
        exchange=opened.exchange,
        isolated=opened.scope.isolated,
        key=draft.key,
        user_text=draft.dialogue.user_text,
        reply_text=reply.text,
        outcome=reply.outcome,
        closes=not reply.tools,
        kind=draft.kind,
        timezone=draft.timezone,
        tags=draft.tags,
        tools=reply.tools if draft.full_tools else tuple(map(_sizes_only, reply.tools)),
        injected=call.block.items if call.block and call.placed else (),
        block=_recorded(call),
        trace=call.recall.trace if call.recall else "",
        ranking=ranking_of(call.recall.scored) if call.recall and call.placed else None,
        tails=tails(draft.dialogue.answered(reply.text), draft.secret),
        tails_before=draft.tails_before,
        retry_key=draft.retry_key,
        alternatives=reply.alternatives,
        response_id=reply.response_id if call.route == "responses" else "",
        route=call.route or "",
        model=reply.model or (call.request.model if call.request else ""),
        started_at=call.started_at,
        finished_at=datetime.now(UTC),
        error=reply.error,
        usage=usage,
    )


def _recorded(call: Call) -> PlacedBlock | None:
    """The block to write down. One without words counts where blocks stay: the next ones build on it."""
    if call.block is None or call.placed:
        return call.block
    request = call.request
    stay = request is not None and (request.automatic_caching or request.offered_tools > 0)
    return call.block if stay and not call.block.text and not call.shadow else None


def _sizes_only(tool: ToolUse) -> ToolUse:
    return msgspec.structs.replace(tool, arguments=None, result=None)


def _fits(request: WireRequest, blocks: dict[int, str], window: int) -> bool:
    """Whether prompt, reply and blocks fit the window, by a generous estimate of four bytes a token."""
    if not window:
        return True
    prompt = sum(len(turn.text.encode()) for turn in request.turns) / 4 * 1.1
    block = sum(len(text.encode()) for text in blocks.values()) / 3
    return prompt + request.max_output + block <= window
