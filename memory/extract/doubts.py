"""What takes away that a message's plain words are its user's: play, tests, what is said not to be meant.

Nothing marks such words. Somewhere else in the message stands that they are a player's turn, a test's step or
somebody else's; then nothing of the message is read.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from hearth.memory.extract.books import read_book

_KINDS: Final = ("unmeant", "turn", "narrates", "meets", "fixture")
_STEPS: Final = 2
"""Lines of a test at least: one may begin with `Then` by itself."""


class _Doubts(NamedTuple):
    anywhere: re.Pattern[str]
    """In the message, in any language."""
    step: re.Pattern[str]
    """How a test's lines begin."""
    shouted: re.Pattern[str]
    """How a line begins whose first word is a keyword in capitals."""


@cache
def _doubts() -> _Doubts:
    """`doubts.toml`, read once."""
    given = read_book("doubts.toml")
    every = "|".join(text for kind in _KINDS for text in given[kind].values())
    return _Doubts(
        anywhere=re.compile(every, re.IGNORECASE),
        step=re.compile(given["steps"]["any"], re.IGNORECASE | re.MULTILINE),
        shouted=re.compile(given["steps"]["shouted"], re.MULTILINE),
    )


def is_doubtful(text: str) -> bool:
    """Whether nothing that `text` says can be relied on, `text` being what is left of a message."""
    doubts = _doubts()
    return doubts.anywhere.search(text) is not None or _is_test(text)


def _is_test(text: str) -> bool:
    doubts = _doubts()
    steps = {step.group().strip(" \t-*").casefold() for step in doubts.step.finditer(text)}
    return len(steps) >= _STEPS or len(doubts.shouted.findall(text)) >= _STEPS
