"""Where a text has digits enough to be somebody's number, so that no pattern is tried anywhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

LETTERS: Final = "A-Za-z0-9_\u00c0-\u052f"
"""Latin, Greek and Cyrillic ones, and digits: what a number never touches. Of Chinese or Japanese it may."""
Windows: TypeAlias = Sequence[tuple[int, int]]
"""Parts of a text, in order, none within another."""
_RUN: Final = re.compile(r"\d(?:[^\d\n]{0,3}\d)*")
"""Digits with little between them."""
_TOKEN: Final = re.compile(r"\S{0,64}")
_NO_DIGIT: Final = re.compile(r"\D+")
_BEFORE: Final = 12
_BEHIND: Final = 24
"""Characters around them that a number may begin or end with."""


def windows(text: str, *, least: int) -> Windows:
    """Where `least` digits or more stand near one another."""
    found: list[tuple[int, int]] = []
    for run in _RUN.finditer(text):
        if run.end() - run.start() < least or len(_NO_DIGIT.sub("", run.group())) < least:
            continue
        start, end = max(0, run.start() - _BEFORE), _token_end(text, run.end() + _BEHIND)
        if found and start <= found[-1][1]:  # or a number would be cut where the first of them ends
            start, _ = found.pop()
        found.append((start, end))
    return found


def _token_end(text: str, place: int) -> int:
    token = _TOKEN.match(text, place)
    return token.end() if token else len(text)


def matches(pattern: re.Pattern[str], text: str, within: Windows) -> Iterator[re.Match[str]]:
    """Every match in those windows, in order; none begins within the one before it."""
    done = 0
    for start, end in within:
        for match in pattern.finditer(text, max(done, start), end):
            done = match.end()
            yield match
