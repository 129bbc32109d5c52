"""The policy of a memory's life, in one record: what stays, what is read, what is promoted, what goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct, convert, structs

from hearth.memory.extract.personal import KINDS, Personal
from hearth.memory.tiers.concepts import ConceptPolicy
from hearth.memory.tiers.heat import HeatPolicy
from hearth.memory.tiers.layers import Effective, Value
from hearth.memory.tiers.limits import Limits
from hearth.memory.tiers.overflow import ShortTermPolicy
from hearth.memory.tiers.segments import COSINES, SegmentPolicy

PARTS: Final = (
    *("short_term", "segments", "heat", "limits", "retention", "extraction", "concepts"),
    *("system_memory", "recall", "capture"),
)
"""Fields of a policy that are records of their own."""


class RetentionPolicy(Struct, frozen=True, kw_only=True):
    """How long what was said is kept at all; None: for ever."""

    dialogue_days: float | None = None
    """Of an exchange, with the facts and summaries that rest on it alone."""
    fact_days: float | None = None
    persona_days: float | None = None
    episode_days: float | None = None
    """Since the last of it was said."""
    knowledge_days: float | None = None
    """Since a document was loaded."""
    payload_days: float | None = None
    """Of an event's payload in the log itself, before it goes to an archive."""


class ExtractionPolicy(Struct, frozen=True, kw_only=True):
    """How a model reads facts."""

    model: str = ""
    """Name of the model, as the gateway or LiteLLM knows it."""
    pages: int = 8
    """Of one user, in one call at most."""
    gather_seconds: float = 20.0
    """A page waits so long for others of its user."""
    daily_tokens: int = 1_000_000
    """Of a tenant in a day; beyond them rules read."""
    timeout_seconds: float = 20.0
    """In which an answer must have come."""


class SystemMemoryPolicy(Struct, frozen=True, kw_only=True):
    """What may be proposed as system memory."""

    least_users: int = 5
    """Users of a tenant who must share a value."""
    attributes: str = "preferred language, speaks, learns, timezone, skill"
    """Of `extract.attributes.SHAREABLE`: those whose values are counted over users, with commas."""


class CallPolicy(Struct, frozen=True, kw_only=True):
    """What one call may cost."""

    budget_tokens: int = 1024
    """Most tokens of a block."""
    daily_memory_tokens: int | None = None
    """Block tokens of a key a day; None: any number."""


class CapturePolicy(Struct, frozen=True, kw_only=True):
    """What of a text is kept."""

    redact: str = ""
    """Of `extract.personal.KINDS`, with commas: personal data that is masked before anything is stored."""

    @property
    def kinds(self) -> tuple[Personal, ...]:
        """The kinds, in Hearth's order."""
        named = {name.strip() for name in self.redact.split(",")}
        return tuple(kind for kind in KINDS if kind in named)


class LifePolicy(Struct, frozen=True, kw_only=True):
    """All that memory decides by, apart from what users say."""

    facts: Literal["rules", "model", "off"] = "rules"
    """How facts are read."""
    short_term: ShortTermPolicy = ShortTermPolicy()
    segments: SegmentPolicy = SegmentPolicy()
    heat: HeatPolicy = HeatPolicy()
    limits: Limits = Limits()
    retention: RetentionPolicy = RetentionPolicy()
    extraction: ExtractionPolicy = ExtractionPolicy()
    concepts: ConceptPolicy = ConceptPolicy()
    system_memory: SystemMemoryPolicy = SystemMemoryPolicy()
    recall: CallPolicy = CallPolicy()
    capture: CapturePolicy = CapturePolicy()

    @classmethod
    def for_embedder(cls, name: str) -> LifePolicy:
        """Hearth's own policy with that embedder's cosines; the default's where they were not measured."""
        unrelated, neighbour = COSINES.get(name, COSINES["use-m3"])
        return cls(segments=SegmentPolicy(unrelated=unrelated, neighbour=neighbour))


def values_of(policy: LifePolicy) -> dict[str, Value | None]:
    """Each value of the policy by its name, such as `heat.visit`."""
    values: dict[str, Value | None] = {"facts": policy.facts}
    for part in PARTS:
        values |= {f"{part}.{name}": value for name, value in structs.asdict(getattr(policy, part)).items()}
    return values


def policy_of(values: Iterable[Effective]) -> LifePolicy:
    """The policy of those values. Raises msgspec.ValidationError for one that is of another type."""
    parts: dict[str, dict[str, object]] = {}
    for one in values:
        part, _, name = one.name.rpartition(".")
        parts.setdefault(part, {})[name] = one.value
    return convert({**parts.pop("", {}), **parts}, LifePolicy)
