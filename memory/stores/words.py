"""The words of a record's sides, packed beside it, and what a query's words score on them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hearth.memory.stores.related import likeness
from hearth.memory.stores.terms import QueryTerms, saturation

SIDES = 2
"""At most: what the user said and what was replied. A memory is one side."""
_BYTES = 5
"""Of a packed term: four for its id, one for how often it occurs."""
_MOST = 255

_Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordScores:
    """What a query's words score on one record."""

    lexical: float
    """BM25 on the whole record, without other people's texts."""
    coverage: float
    """Share of the query's idf mass whose terms the record holds, 0 to 1."""
    sides: tuple[float, ...]
    """BM25 on each side alone."""
    related: tuple[float, ...]
    """Of each side, how far its words are the query's content words or related ones, 0 to 1."""

    def fields(self) -> dict[str, float]:
        """The same by the names that candidates have for them."""
        said, replied = self.sides
        said_related, replied_related = self.related
        return {
            "lexical_score": self.lexical,
            "coverage": self.coverage,
            "said_score": said,
            "replied_score": replied,
            "said_related": said_related,
            "replied_related": replied_related,
        }


def packed_words(sides: Sequence[Mapping[int, int]]) -> str:
    """Counted terms of the sides, for a payload: their numbers of terms, then ids and counts of all."""
    two = [*sides[:SIDES], *({} for _ in range(SIDES - len(sides)))]
    sizes = np.array([len(side) for side in two], np.uint32)
    ids = np.array([term for side in two for term in side], np.uint32)
    counts = np.array([min(count, _MOST) for side in two for count in side.values()], np.uint8)
    return b64encode(sizes.tobytes() + ids.tobytes() + counts.tobytes()).decode()


def score_words(packed: Sequence[str], words: QueryTerms) -> list[WordScores]:
    """The scores of records by their packed words, in order; some 10 µs a record."""
    if not packed:
        return []
    held = _unpacked(packed)
    counts, lengths = held.counts(list(words.held)), held.lengths()
    idf = np.fromiter(words.held.values(), np.float64, len(words.held))
    sides = saturation(counts, lengths[:, None]) @ idf
    whole = counts[0::SIDES] + counts[1::SIDES]
    lengths = lengths[0::SIDES] + lengths[1::SIDES]
    lexical = saturation(whole, lengths[:, None]) @ idf
    coverage = (whole > 0) @ idf / words.mass if words.mass else np.zeros(len(packed))
    return [
        WordScores(lexical=total, coverage=min(share, 1.0), sides=tuple(each), related=tuple(near))
        for total, share, each, near in zip(
            lexical.tolist(),
            coverage.tolist(),
            sides.reshape(-1, SIDES).tolist(),
            held.related(words.content).reshape(-1, SIDES).tolist(),
            strict=True,
        )
    ]


def related_to(terms: Iterable[int], content: Mapping[int, float]) -> float:
    """How far a text of those terms has those of `content`, by weight, or related ones: 0 to 1."""
    ids = np.array(sorted(terms), np.uint32)
    return float(_Held(ids, np.ones(len(ids), np.uint8), np.array([len(ids)])).related(content)[0])


@dataclass(frozen=True)
class _Held:
    """The terms of several sides, one side's after another's."""

    ids: NDArray[np.uint32]
    times: NDArray[np.uint8]
    """How often each occurs."""
    sizes: NDArray[np.int64]
    """Terms of each side."""

    @cached_property
    def _side(self) -> NDArray[np.intp]:
        """Whose each term is."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def lengths(self) -> _Matrix:
        """Words of each side."""
        return np.bincount(self._side, weights=self.times, minlength=len(self.sizes)).astype(np.float64)

    def counts(self, terms: Sequence[int]) -> _Matrix:
        """How often each side (rows) holds each of those terms (columns)."""
        counts: _Matrix = np.zeros((len(self.sizes), len(terms)))
        if not terms:
            return counts
        wanted = np.array(terms, np.uint32)
        order = np.argsort(wanted)
        places = np.searchsorted(wanted[order], self.ids).clip(max=len(wanted) - 1)
        found = wanted[order][places] == self.ids
        counts[self._side[found], order[places[found]]] = self.times[found]
        return counts

    def related(self, content: Mapping[int, float]) -> _Matrix:
        """Of each side the mean over `content`, by weight, of how alike its likest term is."""
        nearest: _Matrix = np.zeros((len(self.sizes), len(content)))
        mass = sum(content.values())
        if not mass or not len(self.ids):
            return np.zeros(len(self.sizes))
        distinct, places = np.unique(self.ids, return_inverse=True)
        alike = likeness(distinct, list(content))[places]
        full = np.flatnonzero(self.sizes)
        starts = np.cumsum(self.sizes)[full] - self.sizes[full]
        nearest[full] = np.maximum.reduceat(alike, starts)
        return np.asarray(nearest @ np.fromiter(content.values(), np.float64, len(content)) / mass)


def _unpacked(packed: Sequence[str]) -> _Held:
    raw = [b64decode(one) for one in packed]
    head = SIDES * 4
    sizes = np.array([np.frombuffer(one, np.uint32, SIDES) for one in raw], np.int64).ravel()
    ends = [head + (len(one) - head) // _BYTES * 4 for one in raw]
    ids = np.frombuffer(b"".join([one[head:end] for one, end in zip(raw, ends, strict=True)]), np.uint32)
    times = np.frombuffer(b"".join([one[end:] for one, end in zip(raw, ends, strict=True)]), np.uint8)
    return _Held(ids, times, sizes)
