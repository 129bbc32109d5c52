"""A text as tokens, each with its role in telling a time: one letter, see `time_words.ROLES`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, Final, NamedTuple

from hearth.memory.recall.time_words import UNSPACED, Language, Meaning, fold


class Token(NamedTuple):
    """A word, a phrase, a number or a sign."""

    role: str
    value: Any = None
    """Of `@` a date, a year and month, or None for one that there is not."""
    start: int = 0
    end: int = 0
    """Where it stands in the text."""
    word: str = ""
    """Its first word, folded; its sign, where a script parts no words."""
    words: int = 1


class Manner(NamedTuple):
    """What counts as a time."""

    years: range
    largest: int
    """Of any unit."""
    stops: str
    """Signs that part what is beside them, as a character class has them."""
    loose: bool
    """Whether `2024-05`, `3.4.24` and the dash of `5-9 June` tell a time too."""


def date_of(year: int, month: int, day: int) -> date | None:
    """That day, if there is one."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


class Tokenizer:
    """Reads one language's words. Articles and the like, which say nothing, are left out."""

    def __init__(self, language: Language, manner: Manner) -> None:
        self._phrases, self._order, self._manner = language.phrases, language.order, manner
        self._unspaced = language.name in UNSPACED
        self._pattern = _signs(language) if self._unspaced else _pieces(manner)

    def tokens(self, text: str, start: int = 0, end: int | None = None) -> list[Token]:
        """Those of `text[start:end]`, in order; what says nothing of time has the role `.`."""
        found = list(self._pattern.finditer(text, start, len(text) if end is None else end))
        read = map(self._sign, found) if self._unspaced else self._worded(found)
        return [token for token in read if token.role != "-"]

    def _worded(self, pieces: Sequence[re.Match[str]]) -> Iterator[Token]:
        folded = [fold(piece.group()) if piece["word"] else "" for piece in pieces]
        i = 0
        while i < len(pieces):
            token = self._phrase(pieces, folded, i) if folded[i] else self._number(pieces[i])
            yield token
            i += token.words

    def _phrase(self, pieces: Sequence[re.Match[str]], folded: Sequence[str], i: int) -> Token:
        """The longest known phrase that begins there."""
        piece = pieces[i]
        for words, meaning in self._phrases.get(folded[i], ()):
            if tuple(folded[i : i + len(words)]) == words:
                last = pieces[i + len(words) - 1]
                role = _role(meaning, piece.group())
                return Token(role, meaning.value, piece.start(), last.end(), folded[i], len(words))
        return Token(".", None, piece.start(), piece.end(), folded[i])

    def _number(self, piece: re.Match[str]) -> Token:
        role: str = "."
        value: Any = None
        if piece["number"]:
            role, value = self._counted(int(piece["number"]), plain=piece.group() == piece["number"])
        elif piece["iso"]:
            role, value = "@", _iso(*map(int, piece.group().split("-")))
        elif piece["numeric"]:
            role, value = "@", _of_numbers(piece.group(), self._order)
        elif piece["dash"]:
            role = "&"
        return Token(role, value, piece.start(), piece.end())

    def _counted(self, number: int, *, plain: bool = True) -> tuple[str, int]:
        if plain and number in self._manner.years:
            return "Y", number
        return "N" if number <= self._manner.largest else ".", number

    def _sign(self, found: re.Match[str]) -> Token:
        sign = found.group()
        role, value = self._meaning(found, sign)
        return Token(role, value, found.start(), found.end(), sign)

    def _meaning(self, found: re.Match[str], sign: str) -> tuple[str, Any]:
        if found["year"]:
            return "y", int(found["year"])
        if found["iso"]:
            return "@", _iso(*map(int, sign.split("-")))
        if sign.isdecimal():
            return self._counted(int(sign))
        known = self._phrases.get(fold(sign))
        if known:
            return known[0][1].role, known[0][1].value
        return "-" if sign.isspace() else ".", None


def _role(meaning: Meaning, shown: str) -> str:
    """Its own, but `may` and `march` in small letters are no months by themselves."""
    return "C" if shown in ("may", "march") and meaning.role == "M" else meaning.role


def _iso(year: int, month: int, day: int | None = None) -> date | tuple[int, int] | None:
    if day is not None:
        return date_of(year, month, day)
    return (year, month) if 0 < month <= 12 else None


def _of_numbers(numbers: str, order: str) -> date | None:
    """A date of three numbers. Where both could be the month, slashes follow the language and dots do not."""
    first, second, year = map(int, re.split(r"[./]", numbers))
    year += 2000 if year < 100 else 0
    day, month = (second, first) if order == "MDY" and "/" in numbers else (first, second)
    return date_of(year, month, day) or date_of(year, day, month)


_OTHER: Final = r"[$€£¥#@]\s?\d[\d.,]*|\d+(?:[.,:/]\d+)+\w*|\d+\s?%"
"""Money, times of day, shares: numbers that count nothing here."""


def _pieces(manner: Manner) -> re.Pattern[str]:
    day, century, dash = "", "", r"(?!)"
    if manner.loose:
        day, century, dash = "?", "?", r"(?<=\d)\s?[-–]\s?(?=\d)"
    return re.compile(
        rf"(?P<iso>(?:19|20)\d\d-\d{{1,2}}(?:-\d{{1,2}}){day}(?![\w-]))"
        rf"|(?P<numeric>\d{{1,2}}[./]\d{{1,2}}[./](?:19|20){century}\d\d(?!\w))"
        rf"|(?P<other>{_OTHER})"
        r"|(?P<number>\d{1,4})(?:st|nd|rd|th|er|º|ª|e)?(?![^\W_])"
        rf"|(?P<word>[^\W\d_]+)|(?P<rest>\d+\w*)|(?P<dash>{dash})"
        rf"|(?P<stop>[{manner.stops}]|(?<=[^\W\d])\.)",
        re.IGNORECASE,
    )


def _signs(language: Language) -> re.Pattern[str]:
    words = sorted(language.phrases, key=len, reverse=True)
    return re.compile(
        r"(?P<year>(?:19|20)\d\d)\s*[年년]|(?P<iso>(?:19|20)\d\d-\d{1,2}(?:-\d{1,2})?)"
        rf"|{'|'.join(map(re.escape, words))}|\d+|\s+|.",
        re.DOTALL,
    )
