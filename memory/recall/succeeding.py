"""A value that holds takes the place of one that has ended: who asks for one asks for the other. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hearth.memory.extract.attributes import is_single, subject_key
from hearth.memory.recall.pool import Numbers
from hearth.memory.tiers.facts import holds
from hearth.memory.types import Memory, Query, Record


def succeeding(records: Sequence[Record], chances: Numbers, query: Query) -> Numbers:
    """The chances, each fact that holds as likely to help as the likeliest ended one of its attribute.

    Of attributes with one value at a time: `I moved to Chur` is far from `Where do I live?`, where `I live in
    Bern` is near.
    """
    facts = [
        (at, one) for at, one in enumerate(records) if isinstance(one, Memory) and is_single(one.attribute)
    ]
    ended: dict[tuple[str, str], float] = {}
    for at, fact in facts:
        if not holds(fact, query.at):
            about = _about(fact)
            ended[about] = max(ended.get(about, 0.0), float(chances[at]))
    if not ended:
        return chances
    made = chances.copy()
    for at, fact in facts:
        if holds(fact, query.at):
            made[at] = max(made[at], ended.get(_about(fact), 0.0))
    return made


def _about(fact: Memory) -> tuple[str, str]:
    return subject_key(fact.subject), fact.attribute
