"""What a user says holds for them too, of what the assistant has just said of itself: `Bern is right for me`.

The value stands in the user's own words, which alone are evidence; what it is a value of stands in the reply.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from hearth.memory.extract.attributes import value_key
from hearth.memory.extract.books import read_book
from hearth.memory.extract.chosen import GENERAL, Stated
from hearth.memory.extract.spans import Sentence, own_words, sentences, users_words
from hearth.memory.extract.statements import stated
from hearth.memory.types import CandidateFact, Page

_SURE: Final = 0.85
_LONGEST: Final = 80
"""Characters of a message at most: what is longer says more than that."""


@cache
def _wordings() -> re.Pattern[str]:
    """`confirming.toml`, read once; each language's group of the value under a name of its own."""
    given = read_book("confirming.toml")
    texts = (text.replace("<value>", f"<{language}>") for language, text in given.items())
    return re.compile("|".join(f"(?:{text})" for text in texts), re.IGNORECASE)


def confirmation(page: Page) -> tuple[Sentence, str] | None:
    """The sentence of the user's that confirms, and the value in it; None where they say anything else."""
    if len(page.user_text.strip()) > _LONGEST:
        return None  # known without reading it: what is covered keeps its length
    text = users_words(page).strip()
    if not text or "?" in text:
        return None
    for sentence in sentences(page.user_text):
        said = _wordings().fullmatch(page.user_text, sentence.start, sentence.end)
        if said is not None:
            return sentence, next(value for value in said.groups() if value)
    return None


def confirmed(page: Page, before: str) -> list[CandidateFact]:
    """The fact that the page confirms, if the assistant said it of itself in `before`; else nothing."""
    found = confirmation(page)
    if found is None:
        return []
    sentence, value = found
    quote = page.user_text[sentence.start : sentence.end]
    same = next((one for one in _said(before) if value_key(one.value) == value_key(value)), None)
    if same is None:
        return []
    return [
        CandidateFact(
            statement=f"{quote[:1].upper()}{quote[1:]}.",
            quote=quote,
            attribute=same.attribute,
            value=value,
            language=same.pattern.language,
            confidence=_SURE,
        )
    ]


def _said(before: str) -> list[Stated]:
    """What the assistant states of itself."""
    text = own_words(before)
    return [
        one
        for sentence in sentences(text)
        if not sentence.asks
        for one in stated(text, sentence, text)
        if one.subject == "user" and one.act in ("asserts", "adds") and one.attribute not in GENERAL
    ]
