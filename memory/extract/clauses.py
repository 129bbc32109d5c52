"""Where the speaker's own clauses begin in a sentence, and whether they are plainly said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from hearth.memory.extract.material import COVER
from hearth.memory.extract.spans import Sentence
from hearth.memory.extract.tongues import Tongue

_MARK: Final = re.compile(rf"(?:[;()\[\]–—，、；：（）،{COVER}]|[,:](?!(?<=\d.)\d))+\s*|\s-{{1,2}}\s+")
_HARD: Final = re.compile(rf"[;()\[\]–—；：（）{COVER}]|:(?!(?<=\d.)\d)|\s-{{1,2}}\s")
"""But for what stands within a number: `1:45`."""
_LEADS: Final = 4
"""Phrases at most that stand before a clause without changing it."""


_TAG: Final = 2
"""Words at most that ask whether what stands before them is so: `, non è vero?`"""


class Clause(NamedTuple):
    """A place where a clause begins."""

    whole: int
    start: int
    """Behind what leads it in."""
    after: str = ""
    """What parts it from what stands before: a mark, or a conjunction; empty at the sentence's start."""
    asked: bool = False
    """It begins as a question or a request does."""


def clauses(text: str, sentence: Sentence, tongue: Tongue) -> list[Clause]:
    """The clauses of the sentence that are statements or requests, in order.

    Of a question only those that stand apart from what is asked: `I'm allergic to nuts, what can I eat?`
    """
    before = sentence.start
    while before and text[before - 1] == " ":
        before -= 1
    behind = COVER if text[before - 1 : before] == COVER else ""
    opening = _clause(text, sentence.start, sentence.end, behind, tongue)
    asks = sentence.asks and not tongue.recalls.match(text, sentence.start, sentence.end)
    end = _asked_from(text, sentence, tongue) if asks else sentence.end
    starts = [_clause(text, at, end, by, tongue) for at, by in sorted(_parted(text, sentence, end, tongue))]
    if opening.asked:
        starts = [clause for clause in starts if _MARK.match(clause.after)]
    return [clause for clause in (opening, *starts) if clause.start < end]


def _clause(text: str, whole: int, end: int, after: str, tongue: Tongue) -> Clause:
    start = _led(text, whole, end, tongue)
    asked = tongue.asks.match(text, start, end) is not None and not tongue.firsts.match(text, start, end)
    if asked and start > whole and tongue.inverted.match(text, start, end):
        asked = False  # `since May I live in Bern`: what stands before the verb has turned it round
    return Clause(whole, start, after, asked)


def ends_at(text: str, place: int, sentence: Sentence, tongue: Tongue) -> int:
    """Where the clause ends whose value ends at `place`: at the next mark, or before the next clause."""
    mark = _MARK.search(text, place, sentence.end)
    end = mark.start() if mark else sentence.end
    join = tongue.joins.search(text, place, end)
    return len(text[: join.start()].rstrip()) if join else end


def segment_end(text: str, place: int, sentence: Sentence) -> int:
    """Where the words that can belong to a value at `place` end at most."""
    hard = _HARD.search(text, place, sentence.end)
    return hard.start() if hard else sentence.end


def plainly_said(text: str, sentence: Sentence, clause: Clause, end: int, tongue: Tongue) -> bool:
    """False where the clause, up to `end`, is wished for, doubted, conditional or somebody's speech."""
    return not tongue.unreal.search(text, clause.start, end) and not tongue.governs.search(
        text, sentence.start, clause.whole
    )


def _led(text: str, start: int, end: int, tongue: Tongue) -> int:
    """`start` behind what leads the clause in."""
    for _ in range(_LEADS):
        lead = tongue.lead.match(text, start, end)
        if lead is None or lead.end() == start:
            break
        start = lead.end()
    return start


def _parted(text: str, sentence: Sentence, end: int, tongue: Tongue) -> Iterator[tuple[int, str]]:
    """Where a clause may begin: behind each mark and conjunction; once where they stand together."""
    joined = {join.start(): join for join in tongue.joins.finditer(text, sentence.start, end)}
    for mark in _MARK.finditer(text, sentence.start, end):
        join = joined.pop(mark.end(), None)
        after = mark.group().strip() or "-"
        yield (join or mark).end(), f"{after} {join.group().strip().lower()}" if join else after
    for who in tongue.relative.finditer(text, sentence.start, end):
        yield who.start(), "who"
    for join in joined.values():
        yield join.end(), join.group().strip().lower()


def _asked_from(text: str, sentence: Sentence, tongue: Tongue) -> int:
    """Where the asking part begins; the sentence's start where all of it may be asked."""
    if tongue.asks.match(text, _led(text, sentence.start, sentence.end, tongue), sentence.end):
        return sentence.start
    if tongue.tags.search(text, sentence.start, sentence.end):
        return sentence.start
    parts = sorted(_parted(text, sentence, sentence.end, tongue))
    for at, _ in parts:
        if tongue.asks.match(text, _led(text, at, sentence.end, tongue), sentence.end):
            return at
    last = max((at for at, by in parts if _MARK.match(by)), default=sentence.start)
    return last if _asks_itself(text[last : sentence.end]) else sentence.start


def _asks_itself(last: str) -> bool:
    """Whether a question's last part is what it asks, and no tag: that has a word or two."""
    return len(last.split()) > _TAG or (len(last) > 2 * _TAG and not last.isascii() and " " not in last)
