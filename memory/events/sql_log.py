"""What every form of the log answers by the shared queries, whatever database is behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import TypeVar

import msgspec

from hearth.memory.encryption.master import MasterKeys
from hearth.memory.errors import BadInput, LogUnavailable
from hearth.memory.events import (
    checking,
    coldest,
    cursors,
    documents,
    finding,
    forgettings,
    lookup,
    mid_term,
    policies,
    reads,
    refolding,
    rows,
    spending,
    standing,
    views,
)
from hearth.memory.events import walk as walks
from hearth.memory.events.data_keys import NO_KEYS, Keyring
from hearth.memory.events.kinds import Event
from hearth.memory.events.sql import COPIED, Archive, Database, DataKeys, Row, partition_of
from hearth.memory.events.sql_office import SqlOffice
from hearth.memory.events.texts import secret_of
from hearth.memory.ports import (
    CallState,
    Clock,
    DueForgetting,
    EventCount,
    EventFilter,
    EventsChecked,
    EventsFound,
    ExchangeState,
    KnownDocument,
    KnownSegment,
    Lag,
    Lease,
    MemoryFilter,
    Outlived,
    Spent,
    Standing,
    TenantSegment,
    ViewsCompared,
    WaitingPage,
    Walk,
    Walked,
    WalkedUser,
)
from hearth.memory.tiers.crowding import Crowd
from hearth.memory.tiers.heat import HeatPolicy
from hearth.memory.tiers.layers import Setting
from hearth.memory.types import (
    Common,
    Document,
    DocumentKind,
    Exchange,
    Forgetting,
    Memory,
    Page,
    Record,
    Scope,
    SessionInfo,
    SessionMode,
    Shelf,
    SummaryLine,
    Tails,
)

T = TypeVar("T")


class LogHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How the log does."""

    wal_bytes: int
    """Size of the write-ahead log; it grows while a long reader holds it up."""
    fsync_p50_ms: float
    """Median of the last synced commits: what an append costs on this disk."""
    writable: bool
    """False when closed and after a failed commit, until one succeeds."""
    events: int
    """Events ever appended, redacted ones included."""
    last_error: str
    """Why the last commit failed; empty after a good one."""


class SqlLog(SqlOffice, ABC):
    """`EventLog`, `MidTerm`, `Consumers` and `Office` over three ways to ask a database: a form's own."""

    def __init__(self, clock: Clock, archive: Archive, masters: MasterKeys | None) -> None:
        self._clock = clock
        self.archive = archive
        self.keys: DataKeys = NO_KEYS if masters is None else Keyring(masters)
        self._secrets: dict[str, bytes] = {}

    @abstractmethod
    async def start(self) -> None:
        """Begin to answer. Raises LogUnavailable where that can't come by itself."""

    @abstractmethod
    async def close(self) -> None:
        """Finish the appends under way and let go. Closing twice is no error."""

    @abstractmethod
    async def append(self, events: Sequence[Event], *, unless_held: bool = False) -> None:
        """See `EventLog.append`."""

    @abstractmethod
    async def _write(self, run: Callable[[Database], T], *, relaxed: bool = False) -> T:
        """Run it in a transaction; its result, once that is durable. `relaxed`: a power cut may undo it."""

    @abstractmethod
    async def _read(self, run: Callable[[Database], T]) -> T:
        """Run it on one state of the database."""

    @abstractmethod
    async def _look_up(self, run: Callable[[Database], T]) -> T:
        """Run a few look-ups before a call, in the shortest time."""

    async def rebuild_views(self, watch: Callable[[int], None] = lambda _: None) -> None:
        """Drop the views and fold the log again, in one transaction: until it ends the old ones are read, and
        appends wait. `watch` is told how many events were folded, in another thread.
        """
        await self._write(partial(rebuild, watch=watch))

    @abstractmethod
    async def compact(self) -> None:
        """Give room that nothing uses any more back to the disk, where that does not come by itself."""

    # -- copying -----------------------------------------------------------------------------------------

    async def in_use(self) -> bool:
        """Whether another process has the log open, as far as its database tells. Raises LogUnavailable."""
        return False

    async def ask(self, run: Callable[[Database], T]) -> T:
        """What `run` finds in one state of the tables. Raises LogUnavailable."""
        return await self._read(run)

    async def change(self, run: Callable[[Database], T], *, relaxed: bool = True) -> T:
        """Run it in a transaction that a power cut may undo, whole, until one follows that is not `relaxed`.

        Raises LogUnavailable.
        """
        return await self._write(run, relaxed=relaxed)

    # -- EventLog ----------------------------------------------------------------------------------------

    async def read(
        self,
        *,
        after: int = 0,
        limit: int = 500,
        kinds: Sequence[str] = (),
        tenant: str | None = None,
        user: str | None = None,
        session: str | None = None,
        subjects: Sequence[str] = (),
    ) -> list[Event]:
        """See `EventLog.read`. Ends before an unreadable event; raises UnknownEvent if that is the first."""
        query = partial(
            reads.events,
            after=after,
            limit=limit,
            kinds=kinds,
            tenant=tenant,
            user=user,
            session=session,
            subjects=subjects,
        )
        return await self._read(query)

    async def present(self, ids: Sequence[str]) -> dict[str, tuple[str, str, int]]:
        """See `EventLog.present`."""
        return await self._read(lambda db: reads.present(db, ids))

    async def handled(self, tenant: str, user: str, consumers: Sequence[str]) -> dict[str, int]:
        """See `EventLog.handled`."""
        partition = self.partition(tenant, user)
        return await self._read(lambda db: cursors.handled(db, consumers, partition))

    async def find(
        self, where: EventFilter, *, after: int = 0, before: int | None = None, limit: int = 50
    ) -> EventsFound:
        """See `EventLog.find`."""
        query = partial(finding.find, after=after, before=before, limit=limit)
        return await self._read(lambda db: query(db, where))

    async def check(self, tenant: str, user: str, *, after: int = 0, limit: int = 500) -> EventsChecked:
        """See `EventLog.check`."""
        return await self._read(lambda db: checking.check(db, tenant, user, after=after, limit=limit))

    async def compare_views(self, tenant: str, user: str, *, repair: bool = False) -> ViewsCompared:
        """See `EventLog.compare_views`."""
        return await refolding.compare_views(self, self._clock, tenant, user, repair=repair)

    async def records(self, tenant: str, user: str, *, after: str = "", limit: int = 500) -> list[Record]:
        """See `EventLog.records`."""
        return await self._read(lambda db: checking.records(db, tenant, user, after=after, limit=limit))

    async def count_events(self, tenant: str, user: str | None = None) -> list[EventCount]:
        """See `EventLog.count_events`. In steps, so that no long reader holds up the database."""
        counted: list[Row] = []
        after: int | None = 0
        while after is not None:
            step = partial(finding.count, tenant=tenant, user=user, after=after)
            found, after = await self._read(step)
            counted += found
        return finding.by_month(counted)

    async def open_call(
        self,
        scope: Scope,
        *,
        tails: Tails,
        retry_key: str,
        response_id: str,
        now: datetime,
        unwritten: Sequence[Event] = (),
    ) -> CallState:
        """See `EventLog.open_call`."""
        query = partial(lookup.open_call, tails=tails, retry_key=retry_key, response_id=response_id, now=now)
        return await self._look_up(lambda db: query(db, scope, unwritten=unwritten))

    async def secret(self, tenant: str) -> bytes:
        """See `EventLog.secret`."""
        if tenant not in self._secrets:
            self._secrets[tenant] = await self._write(lambda db: secret_of(db, tenant))
        return self._secrets[tenant]

    async def generation(self, tenant: str, user: str) -> int:
        """See `EventLog.generation`."""
        return await self._look_up(lambda db: reads.generation(db, tenant, user))

    async def memory(self, tenant: str, user: str, memory_id: str) -> Memory | None:
        """See `EventLog.memory`."""
        return await self._read(lambda db: reads.memory(db, tenant, user, memory_id, now=self._clock.now()))

    async def memories(
        self, tenant: str, user: str, *, where: MemoryFilter, after: tuple[datetime, str] | None, limit: int
    ) -> list[Memory]:
        """See `EventLog.memories`."""
        query = partial(reads.memories, where=where, after=after, limit=limit, now=self._clock.now())
        return await self._read(lambda db: query(db, tenant, user))

    async def count_memories(self, tenant: str, user: str, *, where: MemoryFilter) -> int:
        """See `EventLog.count_memories`."""
        now = self._clock.now()
        return await self._read(lambda db: reads.count_memories(db, tenant, user, where=where, now=now))

    async def facts_about(self, tenant: str, user: str, about: Sequence[tuple[str, str]]) -> list[Memory]:
        """See `EventLog.facts_about`."""
        return await self._read(lambda db: reads.facts_about(db, tenant, user, about))

    async def facts_of(self, tenant: str, user: str, page: str) -> list[Memory]:
        """See `EventLog.facts_of`."""
        return await self._read(lambda db: reads.facts_of(db, tenant, user, page))

    async def concepts_on(self, tenant: str, user: str, memories: Sequence[str]) -> list[str]:
        """See `EventLog.concepts_on`."""
        return await self._read(lambda db: reads.concepts_on(db, tenant, user, memories))

    async def shown_in(self, tenant: str, user: str, records: Sequence[str], *, limit: int) -> list[str]:
        """See `EventLog.shown_in`."""
        return await self._read(lambda db: reads.shown_in(db, tenant, user, records, limit=limit))

    async def exchange(self, tenant: str, user: str, exchange_id: str) -> Exchange | None:
        """See `EventLog.exchange`."""
        return await self._read(lambda db: reads.exchange(db, tenant, user, exchange_id))

    async def steps(self, tenant: str, user: str, exchange_id: str) -> list[Event]:
        """See `EventLog.steps`."""
        return await self._read(lambda db: reads.steps_of(db, tenant, user, exchange_id))

    async def last_exchange(self, scope: Scope) -> str | None:
        """See `EventLog.last_exchange`."""
        return await self._read(lambda db: reads.last_exchange(db, scope))

    async def exchanges(
        self, tenant: str, user: str, *, session: str | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[Exchange]:
        """See `EventLog.exchanges`."""
        query = partial(reads.exchanges, session=session, after=after, limit=limit)
        return await self._read(lambda db: query(db, tenant, user))

    async def sessions(
        self, tenant: str, user: str, *, after: tuple[datetime, str] | None, limit: int
    ) -> list[SessionInfo]:
        """See `EventLog.sessions`."""
        return await self._read(lambda db: reads.sessions(db, tenant, user, after=after, limit=limit))

    async def session_mode(self, tenant: str, user: str, session: str) -> SessionMode:
        """See `EventLog.session_mode`."""
        return await self._read(lambda db: reads.session_mode(db, tenant, user, session))

    async def tenants(self) -> list[str]:
        """See `EventLog.tenants`."""
        return await self._read(reads.tenants)

    async def outlived(
        self, tenant: str, *, now: datetime, before: Mapping[str, datetime], limit: int
    ) -> list[Outlived]:
        """See `EventLog.outlived`."""
        return await self._read(lambda db: reads.outlived(db, tenant, now=now, before=before, limit=limit))

    async def forgetting(self, tenant: str, user: str, exchange_id: str) -> Forgetting | None:
        """See `EventLog.forgetting`."""
        return await self._read(lambda db: forgettings.forgetting(db, tenant, user, exchange_id))

    async def forgettings(self, tenant: str, user: str, *, limit: int) -> list[Forgetting]:
        """See `EventLog.forgettings`."""
        return await self._read(lambda db: forgettings.forgettings(db, tenant, user, limit=limit))

    async def due_forgettings(self, tenant: str, *, now: datetime, limit: int) -> list[DueForgetting]:
        """See `EventLog.due_forgettings`."""
        return await self._read(lambda db: forgettings.due(db, tenant, now=now, limit=limit))

    async def users(self, tenant: str, *, after: str, limit: int) -> list[str]:
        """See `EventLog.users`."""
        return await self._read(lambda db: reads.users(db, tenant, after=after, limit=limit))

    async def pages(self, tenant: str, user: str, *, limit: int) -> list[Page]:
        """See `EventLog.pages`."""
        return await self._read(lambda db: reads.latest_pages(db, tenant, user, limit=limit))

    async def previous_page(self, page: Page) -> Page | None:
        """See `EventLog.previous_page`."""
        previous, scope = page.previous, page.scope
        if previous is None:
            return None
        return await self._read(lambda db: reads.page(db, scope.tenant, scope.user, previous))

    async def following_pages(self, tenant: str, user: str, page_id: str) -> list[str]:
        """See `EventLog.following_pages`."""
        return await self._read(lambda db: reads.following_pages(db, tenant, user, page_id))

    async def record(self, tenant: str, user: str, record_id: str) -> Record | None:
        """See `EventLog.record`."""
        return await self._read(lambda db: reads.record(db, tenant, user, record_id, now=self._clock.now()))

    async def records_named(self, tenant: str, user: str, ids: Iterable[str]) -> dict[str, Record]:
        """See `EventLog.records_named`."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        return await self._read(
            lambda db: reads.records_named(db, tenant, user, wanted, now=self._clock.now())
        )

    async def traced(self, tenant: str, user: str, trace: str) -> list[Event]:
        """See `EventLog.traced`."""
        return await self._read(lambda db: reads.traced(db, tenant, user, trace))

    async def begin_walk(self) -> Walk:
        """See `EventLog.begin_walk`."""
        return await self._read(walks.start)

    async def walk(self, walk: Walk, *, limit: int) -> tuple[list[Walked], Walk]:
        """See `EventLog.walk`."""
        return await self._read(lambda db: walks.step(db, walk, limit=limit))

    async def walk_users(self, *, after: int, limit: int) -> list[WalkedUser]:
        """See `EventLog.walk_users`."""
        return await self._read(lambda db: walks.users(db, after=after, limit=limit))

    async def unindexed(self, tenant: str, user: str) -> list[str]:
        """See `EventLog.unindexed`."""
        partition = self.partition(tenant, user)
        return await self._read(lambda db: walks.unindexed(db, tenant, user, partition=partition))

    async def spending(self, tenant: str, *, since: date) -> list[Spent]:
        """See `EventLog.spending`."""
        return await self._read(lambda db: spending.spending(db, tenant, since=since))

    # -- Documents ---------------------------------------------------------------------------------------

    async def document(self, tenant: str, document: str) -> KnownDocument | None:
        """See `Documents.document`."""
        return await self._read(lambda db: documents.document(db, tenant, document))

    async def documents(self, tenant: str, kind: DocumentKind, *, after: str, limit: int) -> list[Document]:
        """See `Documents.documents`."""
        return await self._read(lambda db: documents.documents(db, tenant, kind, after=after, limit=limit))

    async def chunks(
        self, tenant: str, document: str, *, version: int, after: int = -1, limit: int
    ) -> list[Memory]:
        """See `Documents.chunks`."""
        query = partial(documents.chunks, version=version, after=after, limit=limit)
        return await self._read(lambda db: query(db, tenant, document))

    async def shelf(self, tenant: str) -> Shelf:
        """See `Documents.shelf`."""
        return await self._look_up(lambda db: documents.shelf(db, tenant))

    async def shelf_changes(self, tenants: Sequence[str]) -> dict[str, int]:
        """See `Documents.shelf_changes`."""
        return await self._look_up(lambda db: documents.shelf_changes(db, tenants))

    async def shown_to(self, tenant: str, document: str, *, version: int) -> list[str]:
        """See `Documents.shown_to`."""
        return await self._read(lambda db: documents.shown_to(db, tenant, document, version=version))

    async def common(self, tenant: str, *, attributes: Sequence[str], least: int, limit: int) -> list[Common]:
        """See `Documents.common`."""
        query = partial(documents.common, attributes=attributes, least=least, limit=limit)
        return await self._read(lambda db: query(db, tenant, now=self._clock.now()))

    async def refusals(self, tenant: str) -> list[str]:
        """See `Documents.refusals`."""
        return await self._read(lambda db: documents.refusals(db, tenant))

    # -- PolicySettings ----------------------------------------------------------------------------------

    async def policy_settings(self, tenant: str) -> list[Setting]:
        """See `PolicySettings.policy_settings`."""
        return await self._look_up(lambda db: policies.policy_settings(db, tenant))

    async def policy_changes(self) -> dict[str, int]:
        """See `PolicySettings.policy_changes`."""
        return await self._look_up(policies.policy_changes)

    # -- MidTerm -----------------------------------------------------------------------------------------

    async def segments(self, tenant: str, user: str, owner: str, *, after: int = 0) -> list[KnownSegment]:
        """See `MidTerm.segments`."""
        return await self._read(lambda db: mid_term.segments(db, tenant, user, owner, after=after))

    async def waiting_pages(self, tenant: str, user: str, owner: str, *, limit: int) -> list[WaitingPage]:
        """See `MidTerm.waiting_pages`."""
        return await self._read(lambda db: mid_term.waiting_pages(db, tenant, user, owner, limit=limit))

    async def segments_of(self, tenant: str, user: str, pages: Sequence[str]) -> dict[str, str]:
        """See `MidTerm.segments_of`."""
        return await self._read(lambda db: mid_term.segments_of(db, tenant, user, pages))

    async def pages_in(self, tenant: str, user: str, segment: str) -> list[Page]:
        """See `MidTerm.pages_in`."""
        return await self._read(lambda db: reads.pages_in(db, tenant, user, segment))

    async def latest_in(
        self, tenant: str, user: str, segments: Sequence[str], *, each: int
    ) -> dict[str, list[Page]]:
        """See `MidTerm.latest_in`."""
        return await self._read(lambda db: reads.latest_in(db, tenant, user, segments, each=each))

    async def members(self, tenant: str, user: str, segment: str) -> list[WaitingPage]:
        """See `MidTerm.members`."""
        return await self._read(lambda db: mid_term.members(db, tenant, user, segment))

    async def segments_named(self, tenant: str, user: str, ids: Sequence[str]) -> list[KnownSegment]:
        """See `MidTerm.segments_named`."""
        return await self._read(lambda db: mid_term.segments_named(db, tenant, user, ids))

    async def crowd(self, tenant: str) -> Crowd:
        """See `MidTerm.crowd`."""
        return await self._read(lambda db: coldest.crowd(db, tenant))

    async def coldest(self, tenant: str, policy: HeatPolicy, *, limit: int) -> list[TenantSegment]:
        """See `MidTerm.coldest`."""
        return await self._read(lambda db: coldest.coldest(db, tenant, policy, limit=limit))

    async def untouched(self, tenant: str, before: datetime, *, limit: int) -> list[TenantSegment]:
        """See `MidTerm.untouched`."""
        return await self._read(lambda db: coldest.untouched(db, tenant, before, limit=limit))

    async def summaries(
        self, tenant: str, user: str, owner: str, sessions: Sequence[str]
    ) -> dict[str, tuple[SummaryLine, ...]]:
        """See `MidTerm.summaries`."""
        return await self._read(lambda db: mid_term.summaries(db, tenant, user, owner, sessions))

    async def standing(self, scope: Scope, *, since: datetime) -> Standing:
        """See `MidTerm.standing`."""
        now = self._clock.now()
        return await self._read(lambda db: standing.standing(db, scope, since=since, now=now))

    # -- Consumers ---------------------------------------------------------------------------------------

    @property
    def partitions(self) -> int:
        """See `Consumers.partitions`."""
        raise NotImplementedError

    def partition(self, tenant: str, user: str) -> int:
        """See `Consumers.partition`."""
        return partition_of(tenant, user, self.partitions)

    async def lease(self, consumer: str, partition: int, *, owner: str, seconds: float) -> Lease | None:
        """See `Consumers.lease`. Raises BadInput for a partition that this log does not have."""
        if not 0 <= partition < self.partitions:
            raise BadInput("partition", partition, f"0 to {self.partitions - 1}")
        take = partial(cursors.lease, owner=owner, seconds=seconds)
        return await self._write(lambda db: take(db, consumer, partition), relaxed=True)

    async def pending(self, lease: Lease, *, limit: int, kinds: Sequence[str]) -> list[Event]:
        """See `Consumers.pending`. Ends before an unreadable event; raises UnknownEvent if that is next."""
        query = partial(reads.events, after=lease.seq, limit=limit, kinds=kinds, partition=lease.partition)
        return await self._read(query)

    async def advance(self, lease: Lease, *, seq: int, decisions: Sequence[Event] = ()) -> Lease:
        """See `Consumers.advance`. A power cut may set back a cursor that moved alone: events come again."""
        move = partial(cursors.advance, seq=seq, decisions=decisions)
        return await self._write(lambda db: move(db, lease), relaxed=not decisions)

    async def exchange_state(self, event: Event) -> ExchangeState:
        """See `Consumers.exchange_state`. Exchanges without a parent are nobody's siblings."""
        return await self._read(lambda db: reads.exchange_state(db, event))

    async def idle_exchanges(self, *, before: datetime, limit: int) -> list[Event]:
        """See `Consumers.idle_exchanges`."""
        return await self._read(lambda db: reads.idle_exchanges(db, before=before, limit=limit))

    async def start_attempt(self, consumer: str, event: Event) -> int:
        """See `Consumers.start_attempt`. Survives a killed process, which is what it is for."""
        partition = self.partition(event.tenant, event.user)
        return await self._write(
            lambda db: cursors.start_attempt(db, consumer, partition, event), relaxed=True
        )

    async def park(self, consumer: str, event: Event, error: str) -> None:
        """See `Consumers.park`."""
        await self._write(lambda db: cursors.park(db, consumer, event, error))

    async def parked(self) -> list[tuple[str, Event, str]]:
        """See `Consumers.parked`."""
        return await self._read(cursors.parked)

    async def unpark(self, consumer: str, event_id: str) -> bool:
        """See `Consumers.unpark`."""
        return await self._write(lambda db: cursors.unpark(db, consumer, event_id))

    async def behind(self, consumer: str, kinds: Sequence[str]) -> list[int]:
        """See `Consumers.behind`."""
        return await self._look_up(lambda db: cursors.behind(db, consumer, kinds, self.partitions))

    async def lag(self, kinds: Mapping[str, Sequence[str]]) -> dict[str, Lag]:
        """See `Consumers.lag`."""
        return await self._read(lambda db: cursors.lag(db, kinds, self.partitions))


def rebuild(db: Database, watch: Callable[[int], None] = lambda _: None) -> None:
    """Fold the whole log into the views again, in the open transaction."""
    folded = 0

    def batch(after: int, limit: int) -> list[tuple[int, Event]]:
        found = db.execute(f"{rows.EVENTS} WHERE e.seq > ? ORDER BY e.seq LIMIT ?", (after, limit)).fetchall()
        nonlocal folded
        folded += len(found)
        watch(folded)
        return [(row[13], rows.event_of(db, row)) for row in found]

    views.rebuild(db, batch)


def refuse_unfinished(db: Database) -> None:
    """Raise LogUnavailable for a log that another one is still to be copied into."""
    row = db.execute("SELECT stage FROM copies").fetchone()
    if row is not None and row[0] != COPIED:
        raise LogUnavailable("it is an unfinished copy: `hearth migrate`, called as before, goes on with it")
