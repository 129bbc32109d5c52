"""Fragments of what is erased, by which a scan of raw bytes finds what is left of it without holding it."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

from hearth.memory.erasure.receipt import Fragment

WINDOW: Final = 24
"""Bytes of a fragment."""
MOST: Final = 96
"""Fragments of one erasure."""
SALT_BYTES: Final = 32
_TRIES: Final = 8
_LEAST_DIFFERENT: Final = 8
"""Different bytes of a fragment: zeros and blanks are found everywhere."""
_WORD: Final = 8
_MIX: Final = 0x9E3779B97F4A7C15
_START_BITS: Final = 16


def fragments_of(salt: bytes, sources: Sequence[bytes]) -> tuple[Fragment, ...]:
    """Up to `MOST` fragments, spread over the sources; none of what is shorter than `WINDOW`."""
    long_enough = [raw for raw in sources if len(raw) >= WINDOW]
    each = max(MOST // len(long_enough), 1) if long_enough else 0
    found = {piece for raw in long_enough for _ in range(each) if (piece := _piece(raw))}
    return tuple(Fragment(start=_start(piece), digest=_digest(salt, piece)) for piece in sorted(found)[:MOST])


class Search:
    """Looks for the fragments of several erasures at once."""

    def __init__(self, wanted: Mapping[str, tuple[bytes, Sequence[Fragment]]]) -> None:
        """By erasure: its salt and its fragments."""
        self._starts = np.zeros(1 << _START_BITS, dtype=np.bool_)
        self._digests: defaultdict[int, dict[tuple[str, bytes], set[bytes]]] = defaultdict(dict)
        for erasure, (salt, fragments) in wanted.items():
            for one in fragments:
                self._starts[one.start] = True
                self._digests[one.start].setdefault((erasure, salt), set()).add(one.digest)

    def count(self, raw: bytes) -> Counter[str]:
        """How many fragments of each erasure begin in the bytes, whole ones alone."""
        found: Counter[str] = Counter()
        for at in self._candidates(raw):
            piece = raw[at : at + WINDOW]
            for (erasure, salt), digests in self._digests[_start(piece)].items():
                found[erasure] += _digest(salt, piece) in digests
        return found

    def _candidates(self, raw: bytes) -> Iterable[int]:
        last = len(raw) - WINDOW
        for shift in range(min(_WORD, last + 1)):
            words = np.frombuffer(raw, "<u8", (len(raw) - shift) // _WORD, shift)
            hits = np.flatnonzero(self._starts[_starts(words)]) * _WORD + shift
            yield from hits[hits <= last].tolist()


def _starts(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return (words * np.uint64(_MIX)) >> np.uint64(64 - _START_BITS)


def _start(piece: bytes) -> int:
    word = int.from_bytes(piece[:_WORD], "little")
    return (word * _MIX & (1 << 64) - 1) >> 64 - _START_BITS


def _digest(salt: bytes, piece: bytes) -> bytes:
    return blake2b(piece, key=salt, digest_size=16).digest()


def _piece(raw: bytes) -> bytes:
    """A window at random; empty where all that were tried say too little."""
    for _ in range(_TRIES):
        at = secrets.randbelow(len(raw) - WINDOW + 1)
        piece = raw[at : at + WINDOW]
        if len(set(piece)) >= _LEAST_DIFFERENT:
            return piece
    return b""
