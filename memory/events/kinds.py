"""The event kinds: what can happen and what the pipeline can decide, one payload record each.

A payload's tag is its `kind` in the log, a stable string that is never an import path. To change a payload,
raise its version in `VERSIONS` and add an upcaster to `events.codec`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import uuid4

import msgspec

from hearth.memory.erasure.receipt import Receipt
from hearth.memory.tiers.heat import Heat
from hearth.memory.tiers.layers import Part, Value
from hearth.memory.types import (
    Asked,
    AskedOutcome,
    CandidateFact,
    Chunk,
    Document,
    DrawnItem,
    Judgement,
    Memory,
    Outdated,
    Page,
    PageState,
    Ranking,
    Scope,
    Segment,
    SessionMode,
    Step,
    SummaryLine,
    Tails,
    Usage,
    utc,
)

ByKey: TypeAlias = Literal["export", "import", "load", "remove", "switch", "repair", "write"]
"""What is done with a key, in its tenant; `write`: in a user's memory, with an admin key."""
OnTheMachine: TypeAlias = Literal["switch", "retry", "replay", "migrate", "archive", "encrypt", "rotate"]
"""What is done by a command on the machine itself."""
Act: TypeAlias = ByKey | OnTheMachine


class StepCaptured(msgspec.Struct, frozen=True, kw_only=True, tag="step.captured", tag_field="kind"):
    """A model call ended: complete, partial or failed. Written by the gateway before the reply's end."""

    step: Step
    decided: bool = False
    """Of an imported one: whether the decisions that it led to came with it, so that none is made here."""


class ExchangeEnriched(msgspec.Struct, frozen=True, kw_only=True, tag="exchange.enriched", tag_field="kind"):
    """What LiteLLM's log event adds later: the model that really answered, tokens and cost."""

    exchange: str
    model: str = ""
    usage: Usage | None = None
    cost: float | None = None
    """US dollars."""


class PageClosed(msgspec.Struct, frozen=True, kw_only=True, tag="page.closed", tag_field="kind"):
    """The decider closed an exchange: here is its page. A second one of the same id replaces the first."""

    page: Page
    decided: bool = False
    """See StepCaptured."""


class PageMoved(msgspec.Struct, frozen=True, kw_only=True, tag="page.moved", tag_field="kind"):
    """A page left or re-entered the branch that the client follows."""

    page: str
    state: PageState
    reason: str
    decided: bool = False
    """See StepCaptured."""


class PageOutdated(msgspec.Struct, frozen=True, kw_only=True, tag="page.outdated", tag_field="kind"):
    """What of a page says facts that hold no more, whole; empty where all of it holds again."""

    page: str
    outdated: tuple[Outdated, ...]
    decided: bool = False
    """See StepCaptured."""


class PageSegmented(msgspec.Struct, frozen=True, kw_only=True, tag="page.segmented", tag_field="kind"):
    """A page left short-term memory for a segment, or its segment because it left its branch."""

    page: str
    segment: str | None
    reason: str
    affinity: float = 0.0


class SegmentChanged(msgspec.Struct, frozen=True, kw_only=True, tag="segment.changed", tag_field="kind"):
    """A segment's new state, whole; what was written of it before goes."""

    segment: Segment
    heat: Heat


class SegmentVisited(msgspec.Struct, frozen=True, kw_only=True, tag="segment.visited", tag_field="kind"):
    """A recall showed something of a segment; its heat with that."""

    segment: str
    exchange: str
    weight: float
    used: bool = True
    """Whether the reply drew on it."""
    heat: Heat


class SegmentPromoted(msgspec.Struct, frozen=True, kw_only=True, tag="segment.promoted", tag_field="kind"):
    """A segment was hot: what it had gained went to long-term memory."""

    segment: str
    pages: int
    """That it had."""
    warmth: float


class SegmentPinned(msgspec.Struct, frozen=True, kw_only=True, tag="segment.pinned", tag_field="kind"):
    """Somebody pinned a segment, so that it never is evicted, or lifted that."""

    segment: str
    pinned: bool
    decided: bool = False
    """See StepCaptured."""


class SegmentDue(msgspec.Struct, frozen=True, kw_only=True, tag="segment.due", tag_field="kind"):
    """A segment has to go for its age, or for a limit over all users of its tenant; the segment decider sees
    to it, unless it was pinned or touched since.
    """

    segment: str
    reason: str


class SegmentEvicted(msgspec.Struct, frozen=True, kw_only=True, tag="segment.evicted", tag_field="kind"):
    """A segment left mid-term memory with its pages; the log still has their words."""

    segment: str
    reason: str
    warmth: float


class MemoryAdded(msgspec.Struct, frozen=True, kw_only=True, tag="memory.added", tag_field="kind"):
    """A memory was added by hand, by import or by extraction."""

    memory: Memory


class MemoryChanged(msgspec.Struct, frozen=True, kw_only=True, tag="memory.changed", tag_field="kind"):
    """A memory's new state, whole, and the names of the fields that differ."""

    memory: Memory
    changed: tuple[str, ...]

    @property
    def says_otherwise(self) -> bool:
        """False where it says the same as before, more surely or with more weight."""
        return not _WEIGHTS.issuperset(self.changed)


_WEIGHTS = frozenset({"confidence", "importance", "pinned", "tags", "metadata", "evidence", "updated_at"})
"""Fields of a memory that change nothing of what it says, and since when."""


class MemoryForgotten(msgspec.Struct, frozen=True, kw_only=True, tag="memory.forgotten", tag_field="kind"):
    """One memory was removed. Its earlier payloads are redacted; this tombstone stays."""

    memory: str
    reason: str = "requested"
    own_agent: str = ""
    """The isolated agent whose own it was, as the log knew when it took this; empty for what agents share."""


class MemoryWithdrawn(msgspec.Struct, frozen=True, kw_only=True, tag="memory.withdrawn", tag_field="kind"):
    """What a memory was read from left the live branch; it comes back as it was if that returns."""

    memory: str


class PageForgotten(msgspec.Struct, frozen=True, kw_only=True, tag="page.forgotten", tag_field="kind"):
    """One exchange was removed. Its earlier payloads are redacted; this tombstone stays."""

    page: str
    reason: str = "requested"
    own_agent: str = ""
    """See MemoryForgotten."""
    decided: bool = False
    """See StepCaptured."""


class SessionSwitched(msgspec.Struct, frozen=True, kw_only=True, tag="session.switched", tag_field="kind"):
    """What memory does in a session from now on. Of a private one this is all that the log has."""

    mode: SessionMode
    exchange: str = ""
    """The one that was private; empty where the switch came from no call."""
    isolated: bool = False
    response_id: str = ""
    """The provider's id of its reply."""
    tails: Tails = Tails()
    """By which the next call finds the session, where the client names none; digests alone."""


class SessionSummarised(
    msgspec.Struct, frozen=True, kw_only=True, tag="session.summarised", tag_field="kind"
):
    """What has left short-term memory of a session, summed up; in place of all that was said so before."""

    session: str
    owner: str
    """Whose pages they are, as `Scope.owner`."""
    lines: tuple[SummaryLine, ...]
    """Oldest first. A forgotten exchange takes its own along."""


class ForgetAsked(msgspec.Struct, frozen=True, kw_only=True, tag="forget.asked", tag_field="kind"):
    """A user asked in a conversation to forget something, and this is what it was taken to mean.

    What it names is out of recall with the decisions beside it, and forgotten for good at `until` unless the
    request is undone before. It has no words of its own: those are the exchange's.
    """

    exchange: str
    """In which it was asked."""
    understood: Asked
    outcome: AskedOutcome
    about: tuple[str, ...] = ()
    """Attributes of the facts that were meant."""
    memories: tuple[str, ...] = ()
    pages: dict[str, PageState] = {}
    """Exchanges that are forgotten whole, with the state that each had."""
    marked: tuple[str, ...] = ()
    """Exchanges of which some words are."""
    until: datetime | None = None
    """None where nothing is to be forgotten."""


class ForgetUndone(msgspec.Struct, frozen=True, kw_only=True, tag="forget.undone", tag_field="kind"):
    """A request to forget was taken back: what it named is recalled again."""

    exchange: str


class ForgetDone(msgspec.Struct, frozen=True, kw_only=True, tag="forget.done", tag_field="kind"):
    """The time to take a request back is over: what it named is forgotten for good."""

    exchange: str


class RecallJudged(msgspec.Struct, frozen=True, kw_only=True, tag="recall.judged", tag_field="kind"):
    """Somebody said how good a recall was, as a whole or item by item."""

    trace: str
    judgement: Judgement | None = None
    """Of the whole; None where only items were judged."""
    items: dict[str, Judgement] = {}
    """By record id."""
    ranking: Ranking | None = None
    """As it was at recall; the judged items are among it. None where there was no candidate."""
    note: str = ""
    """In the judge's own words, secrets masked; goes when a record that it may speak of is forgotten."""


class RecallDrawn(msgspec.Struct, frozen=True, kw_only=True, tag="recall.drawn", tag_field="kind"):
    """The decider saw what a reply drew on. A second one of the same exchange replaces the first."""

    trace: str
    exchange: str
    items: tuple[DrawnItem, ...]
    """All that was injected and is not forgotten."""
    ranking: Ranking
    decided: bool = False
    """See StepCaptured."""


class KnowledgeLoaded(msgspec.Struct, frozen=True, kw_only=True, tag="knowledge.loaded", tag_field="kind"):
    """A version of a document, in place of the one before. Without text once it is replaced or removed."""

    document: Document
    chunks: tuple[Chunk, ...]
    before: int = 0
    """Chunks of the version before."""


class KnowledgeRemoved(msgspec.Struct, frozen=True, kw_only=True, tag="knowledge.removed", tag_field="kind"):
    """A document was removed. Its earlier payloads are redacted; this tombstone stays."""

    document: str
    version: int
    """That was in force."""
    chunks: int
    """Of that version."""
    by: str = ""
    """Name of the key that removed it."""


class SystemRefused(msgspec.Struct, frozen=True, kw_only=True, tag="system.refused", tag_field="kind"):
    """An operator does not want what many users share as system memory; it is not proposed again."""

    topic: str
    """Attribute and value."""
    by: str = ""
    """Name of the key that refused."""


class PolicyChanged(msgspec.Struct, frozen=True, kw_only=True, tag="policy.changed", tag_field="kind"):
    """Somebody set or lifted values of the policy while the gateway ran, for the tenant or a part of it."""

    level: Part
    whose: str = ""
    """The agent or key; empty of the tenant."""
    values: dict[str, Value | None]
    """By name; None: lifted, so that the file or a wider level counts again."""
    by: str = ""
    """Name of the key that did so."""


class ExtractionReplied(
    msgspec.Struct, frozen=True, kw_only=True, tag="extraction.replied", tag_field="kind"
):
    """What the extraction model answered about some pages, and what that cost."""

    pages: tuple[str, ...]
    text: str
    """Word for word; empty for an answer that could not be used, and once one of the pages, or a fact that
    rests on one, is forgotten.
    """
    problem: str = ""
    """Why it could not be used."""
    model: str
    """That answered."""
    usage: Usage = Usage()
    cost: float | None = None
    """US dollars; None where it is not known."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of a page."""

    fact: str
    """Id of the fact that it makes, if it makes one."""
    said: CandidateFact


class PageRead(msgspec.Struct, frozen=True, kw_only=True, tag="page.read", tag_field="kind"):
    """What a page states, as it was made out once: nobody asks a model again. A later one replaces it, but
    one that leaves the page to a model replaces nothing.
    """

    page: str
    by: str = ""
    """Name of the extractor; empty: a model is yet to read it."""
    digest: str = ""
    """Of the user's words that were read."""
    said: tuple[Reading, ...] = ()
    refused: dict[str, int] = {}
    """Claims of the model that did not hold, by reason."""
    reply: str = ""
    """Id of the `extraction.replied` that it was made from; empty where rules read the page."""
    decided: bool = False
    """It was imported with what was decided because of it."""


class UserErased(msgspec.Struct, frozen=True, kw_only=True, tag="user.erased", tag_field="kind"):
    """All of a user was removed; events of an older generation than this one are refused from now on."""

    generation: int


class SessionForgotten(msgspec.Struct, frozen=True, kw_only=True, tag="session.forgotten", tag_field="kind"):
    """A session was removed: what was begun in it before is refused from now on. Its exchanges and memories
    have tombstones of their own.
    """

    session: str
    reason: str = "requested"


class TenantErased(msgspec.Struct, frozen=True, kw_only=True, tag="tenant.erased", tag_field="kind"):
    """All users of a tenant are being removed: none of them is reachable any more, and each takes part again
    once it was erased by itself.
    """

    generation: int
    """The least that a user of the tenant has from now on."""


class ErasureChanged(msgspec.Struct, frozen=True, kw_only=True, tag="erasure.changed", tag_field="kind"):
    """An erasure's new state, whole; what was written of it before goes."""

    receipt: Receipt


class HoldPlaced(msgspec.Struct, frozen=True, kw_only=True, tag="hold.placed", tag_field="kind"):
    """A legal hold was placed on a user, or its reason changed."""

    user: str
    reason: str
    by: str
    """Name of the key."""


class HoldLifted(msgspec.Struct, frozen=True, kw_only=True, tag="hold.lifted", tag_field="kind"):
    """A legal hold was lifted."""

    user: str
    reason: str
    by: str
    """Name of the key."""


class ActDone(msgspec.Struct, frozen=True, kw_only=True, tag="act.done", tag_field="kind"):
    """Somebody did what no other event tells the doer of: written down when it begins. What is done by a
    command on the machine itself is of no tenant (`hearth events --installation`).
    """

    act: Act
    by: str
    """Name of the key; of a command on the machine its user there and the host, as `root@gateway-1`."""
    user: str = ""
    """Whose memory; empty where it is about all of the tenant."""
    about: str = ""
    """The export's or import's format, the document's id, the switch, what is written, or what the command
    was told.
    """


Payload: TypeAlias = (
    StepCaptured
    | ExchangeEnriched
    | PageClosed
    | PageMoved
    | PageOutdated
    | PageSegmented
    | SegmentChanged
    | SegmentVisited
    | SegmentPromoted
    | SegmentPinned
    | SegmentDue
    | SegmentEvicted
    | MemoryAdded
    | MemoryChanged
    | MemoryForgotten
    | MemoryWithdrawn
    | PageForgotten
    | SessionSwitched
    | SessionSummarised
    | ForgetAsked
    | ForgetUndone
    | ForgetDone
    | RecallJudged
    | RecallDrawn
    | KnowledgeLoaded
    | KnowledgeRemoved
    | PolicyChanged
    | ExtractionReplied
    | PageRead
    | SystemRefused
    | UserErased
    | SessionForgotten
    | TenantErased
    | ErasureChanged
    | HoldPlaced
    | HoldLifted
    | ActDone
)

VERSIONS: dict[str, int] = {
    "step.captured": 1,
    "exchange.enriched": 1,
    "page.closed": 1,
    "page.moved": 1,
    "page.outdated": 1,
    "page.segmented": 1,
    "segment.changed": 1,
    "segment.visited": 1,
    "segment.promoted": 1,
    "segment.pinned": 1,
    "segment.due": 1,
    "segment.evicted": 1,
    "memory.added": 1,
    "memory.changed": 1,
    "memory.forgotten": 1,
    "memory.withdrawn": 1,
    "page.forgotten": 1,
    "session.switched": 1,
    "session.summarised": 1,
    "forget.asked": 1,
    "forget.undone": 1,
    "forget.done": 1,
    "recall.judged": 1,
    "recall.drawn": 1,
    "knowledge.loaded": 1,
    "knowledge.removed": 1,
    "policy.changed": 1,
    "extraction.replied": 1,
    "page.read": 1,
    "system.refused": 1,
    "user.erased": 1,
    "session.forgotten": 1,
    "tenant.erased": 1,
    "erasure.changed": 1,
    "hold.placed": 1,
    "hold.lifted": 1,
    "act.done": 1,
}
"""The version that this program writes, by kind."""


UNKNOWN = 0
"""The generation of a step that was captured while the log could not be asked. It is taken as of its time:
refused if the user was erased since.
"""


def is_decided(payload: Payload) -> bool:
    """Whether no decider has anything left to do because of it: it was imported with what was decided."""
    match payload:
        case StepCaptured() | PageClosed() | PageMoved() | PageOutdated() | PageForgotten():
            return payload.decided
        case RecallDrawn() | SegmentPinned() | PageRead():
            return payload.decided
        case _:
            return False


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the log."""

    id: str
    """UUID in hexadecimal; a decision's is `uuid5(source event, kind, ordinal)`: a re-run is a no-op."""
    tenant: str
    user: str
    agent: str = "default"
    session: str = ""
    generation: int
    occurred_at: datetime
    """When it happened, by the gateway's clock at request start; clamped by the log to recorded_at + 2 s."""
    parent: str | None = None
    """The exchange or event that caused it; order and validity follow this, never `seq`."""
    payload: Payload
    seq: int = 0
    """Position in the log, a cursor and nothing else; 0 until appended."""
    recorded_at: datetime | None = None
    """When the log's database took it; None until appended."""

    def __post_init__(self) -> None:
        utc(self.occurred_at)

    @property
    def kind(self) -> str:
        """The payload's stable name, such as `step.captured`."""
        return str(self.payload.__struct_config__.tag)


def happened(
    scope: Scope, payload: Payload, generation: int, *, at: datetime, id: str = "", parent: str | None = None
) -> Event:
    """An event of the scope's that is not in the log yet; without an `id` it gets one of its own."""
    return Event(
        id=id or uuid4().hex,
        tenant=scope.tenant,
        user=scope.user,
        agent=scope.agent,
        session=scope.session,
        generation=generation,
        occurred_at=at,
        parent=parent,
        payload=payload,
    )


def scope_of(event: Event, step: Step) -> Scope:
    """Whose a captured step is, and in which session: the event alone does not tell an isolated agent."""
    return Scope(
        tenant=event.tenant,
        user=event.user,
        agent=event.agent,
        session=event.session,
        isolated=step.isolated,
    )
