"""The store's own analyzer, its answers kept: the same fresh pages come again with each turn."""

from __future__ import annotations

from functools import cache, lru_cache
from threading import Lock
from typing import Final

from hearth.memory.stores.analyzer import Analyzer

_KEPT: Final = 4096
"""Texts; a page is a few hundred terms of eight bytes."""

_one_at_a_time: Final = Lock()


@lru_cache(maxsize=_KEPT)
def analyzed(text: str) -> frozenset[int]:
    """The text's distinct terms, as the lexical index has them."""
    with _one_at_a_time:
        return frozenset(_analyzer().terms(text))


def words(text: str) -> tuple[str, ...]:
    """The same terms as words, in the order of the text: what is really looked up, stems and pairs."""
    return tuple(dict.fromkeys(occurrences(text)))


def occurrences(text: str) -> list[str]:
    """The terms as words, as often as they stand in the text."""
    with _one_at_a_time:
        return _analyzer().words(text)


@cache
def _analyzer() -> Analyzer:
    return Analyzer()
