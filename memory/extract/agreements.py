"""What a user and an assistant have agreed on: the user's standing instructions, the assistant's promises.

Both are facts of the subject `agent`, and that agent's alone. What an assistant says is never a fact about
the user; of its words only a promise counts, which it makes for later and without a condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from msgspec import structs

from hearth.memory.extract.attributes import AGENT, is_single
from hearth.memory.extract.books import read_book
from hearth.memory.extract.spans import own_words, sentences, users_words
from hearth.memory.types import CandidateFact, Page

_MOST: Final = 3
"""Promises of one reply."""
_SURE: Final = 0.9
_SLOTS: Final = {
    "form of address": "form of address",
    "preferred language": "answer language",
}
"""What the user says of themselves that tells the assistant what to do, by its attribute."""
_LONGEST: Final = 200
"""Characters of a promise."""


class _Book(NamedTuple):
    language: re.Pattern[str]
    length: re.Pattern[str]
    tone: re.Pattern[str]
    about: re.Pattern[str]
    """An instruction about the answers themselves: `use short variable names` is none about their length."""
    variables: re.Pattern[str]
    condition: re.Pattern[str]
    promised: re.Pattern[str]


@cache
def _book() -> _Book:
    """`agreements.toml`, read once."""
    given = read_book("agreements.toml")
    promised = "|".join(f"(?:{one})" for one in given.pop("promises").values())
    return _Book(
        promised=re.compile(promised, re.IGNORECASE),
        **{name: re.compile(pattern, re.IGNORECASE) for name, pattern in given.items()},
    )


def agreements(said: Iterable[CandidateFact], page: Page) -> list[CandidateFact]:
    """What a page states, with its instructions as facts of the agent's, each slot once, and the promises."""
    made: dict[tuple[str, ...], CandidateFact] = {}
    for place, one in enumerate(map(agreed, said)):
        slot = one.subject == AGENT and is_single(one.attribute)
        made.setdefault((one.subject, one.attribute) if slot else (str(place),), one)
    return [*made.values(), *promises(page)]


def agreed(said: CandidateFact) -> CandidateFact:
    """A standing instruction as a fact of the agent's, by what it is about; anything else as it is."""
    if said.subject != "user":
        return said
    if said.attribute in _SLOTS:
        return structs.replace(said, subject=AGENT, attribute=_SLOTS[said.attribute])
    if said.attribute == "instruction":
        return structs.replace(said, subject=AGENT, attribute=_slot(said.statement))
    return said


def promises(page: Page) -> list[CandidateFact]:
    """What the assistant promised the user in its reply; nothing where the user plays or works on a text."""
    if not page.reply_text or not users_words(page):
        return []
    return list(_promises(page.reply_text))[:_MOST]


def _promises(reply: str) -> Iterator[CandidateFact]:
    text = own_words(reply)
    for sentence in sentences(text):
        said = text[sentence.start : sentence.end]
        if sentence.asks or len(said) > _LONGEST or _book().condition.search(said):
            continue
        if not _book().promised.fullmatch(said):
            continue
        quote = reply[sentence.start : sentence.end]
        yield CandidateFact(
            statement=f"The assistant promised: {quote}",
            quote=quote,
            role="assistant",
            subject=AGENT,
            attribute="promise",
            value=quote,
            confidence=_SURE,
        )


def _slot(statement: str) -> str:
    """What an instruction is about: of each of these a newer one closes the one before."""
    if _book().language.search(statement):
        return "answer language"
    if not _book().variables.search(statement) and _book().about.search(statement):
        if _book().length.search(statement):
            return "answer length"
        if _book().tone.search(statement):
            return "tone"
    return "instruction"
