"""Tells a page that says nothing: the user only asked, and the reply did not answer.

Such a page is as near to the next question as a page can be, and helps with none. No model is asked: the text
is a question and nothing else, and what the reply adds to the question's own words is what people and models
say who do not know. A language that is missing here lets such a page through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from hearth.memory.recall.cues import asks, is_small_talk, words_of
from hearth.memory.recall.function_words import FUNCTION
from hearth.memory.recall.nothing_words import NOT, NOT_UNSPACED, NOTHING, NOTHING_UNSPACED
from hearth.memory.types import Page, Record

_QUESTION_CHARACTERS: Final = 160
_REPLY_CHARACTERS: Final = 600
"""A longer question says something of itself, a longer reply is an answer, if only to another question."""
_SHARE: Final = 5
"""One new word in so many may be anything: `your calendar`."""
_COURTESY_CHARACTERS: Final = 40
_STEM: Final = 4
"""Characters by which words are held to be the same: `lives` and `live`, `wohne` and `wohnst`."""

_YES_OR_NO: Final = words_of(
    "yes|no|yep|nope|ja|nein|sí|oui|non|sim|não|да|нет|是的|不是|不|はい|いいえ|네|아니요|예",
)

_CLAUSE: Final = re.compile(r"([^.!?;:,\n。！？；，、…؟]+)([.!?;:,\n。！？；，、…؟]*)")
_OPENS_YES_OR_NO: Final = re.compile(rf"^\W*(?:{_YES_OR_NO})\s*(?:[,.!，。！、]|$)", re.IGNORECASE)
_NOTHING: Final = re.compile(NOTHING_UNSPACED)
_NOT: Final = re.compile(NOT_UNSPACED)
_DIGIT: Final = re.compile(r"\d")
_TOKEN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")


def says_nothing(record: Record) -> bool:
    """True for a page that holds a question and no answer; never for a memory."""
    return (
        isinstance(record, Page)
        and len(record.user_text) <= _QUESTION_CHARACTERS
        and len(record.reply_text) <= _REPLY_CHARACTERS
        and _says_nothing(record.user_text, record.reply_text)
    )


def only_asks(text: str) -> bool:
    """True if every clause of `text` is a question, greetings and thanks apart.

    Without a question mark only what the text begins with is seen to be a question.
    """
    if not asks(text):
        return False
    for clause in _CLAUSE.finditer(text):
        words, end = clause.groups()
        if not (asks(end) or words.isspace() or _is_courtesy(words) or asks(words)):
            return False
    return True


def _is_courtesy(words: str) -> bool:
    return len(words) <= _COURTESY_CHARACTERS and is_small_talk(words)


@lru_cache(maxsize=4096)
def _says_nothing(asked: str, reply: str) -> bool:
    # A number in a question is nearly always something that the user told: a date, a price, an age.
    return only_asks(asked) and not _DIGIT.search(asked) and not _answers(asked, reply)


def _answers(asked: str, reply: str) -> bool:
    """True if the reply adds words to the question that are not those of not knowing, or says yes or no."""
    words = frozenset(_TOKEN.findall(reply.casefold()))
    told = frozenset(_TOKEN.findall(_NOTHING.sub(" ", reply.casefold()))) - FUNCTION
    known = {word for word in told if word not in NOTHING}
    if len(known) == len(words - FUNCTION) and _OPENS_YES_OR_NO.match(reply):
        return True
    new = _stems(known) - _stems(_TOKEN.findall(asked.casefold()))
    if not new:
        return False
    denied = any(word in NOT for word in words) or _NOT.search(reply) is not None
    return not denied or len(new) * _SHARE > len(_stems(words - FUNCTION))


def _stems(words: Iterable[str]) -> frozenset[str]:
    """The beginnings of words; of scripts without spaces, characters."""
    return frozenset(word[:_STEM] for word in words)
