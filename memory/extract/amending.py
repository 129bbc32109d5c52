"""What sets right something that the assistant believed, and is no news of the user's.

A correction is told by what it says of the assistant, by the `no` that opens the message, or by its form
alone: what the message first denies it then states otherwise, `not vegan, pescatarian`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from hearth.memory.extract.attributes import is_single
from hearth.memory.extract.chosen import Stated
from hearth.memory.extract.spans import Sentence
from hearth.memory.extract.tongues import Tongue

_NEAR: Final = 200
"""Characters before a sentence in which stands that something was wrong."""
_BUT: Final = frozenset(
    ("but", "sondern", "mais", "sino", "sino que", "ma", "bensì", "mas", "maar", "lecz", "tylko", "а")
)
"""Between what is not so and what is, in its place."""
_TAKEN_BACK: Final = re.compile(
    r"[\s,.!…–—-]*(?:(?:oh |er |uh )?no,? (?:wait|sorry|actually)|wait,? no|sorry,? (?:no|i mean)|or rather"
    r"|scratch that|i mean,|(?:äh|ach|nein),? (?:nein|quatsch|doch|falsch|moment)|quatsch|besser gesagt"
    r"|non,? (?:pardon|attends)|enfin non|perdón,? no|no,? perdón|mejor dicho|no,? aspetta|anzi|quer dizer"
    r"|nee,? wacht)\b",
    re.IGNORECASE,
)
"""What takes back at once what was just said: `I live in Rome, no wait, Pisa`."""
_INSTEAD: Final = re.compile(
    r"[\s,:.…–—-]*(?:(?:i mean|i meant|it's|in|at|ich meine|nach|à|en|em|a|te) )?"
    r"(?P<value>[^\W_][\w'’&+-]*(?: [^\W_a-zß-ÿ][\w'’&+-]*){0,2})(?=\s*(?:[.,;!)]|\Z|\n))"
)
"""What stands behind it in its place: a name or a number and nothing else."""
_CONTRASTED: Final = frozenset({"diet", "allergy", "condition", "plays", "speaks", "learns"})
"""Attributes with many values of which one can be meant in another's place."""


class Meant(NamedTuple):
    """What a statement says in the end."""

    value: str
    end: int
    """Where that has been said."""


def as_meant(text: str, one: Stated) -> Meant | None:
    """The statement's value, or the one that is put at once in its place, where both are names or both
    numbers; None where it is taken back without that.
    """
    taken = _TAKEN_BACK.match(text, one.end) if one.act in ("asserts", "corrects") else None
    if taken is None:
        return Meant(one.value, one.end)
    behind = _INSTEAD.match(text, taken.end())
    if behind is None or not _shape(one.value) or _shape(behind["value"]) != _shape(one.value):
        return None
    return Meant(behind["value"], behind.end("value"))


def _shape(value: str) -> str:
    """What can stand in one another's place; empty for what can't."""
    return "number" if value.isdigit() else "name" if value[:1].isupper() else ""


def sets_right(text: str, sentence: Sentence, tongue: Tongue) -> bool:
    """Whether what the sentence states stands in the place of something wrong."""
    if tongue.refutes.search(text, max(0, sentence.start - _NEAR), sentence.end):
        return True
    return _opens(text, sentence) and tongue.amends.match(text, sentence.start, sentence.end) is not None


def contrasted(text: str, sentence: Sentence, read: Sequence[Stated]) -> list[Stated]:
    """The statements, with one that follows at once upon the denial of another value as its correction.

    Only where the message opens so: who says later that they are no nurse, they are a vet, may just tell it.
    Of `not this but that` only that is stated.
    """
    amended = dict(enumerate(read))
    for place, (denied, stated) in enumerate(pairwise(read)):
        if not _is_contrast(denied, stated):
            continue
        between = text[denied.end : stated.start].strip(" ,;–—-").casefold()
        if between in _BUT and is_single(denied.attribute):
            del amended[place]
        elif not any(map(str.isalnum, between)) and _opens(text, sentence) and _is_meant(denied):
            amended[place + 1] = replace(stated, act="corrects", wrong=denied.value)
            del amended[place]
    return list(amended.values())


def _opens(text: str, sentence: Sentence) -> bool:
    """Whether nothing is said before the sentence."""
    return not any(map(str.isalnum, text[: sentence.start]))


def _is_contrast(denied: Stated, stated: Stated) -> bool:
    about = (denied.subject, denied.attribute)
    return (
        (denied.act, stated.act) in (("denies", "asserts"), ("denies", "corrects"))
        and about == (stated.subject, stated.attribute)
        and (is_single(denied.attribute) or denied.attribute in _CONTRASTED)
    )


def _is_meant(denied: Stated) -> bool:
    """Whether the other value stands in its place: where there can be many, the verb is left out."""
    return is_single(denied.attribute) or bool(denied.opening)
