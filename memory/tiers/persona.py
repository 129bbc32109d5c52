"""The persona of a user and of an agent: what is known of each, the surest first. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from hearth.memory.extract.attributes import AGENT, is_profile, subject_key
from hearth.memory.types import Memory, Scope

_TRAITS: Final = frozenset(
    {
        *("likes", "dislikes", "fear", "hobby", "habit", "preference", "goal", "skill", "plays", "learns"),
        *("uses", "diet", "speaks"),
    }
)
_HALF: Final = 180.0
"""Days in which a trait that nobody says again fades to half."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A slot or a trait, with the memory that says it."""

    memory: Memory
    strength: float
    """0 to 1: how surely it is so now. It rises with each time that it is said; a trait's fades between."""
    evidence: int
    """Exchanges that say it."""
    last: datetime
    """When it was said last."""


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a user, and of an agent as that user has it."""

    profile: tuple[Entry, ...]
    """The user's own slots: name, residence, occupation."""
    traits: tuple[Entry, ...]
    """What the user likes, can and does, the strongest first."""
    agent: tuple[Entry, ...]
    """The agent's standing instructions and tone, and what it has promised, the newest first."""


def persona(memories: Iterable[Memory], scope: Scope, now: datetime) -> Persona:
    """The persona of the scope's user, and of its agent, out of the memories that hold."""
    entries = [_entry(memory, now) for memory in memories]
    own = [one for one in entries if subject_key(one.memory.subject) == "user"]
    agent = [one for one in entries if one.memory.subject == AGENT and is_of(one.memory, scope)]
    traits = [one for one in own if is_trait(one.memory.attribute)]
    profile = [
        one for one in own if not is_trait(one.memory.attribute) and is_profile("user", one.memory.attribute)
    ]
    return Persona(
        profile=tuple(sorted(profile, key=lambda one: (one.memory.attribute, one.memory.id))),
        traits=tuple(sorted(traits, key=lambda one: (-one.strength, one.memory.id))),
        agent=tuple(sorted(agent, key=lambda one: (one.last, one.memory.id), reverse=True)),
    )


def is_of(memory: Memory, scope: Scope) -> bool:
    """False for what concerns another agent of the same user alone."""
    return memory.subject != AGENT or memory.scope.agent == scope.agent


def is_trait(attribute: str) -> bool:
    """True for what may change by itself, without anybody saying that it ended."""
    return attribute in _TRAITS or attribute.startswith("favourite ")


def strength(memory: Memory, now: datetime) -> float:
    """The memory's confidence, of a trait halved in each half-life since it was said last."""
    if not is_trait(memory.attribute) or memory.pinned:
        return memory.confidence
    days = max(0.0, (now - _last(memory)).total_seconds() / 86_400)
    return memory.confidence * float(0.5 ** (days / _HALF))


def _entry(memory: Memory, now: datetime) -> Entry:
    return Entry(
        memory=memory,
        strength=round(strength(memory, now), 4),
        evidence=len({one.id for one in memory.evidence}),
        last=_last(memory),
    )


def _last(memory: Memory) -> datetime:
    return max((one.at for one in memory.evidence), default=memory.occurred_at)
