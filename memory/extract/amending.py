"""What sets right something that the assistant believed, and is no news of the user's.

A correction is told by what it says of the assistant, by the `no` that opens the message, or by its form
alone: what the message first denies it then states otherwise, `not vegan, pescatarian`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

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
_CONTRASTED: Final = frozenset({"diet", "allergy", "condition", "plays", "speaks", "learns"})
"""Attributes with many values of which one can be meant in another's place."""


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
