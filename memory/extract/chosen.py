"""What a clause states, and which of several readings of the same words stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hearth.memory.extract.tongues import Pattern
from hearth.memory.types import Act

GENERAL: Final = frozenset({"", "instruction", "preference", "plan", "event", "appointment", "goal"})
"""Attributes whose value is a whole phrase: what it holds is told by it."""


KIN: Final = frozenset({"partner", "child", "sibling", "parent", "friend", "pet", "relative", "colleague"})
"""Attributes whose value is somebody."""
STATES: Final = frozenset({"diet", "condition", "occupation", "nationality", "marital status"})
"""Attributes that say what somebody is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What a clause states."""

    pattern: Pattern
    attribute: str
    value: str
    act: Act
    start: int
    end: int
    """Where the clause stands."""
    subject: str = "user"
    wrong: str = ""
    who: str = ""
    """The subject as the clause has it."""
    opening: str = ""
    """What is to be said before `rest`, so that the clause can be understood alone."""
    rest: int = 0


def once(every: Iterable[Stated]) -> list[Stated]:
    """Each attribute's value once, as the first pattern has it; nothing word for word that others read."""
    kept: dict[tuple[str, str, int | str], Stated] = {}
    for one in every:
        kept.setdefault((one.subject, one.attribute, one.value), one)
    read = [one for one in kept.values() if one.attribute]
    return [
        one
        for one in kept.values()
        if (one.attribute or not any(one.start <= r.start < one.end for r in read))
        and not any(_better(other, one) for other in read)
    ]


_RANKS: Final = {
    **dict.fromkeys(("event", "plan", "instruction"), 1),
    **dict.fromkeys(("appointment", "habit", "goal"), 2),
}
"""How much less an attribute tells than others of the same clause; most tell all."""
_KINDS: Final = frozenset({"nationality", "diet", "condition", "marital status"})
"""What one is and no trade: one word says only one thing of somebody."""
_LIKED: Final = ("dislikes", "plays", "hobby", "likes")
"""What is disliked, done or liked; the first of them says the others."""


def _better(other: Stated, one: Stated) -> bool:
    """What the other tells is told with more by it, in the same clause; or what comes first only again."""
    repeats = one.opening and other.start < one.start and other.attribute == one.attribute
    if repeats and other.subject == one.subject and other.value in one.value:
        return True
    if (
        other is not one
        and one.pattern.anywhere
        and other.attribute == one.attribute
        and other.act == "ends"
        and _shared(other, one)
    ):
        return True
    if other is one or not _shared(other, one) or other.subject != one.subject:
        return False
    if other.attribute == one.attribute and one.value != other.value and one.value in other.value:
        return True
    if other.value == one.value and (other.attribute, one.attribute) == ("school", "employer"):
        return True
    if other.value == one.value and other.pattern.place < one.pattern.place and other.attribute in _KINDS:
        return True
    if other.value in one.value and {one.attribute, other.attribute} <= set(_LIKED):
        return _LIKED.index(other.attribute) < _LIKED.index(one.attribute)
    return one.attribute in _RANKS and _RANKS[one.attribute] < _RANKS.get(other.attribute, 3)


def _shared(other: Stated, one: Stated) -> bool:
    return other.start < one.end and one.start < other.end
