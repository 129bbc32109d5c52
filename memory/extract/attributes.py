"""What a fact can be about: the attributes that facts have, and which of them have one value at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Literal

from hearth.memory.extract.accents import without_accents
from hearth.memory.extract.books import read_names, read_things

_WORD: Final = re.compile(r"\w+")
_ARTICLES: Final = frozenset(
    {
        *("a", "an", "the", "my", "our", "der", "die", "das", "den", "dem", "ein", "eine", "einen", "mein"),
        *("meine", "el", "la", "los", "las", "un", "una", "mi", "le", "les", "l", "une", "mon", "ma", "il"),
        *("lo", "gli", "i", "uno", "o", "os", "as", "um", "uma", "meu", "minha", "het", "een", "mijn"),
    }
)

AGENT: Final = "agent"
"""The subject of what a user and an agent agreed on; it concerns that agent alone."""
SINGLE: Final = frozenset(
    {
        *("name", "nickname", "pronouns", "birthday", "age", "birthplace", "nationality"),
        *("residence", "address", "phone", "email", "timezone"),
        *("employer", "occupation", "school", "field of study"),
        *("marital status", "partner", "favourite", "preferred language", "form of address"),
        *("answer language", "answer length", "tone"),
    }
)
"""A newer value closes an older one. `favourite` is single by its kind: the attribute then is
`favourite colour`, `favourite food` and so on.
"""
MANY: Final = frozenset(
    {
        *("likes", "dislikes", "allergy", "diet", "condition", "medication", "fear"),
        *("child", "sibling", "parent", "friend", "pet", "relative", "colleague"),
        *("speaks", "plays", "hobby", "skill", "uses", "owns", "member of", "learns"),
        *("plan", "appointment", "goal", "habit", "preference", "instruction", "visited", "event", "promise"),
    }
)
"""Values stand beside each other; one ends only where that is said."""
OPPOSITE: Final = {"likes": "dislikes", "dislikes": "likes"}
"""Of one thing only one of the two holds: what was said later."""


SHAREABLE: Final = (
    *("preferred language", "speaks", "learns", "timezone", "skill", "uses", "plays", "hobby"),
)
"""What users may be counted by, over their memories: nothing that names, finds or describes a person, nothing
of health, belief, family, work or whereabouts.
"""


def is_single(attribute: str) -> bool:
    """True if a newer value of the attribute closes an older one."""
    return attribute in SINGLE or attribute.startswith("favourite ")


def is_profile(subject: str, attribute: str) -> bool:
    """True if it says who the user is, or how the assistant is to treat them."""
    return subject == AGENT or (
        subject == "user" and (attribute in SINGLE or attribute in ("instruction", "preference"))
    )


def subject_key(subject: str) -> str:
    """The form in which subjects are compared."""
    return folded_value(subject)


def value_key(value: str, attribute: str = "") -> str:
    """The form in which values of the attribute are compared: folded, without accents, and what has names in
    many languages by one of them.
    """
    folded = folded_value(value)
    bare = without_accents(folded)
    books = (_place_names(),) if attribute in _PLACED else (_thing_names(), _place_names())
    return next((own for book in books for name in (folded, bare) if (own := book.get(name))), bare)


def folded_value(value: str) -> str:
    """In small letters, without articles and signs."""
    words = _WORD.findall(value.casefold())
    return " ".join([word for word in words if word not in _ARTICLES] or words)


def counted(value: str, attribute: str) -> tuple[int, str] | None:
    """How many of what there are: 2 and `dogs` for `two dogs` and `zwei Hunde`; None without a number."""
    word, _, things = folded_value(value).partition(" ")
    number = int(word) if word.isdecimal() else _NUMBERS.get(word)
    return (number, value_key(things)) if attribute in _COUNTED and number is not None and things else None


_COUNTED: Final = frozenset({"pet", "child", "sibling", "owns"})
_NUMBERS: Final = {
    name: number
    for number, names in enumerate(
        (
            ("one", "один", "одна", "одну", "jedną", "jednego", "jeden"),
            (
                "two",
                "zwei",
                "deux",
                "dos",
                "due",
                "dois",
                "duas",
                "twee",
                "dwa",
                "dwie",
                "dwoje",
                "два",
                "две",
                "iki",
            ),
            ("three", "drei", "trois", "tres", "tre", "três", "drie", "trzy", "troje", "три", "трое", "üç"),
            ("four", "vier", "quatre", "cuatro", "quattro", "quatro", "cztery", "четыре", "dört"),
            ("five", "fünf", "cinq", "cinco", "cinque", "vijf", "pięć", "пять", "beş"),
            ("six", "sechs", "seis", "sei", "zes", "sześć", "шесть", "altı"),
        ),
        start=1,
    )
    for name in names
}


def words_of(value: str) -> frozenset[str]:
    """The value's words, each in the form in which values are compared."""
    return frozenset(map(value_key, folded_value(value).split()))


def names(one: str, value: str) -> bool:
    """True where the one is the value, in whatever language, or a shorter name of it: `the Skoda` for
    `a Skoda Octavia`.
    """
    return value_key(one) == value_key(value) or words_of(one) <= words_of(value)


def is_known(value: str, attribute: str) -> bool:
    """True for what an attribute's value can be in some language: a trade, an instrument, a diet."""
    groups = _GROUPS.get(attribute)
    return groups is not None and value_key(value) in _members(groups)


_GROUPS: Final = {
    "occupation": ("occupations",),
    "diet": ("diets",),
    "condition": ("conditions",),
    "pet": ("animals",),
    "plays": ("instruments", "sports-and-games"),
    "learns": ("instruments", "sports-and-games", "pastimes"),
    "hobby": ("sports-and-games", "pastimes"),
}
"""Attributes of which nothing else is told by the same words, and the groups of what they can be."""


@cache
def _members(groups: tuple[str, ...]) -> frozenset[str]:
    things = read_things()
    return frozenset(without_accents(own) for group in groups for own in things[group])


def is_place(name: str) -> bool:
    """True for the name that stands for a country, language or large city, as it is in English at least."""
    return folded_value(name) in _own_names()


def kind_of(value: str) -> Literal["place", "language", ""]:
    """What the value is a name of, in any language; empty where it may be anything."""
    known = value_key(value)
    if known in _LANGUAGES:
        return "language"
    return "place" if known in read_names() else ""


_PLACED: Final = frozenset({"residence", "birthplace", "visited", "address", "nationality"})
"""Attributes whose values are places: `Łódź` is no boat there."""
_LANGUAGES: Final = frozenset(
    {
        *("arabic", "bengali", "bulgarian", "catalan", "chinese", "croatian", "czech", "danish", "dutch"),
        *("english", "estonian", "finnish", "french", "german", "greek", "hebrew", "hindi", "hungarian"),
        *("icelandic", "indonesian", "irish", "italian", "japanese", "korean", "latvian", "lithuanian"),
        *("norwegian", "persian", "polish", "portuguese", "romanian", "russian", "serbian", "slovak"),
        *("slovenian", "spanish", "swahili", "swedish", "thai", "turkish", "ukrainian", "urdu", "vietnamese"),
    }
)
"""Of the names that are known in other languages too, those of languages."""


@cache
def _own_names() -> frozenset[str]:
    return frozenset(own for own, others in read_names().items() if others)


@cache
def _thing_names() -> Mapping[str, str]:
    return _by_name({own: others for group in read_things().values() for own, others in group.items()})


@cache
def _place_names() -> Mapping[str, str]:
    return _by_name(read_names())


def _by_name(book: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """The name that stands for each, by its others and by these without accents, unless that is another's."""
    exact = {name: without_accents(own) for own, others in book.items() for name in others}
    known = exact.keys() | set(exact.values())
    bare = ((without_accents(name), own) for name, own in exact.items())
    return {**{name: own for name, own in bare if name not in known}, **exact}
