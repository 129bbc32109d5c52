"""What a reply tells of the message: one that speaks in the user's place has worked on a text, or plays.

An assistant lives nowhere and has no children. Where its reply states of its speaker what the message states,
in the same words or in another language, it has translated, rewritten or gone on with the message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hearth.memory.extract.attributes import value_key
from hearth.memory.extract.chosen import GENERAL
from hearth.memory.extract.frames import is_staged
from hearth.memory.extract.spans import sentences
from hearth.memory.extract.statements import stated
from hearth.memory.types import CandidateFact

_LOOKED_AT: Final = 4_000
"""Characters of a reply."""
_MARKS: Final = re.compile(r"[\"“”„«»‹›「」『』*_`]|(?<!\w)'|'(?!\w)")
_ACKNOWLEDGES: Final = re.compile(
    r"\W*(?:(?:ok|okay|sure|great|perfect|thanks|thank you|danke|merci|gracias|grazie)\W+)?(?:"
    r"got it|(?:duly )?noted|understood|i'?ll remember|i(?:'ve| have)? (?:noted|saved|remembered|stored)"
    r"|remembered|saved|thanks for (?:telling|sharing|letting)|notiert|gemerkt|verstanden"
    r"|(?:das )?merke ich mir|ich merke mir|c'est noté|noté|je (?:retiens|note)|anotado|apuntado|entendido"
    r"|lo recordaré|annotato|capito|me lo ricorderò|anotei|guardado|genoteerd|onthouden)\b"
    r"(?![^:\n]{0,60}\b(?:here|hier|voici|aquí|ecco|aqui)\b)",
    re.IGNORECASE,
)
"""How a reply opens that repeats what it will remember."""
_STRAIGHT: Final = str.maketrans("’ʼ‘", "'''")


def speaks_for_user(reply: str, found: Sequence[CandidateFact]) -> bool:
    """Whether the reply says of itself what the message seems to say of its user, or plays."""
    if not found or not reply:
        return False
    reply = reply[:_LOOKED_AT].translate(_STRAIGHT)
    if is_staged(reply):
        return True
    if _ACKNOWLEDGES.match(reply):
        return False
    text = _MARKS.sub(" ", reply)
    own = [one for one in found if one.subject == "user" and one.attribute not in GENERAL]
    same = {(one.attribute, value_key(one.value)) for one in own}
    attributes = {one.attribute for one in own}
    spoken = {(one.attribute, one.language) for one in own}
    return any(
        (one.attribute, value_key(one.value)) in same
        or (one.attribute in attributes and (one.attribute, one.pattern.language) not in spoken)
        for sentence in sentences(text)
        if not sentence.asks
        for one in stated(text, sentence, text)
        if one.subject == "user"
    )
