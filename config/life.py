"""The settings of a memory's life: `hearth.life` for the installation, and the same for a tenant.

What is left out is the installation's, and there Hearth's own, which `hearth policy` shows.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from hearth.config.section import Section, yaml_word

Whole: TypeAlias = Annotated[int, Field(ge=1)]
Amount: TypeAlias = Annotated[float, Field(gt=0, le=1_000_000)]
Days: TypeAlias = Annotated[float, Field(gt=0, le=36_500)]
Hours: TypeAlias = Annotated[float, Field(gt=0, le=876_000)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Tokens: TypeAlias = Annotated[int, Field(ge=0, le=100_000)]
Reading: TypeAlias = Annotated[Literal["rules", "model", "off"] | None, BeforeValidator(yaml_word)]
"""How facts are read; None: as the wider level says."""


class ShortTermSettings(Section):
    """How much of a user's latest dialogue is short-term memory; what is over becomes segments."""

    pages: Whole | None = Field(default=None, description="Pages of a user, over all sessions (10).")
    session_pages: Whole | None = Field(default=None, description="Pages of one session (10).")
    tokens: Whole | None = Field(default=None, description="Of their texts, about (8000).")
    session_tokens: Whole | None = Field(
        default=None, description="Of one session's, about; empty: as many as of the user's."
    )
    days: Days | None = Field(default=None, description="Age at most (30).")
    important: Share | None = Field(
        default=None, description="Importance from which a page outlives others (0.7)."
    )
    summary_tokens: Tokens | None = Field(
        default=None, description="Of the running summary of what left of one session (400); 0: none."
    )


class SegmentSettings(Section):
    """When pages are on one topic."""

    affinity: Annotated[float, Field(gt=0, le=3)] | None = Field(
        default=None, description="Nearness and shared keywords from which a page joins a segment (0.6)."
    )
    same_session: Share | None = Field(
        default=None, description="Added where the page before it in its session is in it (0.15)."
    )
    unrelated: Share | None = Field(
        default=None,
        description="The embedder's cosine of pages that have nothing to do with each other; empty: measured "
        "for `fast` and `quality`, and as for `fast` with an embedder of your own.",
    )
    neighbour: Share | None = Field(
        default=None, description="Its cosine of a page with the one before it, likewise."
    )
    close_hours: Hours | None = Field(default=None, description="Silence after which a topic is over (72).")
    gain: Whole | None = Field(
        default=None, description="Pages that a segment has to gain before it is summed up again (3)."
    )
    most_pages: Whole | None = Field(default=None, description="Pages of one segment at most (50).")


class HeatSettings(Section):
    """What keeps a segment alive."""

    visit: Amount | None = Field(default=None, description="Of a recall that the reply drew on (1).")
    seen: Share | None = Field(
        default=None, description="Part of that for a recall which it did not draw on (0.2)."
    )
    page: Amount | None = Field(default=None, description="Of a page that joins (1).")
    recency: Annotated[float, Field(ge=0, le=1_000_000)] | None = Field(
        default=None, description="Of the last touch, whatever it was (1)."
    )
    fade_hours: Hours | None = Field(default=None, description="Time in which all fades to 37 % (24).")
    promotion: Amount | None = Field(default=None, description="Heat from which a segment is summed up (5).")


class LimitSettings(Section):
    """What one user's segments may be, or all users'; beyond it the coldest leave. Their episodes stay."""

    segments: Whole | None = Field(default=None, description="Segments at most (2000).")
    pages: Whole | None = Field(default=None, description="Pages in them at most; empty: any number.")
    bytes: Whole | None = Field(default=None, description="Of their texts; empty: any number.")
    days: Days | None = Field(default=None, description="Since a segment was last touched; empty: for ever.")
    session_segments: Whole | None = Field(
        default=None, description="Segments whose latest page is of one session; empty: any number."
    )
    episodes: Whole | None = Field(
        default=None,
        description="Episodes of segments that have left; the least important and coldest go (2000).",
    )
    episode_bytes: Whole | None = Field(default=None, description="Of their texts; empty: any number.")
    tenant_segments: Whole | None = Field(
        default=None, description="Segments of all users of a tenant together; empty: any number."
    )
    tenant_pages: Whole | None = Field(default=None, description="Pages in those; empty: any number.")
    tenant_bytes: Whole | None = Field(default=None, description="Of their texts; empty: any number.")


class RetentionSettings(Section):
    """What is kept at all; what is older is forgotten for good, in every store and in the log."""

    dialogue_days: Days | None = Field(
        default=None,
        description="Age at which an exchange is forgotten, with the facts and summaries that rest on it "
        "alone; empty: never.",
    )
    fact_days: Days | None = Field(
        default=None,
        description="Since a fact was said, after which it is forgotten with the words it was read from; "
        "empty: never.",
    )
    persona_days: Days | None = Field(default=None, description="Of a trait, likewise; empty: never.")
    episode_days: Days | None = Field(
        default=None,
        description="Since the last of it was said, after which a summary is forgotten; empty: never.",
    )
    knowledge_days: Days | None = Field(
        default=None, description="Since a document was loaded, after which it is removed; empty: never."
    )
    payload_days: Days | None = Field(
        default=None,
        description="Age at which an event's payload leaves the log's database for a compressed file in "
        "`archive_dir`, where it is still read, forgotten and erased; empty: never.",
    )


class ExtractionSettings(Section):
    """The model that reads facts, where `facts` is `model`, and what it may cost."""

    model: str | None = Field(
        default=None,
        min_length=1,
        description="Its name in `model_list`, or any that LiteLLM knows (`openai/gpt-4o-mini`).",
    )
    pages: Annotated[int, Field(ge=1, le=50)] | None = Field(
        default=None, description="Exchanges of one user that one call reads at most (8)."
    )
    gather_seconds: Annotated[float, Field(ge=0, le=600)] | None = Field(
        default=None, description="Time for which an exchange waits for others of its user (20)."
    )
    daily_tokens: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="Tokens that a tenant may spend in a day (UTC); beyond them rules read (1000000).",
    )
    timeout_seconds: Annotated[float, Field(ge=1, le=60)] | None = Field(
        default=None, description="Time that the model has for an answer (20)."
    )


class ConceptSettings(Section):
    """When facts and episodes of a user are summed up as one."""

    nearness: Annotated[float, Field(gt=0, le=3)] | None = Field(
        default=None, description="Nearness and shared keywords, on average, of what is in one (0.3)."
    )
    least: Annotated[int, Field(ge=2)] | None = Field(default=None, description="In one at least (3).")
    most: Annotated[int, Field(ge=2)] | None = Field(default=None, description="In one at most (12).")
    gain: Whole | None = Field(
        default=None,
        description="Facts and episodes gained before they are made anew; of many a twentieth (5).",
    )


SHAREABLE = ("preferred language", "speaks", "learns", "timezone", "skill", "uses", "plays", "hobby")
"""What users may be counted by: nothing that names, finds or describes a person."""


def _shareable(value: str) -> str:
    names = [name for name in map(str.strip, value.split(",")) if name]
    if not set(names) <= set(SHAREABLE):
        raise ValueError(f"expected names with commas among {', '.join(SHAREABLE)}")
    return ", ".join(names)


class SystemMemorySettings(Section):
    """What many users share is proposed as system memory, as an attribute, a value and a count."""

    least_users: Annotated[int, Field(ge=3, le=1_000_000)] | None = Field(
        default=None, description="Users of the tenant who must share a value (5)."
    )
    attributes: Annotated[str, AfterValidator(_shareable)] | None = Field(
        default=None,
        description="What users are counted by, with commas; `''`: nothing is proposed (preferred language, "
        "speaks, learns, timezone, skill). Possible too: uses, plays, hobby.",
    )


class LifeSettings(Section):
    """How memory gets better and smaller with time."""

    facts: Reading = Field(
        default=None,
        description="How facts are read from what users say: `rules` (their explicit statements, without a "
        "model), `model` (that of `extraction`), or not at all (rules).",
    )
    extraction: ExtractionSettings = Field(default=ExtractionSettings(), description="Facts by a model.")
    short_term: ShortTermSettings = Field(default=ShortTermSettings(), description="The latest pages.")
    segments: SegmentSettings = Field(default=SegmentSettings(), description="Topics.")
    heat: HeatSettings = Field(default=HeatSettings(), description="What keeps them alive.")
    limits: LimitSettings = Field(default=LimitSettings(), description="What may stay.")
    retention: RetentionSettings = Field(default=RetentionSettings(), description="What is kept at all.")
    concepts: ConceptSettings = Field(default=ConceptSettings(), description="What is summed up as one.")
    system_memory: SystemMemorySettings = Field(
        default=SystemMemorySettings(), description="What may be proposed for all users."
    )


def _listed(value: object) -> object:
    return [name for name in map(str.strip, value.split(",")) if name] if isinstance(value, str) else value


Redact: TypeAlias = Annotated[
    tuple[Literal["email", "iban", "national-id", "ip", "phone"], ...],
    Strict(False),
    BeforeValidator(_listed),
]
"""Kinds of personal data; a text names them with commas."""


class CallSettings(Section):
    """What one call may cost, and what is kept of it."""

    budget_tokens: Tokens | None = Field(default=None, description="Most tokens that a block may have.")
    daily_memory_tokens: Whole | None = Field(
        default=None, description="Block tokens of a key a day; beyond them calls go on without recall."
    )
    redact: Redact | None = Field(
        default=None, description="As `hearth.capture.redact`, in its place; `[]`: nothing but secrets."
    )
