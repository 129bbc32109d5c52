"""A log that was restored from a backup forgets again what was erased since."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Final
from uuid import uuid4

from hearth.memory.erasure.eraser import Eraser
from hearth.memory.erasure.ledger import Entry, Ledger
from hearth.memory.erasure.office import Office, Person
from hearth.memory.erasure.receipt import Receipt
from hearth.memory.errors import NotFound
from hearth.memory.ports import Clock, EventLog

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 500
RESTORED: Final = "the ledger of erasures"
"""Who asked for what is erased once more."""


async def apply_ledger(ledger: Ledger, eraser: Eraser, log: EventLog, office: Office, clock: Clock) -> int:
    """Erase what the ledger has and the log does not know of; how much that was.

    Before anybody can reach it. Holds do not count: it was erased when there was none. Raises LogUnavailable.
    """
    await ledger.start()
    missing = await _missing(await ledger.entries(), log)
    if not missing:
        return 0
    logger.warning("the log lacks %d erasures: it is an older copy, and forgets them again", len(missing))
    erased, tenants = 0, set[str]()
    async for person in _people(office):
        for entry in missing:
            if entry.what == "tenant" and person.tenant in tenants:
                continue
            for record in await _meant(entry, person, ledger, office):
                erased += await _erase(entry, person, record, eraser, clock)
        tenants.add(person.tenant)
    return erased


async def _missing(entries: Sequence[Entry], log: EventLog) -> list[Entry]:
    missing: list[Entry] = []
    for start in range(0, len(entries), _AT_ONCE):
        some = entries[start : start + _AT_ONCE]
        known = await log.present([one.event for one in some])
        missing += [one for one in some if one.event not in known]
    return missing


async def _people(office: Office) -> AsyncIterator[Person]:
    after = ("", "")
    while people := await office.people(after=after, limit=_AT_ONCE):
        for one in people:
            yield one
        after = (people[-1].tenant, people[-1].user)


async def _meant(entry: Entry, person: Person, ledger: Ledger, office: Office) -> list[str]:
    """The records of the person that the entry means; one without a name is all of theirs."""
    who = (person.tenant,) if entry.what == "tenant" else (person.tenant, person.user)
    if ledger.digest(*who) != entry.who:
        return []
    if not entry.record:
        return [""] if entry.what == "tenant" or person.generation < entry.generation else []
    ids = await office.ids(person.tenant, person.user, entry.what)
    return [id for id in ids if ledger.digest(*who, id) == entry.record]


async def _erase(entry: Entry, person: Person, record: str, eraser: Eraser, clock: Clock) -> bool:
    """By an event of the entry's id, so that the log knows it from then on."""
    receipt = Receipt(
        id=uuid4().hex,
        what=entry.what,
        user="" if entry.what == "tenant" else person.user,
        record=record,
        by=RESTORED,
        event=entry.event,
        requested_at=clock.now(),
    )
    try:
        await eraser.perform(person.tenant, receipt, least=entry.generation)
    except NotFound:
        return False
    return True
