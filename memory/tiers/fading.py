"""Which episodes of evicted segments have to go: the least important first, of these the coldest. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from hearth.memory.tiers.heat import Heat, HeatPolicy, order
from hearth.memory.tiers.limits import Limits

Reason: TypeAlias = Literal["episodes", "episode bytes"]
"""The limit for which an episode goes."""


class Left(NamedTuple):
    """An episode that an evicted segment left."""

    id: str
    importance: float
    size: int
    """Bytes of its text."""
    heat: Heat
    """Of its segment."""
    pinned: bool


class Faded(NamedTuple):
    """An episode that has to go, and why."""

    id: str
    reason: Reason


def fading(left: Iterable[Left], limits: Limits, policy: HeatPolicy) -> list[Faded]:
    """As many as the limits ask for; pinned ones never go, but count. Age is a matter of retention."""
    every = list(left)
    count, size = len(every), sum(one.size for one in every)
    able = [one for one in every if not one.pinned]
    gone: list[Faded] = []
    for one in sorted(able, key=lambda one: (one.importance, order(one.heat, policy), one.id)):
        reason = _over(count, size, limits)
        if reason is None:
            break
        gone.append(Faded(one.id, reason))
        count, size = count - 1, size - one.size
    return gone


def _over(count: int, size: int, limits: Limits) -> Reason | None:
    if limits.episodes is not None and count > limits.episodes:
        return "episodes"
    if limits.episode_bytes is not None and size > limits.episode_bytes:
        return "episode bytes"
    return None
