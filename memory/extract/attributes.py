"""What a fact can be about: the attributes that facts have, and which of them have one value at a time."""

from __future__ import annotations

from typing import Final

SINGLE: Final = frozenset(
    {
        *("name", "nickname", "pronouns", "birthday", "age", "birthplace", "nationality"),
        *("residence", "address", "phone", "email", "timezone"),
        *("employer", "occupation", "school", "field of study"),
        *("marital status", "partner", "favourite", "preferred language", "form of address"),
    }
)
"""A newer value closes an older one. `favourite` is single by its kind: the attribute then is
`favourite colour`, `favourite food` and so on.
"""
MANY: Final = frozenset(
    {
        *("likes", "dislikes", "allergy", "diet", "condition", "medication", "fear"),
        *("child", "sibling", "parent", "friend", "pet", "relative", "colleague"),
        *("speaks", "plays", "hobby", "skill", "uses", "owns", "member of", "learns"),
        *("plan", "appointment", "goal", "habit", "preference", "instruction", "visited", "event"),
    }
)
"""Values stand beside each other; one ends only where that is said."""


def is_single(attribute: str) -> bool:
    """True if a newer value of the attribute closes an older one."""
    return attribute in SINGLE or attribute.startswith("favourite ")
