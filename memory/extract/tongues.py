"""What the files of languages say, ready to be tried: patterns, a language's small words, the book of all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hearth.memory.types import Act

_WORDS: Final = re.compile(r"[^\W\d_]+")


class Words:
    """A regular expression that is compiled when first tried: most are of languages that nobody speaks."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """It, whatever the case of letters."""
        return re.compile(self._text, re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One way of saying something.

    Its named groups: `value`, `who` it is about, the relation `rel` that somebody has to the user, what a
    favourite is one `of`, the `wrong` value; and that the words say `not`, that it `ends`, or holds `also`.
    """

    language: str
    place: int
    """In its file: the first pattern that reads a value is the one that counts."""
    attribute: str
    """`@rel` by the group `rel`; `favourite @of` by the group `of`; `@none` for none."""
    text: Words
    kind: str
    """How the value is read that begins where the match ends, or stands in the group `value`."""
    only: Words | None
    """What a value must be as a whole."""
    act: Act
    ahead: bool | None
    """Where its time lies: True after the day of the message, False before it."""
    dated: bool
    """It states something only with a time."""
    constant: str
    """The value, where the words hold none of their own."""
    full: bool
    """The clause has its subject; else an earlier clause may have it: `I live in Bern and work at Acme`."""
    order: bool
    """It tells the assistant to do something, with what else leads a clause in: `please`."""
    anywhere: bool
    """It need not begin a clause, and holds in a question too."""
    bare: bool
    """It may begin a sentence without its subject: `based in Hove`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """What one language's small words tell."""

    lead: re.Pattern[str]
    """What may stand before a clause without changing it: `well`, `by the way`."""
    joins: re.Pattern[str]
    """Conjunctions after which a clause of the speaker's own begins."""
    unreal: re.Pattern[str]
    """Within a clause: it is no plain statement."""
    governs: re.Pattern[str]
    """Anywhere before a clause in its sentence: a condition, or somebody else's speech."""
    asks: re.Pattern[str]
    """How a question or a request begins."""
    tags: re.Pattern[str]
    """A question's end that asks whether what stands before it is so."""
    also: re.Pattern[str]
    """After a value: it stands beside others."""
    more: re.Pattern[str]
    """After a value that is denied: it held until now."""
    instead: re.Pattern[str]
    """After a value: the one that is wrong, in the group `wrong`."""
    inverted: re.Pattern[str]
    """A verb before its subject: what leads the clause in belongs to it."""
    recalls: re.Pattern[str]
    """How a question begins that asks to keep what it tells."""
    dates: re.Pattern[str]
    """A time in what leads a clause in."""
    relative: re.Pattern[str]
    """Somebody of whom a clause tells that depends on another: `my sister who`."""
    cuts: re.Pattern[str]
    """A word behind an occupation that is no part of it: `working`."""
    refutes: re.Pattern[str]
    """In a sentence before: what the assistant believed is wrong."""
    amends: re.Pattern[str]
    """At a message's start: the same."""
    others: re.Pattern[str]
    """A pronoun for somebody who is neither the speaker nor the assistant."""
    twists: re.Pattern[str]
    """Behind a state or a trade: it is a comparison, or is one only for something: `a nurse to this cat`."""
    kin: re.Pattern[str]
    """Somebody whom a pronoun can stand for: `my sister Ana`."""
    women: re.Pattern[str]
    men: re.Pattern[str]
    """Whom `he` and `she` can't be."""
    her: frozenset[str]
    him: frozenset[str]
    home: frozenset[str]
    """Relations that need no `my`: `mum`."""
    mine: frozenset[str]
    """What makes a relation the speaker's own: `my`."""
    stop: frozenset[str]
    """Words that end a value."""
    soft: frozenset[str]
    """Prepositions that end a short value: a place, a name."""
    breaks: frozenset[str]
    """Words that make a value of what is liked a part of something else: `people who`."""
    bad: frozenset[str]
    """Words with which no value begins."""
    verbs: frozenset[str]
    """Behind a value: it was the subject of another clause."""
    joining: frozenset[str]
    """Words between a list's last two items."""
    articles: frozenset[str]
    hedges: frozenset[str]
    """Words before one of a list's items that say how much of it: `a bit of`."""
    subjects: tuple[tuple[str, tuple[str, ...]], ...]
    """How a clause begins, the longest first, with what a later one may lack."""
    bare: tuple[str, ...]
    """What a clause may lack that begins a sentence: the speaker."""
    owns: re.Pattern[str]
    """A word without which no clause is the speaker's own, in a language whose verbs need one: `I`, `my`."""
    firsts: re.Pattern[str]
    """A verb whose form tells that the speaker is its subject, where that lacks: `wohne in Köln`."""
    bare_keys: str
    """Keys that such a clause has none of: `i`."""
    severs: frozenset[str]
    """Conjunctions behind which a clause lacks nothing: `so no cats`."""
    chained: re.Pattern[str]
    """Before `and a`: what follows is a second thing that the speaker is, and no second object."""
    copulas: tuple[str, ...]
    """What may lack behind somebody else: nothing, `is`."""
    relations: tuple[tuple[str, re.Pattern[str]], ...]
    """Attributes with the words for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All languages."""

    tongues: Mapping[str, Tongue]
    by_word: Mapping[str, list[Pattern]]
    by_sign: Mapping[str, list[Pattern]]
    """By key, of languages whose words aren't parted."""
    whole: re.Pattern[str]
    """Makes the whole message somebody else's words: role play."""
    onward: re.Pattern[str]
    """From here on the message is invented."""
    real: re.Pattern[str]
    """From here on it is not: `for the record`."""
    tasks: re.Pattern[str]
    """An order to work on a text that comes with it."""
    headers: re.Pattern[str]
    """From here on the message is somebody's mail."""
    about: re.Pattern[str]
    """In a line: it asks about a text, which stands in other lines."""
    judged: re.Pattern[str]
    """In a message of one line: it asks how a text is, which stands beside that."""
    opens: re.Pattern[str]
    """How a text in the first person begins."""
    speaker: re.Pattern[str]
    """In a sentence: the speaker is a subject of it."""
    whose: re.Pattern[str]
    """How a sentence begins about somebody of the speaker's, or something."""
    introduces: re.Pattern[str]
    """Before a colon: what the speaker says of themselves follows."""
    refutes: re.Pattern[str]
    """Before a colon: what the assistant believed is wrong."""
    reports: re.Pattern[str]
    """At a sentence's end: what somebody else has said follows."""
    roles: re.Pattern[str]
    """Makes the message play: it says who the assistant is, or that the speaker is somebody."""
    quotes: re.Pattern[str]
    """What ends with a colon behind which somebody else speaks."""
    jokes: re.Pattern[str]
    dead: re.Pattern[str]
    """In a sentence: somebody is no more."""
    tools: re.Pattern[str]
    """Tools that are written in small letters too."""

    def likely(self, sentence: str) -> list[Pattern]:
        """The patterns of which the sentence, in small letters, has a key; in the order of their files."""
        keys = set(_WORDS.findall(sentence))
        lists = [self.by_word[key] for key in keys if key in self.by_word]
        if not sentence.isascii():
            lists += [patterns for sign, patterns in self.by_sign.items() if sign in sentence]
        found = {(one.language, one.place): one for patterns in lists for one in patterns}
        return [found[place] for place in sorted(found)]
