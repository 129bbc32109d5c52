"""The names in a text, as far as capitals tell them."""

from __future__ import annotations

import re
from typing import Final

_WITHIN: Final = r"(?<=[^\s.!?…:¿¡\"“«(—-] )"
_WORD: Final = re.compile(rf"{_WITHIN}[^\W\d_][\w’'-]+")
"""A word that begins no sentence."""
_ASCII_NAME: Final = re.compile(rf"{_WITHIN}[A-Z][\w’'-]+")
"""The same where only ASCII has to be looked for: in half the time."""
_GERMAN: Final = re.compile(
    r"\b(?:und|ist|nicht|ich|der|das|dem|ein|eine[nmr]?|mit|wir|auch|für|wie|wo|hei(?:ß|ss)t|meine?[nmrs]?)\b"
)
"""Words of the one language that gives every noun a capital."""
_POSSESSIVE: Final = re.compile(r"['’]s?$")


def names_in(text: str) -> tuple[str, ...] | None:
    """The words with a capital within a sentence, without a possessive's ending; None where capitals tell
    nothing: in German, and in scripts that have none.
    """
    if _GERMAN.search(text) or not (text.isascii() or _has_case(text)):
        return None
    if text.isascii():
        named = _ASCII_NAME.findall(text)
    else:
        named = [word for word in _WORD.findall(text) if word[0].isupper()]
    return tuple(_POSSESSIVE.sub("", name) for name in named)


def _has_case(text: str) -> bool:
    """True if at least half of the letters are of a script with capitals."""
    letters = [letter for letter in text if letter.isalpha()]
    return 2 * sum(letter.islower() or letter.isupper() for letter in letters) >= len(letters)
