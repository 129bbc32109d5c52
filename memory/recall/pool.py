"""All that could be recalled for one query, long-term and short-term: records beside arrays of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hearth.memory.recall.function_words import FUNCTION_WORDS
from hearth.memory.recall.lexical import analyzed
from hearth.memory.recall.speakers import speakers_of
from hearth.memory.stores.words import related_to
from hearth.memory.tiers.indexed import record_text, sides_of
from hearth.memory.types import Candidate, Embedding, Page, Record, SearchResult, ShortTermView, Vector

Numbers: TypeAlias = NDArray[np.float64]
Weighted: TypeAlias = dict[int, float]

_IDF: Final = 3.0
"""Lexical score of one fully matched rare term where no candidate tells the index's own scale."""
_REREAD: Final = 30
"""Candidates at most whose words are read again; a cached one costs a microsecond, another fifty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates in the order they came. Arrays have one number a record, NaN where a score is missing."""

    records: Sequence[Record]
    speakers: frozenset[str]
    """Names of those who speak in them, where the source gives names."""
    text: Numbers
    """Cosine with the record's text."""
    context: Numbers
    """Cosine with the page before and the record; its text's where the store has none."""
    lexical: Numbers
    """Sum of idf-weighted matches, 0 where no word matches."""
    coverage: Numbers
    """Share of the question's idf mass, 0 to 1."""
    sides: NDArray[np.float64]
    """The lexical score of each side alone: a row for what the user said, one for what was replied."""
    related: NDArray[np.float64]
    """How far each side's words are the question's or related ones, 0 to 1: rows as in `sides`."""

    @property
    def cosine(self) -> Numbers:
        """The better of both cosines, NaN where there is neither."""
        return np.fmax(self.text, self.context)


def gather(result: SearchResult, view: ShortTermView, question: str) -> Pool:
    """Long-term candidates first, then the fresh pages that are not among them, scored on the same scales.

    `question` is the text whose words were looked up. Coverage is counted again, function words apart, where
    candidates are so few that no idf tells those, and where the question has no vector, so that words alone
    must tell.
    """
    terms = _weights(question)
    known = {candidate.record.id for candidate in result.candidates}
    fresh = [page for page in view.pages if page.id not in known]
    longterm = _numbers(result.candidates)
    if result.vector is None or len(result.candidates) <= _REREAD:
        longterm[3] = _reread(result.candidates, longterm[2], terms)
    short = _fresh_numbers(fresh, view, result.vector, terms, _scale(longterm))
    text, context, lexical, coverage, *sides = np.concatenate([longterm, short], axis=1)
    records = [*(candidate.record for candidate in result.candidates), *fresh]
    return Pool(
        records=records,
        speakers=speakers_of(records),
        text=text,
        context=np.where(np.isnan(context), text, context),
        lexical=lexical,
        coverage=coverage,
        sides=np.stack(sides[:2]),
        related=np.stack(sides[2:]),
    )


def margins(numbers: Numbers, *, few: int = 1) -> Numbers:
    """How many standard deviations each is over the mean; 0 for those that have no number, and for all where
    they are equal or fewer than `few`.
    """
    known = numbers[~np.isnan(numbers)]
    deviation = known.std() if known.size >= few else 0.0
    if deviation <= 0:
        return np.zeros_like(numbers)
    return np.asarray((np.nan_to_num(numbers, nan=known.mean()) - known.mean()) / deviation)


def _weights(question: str) -> Weighted:
    """Equal weights of the question's content words, which sum to 1; of all its words if it has no other."""
    terms = analyzed(question)
    content = terms - analyzed(FUNCTION_WORDS) or terms
    return dict.fromkeys(content, 1.0 / max(len(content), 1))


def _numbers(candidates: Sequence[Candidate]) -> Numbers:
    nan = float("nan")
    rows = [
        (
            nan if c.text_score is None else c.text_score,
            nan if c.context_score is None else c.context_score,
            c.lexical_score or 0.0,
            c.coverage,
            c.said_score,
            c.replied_score,
            c.said_related,
            c.replied_related,
        )
        for c in candidates
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 8).T


def _scale(longterm: Numbers) -> float:
    """What the index's lexical score would be at full coverage."""
    lexical, coverage = longterm[2], longterm[3]
    told = coverage > 0.05  # below, the quotient is noise
    return float(np.median(lexical[told] / coverage[told])) if told.any() else _IDF


def _reread(candidates: Sequence[Candidate], lexical: Numbers, terms: Weighted) -> Numbers:
    """Coverage by weighted words of those with the best lexical scores, 0 for the others."""
    coverage = np.zeros(len(candidates))
    for i in np.argsort(-lexical, kind="stable")[:_REREAD]:
        coverage[i] = _held("\n".join(sides_of(candidates[i].record)), terms)
    return coverage


def _fresh_numbers(
    pages: Sequence[Page],
    view: ShortTermView,
    vector: Embedding | None,
    terms: Weighted,
    scale: float,
) -> Numbers:
    cosine = np.full(len(pages), np.nan)
    if vector is not None and (told := _of_one_embedder(pages, view, vector)):
        cosine[list(told)] = np.array(list(told.values())) @ np.array(vector.numbers)
    coverage = np.array([_held(record_text(page), terms) for page in pages], dtype=np.float64)
    sides = [side for page in pages for side in sides_of(page)]
    held = np.array([_held(side, terms) for side in sides], dtype=np.float64).reshape(-1, 2).T
    related = np.array([related_to(analyzed(side), terms) for side in sides]).reshape(-1, 2).T
    return np.stack([cosine, cosine, coverage * scale, coverage, *(held * scale), *related])


def _of_one_embedder(pages: Sequence[Page], view: ShortTermView, vector: Embedding) -> dict[int, Vector]:
    """The vectors, by the place of their page, that can be compared with that one."""
    held = ((i, view.vectors.get(page.id)) for i, page in enumerate(pages))
    return {i: one.numbers for i, one in held if one is not None and one.by == vector.by}


def _held(text: str, terms: Weighted) -> float:
    """Sum of the weights of the question's terms that the text holds."""
    return sum(terms[term] for term in terms.keys() & analyzed(text))
