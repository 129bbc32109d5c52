"""Whom a clause is about: the speaker, somebody of theirs, a name; nobody where that could be another."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from hearth.memory.extract.patterns import book
from hearth.memory.extract.spans import stops
from hearth.memory.extract.tongues import Tongue

_NEAR: Final = 200
"""Characters before a clause in which stands whom a pronoun means."""
_OWNED: Final = re.compile(
    r"(?:\b(?:of|de|du|di|do|da|von|van)|(?<=\w)[‘'’]s)\s+\Z|\bmeines\s+\w+\Z|\bunseres\s+\w+\Z",
    re.IGNORECASE,
)
"""Before somebody of the speaker's: what belongs to them is meant, not they."""
_OWNS: Final = re.compile(r"['’](?:s\b(?!\s+(?:an?|the|my|our|not|now|also|just|been|got)\b)|(?=\s))|s['’]\s")
"""Behind them: the same."""


def person(who: str, text: str, place: int, tongue: Tongue) -> str:
    """Whom the words at `place` are about, as `who` has it; empty for nobody that is known.

    A third person is a relation, somebody for whom a pronoun stands, or a name, which may be any word if
    it has no capital.
    """
    first = who.split()[0].casefold() if who else ""
    if not who:
        return "user"
    if who.endswith(("'s", "s'")):
        return ""
    if first in tongue.mine:
        return small(who.rstrip(" ,"))
    if who.casefold() in tongue.her | tongue.him:
        return _meant(who.casefold(), text, place, tongue)
    if who.casefold() in tongue.home:
        return who.casefold()
    any_word = who[0].islower() or first.split("'")[0] in tongue.bad | tongue.stop
    return "" if any_word or book().tools.fullmatch(who) else who


def _meant(pronoun: str, text: str, place: int, tongue: Tongue) -> str:
    """The one relation named before `place`, if it can be meant; nobody if somebody of theirs can be too."""
    start = max(0, place - _NEAR)
    named: dict[str, None] = {}
    for one in tongue.kin.finditer(text, start, place):
        owned = _OWNED.search(text, start, one.start()) or one.group().endswith("'s")
        if owned or _OWNS.match(text, one.end()):
            return ""
        named[small(one.group())] = None
    other = tongue.men if pronoun in tongue.her else tongue.women
    both = pronoun in tongue.her & tongue.him
    fit = [name for name in named if both or not other.search(name)]
    return fit[0] if len(fit) == 1 else ""


def of_another(text: str, place: int, end: int, tongue: Tongue) -> bool:
    """Whether the clause that begins at `place` has a third person for its subject."""
    if tongue.kin.match(text, place, end):
        return True
    word = _WORD.match(text, place, end)
    return word is not None and word.group().split("'")[0].casefold() in tongue.her | tongue.him


_WORD: Final = re.compile(r"[^\W\d_][\w']*(?!/)")


def of_speaker(text: str, place: int) -> bool:
    """Whether a sentence at `place` that lacks its subject can be the speaker's: the one before is."""
    near = text[max(0, place - _NEAR) : place]
    ends = [0, *(stop.end() for stop in stops(near)), len(near)]
    before = [near[one:other] for one, other in pairwise(ends) if any(map(str.isalnum, near[one:other]))]
    said = before[-1] if before else ""
    return len(said.split()) <= _FEW or book().speaker.search(said) is not None


def of_unnamed(text: str, tongue: Tongue) -> bool:
    """Whether a pronoun of the message stands for somebody of whom it has not said who they are.

    Its clauses without a subject can be about them: `Born in Bern, blind by forty. I want a name for her`.
    """
    other = tongue.others.search(text)
    return other is not None and not any(
        word.group().casefold() in tongue.mine for word in _WORD.finditer(text, 0, other.start())
    )


_FEW: Final = 2
"""Words of a sentence at most that tells of nobody: `New here.`"""


def small(who: str) -> str:
    """A relation as it stands within a sentence."""
    return who[:1].lower() + who[1:]
