"""A question as it is embedded: beside its own words, those of them that tell the owner's records apart.

A name that nearly every record bears, as those of a dialogue's two speakers do, pulls a question's vector
towards none of them in particular. So the question is embedded once more without such words, and the mean of
both vectors is looked for. Which words those are is seen in the owner's records, in any language.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hearth.memory.ports import Embedder
from hearth.memory.recall.function_words import FUNCTION_WORDS
from hearth.memory.recall.lexical import analyzed
from hearth.memory.stores.analyzer import Analyzer
from hearth.memory.types import Vector


def telling_text(text: str, common: frozenset[int], analyzer: Analyzer) -> str:
    """`text` without its `common` terms, function words apart; empty where it has none, or nothing else."""
    named = common - analyzed(FUNCTION_WORDS)
    kept = list(_kept(text, named, analyzer)) if named else []
    return " ".join(kept) if len(kept) < len(text.split()) else ""


def embed_telling(embedder: Embedder, text: str, telling: str) -> Vector:
    """The question's vector: the mean of both where there is a telling text."""
    vectors = embedder.embed_queries([text, telling] if telling else [text])
    return mean(vectors) if telling else vectors[0]


def mean(vectors: Sequence[Vector]) -> Vector:
    """The direction between the vectors; the first where they cancel each other out."""
    summed = [math.fsum(numbers) for numbers in zip(*vectors, strict=True)]
    length = math.hypot(*summed)
    return [number / length for number in summed] if length else vectors[0]


def _kept(text: str, named: frozenset[int], analyzer: Analyzer) -> Iterator[str]:
    for word in text.split():
        terms = analyzer.terms(word)
        if not terms or not named.issuperset(terms):
            yield word
