"""Verification: each user's events against their checksums, the views against the events, row by row, and the
stores against the log, id by id.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from hearth.memory.ports import Consumers, Damaged, EventLog, LongTerm, ShortTerm
from hearth.memory.projectors import IndexProjector
from hearth.memory.reading import indexed
from hearth.memory.tiers.indexed import as_stored, is_recallable
from hearth.memory.types import EVERYBODY, OFFICE, Page, Record, Scope

PAGE = 500
"""Events or records of one question."""
TOGETHER = 32
"""Records that are stored at once in a repair."""
SECONDS = 2.0
"""After which a part of a verification ends, with the user that it is at."""
USERS = 200
"""Users of a part at most."""
LATEST = 1_000
"""Pages of short-term memory that are looked at."""
MOST_DAMAGED = 1_000
"""Damaged events that a report names."""

_encode = msgspec.json.Encoder(order="deterministic").encode


def _everyone(user: str) -> bool:
    return True


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds otherwise than the log says, in records."""

    missing: int = 0
    extra: int = 0
    different: int = 0
    older: int = 0
    """Of a generation that was erased."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.missing + self.extra + self.different + self.older

    def __add__(self, other: Drift) -> Drift:
        return Drift(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification found, of as many users as it has come to."""

    users: int = 0
    events: int = 0
    redacted: int = 0
    unsealed: int = 0
    """Events of a program that made no checksums."""
    missing: int = 0
    """Events that are gone whole, envelope and all."""
    damages: int = 0
    """Events that are not as they were written."""
    damaged: tuple[Damaged, ...] = ()
    """The first of them."""
    records: int = 0
    """That long-term memory is to hold."""
    long_term: Drift = Drift()
    short_term: Drift = Drift()
    views: Drift = Drift()
    """Rows of the log's folded views."""
    unfolded: int = 0
    """Users whose views were not compared: an event of theirs can't be read, or they went on talking."""
    repaired: int = 0
    """Records and rows that were brought to what the events say."""
    behind: int = 0
    """Users whose stores the worker has yet to bring up to date: of them only events were checked."""

    @property
    def drift(self) -> int:
        """Records and rows that are not as the events say, repaired ones among them."""
        return self.long_term.total + self.short_term.total + self.views.total

    def __add__(self, other: Verified) -> Verified:
        given = {name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        return Verified(**given | {"damaged": given["damaged"][:MOST_DAMAGED]})


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The last verification of everything, as health shows it."""

    began: datetime
    ended: datetime
    found: Verified


class _Known(NamedTuple):
    """A record as it is to stand in a store, or stands there."""

    owner: str
    id: str
    digest: bytes
    generation: int


class _Compared(NamedTuple):
    drift: Drift
    wrong: frozenset[str]
    """Ids that are to be stored anew."""
    extra: Mapping[str, Sequence[str]]
    """Ids that are to be removed, by owner."""


class Verifier:
    """Compares what the log says with what the stores hold, a user at a time; any number may be at it."""

    def __init__(
        self, *, log: EventLog, consumers: Consumers, short_term: ShortTerm, long_term: LongTerm
    ) -> None:
        self._log = log
        self._consumers = consumers
        self._short_term = short_term
        self._long_term = long_term

    async def some(
        self, tenant: str, *, after: str = "", repair: bool = False, folds: Callable[[str], bool] = _everyone
    ) -> tuple[Verified, str | None]:
        """Verify the tenant's next users behind that name; what was found, and where the rest begins, if any.

        `folds`: whose views are compared with their events, which takes most of the time. Raises
        LogUnavailable, StoreUnavailable.
        """
        done, until = Verified(), time.monotonic() + SECONDS
        if not after:
            for name in (EVERYBODY, OFFICE):
                done += msgspec.structs.replace(await self._log_of(tenant, name, repair=repair), users=0)
        users = await self._log.users(tenant, after=after, limit=USERS)
        for user in users:
            done += await self.user(tenant, user, repair=repair, folds=folds(user))
            if time.monotonic() > until:
                return done, user
        return done, users[-1] if len(users) == USERS else None

    async def user(self, tenant: str, user: str, *, repair: bool = False, folds: bool = True) -> Verified:
        """Verify one user. With `repair` views and stores are brought to what the events say, which are not
        changed. Without `folds` the views are not looked at.

        Raises LogUnavailable, StoreUnavailable.
        """
        check = self._log_of(tenant, user, repair=repair) if folds else self._events(tenant, user)
        found = await check
        if self._log_is_ahead(tenant, user, await self._behind()):
            return found + Verified(behind=1)
        expected = await self._expected(tenant, user)
        in_index = await self._compared(tenant, user, expected)
        in_short = await self._latest(tenant, user, expected)
        repaired = 0
        if in_index.drift.total and await self._settled(tenant, user):
            # a second look: what was written between the two questions is no drift
            expected = await self._expected(tenant, user)
            in_index = await self._compared(tenant, user, expected)
        if repair:
            repaired += await self._repair(tenant, user, in_index)
            repaired += await self._repair_short_term(tenant, user, in_short)
        return found + Verified(
            records=len(expected),
            long_term=in_index.drift,
            short_term=in_short.drift,
            repaired=repaired,
        )

    async def _log_of(self, tenant: str, user: str, *, repair: bool) -> Verified:
        """The user's events by their checksums, and the views that are folded from them."""
        found = await self._events(tenant, user)
        views = await self._log.compare_views(tenant, user, repair=repair)
        return found + Verified(
            views=Drift(missing=views.missing, extra=views.extra, different=views.different),
            unfolded=int(views.unfolded),
            repaired=views.repaired,
        )

    async def _events(self, tenant: str, user: str) -> Verified:
        done, after = Verified(users=1), 0
        while True:
            part = await self._log.check(tenant, user, after=after, limit=PAGE)
            done += Verified(
                events=part.events,
                redacted=part.redacted,
                unsealed=part.unsealed,
                missing=part.missing,
                damages=len(part.damaged),
                damaged=part.damaged,
            )
            if part.next is None:
                return done
            after = part.next

    async def _behind(self) -> list[int]:
        return await self._consumers.behind(IndexProjector.name, IndexProjector.kinds)

    def _log_is_ahead(self, tenant: str, user: str, behind: Sequence[int]) -> bool:
        return self._consumers.partition(tenant, user) in behind

    async def _settled(self, tenant: str, user: str) -> bool:
        return not self._log_is_ahead(tenant, user, await self._behind())

    async def _expected(self, tenant: str, user: str) -> dict[str, _Known]:
        """What long-term memory is to hold, by id."""
        found: dict[str, _Known] = {}
        after = ""
        while records := await self._log.records(tenant, user, after=after, limit=PAGE):
            found |= {record.id: _known(record) for record in records if is_recallable(record)}
            after = records[-1].id
        return found

    async def _compared(self, tenant: str, user: str, expected: Mapping[str, _Known]) -> _Compared:
        generation = await self._log.generation(tenant, user)
        owners = {Scope(tenant=tenant, user=user).owner, *(one.owner for one in expected.values())}
        held: list[_Known] = []
        for owner in sorted(owners):
            held += await self._held(owner)
        return _compared(expected, held, generation)

    async def _held(self, owner: str) -> list[_Known]:
        found: list[_Known] = []
        after, begun = "", False
        while after or not begun:
            records, after = await self._long_term.walk(owner, after=after, limit=PAGE)
            found += [_known(record)._replace(owner=owner) for record in records]
            begun = True
        return found

    async def _latest(self, tenant: str, user: str, expected: Mapping[str, _Known]) -> _Compared:
        """Of short-term memory only what the log knows as a page: what is younger has none yet."""
        scope = Scope(tenant=tenant, user=user)
        generation = await self._log.generation(tenant, user)
        view = await self._short_term.latest(scope, limit=LATEST)
        held = [_known(one) for one in view.pages if one.id in expected or await self._is_gone(scope, one)]
        known = {one.id: expected[one.id] for one in held if one.id in expected}
        return _compared(known, held, generation)

    async def _is_gone(self, scope: Scope, page: Page) -> bool:
        """True for a page that was forgotten or left its branch; one that is open has no page in the log."""
        exchange = await self._log.exchange(scope.tenant, scope.user, page.id)
        return exchange is None or exchange.state == "inactive"

    async def _repair(self, tenant: str, user: str, found: _Compared) -> int:
        """Store anew what is missing or wrong, and remove what is too much."""
        for owner, ids in found.extra.items():
            await self._long_term.delete(owner, ids)
        wrong = sorted(found.wrong)
        for at in range(0, len(wrong), TOGETHER):
            records = await self._log.records_named(tenant, user, wrong[at : at + TOGETHER])
            held = [_stored(one) for one in records.values()]
            await self._long_term.upsert([await indexed(self._log, one) for one in held])
        if found.drift.total:
            await self._long_term.flush()
        return found.drift.total

    async def _repair_short_term(self, tenant: str, user: str, found: _Compared) -> int:
        scope = Scope(tenant=tenant, user=user)
        if gone := [id for ids in found.extra.values() for id in ids]:
            await self._short_term.drop(scope, gone)
        records = await self._log.records_named(tenant, user, sorted(found.wrong))
        if pages := [as_stored(one) for one in records.values() if isinstance(one, Page)]:
            await self._short_term.settle(scope, pages)
        return found.drift.total


def _stored(record: Record) -> Record:
    return as_stored(record) if isinstance(record, Page) else record


def _known(record: Record) -> _Known:
    digest = hashlib.blake2b(_encode(_stored(record)), digest_size=16).digest()
    return _Known(record.scope.owner, record.id, digest, record.generation)


def _compared(expected: Mapping[str, _Known], held: Iterable[_Known], generation: int) -> _Compared:
    missing = set(expected)
    wrong: set[str] = set()
    extra: dict[str, list[str]] = {}
    more = different = older = 0
    for one in held:
        known = expected.get(one.id)
        if known is None or known.owner != one.owner:
            more += one.generation == generation
            older += one.generation != generation
            extra.setdefault(one.owner, []).append(one.id)
            continue
        missing.discard(one.id)
        if known.digest != one.digest:
            different += one.generation == generation
            older += one.generation != generation
            wrong.add(one.id)
    drift = Drift(missing=len(missing), extra=more, different=different, older=older)
    return _Compared(drift, frozenset(wrong | missing), extra)
