"""Concepts among the candidates: the forms in which several items can be told in fewer tokens. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from hearth.memory.recall.asked_time import asked_time
from hearth.memory.recall.cues import words_of
from hearth.memory.recall.eligible import Gate, Present
from hearth.memory.recall.pieces import Piece
from hearth.memory.recall.query import about_the_past
from hearth.memory.types import Memory, Query, Record, SearchResult

LEAST: Final = 2
"""Items that a concept must stand for."""
_WHEN: Final = re.compile(
    r"\b(?:{})\b|什么时候|多久|何時|いつ|언제|เมื่อไ".format(
        words_of(
            "when|since|how long|what (?:day|date|year)|which (?:day|date|year)|first|last|latest|wann|seit",
            "wie lange|cuándo|desde|quand|depuis|quando|dal?|desde|когда|wanneer|kiedy|متى",
        )
    ),
    re.IGNORECASE,
)


class Form(NamedTuple):
    """A concept that may take the place of items that it sums up."""

    piece: Piece
    members: frozenset[str]
    """Ids of the memories whose words stand in it."""


def parted(result: SearchResult) -> tuple[SearchResult, list[Memory]]:
    """What was found without its concepts, which compete with nothing, and these."""
    found = [one.record for one in result.candidates]
    concepts = [one for one in found if isinstance(one, Memory) and one.type == "concept"]
    if not concepts:
        return result, []
    rest = tuple(one for one in result.candidates if one.record not in concepts)
    return structs.replace(result, candidates=rest), concepts


def forms(
    concepts: Sequence[Memory], records: Iterable[Record], query: Query, gate: Gate, present: Present
) -> list[Form]:
    """The concepts that may be shown, in order of their ids: none where the question is about time, since
    they don't say when each of their members was said, and none with a member that has changed or ended.
    """
    if not concepts or _about_time(query):
        return []
    now = {one.id: one for one in records if isinstance(one, Memory)}
    fit = (
        one
        for one in concepts
        if gate.refuses(one) is None and not present.has(one) and not _is_stale(one, now, query)
    )
    return [
        Form(Piece(one, 0, one.text), frozenset(rest.id for rest in one.evidence))
        for one in sorted(fit, key=lambda one: one.id)
    ]


def _about_time(query: Query) -> bool:
    named = asked_time(query.text, query.at, query.timezone)
    return named is not None or about_the_past(query) or _WHEN.search(query.text) is not None


def _is_stale(concept: Memory, now: Mapping[str, Memory], query: Query) -> bool:
    return any(
        member is not None
        and (
            one.quote != member.text
            or member.successor is not None
            or (member.valid_to is not None and member.valid_to <= query.at)
        )
        for one in concept.evidence
        for member in [now.get(one.id)]
    )
