"""Which words are used of the same things: a table of directions of words, the same for every installation.

`dog` is like `perro` and `pet`, and no search by words sees that. The table has the vocabulary of sixteen
languages, stemmed, and none of any user's words. `benchmarks/fit_related.py` made it, and tells how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import Final

import numpy as np
from numpy.typing import NDArray

_Matrix = NDArray[np.float64]
_Ids = NDArray[np.uint32]

_UNRELATED: Final = 0.5
"""Cosine up to which two words have nothing to do with each other."""
_SAME: Final = 0.85
"""Cosine from which they mean the same: a word and its translation."""
SCALE: Final = 127
"""Of the numbers that the table has in eight bits."""


def likeness(terms: _Ids, wanted: Sequence[int]) -> _Matrix:
    """How alike each term (row) is to each wanted one (column): 1 the same, 0 unrelated or unknown."""
    table = _table()
    asked = np.array(wanted, np.uint32)
    cosines = table.directions(terms) @ table.directions(asked).T
    alike = np.clip((cosines - _UNRELATED) / (_SAME - _UNRELATED), 0.0, 1.0)
    return np.where(terms[:, None] == asked[None, :], 1.0, alike)


@dataclass(frozen=True, slots=True)
class _Table:
    terms: _Ids
    """In order."""
    vectors: NDArray[np.int8]
    """A row a term, of length `SCALE`, and a last row of zeros for unknown ones."""

    def directions(self, terms: _Ids) -> NDArray[np.float32]:
        """One row a term, of length 1; zeros where it is unknown."""
        places = np.searchsorted(self.terms, terms).clip(max=len(self.terms) - 1)
        rows = np.where(self.terms[places] == terms, places, len(self.terms))
        return self.vectors[rows].astype(np.float32) / np.float32(SCALE)


@cache
def _table() -> _Table:
    with as_file(files("hearth.memory.stores") / "related.npz") as path, np.load(path) as file:
        terms, vectors = file["terms"], file["vectors"]
    return _Table(terms, np.vstack([vectors, np.zeros_like(vectors[:1])]))
