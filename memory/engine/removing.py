"""What goes: one record, a session, a user, a tenant; what was asked to be forgotten; and legal holds."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from hearth.memory.engine.answers import Forgotten
from hearth.memory.engine.parts import Parts
from hearth.memory.erasure.receipt import Receipt as ErasureReceipt
from hearth.memory.erasure.receipt import What
from hearth.memory.errors import BadInput, NotFound
from hearth.memory.events.kinds import ActDone, ByKey, HoldLifted, HoldPlaced, Payload
from hearth.memory.forgetting import undo
from hearth.memory.reading import indexed
from hearth.memory.tiers.indexed import as_stored
from hearth.memory.types import OFFICE, Forgetting, Page, Scope

logger = logging.getLogger(__name__)

STORED_AGAIN = 32
"""Pages that a forgotten memory is taken out of at once; the worker comes to more."""


class Removing(Parts):
    """Deletions, whose receipts say what became of them."""

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
        found = (await self.log.records_named(scope.tenant, scope.user, pages[:STORED_AGAIN])).values()
        held = [as_stored(page) for page in found if isinstance(page, Page) and page.state == "active"]
        await self.long_term.upsert([await indexed(self.log, page) for page in held])
        await self.long_term.flush()
        await self.short_term.settle(scope, held)

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
