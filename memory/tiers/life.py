"""The policy of a memory's life, in one record: what stays, what is read, what is promoted, what goes."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from hearth.memory.tiers.heat import HeatPolicy
from hearth.memory.tiers.overflow import ShortTermPolicy
from hearth.memory.tiers.segments import COSINES, Limits, SegmentPolicy

PARTS: Final = ("short_term", "segments", "heat", "limits", "retention")
"""Fields of a policy that are records of their own."""


class RetentionPolicy(Struct, frozen=True, kw_only=True):
    """How long what was said is kept at all; None: for ever."""

    dialogue_days: float | None = None
    """Of an exchange, with the facts and summaries that rest on it alone."""


class LifePolicy(Struct, frozen=True, kw_only=True):
    """All that the worker decides by, apart from what users say."""

    facts: Literal["rules", "off"] = "rules"
    """How facts are read."""
    short_term: ShortTermPolicy = ShortTermPolicy()
    segments: SegmentPolicy = SegmentPolicy()
    heat: HeatPolicy = HeatPolicy()
    limits: Limits = Limits()
    retention: RetentionPolicy = RetentionPolicy()

    @classmethod
    def for_embedder(cls, name: str) -> LifePolicy:
        """Hearth's own policy with that embedder's cosines; the default's where they were not measured."""
        unrelated, neighbour = COSINES.get(name, COSINES["use-m3"])
        return cls(segments=SegmentPolicy(unrelated=unrelated, neighbour=neighbour))
