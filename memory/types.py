"""The contract on a page: the records that every other module speaks in.

All records are frozen and keyword-only; change one with `msgspec.structs.replace`.
Every datetime is aware and in UTC; every id is a 32-digit hexadecimal UUID unless its field says otherwise.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias
from urllib.parse import quote, unquote

import msgspec

Vector: TypeAlias = list[float]
"""A dense embedding, L2-normalised, of the dimension that the embedder states."""


class Embedding(msgspec.Struct, frozen=True, array_like=True):
    """A vector and whose it is: those of two embedders are never compared."""

    by: str
    """The embedder's name, model and version."""
    numbers: Vector


JsonScalar: TypeAlias = str | int | float | bool | None
Metadata: TypeAlias = dict[str, JsonScalar]

MemoryType = Literal["fact", "persona", "episode", "knowledge", "system", "concept"]
PageKind = Literal["dialogue", "carry-over"]
PageState = Literal["active", "inactive", "hidden", "evicted"]
Outcome = Literal["complete", "partial", "failed"]
Role = Literal["user", "assistant"]


def utc(moment: datetime) -> datetime:
    """Return `moment` in UTC. Raises ValueError for a naive datetime."""
    if moment.tzinfo is None:
        raise ValueError(f"datetime {moment!r} has no time zone; every time in Hearth is aware")
    return moment.astimezone(UTC)


EVERYBODY: Final = "\x1f"
"""In place of a user: what is for all users of a tenant. No key, request or setting can name it."""


OFFICE: Final = "\x1e"
"""In place of a user: what operators do in a tenant, which no erasure removes. Nothing else can name it."""


INSTALLATION: Final = "\x1d"
"""In place of a tenant: what is done to all of them on the machine itself. No key, request or setting can
name it.
"""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The address of every record: whose memory, in which tenant, by which agent, in which session."""

    tenant: str
    """Stable name of who owns the data; never derived from key material."""
    user: str
    """Whose memory."""
    agent: str = "default"
    """Which assistant speaks."""
    session: str = ""
    """Which conversation; empty where none is meant. Unique within (tenant, user)."""
    isolated: bool = False
    """True if this agent's memories of the user are not shared with the tenant's other agents."""

    @property
    def owner(self) -> str:
        """The one key that stores filter by. Injective: quoting keeps `a/b` + `c` apart from `a` + `b/c`."""
        if self.user == EVERYBODY:
            return self.person
        return _quoted(self.tenant, self.user, *([self.agent] if self.isolated else []))

    @property
    def own_agent(self) -> str:
        """The isolated agent whose own this is; empty for what a user's agents share."""
        return self.agent if self.isolated else ""

    @property
    def conversation(self) -> str:
        """The session, told from another agent's of the same name. No id has the separator."""
        return f"{self.agent}\x1f{self.session}" if self.isolated else self.session

    @property
    def person(self) -> str:
        """The one key of all that is the user's, whatever the agent."""
        return f"{_quoted(self.tenant)}/*" if self.user == EVERYBODY else _quoted(self.tenant, self.user)


def agent_in(owner: str) -> str:
    """The isolated agent that such a key is of; empty for what a user's agents share."""
    return "".join(unquote(part) for part in owner.split("/")[2:3])


def scope_of(person: str) -> Scope:
    """The tenant and the user that `Scope.person` names."""
    tenant, _, user = person.partition("/")
    return Scope(tenant=unquote(tenant), user=EVERYBODY if user == "*" else unquote(user))


def _quoted(*parts: str) -> str:
    return "/".join([quote(part, safe="") for part in parts])


class Outdated(msgspec.Struct, frozen=True, kw_only=True):
    """Words of a page that say a fact which was ended, replaced or forgotten."""

    role: Role
    quote: str
    """As they stand in that role's text."""
    fact: str
    """Id of that memory."""
    until: datetime | None
    """Since when it holds no more; None for one that was forgotten: nobody is shown it again."""


LEFT: Final[tuple[PageState, ...]] = ("inactive", "hidden")
"""States of pages that are not on the live branch, or that their user asked to forget."""


class Page(msgspec.Struct, frozen=True, kw_only=True, tag="page", tag_field="record"):
    """One exchange as kept in memory, word for word."""

    id: str
    """Also the exchange's id."""
    scope: Scope
    generation: int
    """The user's generation at capture; recall drops a record of an older one."""
    user_text: str
    reply_text: str
    """Visible text of the assistant; empty where it gave none."""
    user_name: str = ""
    """Speaker's name where the source gives one (imports); empty for live traffic."""
    reply_name: str = ""
    by_other: bool = False
    """True where somebody else than the user spoke on the user's side: it is recalled, and states nothing."""
    user_shown: str = ""
    """What pictures and files that came with the text show: it is found by that, and a block has it not."""
    reply_shown: str = ""
    occurred_at: datetime
    previous: str | None = None
    """The page before this one in its session and branch."""
    kind: PageKind = "dialogue"
    state: PageState = "active"
    """Inactive: a branch that the client has left; hidden: its user asked to forget it; evicted: gone cold.
    None of these is recalled or promoted.
    """
    timezone: str = "UTC"
    """IANA name of the user's zone when it was said."""
    key: str = ""
    """Name of the gateway's key by which it came; empty where there was none."""
    injected: tuple[str, ...] = ()
    """Ids of the records that were recalled into this exchange."""
    outdated: tuple[Outdated, ...] = ()
    """What in it says a fact that holds no more."""

    def __post_init__(self) -> None:
        utc(self.occurred_at)

    @property
    def is_told(self) -> bool:
        """True for dialogue on the live branch, evicted or not: what it says may be read."""
        return self.kind == "dialogue" and self.state not in LEFT


SessionMode = Literal["on", "read", "off"]
"""What memory does in a session: all; recall alone; nothing. In the latter two nothing is captured."""
Asked = Literal["before", "this", "statement", "topic", "all"]
"""What a request to forget means: what was said just before, the message itself, a statement, what was said
about something, or all of the user.
"""
AskedOutcome = Literal["forgotten", "nothing found", "ambiguous", "too much"]
"""What became of such a request. Of what can mean several things, or all of a user, nothing is forgotten."""
Act = Literal["asserts", "adds", "corrects", "ends", "denies"]
"""What a statement does to what is known: says it; says it beside what is known; sets a wrong one right; says
that it holds no more; says that it never did."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Words on which a memory rests."""

    id: str
    """Of the exchange, which is also its page's; of a concept's, of the fact or episode that it sums up."""
    role: Role
    quote: str
    """As they stand in that role's text, character by character."""
    at: datetime
    """When that was said."""


class CandidateFact(msgspec.Struct, frozen=True, kw_only=True):
    """What an extractor read from one exchange, before it is compared with what is known."""

    statement: str
    """One sentence that can be understood alone: the speaker's words, with relative times made absolute."""
    quote: str
    """Its evidence: a part of what the user said, character by character."""
    role: Role = "user"
    """Whose words these are; the assistant's state nothing but its own promises."""
    subject: str = "user"
    """Whom or what it is about: `user`, else a name or a relation as said (`Ana`, `my sister`)."""
    attribute: str = ""
    """One of `memory.extract.attributes`; empty for a statement that fills none."""
    value: str = ""
    """The attribute's value as said; empty without an attribute."""
    act: Act = "asserts"
    wrong: str = ""
    """Of a correction: the value that was wrong, where it was named."""
    language: str = ""
    """ISO 639-1 of the words; empty where unknown."""
    confidence: float = 1.0
    """0 to 1: how surely the words say this."""
    importance: float = 0.5
    """0 to 1: how much it is worth keeping, apart from use."""
    valid_from: datetime | None = None
    """Since when it holds, where that was said."""
    valid_to: datetime | None = None
    """Until when it holds, where that was said (`until Friday`)."""
    happens_at: datetime | None = None
    """When what it tells of takes or took place (`my exam is tomorrow`), at the start of that day."""


class Memory(msgspec.Struct, frozen=True, kw_only=True, tag="memory", tag_field="record"):
    """One long-term memory that is no page: a fact, a persona trait, an episode or a piece of knowledge."""

    id: str
    scope: Scope
    generation: int
    type: MemoryType = "fact"
    text: str
    subject: str = ""
    """Whom or what it is about: `user`, a name, a relation; empty where that is not known."""
    attribute: str = ""
    """Of `memory.extract.attributes`; empty for a statement that fills none."""
    value: str = ""
    tags: tuple[str, ...] = ()
    metadata: Metadata = {}
    confidence: float = 1.0
    """0 to 1: how surely its evidence says it; more where more says it."""
    importance: float = 0.5
    """0 to 1: how much it is worth keeping, apart from use."""
    pinned: bool = False
    occurred_at: datetime
    """When it was said or happened."""
    created_at: datetime
    updated_at: datetime
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    """Until when it held, or will; equal to `valid_from` for what never was so."""
    successor: str | None = None
    """The memory that superseded this one."""
    ended_by: str = ""
    """The exchange whose words closed it; empty where none did."""
    happens_at: datetime | None = None
    """When what it tells of takes or took place, where that was said."""
    expires_at: datetime | None = None
    evidence: tuple[Evidence, ...] = ()
    """What it rests on, oldest first; empty for one that was added by hand."""
    source: Literal["api", "extraction", "correction"] = "api"
    """Added by hand, read from the user's words, or set right by them."""

    def __post_init__(self) -> None:
        for moment in (self.occurred_at, self.created_at, self.updated_at):
            utc(moment)


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Pages on one topic: mid-term memory. Its heat is kept apart, since every recall changes that."""

    id: str
    owner: str
    """Whose pages they are, as `Scope.owner`."""
    pages: int
    size: int
    """Bytes of the pages' texts."""
    centroid: bytes
    """The mean direction of the pages' vectors, a signed byte for each dimension."""
    embedder: str = ""
    """Whose vectors those are."""
    keywords: dict[str, int]
    """In how many pages each stands."""
    session: str = ""
    """Of the page that joined last."""
    opened_at: datetime
    last_at: datetime
    """When its first and its latest page were said."""
    closed: bool = False
    """True once its topic has rested for long; a page that returns to it opens it again."""
    pinned: bool = False
    promoted: int = 0
    """Pages that it had when it was promoted last."""
    episode: str = ""
    """Id of the memory that sums it up, once there is one."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document that is recalled as one; its place among the others is its position."""

    text: str
    path: tuple[str, ...] = ()
    """The headings above its text, the highest first."""
    place: str = ""
    """Where it stands in a document that has pages: `page 3`."""
    overlap: int = 0
    """Characters at the start of `text` that stand in the chunk before too."""


DocumentKind = Literal["document", "system"]
"""A file's text, or a text of system memory: what holds for all users of a tenant."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a document that an operator loaded for a tenant."""

    kind: DocumentKind = "document"
    id: str
    """The same for all versions."""
    version: int
    """Counts the document's versions from 1, those before a removal too."""
    name: str = ""
    """By which it is loaded again, removed and cited. Empty of a version that is gone, as all text is."""
    title: str = ""
    media_type: str = ""
    digest: str = ""
    """Of all that its chunks depend on: equal ones give equal chunks."""
    characters: int = 0
    """Of its text."""
    chunks: int = 0
    """How many it was cut into."""
    agent: str = ""
    """Whose users it is for; empty: all agents'."""
    by: str = ""
    """Name of the key that loaded it."""
    loaded_at: datetime


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """What several users of a tenant say of themselves: a count, and nobody's words."""

    attribute: str
    value: str
    """As values are compared, not as anybody wrote it."""
    users: int
    """Who say so."""


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """Which documents of a tenant may be recalled."""

    tenant: str
    generation: int = 1
    """Of the tenant's own records."""
    versions: dict[str, int] = {}
    """The version in force by document."""
    changed: int = 0
    """Position of the last event that changed it."""


Record: TypeAlias = Page | Memory
"""What long-term memory holds and recall returns; tagged by `record` in its JSON form."""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as captured: never its values, unless `capture.tools: full`."""

    name: str
    argument_keys: tuple[str, ...] = ()
    argument_bytes: int = 0
    result_bytes: int = 0
    arguments: str | None = None
    """Raw JSON, only with `capture.tools: full`."""
    result: str | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the provider counted them."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    cache_write: int = 0
    memory: int = 0
    """Tokens of the block that Hearth put in, by its own count; part of `input`."""


class PlacedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """The block of one exchange, byte for byte as it went into the prompt."""

    exchange: str
    text: str
    tokens: int
    items: tuple[str, ...] = ()
    """Ids of the records it shows."""
    at: datetime
    alone: bool = False
    """True if no earlier block of the session stood in its prompt: what goes back later begins here."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a transcript in canonical terms, whatever wire format it came in."""

    role: Literal["user", "assistant", "system", "tool"]
    """`tool` for a message that holds tool results only, whatever role the wire format gives it."""
    text: str = ""
    """Visible text: no reasoning, no tool JSON, no block of ours, no scaffolding; media left out."""
    index: int = -1
    """Place of the message in the request's own list; -1 where the request has one string."""
    tools: tuple[ToolUse, ...] = ()
    """Calls (assistant) or results (tool) that the message holds."""
    scaffolding: bool = False
    """True if the message is machine-written text only (reminders, environment), though its role is user."""


class Tails(msgspec.Struct, frozen=True, kw_only=True):
    """Keyed digests of the end of a transcript, by which the next request finds its session.

    Each is an HMAC with the tenant's secret over canonical text; empty where there is no such tail.
    """

    last_pair: str = ""
    last_two_pairs: str = ""
    user_texts: str = ""
    chain: str = ""
    """Digest of the whole transcript from its top; only tells branches apart."""

    def __bool__(self) -> bool:
        return bool(self.last_pair or self.last_two_pairs or self.user_texts)


class SessionHit(msgspec.Struct, frozen=True, kw_only=True):
    """The session that a transcript's tail belongs to."""

    session: str
    exchange: str
    """The exchange whose reply ends that tail: the causal parent of what comes next."""
    at: datetime
    """When that reply was finished."""


class RetryHit(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier capture of the same canonical request."""

    session: str
    exchange: str
    outcome: Outcome
    at: datetime


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What recall looks for."""

    text: str
    """The new user content."""
    before: str = ""
    """The preceding turn, used where the new content is short or refers back."""
    at: datetime
    """The user's clock."""
    timezone: str = "UTC"
    present: tuple[str, ...] = ()
    """Texts that the request already contains; nothing equal or inside them is recalled again."""
    present_ids: frozenset[str] = frozenset()
    """Page and memory ids that the request or the provider's chain already holds."""
    kinds: frozenset[str] | None = None
    """Restrict to these kinds (`page` or a MemoryType); None means all."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a store proposed, with each query's own score (None: not among that query's best)."""

    record: Record
    text_score: float | None = None
    """Cosine of the query with the record's text, -1 to 1."""
    context_score: float | None = None
    """Cosine of the query with the record's text and the page before it."""
    lexical_score: float | None = None
    """Sum of idf-weighted term matches, 0 upwards."""
    coverage: float = 0.0
    """Share of the query's idf mass whose terms the record holds, 0 to 1."""
    said_score: float = 0.0
    """The lexical score of what the user said alone; of a memory's whole text."""
    replied_score: float = 0.0
    """The lexical score of the reply alone."""
    said_related: float = 0.0
    """How far the words that the user said are those of the query or related to them, 0 to 1."""
    replied_related: float = 0.0
    """The same of the reply's words."""


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """One round trip to long-term memory."""

    candidates: tuple[Candidate, ...] = ()
    vector: Embedding | None = None
    """The query's embedding; None where the embedder was too late or absent."""
    missing: tuple[str, ...] = ()
    """Parts that gave nothing: `dense`, `lexical`."""


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its rank score, calibrated relevance and what became of it."""

    record: Record
    score: float
    relevance: float
    """Calibrated probability that the record helps to answer, 0 to 1."""
    signals: dict[str, float]
    """Every number that went into score and relevance, by name."""
    verdict: Literal["in", "below floor", "already present", "duplicate", "over budget", "stale", "filtered"]
    tokens: int = 0


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate as a recall ranked it."""

    id: str
    shown: bool
    values: tuple[float, ...]
    """One a signal, in the order of `Ranking.signals`."""


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """What a recall ranked by, in ids and numbers alone: what it showed, and the best of the rest."""

    signals: tuple[str, ...]
    items: tuple[Ranked, ...]
    """Best first."""


class DrawnItem(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a recalled item a reply shows."""

    id: str
    share: float
    """0 to 1, of its informative words."""
    used: bool
    """Whether that is enough to say that the reply drew on it."""


Judgement = Literal["useful", "useless", "wrong"]
"""Of a recall or an item of one: it helped, it was of no use, it misled."""
Status = Literal["ok", "off", "partial", "failed"]
BudgetFrom = Literal["settings", "tenant", "agent", "key", "model", "request", "window", "earlier blocks"]
"""What set the tokens that a block may have: the smallest bound, by where it comes from."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What a recall went by, apart from the question's own words."""

    before: bool = False
    """Whether the turn before was looked up together with the question."""
    timezone: str = "UTC"
    budget: int = 0
    """Most tokens of the block."""
    budget_from: BudgetFrom = "settings"
    floor: float = 0.0
    """Relevance that the best candidate had to reach."""
    floor_from: Literal["settings", "embedder"] = "embedder"
    """`embedder`: the value that its relevance model was fitted to."""
    model: str = ""
    """Whose tokens were counted."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """The rendered text that goes into the prompt; `text` is empty where nothing was worth recalling."""

    text: str = ""
    tokens: int = 0
    items: tuple[str, ...] = ()
    """Ids of the records it shows, in order."""


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one recall: the block and why each candidate was in or out."""

    trace: str
    """Id for `GET /memory/v1/recalls/{id}`."""
    scope: Scope
    query: Query
    block: Block
    scored: tuple[Scored, ...] = ()
    vector: Embedding | None = None
    status: Status = "ok"
    reasons: tuple[str, ...] = ()
    """Why the status is not `ok`, one short phrase each."""
    milliseconds: float = 0.0
    at: datetime
    generation: int = 1
    """The user's generation that it saw."""
    conditions: Conditions = Conditions()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One model call as captured when its reply is complete, failed, or the client hung up."""

    exchange: str
    user_text: str
    """The exchange's user content, visible text only, secrets masked, blocks and scaffolding stripped."""
    reply_text: str
    """Visible text of this reply."""
    outcome: Outcome
    closes: bool
    """True if the reply has no tool calls, so that the exchange becomes a page."""
    kind: PageKind = "dialogue"
    isolated: bool = False
    """The scope's `isolated` at capture; the page takes it over."""
    key: str = ""
    """See Page."""
    user_name: str = ""
    reply_name: str = ""
    by_other: bool = False
    user_shown: str = ""
    """See Page."""
    reply_shown: str = ""
    timezone: str = "UTC"
    tools: tuple[ToolUse, ...] = ()
    injected: tuple[str, ...] = ()
    block: PlacedBlock | None = None
    trace: str = ""
    tags: tuple[str, ...] = ()
    """By which the call said to find it again."""
    ranking: Ranking | None = None
    """Of the recall that was injected; None where an earlier step's block was placed again."""
    tails: Tails = Tails()
    """Tails of the transcript with this reply at its end."""
    tails_before: Tails = Tails()
    """Tails of the history that the request carried; its `chain` names the branch."""
    retry_key: str = ""
    alternatives: tuple[str, ...] = ()
    """Texts of choices 1..n-1; they stay in the log only."""
    response_id: str = ""
    """The provider's id of the reply, for `previous_response_id`."""
    route: str = ""
    model: str = ""
    started_at: datetime
    finished_at: datetime
    error: str = ""
    usage: Usage | None = None
    source: Literal["live", "import"] = "live"


class SummaryLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of a session's running summary, in the user's own words."""

    page: str
    """The exchange in which it was said."""
    at: datetime
    """When that was."""
    text: str
    important: bool = False
    """A fact rests on its exchange."""
    rank: int = 0
    """Among the summary's lines: 0 of the one that matters most."""
    outdated: tuple[Outdated, ...] = ()
    """What in it holds only until a later day."""


class ShortTermView(msgspec.Struct, frozen=True, kw_only=True):
    """What short-term memory holds for a user, read in one round trip."""

    pages: tuple[Page, ...] = ()
    """The user's latest pages over all sessions, oldest first."""
    vectors: dict[str, Embedding] = {}
    """Query vectors of those pages' user texts, by page id."""
    blocks: tuple[PlacedBlock, ...] = ()
    """Blocks of the current session's exchanges, oldest first."""
    lagging: bool = False
    """True while pages that long-term memory does not have yet had to leave for the hard cap."""
    known: bool = True
    """False where the store has never heard of the user, or has lost all: the log's pages then come back."""
    reachable: bool = True
    """False of the empty view that stands for a store that is late or down."""
    summary: tuple[SummaryLine, ...] = ()
    """What has left it of the current session, oldest first; it comes with the look-up of the session."""


class ImportedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One dated line of a dialogue that was held elsewhere."""

    role: Role
    content: str
    at: datetime
    session: str = ""
    name: str = ""
    shown: str = ""
    """What a picture or a file that came with it shows."""
    id: str = ""
    """The source's own id of the turn; makes a second import a no-op."""


class Forgetting(msgspec.Struct, frozen=True, kw_only=True):
    """A request to forget that a user made in a conversation, for reading."""

    exchange: str
    scope: Scope
    at: datetime
    understood: Asked
    outcome: AskedOutcome
    about: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    pages: dict[str, PageState] = {}
    marked: tuple[str, ...] = ()
    until: datetime | None = None
    state: Literal["waiting", "undone", "done", "nothing"]
    """Waiting: it can still be undone. Nothing: there was nothing to forget."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange as the log knows it, for reading."""

    id: str
    scope: Scope
    user_text: str
    reply_text: str
    outcome: Outcome
    state: Literal["open", "closed", "inactive", "failed"]
    started_at: datetime
    finished_at: datetime
    model: str = ""
    route: str = ""
    steps: int = 1
    injected: tuple[str, ...] = ()
    usage: Usage | None = None
    trace: str = ""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A session as the log knows it, for reading."""

    id: str
    scope: Scope
    exchanges: int
    started_at: datetime
    last_at: datetime
    memory: SessionMode = "on"
    summary: tuple[SummaryLine, ...] = ()
    """What has left short-term memory, oldest first."""


SEVEN_DAYS = timedelta(days=7)
