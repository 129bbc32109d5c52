"""Which of the candidates that a store found are worth sending on: a rough fusion, not the ranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

K = TypeVar("K")

WEIGHTS = {"text": 0.35, "context": 0.35, "lexical": 0.5}
"""Shares of the min-max scaled scores; the ones that did best on LoCoMo's development half."""
KEPT = 1.5
"""Candidates kept, as a multiple of the request's limit of each kind; see benchmarks/vector_child.py."""


def best(scores: Mapping[str, Mapping[K, float]], *, limit: int) -> list[K]:
    """Keys of the `KEPT * limit` best by the weighted sum of scaled scores, best first.

    `scores` has each query's own best: name of the query to score by key. Who is not among them counts as
    that query's worst. Equal sums stay in the order in which the queries gave them.
    """
    sums: dict[K, float] = {}
    for name, found in scores.items():
        low, high = min(found.values(), default=0.0), max(found.values(), default=0.0)
        scale = WEIGHTS[name] / (high - low) if high > low else 0.0
        floor = 0.0 if scale else WEIGHTS[name]
        for key, score in found.items():
            sums[key] = sums.get(key, 0.0) + (score - low) * scale + floor
    return sorted(sums, key=sums.__getitem__, reverse=True)[: round(limit * KEPT)]
