"""All that could be recalled for one query, long-term and short-term: records beside arrays of numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hearth.memory.types import Candidate, Page, Record, SearchResult, ShortTermView, Vector

Analyze: TypeAlias = Callable[[str], Iterable[Hashable]]
"""Text to terms: the very function that the store's lexical index is made with."""
Numbers: TypeAlias = NDArray[np.float64]

_COMMON: Final = 0.25
"""Weight of a question's term that most fresh pages hold; they are too few for a real idf."""
_IDF: Final = 3.0
"""Lexical score of one fully matched rare term where no candidate tells the index's own scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates in the order they came. Arrays have one number a record, NaN where a score is missing."""

    records: Sequence[Record]
    text: Numbers
    """Cosine with the record's text."""
    context: Numbers
    """Cosine with the page before and the record; its text's where the store has none."""
    lexical: Numbers
    """Sum of idf-weighted matches, 0 where no word matches."""
    coverage: Numbers
    """Share of the question's idf mass, 0 to 1."""
    lexical_terms: int
    """How many different terms the question has."""

    @property
    def cosine(self) -> Numbers:
        """The better of both cosines, NaN where there is neither."""
        return np.fmax(self.text, self.context)


def gather(result: SearchResult, view: ShortTermView, question: str, analyze: Analyze) -> Pool:
    """Long-term candidates first, then the fresh pages that are not among them, scored on the same scales.

    `question` is the text whose words were looked up.
    """
    terms = frozenset(analyze(question))
    known = {candidate.record.id for candidate in result.candidates}
    fresh = [page for page in view.pages if page.id not in known]
    longterm = _numbers(result.candidates)
    short = _fresh_numbers(fresh, view, result.vector, terms, analyze, _scale(longterm))
    text, context, lexical, coverage = np.concatenate([longterm, short], axis=1)
    return Pool(
        records=[*(candidate.record for candidate in result.candidates), *fresh],
        text=text,
        context=np.where(np.isnan(context), text, context),
        lexical=lexical,
        coverage=coverage,
        lexical_terms=len(terms),
    )


def _numbers(candidates: Sequence[Candidate]) -> Numbers:
    nan = float("nan")
    rows = [
        (
            nan if c.text_score is None else c.text_score,
            nan if c.context_score is None else c.context_score,
            c.lexical_score or 0.0,
            c.coverage,
        )
        for c in candidates
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 4).T


def _scale(longterm: Numbers) -> float:
    """What the index's lexical score would be at full coverage."""
    lexical, coverage = longterm[2], longterm[3]
    told = coverage > 0.05  # below, the quotient is noise
    return float(np.median(lexical[told] / coverage[told])) if told.any() else _IDF


def _fresh_numbers(
    pages: Sequence[Page],
    view: ShortTermView,
    vector: Vector | None,
    terms: frozenset[Hashable],
    analyze: Analyze,
    scale: float,
) -> Numbers:
    cosine = np.full(len(pages), np.nan)
    told = [i for i, page in enumerate(pages) if page.id in view.vectors]
    if vector is not None and told:
        cosine[told] = np.array([view.vectors[pages[i].id] for i in told]) @ np.array(vector)
    coverage = _coverage(
        [frozenset(analyze(f"{page.user_text}\n{page.reply_text}")) for page in pages], terms
    )
    return np.stack([cosine, cosine, coverage * scale, coverage])


def _coverage(pages: Sequence[frozenset[Hashable]], terms: frozenset[Hashable]) -> Numbers:
    """Share of the question's terms that each page holds; terms that most fresh pages hold count little."""
    if not terms or not pages:
        return np.zeros(len(pages))
    order = sorted(terms, key=hash)
    held = np.array([[term in page for term in order] for page in pages], dtype=np.float64)
    common = held.mean(axis=0) > 0.5 if len(pages) > 3 else np.zeros(len(order), dtype=bool)
    weight = np.where(common, _COMMON, 1.0)
    return np.asarray(held @ weight / weight.sum())
