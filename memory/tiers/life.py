"""The policy of a memory's life, in one record: what stays how long, what is promoted, what goes."""

from __future__ import annotations

from msgspec import Struct

from hearth.memory.tiers.heat import HeatPolicy
from hearth.memory.tiers.overflow import ShortTermPolicy
from hearth.memory.tiers.segments import Limits, SegmentPolicy


class LifePolicy(Struct, frozen=True, kw_only=True):
    """All that the worker decides by, apart from what users say."""

    short_term: ShortTermPolicy = ShortTermPolicy()
    segments: SegmentPolicy = SegmentPolicy()
    heat: HeatPolicy = HeatPolicy()
    limits: Limits = Limits()
