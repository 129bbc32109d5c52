"""Concepts: facts and episodes that belong together, with one text in the user's own words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Final, NamedTuple

import fastcluster  # type: ignore[import-untyped]
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hearth.memory.tiers.keywords import keywords, readable
from hearth.memory.tiers.segments import NEIGHBOUR, SegmentPolicy
from hearth.memory.types import Memory, Vector

_NAMED_BY: Final = 3
"""Keywords of a concept's name."""
_LONGEST: Final = 700
"""Characters of a concept's text."""
_SHARED_WORDS: Final = 2
"""First words that two statements must share to be told in one."""
_SHORT: Final = 10
"""Words of a statement that is told in one with others."""
_ABOUT: Final = 0.2
"""Added where two say the same kind of thing, or of the same person or thing other than the user."""


class ConceptPolicy(Struct, frozen=True, kw_only=True):
    """When facts and episodes belong together."""

    nearness: float = 0.3
    """Affinity, on average, of what is in one concept."""
    least: int = 3
    """Members of one at least."""
    most: int = 12
    """Members of one at most."""
    gain: int = 5
    """Facts and episodes that a user gains before the concepts are made anew."""


class Member(NamedTuple):
    """A fact or an episode with what its place depends on."""

    memory: Memory
    vector: Vector
    keywords: frozenset[str]


class Concept(NamedTuple):
    """A cluster, summed up."""

    name: str
    """Its leading keywords."""
    text: str
    members: tuple[Memory, ...]
    """Those whose words stand in the text, oldest first."""


def member(memory: Memory, vector: Vector) -> Member:
    """The memory with its keywords."""
    return Member(memory, vector, _keywords(memory.text))


@lru_cache(maxsize=4096)  # the same facts are looked at each time
def _keywords(text: str) -> frozenset[str]:
    return frozenset(keywords(text))


def concepts(members: Sequence[Member], policy: ConceptPolicy, cosines: SegmentPolicy) -> list[Concept]:
    """The concepts of those members; their order and that of `members` does not matter to what they are.

    `cosines` says how near unrelated texts are by the embedder. Average linkage over affinity: cosine and
    shared keywords, as of pages in segments.
    """
    ordered = sorted(members, key=lambda one: (one.memory.occurred_at, one.memory.id))
    if len(ordered) < max(policy.least, 2):
        return []
    clusters = _clusters(_affinity(ordered, cosines), policy)
    made = (_concept([ordered[i].memory for i in sorted(cluster)]) for cluster in clusters)
    return [one for one in made if len(one.members) >= policy.least]


def summed_up(memories: Sequence[Memory]) -> tuple[str, tuple[Memory, ...]]:
    """One text of theirs, each said once, and those of them whose words are all in it. Oldest first."""
    room, told = _LONGEST, []
    for memory in memories:
        if len(memory.text) + 2 <= room:
            told.append(memory)
            room -= len(memory.text) + 2
    return " ".join(_sentences(_joined([one.text for one in told]))), tuple(told)


def _concept(memories: Sequence[Memory]) -> Concept:
    text, told = summed_up(memories)
    return Concept(_name([one.text for one in told]), text, told)


def _name(texts: Sequence[str]) -> str:
    counts = Counter(word for text in texts for word in set(keywords(text)))
    leading = sorted(counts, key=lambda word: (-counts[word], word))[:_NAMED_BY]
    return ", ".join(readable(leading, texts))


# -- clusters ----------------------------------------------------------------------------------------------


def _affinity(members: Sequence[Member], cosines: SegmentPolicy) -> NDArray[np.float64]:
    vectors = np.array([one.vector for one in members], dtype=np.float64)
    near: NDArray[np.float64] = np.maximum(vectors @ vectors.T - cosines.unrelated, 0.0)
    near *= NEIGHBOUR / (cosines.neighbour - cosines.unrelated)
    near += _shared([one.keywords for one in members]) + _ABOUT * _are_alike([one.memory for one in members])
    return np.asarray(np.round(near, 9), dtype=np.float64)


def _shared(words: Sequence[frozenset[str]]) -> NDArray[np.float64]:
    """Jaccard's index of each two, 0 where both are empty."""
    places = {word: place for place, word in enumerate(sorted(frozenset[str]().union(*words)))}
    has = np.zeros((len(words), len(places)))
    for row, some in zip(has, words, strict=True):
        row[[places[word] for word in some]] = 1.0
    both, sizes = has @ has.T, has.sum(axis=1)
    return np.asarray(both / np.maximum(sizes[:, None] + sizes - both, 1.0))


def _are_alike(memories: Sequence[Memory]) -> NDArray[np.bool_]:
    """Whether each two say the same kind of thing, or something of the same person or thing."""
    subjects = np.array(["" if one.subject == "user" else one.subject for one in memories])
    attributes = np.array([one.attribute for one in memories])
    of_one = (subjects[:, None] == subjects) & (subjects != "")
    return np.asarray(of_one | ((attributes[:, None] == attributes) & (attributes != "")))


def _clusters(affinity: NDArray[np.float64], policy: ConceptPolicy) -> Iterator[list[int]]:
    """The clusters of at least `least`, none larger than `most`, the first member's place first."""
    count, far = len(affinity), 3.0
    distances = np.maximum(far - affinity[np.triu_indices(count, 1)], 0.0)
    groups: dict[int, list[int]] = {i: [i] for i in range(count)}
    for place, (one, other, distance, size) in enumerate(fastcluster.linkage(distances, "average").tolist()):
        pair = (int(one), int(other))
        if distance <= far - policy.nearness and size <= policy.most and all(i in groups for i in pair):
            groups[count + place] = groups.pop(pair[0]) + groups.pop(pair[1])
    found = (sorted(group) for group in groups.values())
    yield from sorted(group for group in found if len(group) >= policy.least)


# -- words -------------------------------------------------------------------------------------------------


def _joined(statements: Sequence[str]) -> list[str]:
    """The statements, each once; short ones that begin in the same words are told in one, where the first of
    them stands: `I like sushi`, `I like jazz` as `I like sushi, jazz`.
    """
    groups: dict[str, list[str]] = {}
    for statement in dict.fromkeys(" ".join(one.split()) for one in statements):
        groups.setdefault(_beginning(statement), []).append(statement)
    return [_one(group) for group in groups.values()]


def _beginning(statement: str) -> str:
    """The words that statements to be told in one share; all of one that stands alone."""
    words = statement.rstrip(".").split()
    short = _SHARED_WORDS < len(words) <= _SHORT and not any(sign in statement for sign in ",;:?!…")
    return " ".join(words[:_SHARED_WORDS]).casefold() if short else statement


def _one(group: Sequence[str]) -> str:
    if len(group) == 1:
        return group[0]
    words = [one.rstrip(".").split() for one in group]
    shared = len(list(takewhile(_same, zip(*words, strict=False))))
    shared = min(shared, min(map(len, words)) - 1)
    rests = (" ".join(one[shared:]) for one in words)
    return f"{' '.join(words[0][:shared])} {', '.join(rests)}"


def _same(words: Iterable[str]) -> bool:
    return len({word.casefold() for word in words}) == 1


def _sentences(statements: Iterable[str]) -> Iterator[str]:
    for one in statements:
        yield one if one.endswith((".", "!", "?", "…", "。")) else f"{one}."
