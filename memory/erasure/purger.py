"""Takes what was erased out of every place, ticks each, and scans for what is left; the worker's part."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from hearth.memory.erasure.eraser import Eraser
from hearth.memory.erasure.files import Files
from hearth.memory.erasure.ledger import Entry, Ledger
from hearth.memory.erasure.office import Office
from hearth.memory.erasure.provider_held import Deletions, Providers
from hearth.memory.erasure.receipt import Receipt, Scanned, Step
from hearth.memory.errors import HearthError, NotFound, UnderHold
from hearth.memory.events.archiving import Archiving
from hearth.memory.ports import Clock, EventLog, LongTerm, Shared, ShortTerm
from hearth.memory.types import Page, Scope

logger = logging.getLogger(__name__)

RECORDS_WAIT: Final = timedelta(hours=1)
"""For which single records wait, so that many of them go by one rewriting of long-term memory's files."""
_OPEN: Final = 100
_USERS: Final = 100
"""Users of a tenant that one append erases."""
_NAMES: Final = 500
_SINGLE: Final = ("memory", "exchange")
_PATIENT_STEP: Final = "long_term"


class Purger:
    """One at a time works at the log's erasures."""

    def __init__(
        self,
        *,
        eraser: Eraser,
        log: EventLog,
        office: Office,
        short_term: ShortTerm,
        long_term: LongTerm,
        clock: Clock,
        shared: Shared | None = None,
        ledger: Ledger | None = None,
        files: Files | None = None,
        archiving: Archiving | None = None,
        empty_spool: Callable[[], Awaitable[int]] | None = None,
        records_wait: timedelta = RECORDS_WAIT,
        providers: Providers | None = None,
    ) -> None:
        """`files`: those of an embedded memory; `archiving`: of the log, where it has archives; `empty_spool`
        says how many captures are left in it; `records_wait`: nought where long-term memory has no files to
        write anew; `providers`: of models, where this process can ask them.
        """
        self._eraser = eraser
        self._log = log
        self._office = office
        self._short_term = short_term
        self._long_term = long_term
        self._clock = clock
        self._shared = shared
        self._ledger = ledger
        self._files = files
        self._archiving = archiving
        self._empty_spool = empty_spool
        self._records_wait = records_wait
        self._deletions = None if providers is None else Deletions(providers, clock)

    async def waits(self) -> bool:
        """Whether there is an erasure that is not over. Raises LogUnavailable."""
        return bool(await self._office.open_erasures(limit=1))

    async def tick(self) -> int:
        """Do what can be done now for every erasure that is not over; how many are over with this.

        A place that can't be reached is tried again at the next tick. Raises LogUnavailable.
        """
        known = await self._office.open_erasures(limit=_OPEN)
        work = [(tenant, now) for tenant, one in known if (now := await self._released(tenant, one))]
        work = [(tenant, await self._step(tenant, one)) for tenant, one in work]
        work = await self._purged(work)
        if self._deletions is not None:
            work = [(tenant, await self._deletions.go_on(one)) for tenant, one in work]
        over = [(tenant, one) for tenant, one in work if not one.pending]
        for tenant, one in await self._scanned(over):
            await self._eraser.write(tenant, one)
            logger.info("erasure %s is over: %d fragments of it were found", one.id, one.left)
        before = {one.id: one for _, one in known}
        for tenant, one in work:
            if one.pending and one != before[one.id]:
                await self._eraser.write(tenant, one)
        return len(over)

    # -- steps -----------------------------------------------------------------------------------------

    async def _released(self, tenant: str, receipt: Receipt) -> Receipt | None:
        """The receipt as work to do; None while a hold keeps it."""
        if receipt.state != "held":
            return receipt
        if await self._eraser.held(tenant, receipt):
            return None
        try:
            return (await self._eraser.perform(tenant, receipt, unless_held=True)).receipt
        except UnderHold:
            return None  # placed again meanwhile
        except NotFound:
            now = self._clock.now()
            return msgspec.structs.replace(receipt, state="pending", unreachable_at=now)

    async def _step(self, tenant: str, receipt: Receipt) -> Receipt:
        """The receipt with a tick for each place that is done now, but for long-term memory's files."""
        places: Mapping[str, Callable[[str, Receipt], Awaitable[str]]] = {
            "users": self._users,
            "keys": self._keys,
            "log": self._from_log,
            "archives": self._from_archives,
            "short_term": self._from_short_term,
            "shared": self._from_shared,
            "spool": self._from_spool,
            "ledger": self._to_ledger,
        }
        steps: list[Step] = []
        for step in receipt.steps:
            if step.done_at is None and step.place in places:
                step = await self._tried(step, places[step.place](tenant, receipt))
            steps.append(step)
        return msgspec.structs.replace(receipt, steps=tuple(steps))

    async def _tried(self, step: Step, work: Awaitable[str]) -> Step:
        try:
            trouble = await work
        except HearthError as error:
            trouble = str(error)
        if trouble:
            return msgspec.structs.replace(step, trouble=trouble)
        return msgspec.structs.replace(step, trouble="", done_at=self._clock.now())

    async def _users(self, tenant: str, receipt: Receipt) -> str:
        while not await self._eraser.erase_closed(tenant, receipt, limit=_USERS):
            pass
        return ""

    async def _keys(self, tenant: str, receipt: Receipt) -> str:
        """Without them nothing of the user can be read in any copy or backup of what was encrypted."""
        left = await self._office.keys_left(tenant, _user(receipt))
        return f"{left} data keys are not destroyed yet" if left else ""

    async def _from_log(self, tenant: str, receipt: Receipt) -> str:
        if left := await self._left(tenant, receipt):
            return f"{left} events still have their content"
        return "" if await self._office.truncate() else "a reader holds up the write-ahead log"

    async def _from_archives(self, tenant: str, receipt: Receipt) -> str:
        """Their files are written anew without what the log has no more."""
        if self._archiving is None:
            return ""
        if await self._left(tenant, receipt):
            return "the log still names it"
        try:
            await self._archiving.purge()
        finally:
            await self._archiving.release()
        return ""

    async def _from_short_term(self, tenant: str, receipt: Receipt) -> str:
        if receipt.what == "user":
            generation = await self._log.generation(tenant, receipt.user)
            await self._short_term.clear(tenant, receipt.user, before=generation)
        return await self._unprojected(tenant, receipt)

    async def _left(self, tenant: str, receipt: Receipt) -> int:
        """Events from before that still have their content."""
        return await self._office.content_left(tenant, _user(receipt), _named(receipt), before=receipt.event)

    async def _unprojected(self, tenant: str, receipt: Receipt) -> str:
        """Why the stores may get something of it back: the index has not come to it in the log."""
        whole = receipt.what in ("user", "tenant")
        kinds = ("user.erased",) if whole else ("page.forgotten", "memory.forgotten")
        waiting = await self._office.unhandled("index", tenant, _user(receipt), kinds)
        return f"{waiting} removals are not projected yet" if waiting else ""

    async def _from_shared(self, tenant: str, receipt: Receipt) -> str:
        if self._shared is None or receipt.what not in ("user", "tenant"):
            return ""
        if receipt.what == "user":
            await self._shared.drop(tenant, receipt.user)
            return ""
        after = ""
        while names := await self._office.names(tenant, after=after, limit=_NAMES):
            for name in names:
                await self._shared.drop(tenant, name)
            after = names[-1]
        return ""

    async def _from_spool(self, tenant: str, receipt: Receipt) -> str:
        left = 0 if self._empty_spool is None else await self._empty_spool()
        return f"{left} captures wait in the spool" if left else ""

    async def _to_ledger(self, tenant: str, receipt: Receipt) -> str:
        if self._ledger is not None:
            await self._ledger.add([await self._entry(self._ledger, tenant, receipt)])
        return ""

    async def _entry(self, ledger: Ledger, tenant: str, receipt: Receipt) -> Entry:
        who = (tenant,) if receipt.what == "tenant" else (tenant, receipt.user)
        generation = await self._log.generation(tenant, receipt.user)
        return Entry(
            event=receipt.event,
            what=receipt.what,
            who=ledger.digest(*who),
            record=ledger.digest(*who, receipt.record) if receipt.record else "",
            generation=generation,
            at=receipt.unreachable_at or receipt.requested_at,
        )

    # -- long-term memory's files ------------------------------------------------------------------------

    async def _purged(self, work: list[tuple[str, Receipt]]) -> list[tuple[str, Receipt]]:
        """One rewriting for all that is projected, once something does not wait for more."""
        done = [
            (tenant, await self._long_term_tried(tenant, one) if _PATIENT_STEP in one.pending else one)
            for tenant, one in work
        ]
        ready = [one for _, one in done if self._is_ready(one)]
        if not any(self._is_urgent(one) for one in ready):
            return done
        step = await self._tried(Step(place=_PATIENT_STEP), self._rewritten())
        ids = {one.id for one in ready}
        return [(tenant, _with(one, step) if one.id in ids else one) for tenant, one in done]

    async def _rewritten(self) -> str:
        await self._long_term.flush()
        await self._long_term.purge()
        return ""

    async def _long_term_tried(self, tenant: str, receipt: Receipt) -> Receipt:
        trouble = await self._unprojected(tenant, receipt)
        return _with(receipt, Step(place=_PATIENT_STEP, trouble=trouble))

    def _is_ready(self, receipt: Receipt) -> bool:
        """Gone from the index, but not from its files."""
        waits = any(
            one.place == _PATIENT_STEP and not one.trouble for one in receipt.steps if not one.done_at
        )
        return waits and "users" not in receipt.pending

    def _is_urgent(self, receipt: Receipt) -> bool:
        waited = self._clock.now() - (receipt.unreachable_at or receipt.requested_at)
        return receipt.what not in _SINGLE or waited >= self._records_wait

    # -- the scan --------------------------------------------------------------------------------------

    async def _scanned(self, over: Sequence[tuple[str, Receipt]]) -> list[tuple[str, Receipt]]:
        """The receipts with what a scan found, and without the means to find it again."""
        wanted = {one.id: (one.salt, one.fragments) for _, one in over if one.fragments}
        raw: dict[str, list[Scanned]] = {}
        if self._files is not None and wanted:
            raw = await asyncio.to_thread(self._files.scan, wanted)
        now = self._clock.now()
        return [
            (
                tenant,
                msgspec.structs.replace(
                    one,
                    state="purged",
                    purged_at=now,
                    scan=(*raw.get(one.id, ()), *await self._content(tenant, one)),
                    records=(),
                    salt=b"",
                    fragments=(),
                ),
            )
            for tenant, one in over
        ]

    async def _content(self, tenant: str, receipt: Receipt) -> list[Scanned]:
        """What the stores themselves give when they are asked for it."""
        left = await self._left(tenant, receipt)
        found = [Scanned(place="log", how="content", size=receipt.found.get("events", 0), found=left)]
        if receipt.what == "tenant" or not receipt.records:
            return found
        scope, ids = Scope(tenant=tenant, user=receipt.user), receipt.records
        generation = await self._log.generation(tenant, receipt.user)
        until = receipt.unreachable_at or receipt.requested_at
        try:
            held = await self._long_term.get(scope.owner, ids)
            pages: Sequence[Page] = (await self._short_term.latest(scope, limit=len(ids))).pages
        except HearthError as error:
            logger.warning("the stores could not be asked for what was erased: %s", error)
            return found
        for place, records in (("long_term", held), ("short_term", pages)):
            mine = [one for one in records if one.id in ids and one.occurred_at <= until]
            back = [one for one in mine if receipt.what != "user" or one.generation < generation]
            found.append(Scanned(place=place, how="content", size=len(ids), found=len(back)))
        return found


def _user(receipt: Receipt) -> str | None:
    return None if receipt.what == "tenant" else receipt.user


def _named(receipt: Receipt) -> tuple[str, ...]:
    """The records that went, where not all of a user did."""
    return () if receipt.what in ("user", "tenant") else receipt.records[:_NAMES]


def _with(receipt: Receipt, step: Step) -> Receipt:
    steps = tuple(step if one.place == step.place else one for one in receipt.steps)
    return msgspec.structs.replace(receipt, steps=steps)
