"""How each language asks to forget something, out of `forget.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from hearth.memory.extract.books import read_book
from hearth.memory.types import Asked

_MACRO: Final = re.compile(r"<([A-Z]+)>")


class Wording(NamedTuple):
    """One language's."""

    likely: re.Pattern[str]
    """Without it a text asks nothing of the kind."""
    patterns: tuple[tuple[Asked, re.Pattern[str]], ...]
    """Of a whole sentence, with what each means."""


class Wordings(NamedTuple):
    """All of the file."""

    idioms: re.Pattern[str]
    """Ways to say something else by the same verb."""
    goes_on: re.Pattern[str]
    """What tells something only as a frame for something else."""
    languages: Mapping[str, Wording]
    """By ISO 639-1."""
    topics: Mapping[tuple[str, ...], str]
    """Words for a topic by the attributes that are about it."""


@cache
def wordings() -> Wordings:
    """The file, read once."""
    book = read_book("forget.toml")
    return Wordings(
        idioms=_compiled(book["idioms"]),
        goes_on=_compiled(book["goes_on"]),
        languages={name: _wording(given, book["words"]) for name, given in book["languages"].items()},
        topics={tuple(names.split(", ")): words for names, words in book["topics"].items()},
    )


def _wording(given: Mapping[str, Any], words: Mapping[str, str]) -> Wording:
    lead, end = given["lead"], given["end"]
    return Wording(
        likely=_compiled(given["likely"]),
        patterns=tuple(
            (
                msgspec.convert(name.partition("_")[0], Asked),
                _compiled(_MACRO.sub(lambda macro: words[macro[1]], f"{lead}(?:{text}){end}")),
            )
            for name, text in given["patterns"].items()
        ),
    )


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)
