"""Facts out of a form that the user fills in of themselves: `Meds: a, b`, one line a fact.

A form may be anybody's: a patient's, a character's, a candidate's. It is read only where what stands beside
it speaks of the user, or asks for what one wants for oneself, and of nobody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from hearth.memory.extract.books import read_book
from hearth.memory.extract.patterns import book

_LINE: Final = re.compile(r"[^\n]+")
_FIELD: Final = re.compile(
    r"[ \t]*(?:[-*•·–][ \t]+|\d[.)][ \t]+)?\**(?P<key>[^\W\d][^:：\n*]{0,30}?)\**[ \t]*[:：]"
    r"\**[ \t]*(?P<value>[^\n]{1,200})"
)
_PARTS: Final = re.compile(r"\s*(?:[,;、，/]|\s(?:and|und|y|e|et|en|og|i|и|ve)\s|&|\+)\s*")
_ASIDE: Final = re.compile(r"\s*(?:\([^()]*\)|\[[^\[\]]*\])\s*|[.!;]+\s*\Z")
_PASTED: Final = re.compile(r"```|~~~|^[ \t]*>|</\w+>", re.MULTILINE)
_WORDS: Final = 6
"""Of one of several values at most: what is longer is told, not listed."""


class Field(NamedTuple):
    """One fact of a form."""

    attribute: str
    value: str
    start: int
    end: int
    """Where its line stands, without what precedes the key."""


class _Book(NamedTuple):
    keys: tuple[tuple[str, re.Pattern[str]], ...]
    whole: frozenset[str]
    """Attributes whose value is no list."""
    certain: frozenset[str]
    """Attributes that one line alone may tell."""
    nothing: re.Pattern[str]
    """A value that says there is none."""
    unsure: re.Pattern[str]
    """A value that leaves open what holds."""
    others: re.Pattern[str]
    """Beside a form: it is somebody else's, or invented."""
    own: re.Pattern[str]
    """Beside a form: it is the user's."""
    fits: dict[str, re.Pattern[str]]
    """What a value must be, by attribute."""


@cache
def _book() -> _Book:
    """`forms.toml`, read once."""
    given = read_book("forms.toml")

    def compiled(text: str) -> re.Pattern[str]:
        return re.compile(text, re.IGNORECASE)

    return _Book(
        keys=tuple((name, compiled(text)) for name, text in given["keys"].items()),
        whole=frozenset(given["whole"].split("|")),
        certain=frozenset(given["certain"].split("|")),
        nothing=compiled(given["nothing"]),
        unsure=compiled(given["unsure"]),
        others=compiled(given["others"]),
        own=compiled(given["own"]),
        fits={name: compiled(text) for name, text in given["fits"].items()},
    )


def fields(text: str) -> list[Field]:
    """What the message's form says of its user; empty where it has none, or it may be another's. Linear."""
    if (":" not in text and "：" not in text) or _PASTED.search(text):
        return []
    lines = list(_LINE.finditer(text))
    read = [(line, found) for line in lines if (found := _FIELD.fullmatch(line.group())) is not None]
    known = [(line, found, name) for line, found in read if (name := _attribute(found["key"]))]
    if not known or len(known) * 2 < len(read) or not _is_own(text, lines, [line for line, _ in read]):
        return []
    if len(known) == 1 and known[0][2] not in _book().certain:
        return []
    return [field for line, found, name in known for field in _fields(line, found, name)]


def _attribute(key: str) -> str:
    return next((name for name, words in _book().keys if words.fullmatch(key.strip())), "")


def _is_own(text: str, lines: list[re.Match[str]], form: list[re.Match[str]]) -> bool:
    """Whether what stands beside the form says that it is the user's."""
    inside = {line.start() for line in form}
    beside = "\n".join(line.group() for line in lines if line.start() not in inside)
    worked_on = book().tasks.search(text) or book().onward.search(text) or book().whole.search(text)
    return not worked_on and not _book().others.search(text) and _book().own.search(beside) is not None


def _fields(line: re.Match[str], found: re.Match[str], attribute: str) -> Iterator[Field]:
    said, book = found["value"], _book()
    if book.unsure.search(said) or "\ufffc" in said or "[secret:" in said or "?" in said:
        return
    bare = _ASIDE.sub(" ", said).strip(" .!;*")
    if book.nothing.fullmatch(bare):
        return
    start, end = line.start() + found.start("key"), line.start() + len(line.group().rstrip(" .;"))
    values = [bare] if attribute in book.whole else [one for one in _PARTS.split(bare) if one]
    fit = book.fits.get(attribute)
    for value in values:
        if len(value.split()) > _WORDS and attribute not in book.whole:
            return
        if fit is None or fit.fullmatch(value):
            yield Field(attribute, value, start, end)
