"""The ports: what the engine asks of its stores, embedder, extractor and clock, in domain verbs.

Every port has a contract test suite in tests/ that each implementation passes. Adapters translate their
library's errors into `hearth.memory.errors`. All coroutines may be cancelled between calls without harm.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from hearth.memory.events.kinds import Event
from hearth.memory.tiers.crowding import Crowd
from hearth.memory.tiers.heat import Heat, HeatPolicy
from hearth.memory.tiers.layers import Setting
from hearth.memory.types import (
    CandidateFact,
    Common,
    Document,
    DocumentKind,
    Embedding,
    Exchange,
    Forgetting,
    Memory,
    Page,
    PlacedBlock,
    Record,
    RetryHit,
    Scope,
    SearchResult,
    Segment,
    SessionHit,
    SessionInfo,
    SessionMode,
    Shelf,
    ShortTermView,
    SummaryLine,
    Tails,
    Usage,
    Vector,
)


class Clock(Protocol):
    """Where the time comes from; a test gives its own."""

    def now(self) -> datetime:
        """The current moment, aware, in UTC."""
        ...


class Admission(Protocol):
    """What of that which waited for the log may be stored, now that it is back.

    While the log was away nobody could know what was switched off and what had to be masked.
    """

    async def look(self) -> None:
        """Know what holds now. Raises LogUnavailable."""
        ...

    def admitted(self, event: Event) -> Event | None:
        """The event as it may be stored, as of the last look; None where it may not be."""
        ...


class TokenCounter(Protocol):
    """Counts tokens without any network."""

    def count(self, text: str, model: str = "") -> int:
        """Tokens of `text` for `model`; the nearest known tokenizer's where the model's own is unknown."""
        ...


class Embedder(Protocol):
    """Turns texts into L2-normalised vectors of one dimension. Blocking; call it in a thread or a child."""

    @property
    def name(self) -> str:
        """Stable name of model and version; part of the collection's name."""
        ...

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order. Empty input gives an empty list."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order. Empty input gives an empty list."""
        ...


class Extractor(Protocol):
    """Reads what an exchange tells. Blocking; call it in a thread."""

    @property
    def name(self) -> str:
        """Stable name of the way and its version; stands with what it found."""
        ...

    def extract(self, page: Page) -> list[CandidateFact]:
        """What the user's own words state, in their order. The reply's words, quoted or pasted text, code,
        questions, suppositions and invented speech state nothing.
        """
        ...


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a chat model."""

    model: str
    """The name under which the gateway, or LiteLLM, knows it."""
    system: str
    prompt: str
    schema: dict[str, Any] | None = None
    """Strict JSON schema of the answer, for a model that can be held to one; None: any text."""
    max_tokens: int
    """Of the answer."""
    seconds: float
    """In which it must have come."""


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """What it answered."""

    text: str
    model: str
    """That answered."""
    usage: Usage = Usage()
    cost: float | None = None
    """US dollars; None where it is not known."""


class ChatModel(Protocol):
    """Asks a chat model. Nothing on the way before a call ever does."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The answer, whole. Raises ModelUnavailable where none comes in time, BadAnswer where this request
        is refused.
        """
        ...


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant's memory has asked of a model on one day, beside the client's own calls."""

    day: date
    """In UTC."""
    model: str
    calls: int
    input: int
    output: int
    """Tokens."""
    cost: float
    """US dollars, of the calls whose cost is known."""

    @property
    def tokens(self) -> int:
        """In and out: what counts against a tenant's budget of the day."""
        return self.input + self.output


class CallState(msgspec.Struct, frozen=True, kw_only=True):
    """All that the request path needs from the log, read in one round trip."""

    generation: int
    hit: SessionHit | None = None
    """The session found by response id or by tail."""
    retry: RetryHit | None = None
    """An earlier capture of the same canonical request in the last ten minutes."""
    mode: SessionMode = "on"
    """Of the session that is named or found."""
    summary: tuple[SummaryLine, ...] = ()
    """What has left short-term memory of that session."""


class KnownDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document as the log's views have it."""

    version: int
    """The latest."""
    last: str
    """Id of the last event about it."""
    document: Document | None
    """The version in force; None of one that was removed."""


class Documents(Protocol):
    """What the log knows of the documents that are for all users of a tenant."""

    async def document(self, tenant: str, document: str) -> KnownDocument | None:
        """A document by its id, one that was removed too; None for one that never was."""
        ...

    async def documents(self, tenant: str, kind: DocumentKind, *, after: str, limit: int) -> list[Document]:
        """The tenant's documents of that kind in order of name, after `after`."""
        ...

    async def chunks(
        self, tenant: str, document: str, *, version: int, after: int = -1, limit: int
    ) -> list[Memory]:
        """Chunks of that version behind a position, in order; none where it is not in force."""
        ...

    async def shelf(self, tenant: str) -> Shelf:
        """Which of the tenant's documents may be recalled."""
        ...

    async def shelf_changes(self, tenants: Sequence[str]) -> dict[str, int]:
        """`Shelf.changed` of those tenants that ever had a document."""
        ...

    async def shown_to(self, tenant: str, document: str, *, version: int) -> list[str]:
        """Users in whose blocks a chunk of that version stood."""
        ...

    async def common(self, tenant: str, *, attributes: Sequence[str], least: int, limit: int) -> list[Common]:
        """Values of those attributes that at least so many users of the tenant have now, by how many."""
        ...

    async def refusals(self, tenant: str) -> list[str]:
        """Topics that an operator of the tenant refused as system memory."""
        ...


class PolicySettings(Protocol):
    """What the log knows of values of the policy that were set while a gateway ran."""

    async def policy_settings(self, tenant: str) -> list[Setting]:
        """Those of the tenant, its agents and keys that are in force."""
        ...

    async def policy_changes(self) -> dict[str, int]:
        """The position of the last change of each tenant that ever had one."""
        ...


WalkPart: TypeAlias = Literal["pages", "memories", "chunks", "done"]


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """How far a walk over all records has come; may be kept and gone on with by another process."""

    ends: dict[int, int]
    """The last position of each partition when it began: what is later is told by the events since."""
    part: WalkPart = "pages"
    user: int = 0
    id: str = ""
    position: int = -1


class Walked(msgspec.Struct, frozen=True):
    """A record that a walk came to, and the page before it."""

    record: Record
    previous: Page | None


class WalkedUser(msgspec.Struct, frozen=True, kw_only=True):
    """A user that a walk came to."""

    place: int
    scope: Scope
    generation: int
    listed: bool
    """Whether it is among `EventLog.users`; not so one of whom nothing is left, or who is no person."""


class Outlived(msgspec.Struct, frozen=True, kw_only=True):
    """A record whose time is over."""

    user: str
    agent: str
    generation: int
    """Of its user."""
    id: str
    kind: str
    """`dialogue` for an exchange, else the memory's type."""
    expired: bool = False
    """True for a memory past its own end."""


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events of a tenant are meant; all conditions hold together."""

    tenant: str
    user: str | None = None
    agent: str | None = None
    owner: str | None = None
    """`Scope.owner` of an isolated agent, which `agent` names: its own records' and sessions' alone."""
    session: str | None = None
    kinds: tuple[str, ...] = ()
    """Empty means all."""
    tags: tuple[str, ...] = ()
    """All of these: of the memory that the event is about, or that the call carried."""
    metadata: Mapping[str, str | int | float | bool | None] = {}
    """Equal values for all of these keys, of the memory that the event is about."""
    trace: str = ""
    """Of the recall whose block a step was given, or that was judged or drawn on."""
    words: str = ""
    """All of these words stand in the payload's texts, in any order, whatever their case."""
    since: datetime | None = None
    """`occurred_at` at or after."""
    until: datetime | None = None
    """`occurred_at` before."""


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """An event whose payload is damaged, or of a newer program."""

    seq: int
    id: str
    kind: str
    reason: str


class EventsFound(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a list of events."""

    events: tuple[Event, ...]
    unreadable: tuple[Unreadable, ...]
    """Those of them that can't be read."""
    next: int
    """Where the list goes on."""
    ended: bool
    """False while there may be more behind that, even where nothing was found so far."""


class EventCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many events of a kind occurred in a month."""

    month: str
    """Such as `2026-11`, in UTC."""
    kind: str
    events: int
    redacted: int
    """Of them, those whose content is gone."""
    archived: int
    """Of them, those whose content is in an archive."""
    bytes: int
    """Of the payloads in the log itself, as they are stored."""


class Damaged(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is not as it was written."""

    seq: int
    id: str
    kind: str
    reason: str


class EventsChecked(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of some events found."""

    events: int
    redacted: int
    """Of them, those whose content is gone; their envelopes were checked."""
    unsealed: int
    """Of them, those of a program that made no checksums."""
    missing: int
    """Events of the user that are gone whole; told with the last ones."""
    damaged: tuple[Damaged, ...]
    next: int | None
    """`after` of the next ones; None at the end."""


class ViewsCompared(msgspec.Struct, frozen=True, kw_only=True):
    """A user's folded views beside what the events make when they are folded anew, in rows."""

    rows: int = 0
    missing: int = 0
    extra: int = 0
    different: int = 0
    repaired: int = 0
    unfolded: bool = False
    """They were not compared: an event can't be read, or the user went on talking all the while."""

    @property
    def drift(self) -> int:
        """Rows that are not as they are to be."""
        return self.missing + self.extra + self.different

    def __add__(self, other: ViewsCompared) -> ViewsCompared:
        return ViewsCompared(
            rows=self.rows + other.rows,
            missing=self.missing + other.missing,
            extra=self.extra + other.extra,
            different=self.different + other.different,
            repaired=self.repaired + other.repaired,
            unfolded=self.unfolded or other.unfolded,
        )


class DueForgetting(msgspec.Struct, frozen=True, kw_only=True):
    """A request to forget whose time to be undone is over."""

    asked: Forgetting
    generation: int
    """Of its user."""


class EventLog(Documents, PolicySettings, Protocol):
    """The append-only truth, and the views folded from it inside the append's own transaction."""

    async def append(self, events: Sequence[Event], *, unless_held: bool = False) -> None:
        """Make `events` durable, all or none; when this returns they survive what `durability` promises.

        An event whose id the log already has is skipped. With `unless_held` it raises UnderHold if a legal
        hold is on one of the users, of a tenant's erasure on any of the tenant's, looked at in the same
        transaction: of a hold and an erasure at once one comes first. Raises StaleGeneration if one carries
        an older generation than its user's, PrivateSession if one is a call of a private session,
        LogUnavailable if the log can't take it.
        """
        ...

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
        """Events with `seq > after` in log order. Redacted events are left out.

        `subjects`: the exchanges, pages, memories and segments that they are about; none: all. An id is a
        user's own, so they are asked for with tenant and user.
        """
        ...

    async def present(self, ids: Sequence[str]) -> dict[str, tuple[str, str, int]]:
        """Those of the event ids that the log has, redacted ones too: (tenant, user, generation) of each."""
        ...

    async def handled(self, tenant: str, user: str, consumers: Sequence[str]) -> dict[str, int]:
        """Up to which position each of those consumers has handled the user's events; 0 before the first."""
        ...

    async def find(
        self, where: EventFilter, *, after: int = 0, before: int | None = None, limit: int = 50
    ) -> EventsFound:
        """Events that meet the filter behind `after` in log order or, where that is given, in front of
        `before`, the latest first. Redacted events are left out. A call's work is bounded, so it may find
        nothing and not be at the end.
        """
        ...

    async def check(self, tenant: str, user: str, *, after: int = 0, limit: int = 500) -> EventsChecked:
        """Make the checksums of some of the user's events again and compare them."""
        ...

    async def compare_views(self, tenant: str, user: str, *, repair: bool = False) -> ViewsCompared:
        """Fold the user's events anew, beside the views in use, and compare both row by row. What differs is
        looked at twice; with `repair` it is put right then.
        """
        ...

    async def records(self, tenant: str, user: str, *, after: str = "", limit: int = 500) -> list[Record]:
        """The user's pages and memories by id, those that recall leaves out too, behind an id."""
        ...

    async def count_events(self, tenant: str, user: str | None = None) -> list[EventCount]:
        """All events of the tenant or the user, redacted ones included, by month and kind."""
        ...

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
        """Generation, session and retry of a request: by `response_id`, else by the tail (last pair; two
        pairs where that is ambiguous; user texts), within seven days. Ambiguous means the newest session of
        the last 30 minutes, else none. `scope.session`, if set, restricts the look-up to that session.
        `unwritten`: captured steps, of any user, that are on their way into the log and found like its own.
        """
        ...

    async def secret(self, tenant: str) -> bytes:
        """The tenant's 32 random bytes that key every content-derived digest; made at first use, cached."""
        ...

    async def generation(self, tenant: str, user: str) -> int:
        """The user's current generation; 1 for a user never erased."""
        ...

    async def memory(self, tenant: str, user: str, memory_id: str) -> Memory | None:
        """One live memory, or None."""
        ...

    async def memories(
        self, tenant: str, user: str, *, where: MemoryFilter, after: tuple[datetime, str] | None, limit: int
    ) -> list[Memory]:
        """Live memories, newest first, after the keyset position (created_at, id).

        What has the same moment, in this list and in the next two, comes in the order of the log.
        """
        ...

    async def count_memories(self, tenant: str, user: str, *, where: MemoryFilter) -> int:
        """How many live memories match."""
        ...

    async def facts_about(self, tenant: str, user: str, about: Sequence[tuple[str, str]]) -> list[Memory]:
        """The latest memories of those (subject, attribute), closed and expired ones among them."""
        ...

    async def facts_of(self, tenant: str, user: str, page: str) -> list[Memory]:
        """Memories that rest on the page or were ended by it, closed and expired ones among them."""
        ...

    async def concepts_on(self, tenant: str, user: str, memories: Sequence[str]) -> list[str]:
        """Concepts that rest on one of those memories, those among them that are out because it changed."""
        ...

    async def shown_in(self, tenant: str, user: str, records: Sequence[str], *, limit: int) -> list[str]:
        """The latest exchanges in whose blocks one of the records stood."""
        ...

    async def exchange(self, tenant: str, user: str, exchange_id: str) -> Exchange | None:
        """One exchange, or None."""
        ...

    async def steps(self, tenant: str, user: str, exchange_id: str) -> list[Event]:
        """The readable `step.captured` events of one exchange, in the order in which they happened."""
        ...

    async def last_exchange(self, scope: Scope) -> str | None:
        """The exchange of the session that was begun last, by the order of the log: clocks may jump."""
        ...

    async def exchanges(
        self, tenant: str, user: str, *, session: str | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[Exchange]:
        """Exchanges, newest first, after the keyset position (started_at, id); with no id those before it."""
        ...

    async def sessions(
        self, tenant: str, user: str, *, after: tuple[datetime, str] | None, limit: int
    ) -> list[SessionInfo]:
        """Sessions, newest first, after the keyset position (last_at, id)."""
        ...

    async def session_mode(self, tenant: str, user: str, session: str) -> SessionMode:
        """What memory does in that session."""
        ...

    async def tenants(self) -> list[str]:
        """Every tenant that the log has a user of, in order of name."""
        ...

    async def outlived(
        self, tenant: str, *, now: datetime, before: Mapping[str, datetime], limit: int
    ) -> list[Outlived]:
        """Memories of the tenant that have expired, and of each kind what was said before its moment."""
        ...

    async def forgetting(self, tenant: str, user: str, exchange_id: str) -> Forgetting | None:
        """What the user asked to forget in that exchange; None where that was nothing."""
        ...

    async def forgettings(self, tenant: str, user: str, *, limit: int) -> list[Forgetting]:
        """The user's latest requests to forget, newest first."""
        ...

    async def due_forgettings(self, tenant: str, *, now: datetime, limit: int) -> list[DueForgetting]:
        """The tenant's requests to forget that are to be carried out for good."""
        ...

    async def users(self, tenant: str, *, after: str, limit: int) -> list[str]:
        """Users of the tenant with any event since they were last erased, in order of name, after `after`."""
        ...

    async def spending(self, tenant: str, *, since: date) -> list[Spent]:
        """What the tenant's memory asked of models, by day and model, the oldest day first."""
        ...

    async def pages(self, tenant: str, user: str, *, limit: int) -> list[Page]:
        """The user's latest active pages, oldest first: what short-term memory is rebuilt from."""
        ...

    async def previous_page(self, page: Page) -> Page | None:
        """The page that `page.previous` names, if it is still live."""
        ...

    async def following_pages(self, tenant: str, user: str, page_id: str) -> list[str]:
        """The pages that name that one, forgotten or not, as the page before."""
        ...

    async def record(self, tenant: str, user: str, record_id: str) -> Record | None:
        """The live page or memory of that id, or None; of `EVERYBODY` the chunk of a document."""
        ...

    async def records_named(self, tenant: str, user: str, ids: Iterable[str]) -> dict[str, Record]:
        """Those that `record` would give, by id in the order of `ids`, read at one go."""
        ...

    async def traced(self, tenant: str, user: str, trace: str) -> list[Event]:
        """The readable steps into which the recall of that trace went, in the order of the log."""
        ...

    async def begin_walk(self) -> Walk:
        """A walk over all active pages, live memories and chunks of documents in force, from the first."""
        ...

    async def walk(self, walk: Walk, *, limit: int) -> tuple[list[Walked], Walk]:
        """The walk's next records, at most so many, and where to go on; at the end its part is `done`."""
        ...

    async def walk_users(self, *, after: int, limit: int) -> list[WalkedUser]:
        """Users of all tenants, erased ones too, in the order of their places."""
        ...

    async def unindexed(self, tenant: str, user: str) -> list[str]:
        """The user's active pages that the index projector has yet to come to."""
        ...


class MemoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories a list or search means; all conditions hold together."""

    types: tuple[str, ...] = ()
    """`page` or memory types; empty means all, in a list without concepts: they say again what others say."""
    tags: tuple[str, ...] = ()
    """All of these."""
    metadata: Mapping[str, str | int | float | bool | None] = {}
    """Equal values for all of these keys."""
    since: datetime | None = None
    """`occurred_at` at or after."""
    until: datetime | None = None
    """`occurred_at` before."""
    words: str = ""
    """All of these words occur in the text, in any order, whatever their case."""
    agent: str | None = None
    own_agent: str | None = None
    """`Scope.own_agent` of the memory: a name for that isolated agent's own ones alone."""
    session: str | None = None
    include_superseded: bool = False
    as_of: datetime | None = None
    """What held at that moment, by what is known now; `include_superseded` then means nothing."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right of one process to move one consumer's cursor."""

    consumer: str
    partition: int
    owner: str
    seq: int
    epoch: int


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """What a consumer has yet to handle."""

    events: int = 0
    seconds: float = 0.0
    """Since the oldest of them was recorded."""


class ExchangeState(msgspec.Struct, frozen=True, kw_only=True):
    """What the page decider knows of an exchange before it decides."""

    steps: tuple[Event, ...]
    """Its live `step.captured` events by `occurred_at`."""
    page: Page | None
    """Its page, if it was closed before."""
    siblings: tuple[Page, ...]
    """Pages of other exchanges with the same parent in the same session."""
    ancestors: tuple[str, ...]
    """Parents up to the session's start, nearest first."""
    descendants: tuple[str, ...]
    """Pages below the siblings, which leave and return with them."""


class Consumers(Protocol):
    """Cursors, leases and decisions of the worker's parts."""

    @property
    def partitions(self) -> int:
        """How many independent cursors a consumer has (1 embedded, 16 on PostgreSQL)."""
        ...

    def partition(self, tenant: str, user: str) -> int:
        """Which of them passes the user's events."""
        ...

    async def lease(self, consumer: str, partition: int, *, owner: str, seconds: float) -> Lease | None:
        """Take or renew the lease; None while another owner holds it."""
        ...

    async def pending(self, lease: Lease, *, limit: int, kinds: Sequence[str]) -> list[Event]:
        """The next events after the lease's cursor in its partition, of those kinds."""
        ...

    async def advance(self, lease: Lease, *, seq: int, decisions: Sequence[Event] = ()) -> Lease:
        """In one transaction append `decisions` (idempotent by id; those of an erased generation are
        dropped) and move the cursor to `seq`. Raises LeaseLost if the epoch is no longer the lease's.
        """
        ...

    async def exchange_state(self, event: Event) -> ExchangeState:
        """State for the exchange that the `step.captured` event belongs to."""
        ...

    async def idle_exchanges(self, *, before: datetime, limit: int) -> list[Event]:
        """The last step of each open, unfailed exchange whose last step finished before that moment."""
        ...

    async def start_attempt(self, consumer: str, event: Event) -> int:
        """Commit and return the number of starts of this event, this one included."""
        ...

    async def park(self, consumer: str, event: Event, error: str) -> None:
        """Set a poisonous event aside; `parked` shows it, `unpark` ends that."""
        ...

    async def parked(self) -> list[tuple[str, Event, str]]:
        """(consumer, event, error) of everything set aside."""
        ...

    async def unpark(self, consumer: str, event_id: str) -> bool:
        """Forget that the event was parked, and its attempts; False if it wasn't parked."""
        ...

    async def behind(self, consumer: str, kinds: Sequence[str]) -> list[int]:
        """The partitions that hold events of those kinds after the consumer's cursor."""
        ...

    async def lag(self, kinds: Mapping[str, Sequence[str]]) -> dict[str, Lag]:
        """What each consumer, by name, has yet to handle of its kinds."""
        ...


class KnownSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A segment as the log's views have it."""

    id: str
    owner: str
    """As `Scope.owner`."""
    state: Literal["live", "spoiled", "evicted", "lost"]
    """`spoiled` and `lost`: a live or an evicted one lost a page, and must be summed up anew."""
    heat: Heat
    segment: Segment | None
    """None unless it is live."""
    episode: str
    changed: int
    """Position of the last event that changed any of it."""


class TenantSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A live segment, and whose it is."""

    user: str
    generation: int
    """Of its user."""
    segment: Segment
    heat: Heat
    changed: int
    """As in `KnownSegment`."""


class WaitingPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of short-term memory, by what the decision about its leaving needs; later as it left."""

    id: str
    session: str
    at: datetime
    size: int
    """Bytes of its texts."""
    drawn: int
    seen: int
    """Replies that drew on it, and that were given it and did not."""
    visited: datetime | None
    facts: int
    """Memories that rest on it."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How full an owner's tiers are, and what has gone through them."""

    waiting: int
    waiting_bytes: int
    """Pages that no segment has, and bytes of their texts."""
    sessions: int
    """That those pages are of."""
    summaries: int
    """Sessions of which something has left, summed up."""
    oldest: datetime | None
    """When the first of them was said."""
    heats: dict[str, Heat]
    """Of live segments, by id."""
    pages: int
    pages_bytes: int
    """In live segments."""
    moved: int
    """Pages that ever left short-term memory, without those that are forgotten."""
    evicted: int
    """Segments that have left."""
    memories: dict[str, tuple[int, int]]
    """By type: those that hold, and those that were closed or replaced."""
    lately: dict[str, int]
    """Events by kind, from the given moment on; of a very busy user the latest ones alone."""


class MidTerm(Protocol):
    """What the log knows of segments and of the pages that have none yet."""

    async def segments(self, tenant: str, user: str, owner: str, *, after: int = 0) -> list[KnownSegment]:
        """The owner's segments that changed after that position, in the order of their changes."""
        ...

    async def waiting_pages(self, tenant: str, user: str, owner: str, *, limit: int) -> list[WaitingPage]:
        """The owner's active pages that no segment has, oldest first."""
        ...

    async def segments_of(self, tenant: str, user: str, pages: Sequence[str]) -> dict[str, str]:
        """The segment of each of those pages that has one, by page."""
        ...

    async def pages_in(self, tenant: str, user: str, segment: str) -> list[Page]:
        """The pages of a segment that are on the live branch, oldest first; evicted ones among them."""
        ...

    async def latest_in(
        self, tenant: str, user: str, segments: Sequence[str], *, each: int
    ) -> dict[str, list[Page]]:
        """The latest pages of those segments, so many of each, oldest first; by segment."""
        ...

    async def members(self, tenant: str, user: str, segment: str) -> list[WaitingPage]:
        """The same pages as `pages_in`, with the visits that each had before it moved."""
        ...

    async def segments_named(self, tenant: str, user: str, ids: Sequence[str]) -> list[KnownSegment]:
        """Those of the user's segments, whosever agent's they are."""
        ...

    async def crowd(self, tenant: str) -> Crowd:
        """How much mid-term memory all of the tenant's users have, who can be reached."""
        ...

    async def coldest(self, tenant: str, policy: HeatPolicy, *, limit: int) -> list[TenantSegment]:
        """The tenant's coldest live segments, the coldest first, whoever's they are.

        Where more are equally cold than there is room for, those of the least ids.
        """
        ...

    async def untouched(self, tenant: str, before: datetime, *, limit: int) -> list[TenantSegment]:
        """The tenant's live segments that nothing has touched since that moment, the longest first."""
        ...

    async def summaries(
        self, tenant: str, user: str, owner: str, sessions: Sequence[str]
    ) -> dict[str, tuple[SummaryLine, ...]]:
        """The running summaries of those sessions that have one, of the owner's pages alone, by session."""
        ...

    async def standing(self, scope: Scope, *, since: datetime) -> Standing:
        """How full the scope's tiers are, and what has moved since that moment, without reading any text.

        Memories are those of all agents, for an isolated one its own.
        """
        ...


class ShortTerm(Protocol):
    """The latest pages of a user, with their query vectors and blocks. A projection: rebuilt from the log."""

    async def push(self, page: Page, *, vector: Embedding | None, block: PlacedBlock | None) -> None:
        """Add the page, or replace the one of its id. A page of an open exchange may be pushed for its block
        alone: then its texts are empty and `latest` does not return it as a page.
        """
        ...

    async def latest(self, scope: Scope, *, limit: int) -> ShortTermView:
        """The user's latest pages over all sessions, and the blocks of `scope.session`."""
        ...

    async def settle(self, scope: Scope, pages: Sequence[Page]) -> None:
        """Those pages, as given, stand in long-term memory now: what is held of them takes over their texts,
        and beyond capacity may leave. A push of equal texts that arrives later counts as settled too. Without
        pages it says that the log's latest pages were all pushed, and so makes the user known.
        """
        ...

    async def restore(
        self, scope: Scope, generation: int, pages: Sequence[Page], *, waiting: Collection[str]
    ) -> None:
        """Hold these pages of the user, all agents' and oldest first, in place of the settled ones that are
        held; what is held and not settled stays, and so do blocks. Long-term memory has them, but for those
        `waiting` for it. All or nothing, and nothing where the store knows a newer generation.
        """
        ...

    async def drop(self, scope: Scope, records: Sequence[str]) -> None:
        """Remove those pages, and all blocks that show one of the records (forgotten, changed, or left)."""
        ...

    async def clear(self, tenant: str, user: str, *, before: int | None = None) -> None:
        """Remove everything of the user, of all agents; with `before` what is of an older generation than
        that, and refuse such pages from now on.
        """
        ...

    def people(self) -> AsyncIterator[Scope]:
        """Everybody of whom something is known here, some perhaps twice."""
        ...


class Shared(Protocol):
    """What processes of one gateway tell each other, for a while. All raise StoreUnavailable."""

    async def keep(self, kind: str, id: str, body: bytes, *, seconds: int, tenant: str, user: str) -> None:
        """Keep the body for so long; it goes with the user, where the names are not empty."""
        ...

    async def get(self, kind: str, id: str) -> bytes:
        """The body, whoever kept it; empty where there is none any more."""
        ...

    async def drop(self, tenant: str, user: str) -> None:
        """Remove all that goes with the user."""
        ...

    async def add(self, counter: str, amount: int, *, seconds: int) -> int:
        """Add to a counter, which lives for so long after the last addition; what it has then."""
        ...


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """A record as long-term memory stores it."""

    record: Record
    text: str
    """What the `text` vector and the `lexical` terms are made of."""
    context: str
    """What the `context` vector is made of: the page before and this one; equal to `text` where none."""
    stored: Page | None = None
    """What the store keeps in place of the record, which it then holds no text of; None: the record."""
    digest_key: bytes = b""
    """Without which nobody can check a guess at the texts by the digests that the store keeps of them."""


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One hybrid query: dense by `text` and `context`, sparse by `lexical`, all filtered by owner."""

    owners: tuple[str, ...]
    """At least one; a store refuses a request without."""
    text: str
    """Embedded as a query, unless a `vector` by the store's embedder is given."""
    vector: Embedding | None = None
    lexical: str = ""
    """Text whose terms are looked up; empty means `text`."""
    limit: int = 100
    """Candidates of each kind of score."""
    where: MemoryFilter = MemoryFilter()
    """Conditions that every candidate meets; that it is live is for the caller to see."""
    deadline: float = 0.150
    """Seconds from now; the embedding gets 60 % of it, then the lexical query goes alone."""

    def vector_by(self, embedder: str) -> Vector | None:
        """The given vector, if it is that embedder's."""
        return self.vector.numbers if self.vector and self.vector.by == embedder else None


class Projected(Protocol):
    """What a projector does to the index of pages and memories."""

    async def upsert(self, records: Sequence[Indexed]) -> None:
        """Add or replace by record id. Durable when it returns, unless `flush` is the store's own matter."""
        ...

    async def delete(self, owner: str, ids: Sequence[str]) -> None:
        """Remove those of the ids that the owner has. Unknown ids are no error."""
        ...

    async def clear(self, tenant: str, user: str) -> None:
        """Remove everything of the user, of all agents."""
        ...

    async def flush(self) -> None:
        """Make every upsert and delete so far durable; a cursor is saved only after this."""
        ...

    async def count(self, owner: str) -> int:
        """How many records the owner has."""
        ...


class LongTerm(Projected, Protocol):
    """The index of pages and memories by meaning and words. Blind outside the owners asked for."""

    async def search(self, request: SearchRequest) -> SearchResult:
        """Candidates with each score of their own, unordered, inactive and expired records included.

        Raises StoreUnavailable; a part that is late or broken is named in `missing` instead.
        """
        ...

    async def get(self, owner: str, ids: Sequence[str]) -> list[Record]:
        """Those of the ids that the owner has."""
        ...

    async def walk(self, owner: str, *, after: str = "", limit: int) -> tuple[list[Record], str]:
        """Some of the owner's records, in an order of the store's own, and the `after` of the next ones; that
        is empty at the end. Records that come or go meanwhile may be among them.
        """
        ...

    async def vectors(self, owner: str, ids: Sequence[str]) -> dict[str, Embedding]:
        """The `text` vectors of those of the ids that the owner has, by id.

        L2-normalised, as stored; searches go before. No ids give `{}` without a round trip.
        """
        ...

    async def purge(self) -> None:
        """Leave nothing of what was removed in files of one's own; durable when it returns."""
        ...
