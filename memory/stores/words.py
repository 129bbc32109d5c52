"""The words of a record's sides, packed beside it, and what a query's words score on them."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


def packed_words(sides: Sequence[Mapping[int, int]]) -> str:
    """Counted terms of the sides, for a payload: their numbers of terms, then ids and counts of all."""
    two = [*sides[:SIDES], *({} for _ in range(SIDES - len(sides)))]
    sizes = np.array([len(side) for side in two], np.uint32)
    ids = np.array([term for side in two for term in side], np.uint32)
    counts = np.array([min(count, _MOST) for side in two for count in side.values()], np.uint8)
    return b64encode(sizes.tobytes() + ids.tobytes() + counts.tobytes()).decode()


def score_words(packed: Sequence[str], words: QueryTerms) -> list[WordScores]:
    """The scores of records by their packed words, in order; some 3 µs a record."""
    if not packed:
        return []
    counts, lengths = _counts(packed, list(words.held))
    idf = np.fromiter(words.held.values(), np.float64, len(words.held))
    sides = saturation(counts, lengths[:, None]) @ idf
    whole = counts[0::SIDES] + counts[1::SIDES]
    lengths = lengths[0::SIDES] + lengths[1::SIDES]
    lexical = saturation(whole, lengths[:, None]) @ idf
    coverage = (whole > 0) @ idf / words.mass if words.mass else np.zeros(len(packed))
    return [
        WordScores(lexical=total, coverage=min(share, 1.0), sides=tuple(each))
        for total, share, each in zip(
            lexical.tolist(), coverage.tolist(), sides.reshape(-1, SIDES).tolist(), strict=True
        )
    ]


def _counts(packed: Sequence[str], terms: Sequence[int]) -> tuple[_Matrix, _Matrix]:
    """How often each side (rows) holds each of the query's terms (columns), and how many terms it has."""
    raw = [b64decode(one) for one in packed]
    head = SIDES * 4
    sizes = np.array([np.frombuffer(one, np.uint32, SIDES) for one in raw], np.int64).ravel()
    ends = [head + (len(one) - head) // _BYTES * 4 for one in raw]
    ids = np.frombuffer(b"".join([one[head:end] for one, end in zip(raw, ends, strict=True)]), np.uint32)
    times = np.frombuffer(b"".join([one[end:] for one, end in zip(raw, ends, strict=True)]), np.uint8)
    side = np.repeat(np.arange(len(sizes)), sizes)
    lengths: _Matrix = np.bincount(side, weights=times, minlength=len(sizes)).astype(np.float64)
    counts: _Matrix = np.zeros((len(sizes), len(terms)))
    if not terms:
        return counts, lengths
    wanted = np.array(terms, np.uint32)
    order = np.argsort(wanted)
    places = np.searchsorted(wanted[order], ids).clip(max=len(wanted) - 1)
    held = wanted[order][places] == ids
    counts[side[held], order[places[held]]] = times[held]
    return counts, lengths
