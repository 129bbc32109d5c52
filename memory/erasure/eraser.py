"""Erases: first out of everybody's reach, in one append, then out of every place, step by step."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from typing import Final, NoReturn
from uuid import NAMESPACE_URL, uuid4, uuid5

import msgspec
import numpy as np

from hearth.memory.erasure.fragments import SALT_BYTES, WINDOW, fragments_of
from hearth.memory.erasure.office import Inventory, Office
from hearth.memory.erasure.provider_held import PLACE as PROVIDER
from hearth.memory.erasure.receipt import ProviderHeld, Receipt, Step, What
from hearth.memory.erasure.removals import Removal, of_exchange, of_memory, of_session
from hearth.memory.errors import Held, StaleGeneration, Unavailable, UnderHold
from hearth.memory.events.kinds import ErasureChanged, Event, Payload, TenantErased, UserErased, happened
from hearth.memory.ports import Clock, EventLog, LongTerm, MidTerm
from hearth.memory.types import OFFICE, Scope

logger = logging.getLogger(__name__)

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:erasure")
_TRIES: Final = 8
"""Against others that erase the same at the same moment."""
_OPEN: Final = 1_000
_KEPT_IDS: Final = 2_000
"""Ids of records that a receipt keeps, to look for them once more."""
_VECTORS: Final = 8
_VECTOR_SECONDS: Final = 1.0
"""For which an erasure waits at most for vectors to be looked for afterwards."""


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """What was just made unreachable."""

    receipt: Receipt
    removal: Removal | None = None
    """None where it is all of a user or a tenant."""
    generation: int = 0
    """The user's, from now on."""


class Eraser:
    """Makes things unreachable, and writes the receipt. What follows is `Purger`'s."""

    def __init__(
        self,
        *,
        log: EventLog,
        office: Office,
        mid_term: MidTerm,
        long_term: LongTerm,
        clock: Clock,
        steps: Sequence[str] = ("log", "archives", "short_term", "long_term"),
    ) -> None:
        """`steps`: the places that have to be reached here."""
        self._log = log
        self._office = office
        self._mid_term = mid_term
        self._long_term = long_term
        self._clock = clock
        self._steps = tuple(steps)

    async def begin(
        self, what: What, tenant: str, user: str = "", record: str = "", *, by: str = "", reason: str = ""
    ) -> Erased:
        """Make it unreachable at once, for good.

        Raises NotFound for a record that is not there, Held where a hold is on the user, or on one of the
        tenant's, LogUnavailable.
        """
        receipt = Receipt(
            id=uuid4().hex,
            what=what,
            user=user,
            record=record,
            by=by,
            reason=reason,
            requested_at=self._clock.now(),
        )
        if held := await self.held(tenant, receipt):
            await self._queue(tenant, receipt, held)
        try:
            return await self.perform(tenant, receipt, unless_held=True)
        except UnderHold as error:
            await self._queue(tenant, receipt, error.users)

    async def held(self, tenant: str, receipt: Receipt) -> tuple[str, ...]:
        """Users whose hold keeps it."""
        return tuple(one.user for one in await self._office.holds(tenant, user=receipt.user or None))

    async def perform(
        self, tenant: str, receipt: Receipt, *, least: int = 0, unless_held: bool = False
    ) -> Erased:
        """`begin` for a receipt that there is already, whatever holds there are unless it says so.

        Raises UnderHold then. `least`: what the generation of the user, or of the tenant's users, becomes at
        least.
        """
        for _ in range(_TRIES):
            try:
                return await self._perform(tenant, receipt, least, unless_held)
            except StaleGeneration:
                continue  # erased by somebody else meanwhile: once more, on what there is now
        raise StaleGeneration

    async def write(self, tenant: str, receipt: Receipt) -> None:
        """Write down a receipt's new state."""
        await self._log.append([await self._noted(tenant, receipt)])

    async def erase_closed(self, tenant: str, receipt: Receipt, *, limit: int) -> bool:
        """Erase so many users to whom their tenant's erasure has yet to come; False if some are left."""
        people = await self._office.closed_users(tenant, limit=limit)
        events = [
            self._event(
                Scope(tenant=tenant, user=one.user),
                UserErased(generation=one.generation),
                one.generation,
                id=uuid5(_NAMESPACE, f"{receipt.id}/{one.user}").hex,
            )
            for one in people
        ]
        await self._log.append(events)
        return len(people) < limit

    # -- inside ----------------------------------------------------------------------------------------

    async def _queue(self, tenant: str, receipt: Receipt, users: tuple[str, ...]) -> NoReturn:
        """Keep it for the day on which the hold is lifted, once; raises Held."""
        about = (receipt.what, receipt.user, receipt.record)
        for of, known in await self._office.open_erasures(limit=_OPEN):
            if of == tenant and known.state == "held" and (known.what, known.user, known.record) == about:
                raise Held(known.id, users)
        await self.write(tenant, msgspec.structs.replace(receipt, state="held"))
        raise Held(receipt.id, users)

    async def _perform(self, tenant: str, receipt: Receipt, least: int, unless_held: bool) -> Erased:
        now, event = self._clock.now(), receipt.event or uuid4().hex
        removal, generation, events = await self._events(tenant, receipt, event, least)
        gone = removal.gone if removal is not None else ()
        user = None if receipt.what == "tenant" else receipt.user
        there = await self._office.inventory(tenant, user, gone)
        salt = secrets.token_bytes(SALT_BYTES)
        sources = await self._sources(tenant, receipt, there)
        receipt = msgspec.structs.replace(
            receipt,
            state="pending",
            event=event,
            unreachable_at=now,
            found=there.sorts or _counted(removal),
            records=gone[:_KEPT_IDS] or there.sample.records,
            steps=tuple(Step(place=name) for name in self._places(receipt.what, there.provider_held)),
            provider_held=there.provider_held,
            salt=salt,
            fragments=await asyncio.to_thread(fragments_of, salt, sources),
        )
        noted = await self._noted(tenant, receipt)
        await self._log.append([*events, noted], unless_held=unless_held)
        return Erased(receipt=receipt, removal=removal, generation=generation)

    async def _events(
        self, tenant: str, receipt: Receipt, event: str, least: int
    ) -> tuple[Removal | None, int, list[Event]]:
        """What is removed of a user's records, the generation afterwards, and what has to be appended."""
        if receipt.what == "user":
            generation = max(1 + await self._log.generation(tenant, receipt.user), least)
            scope = Scope(tenant=tenant, user=receipt.user)
            erased = UserErased(generation=generation)
            return None, generation, [self._event(scope, erased, generation, id=event)]
        if receipt.what == "tenant":
            office = Scope(tenant=tenant, user=OFFICE)
            base = max(await self._office.next_base(tenant), least)
            now = await self._log.generation(tenant, OFFICE)
            return None, base, [self._event(office, TenantErased(generation=base), now, id=event)]
        removal = await self._removal(Scope(tenant=tenant, user=receipt.user), receipt)
        first, *rest = removal.payloads
        scope, generation = removal.scope, removal.generation
        tombstones = [self._event(scope, one, generation) for one in rest]
        return removal, generation, [self._event(scope, first, generation, id=event), *tombstones]

    async def _removal(self, scope: Scope, receipt: Receipt) -> Removal:
        if receipt.what == "memory":
            return await of_memory(self._log, scope, receipt.record)
        if receipt.what == "exchange":
            return await of_exchange(self._log, self._mid_term, scope, receipt.record)
        scope = msgspec.structs.replace(scope, session=receipt.record)
        return await of_session(self._log, self._office, self._mid_term, scope)

    async def _sources(self, tenant: str, receipt: Receipt, there: Inventory) -> list[bytes]:
        """Bytes by which it would be found: as said, as the log stores it, as its vectors.

        The words of a memory may stand in the exchange that it was read from, which stays. Of a payload it is
        the end, where its checksum is: the names of fields before it stand in others' payloads, too.
        """
        texts = [] if receipt.what == "memory" else there.sample.texts
        sources = [
            *(text.encode("utf-8", "replace") for text in texts),
            *(raw[-WINDOW:] for raw in there.sample.stored),
        ]
        owner = Scope(tenant=tenant, user=receipt.user).owner
        try:
            async with asyncio.timeout(_VECTOR_SECONDS):
                vectors = await self._long_term.vectors(owner, there.sample.records[:_VECTORS])
        except (Unavailable, TimeoutError):
            logger.info("an erasure is scanned for without its vectors: long-term memory does not answer")
            return sources
        return [*sources, *(np.asarray(one.numbers, np.float32).tobytes() for one in vectors.values())]

    def _places(self, what: What, held: Sequence[ProviderHeld]) -> tuple[str, ...]:
        without = {*(() if what in ("user", "tenant") else ("keys",)), *(() if held else (PROVIDER,))}
        steps = [one for one in self._steps if one not in without]
        return ("users", *steps) if what == "tenant" else tuple(steps)

    async def _noted(self, tenant: str, receipt: Receipt) -> Event:
        office = Scope(tenant=tenant, user=OFFICE)
        return self._event(
            office, ErasureChanged(receipt=receipt), await self._log.generation(tenant, OFFICE)
        )

    def _event(self, scope: Scope, payload: Payload, generation: int, *, id: str = "") -> Event:
        return happened(scope, payload, generation, at=self._clock.now(), id=id)


def _counted(removal: Removal | None) -> dict[str, int]:
    if removal is None:
        return {}
    sorts: dict[str, int] = {}
    for one in removal.payloads:
        kind = str(one.__struct_config__.tag)
        name = {"page.forgotten": "exchanges", "memory.forgotten": "memories"}.get(kind, "")
        if name:
            sorts[name] = sorts.get(name, 0) + 1
    return sorts
