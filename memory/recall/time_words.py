"""The words that tell time, by language: dateparser's own lists, and beside them what those lack.

dateparser knows months, weekdays, units and phrases such as `last week` (Unicode's CLDR and more).
`time_words.json` adds what makes an interval or a question of them: `since`, `between`, numbers, seasons.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple

import msgspec
from dateparser.languages.loader import default_loader

Role = str
"""One letter, so that a text's roles are a string for regular expressions; see `ROLES`."""
Unit = Literal["hour", "day", "week", "fortnight", "month", "year"]
Order = Literal["first", "latest", "lasting"]

ROLES: Final = {
    "skip": "-",
    "other": ".",
    "few": "F",
    "last": "L",
    "this": "T",
    "next": "X",
    "ago": "A",
    "ago or since": "a",
    "in": "i",
    "on": "j",
    "of": "o",
    "since": "s",
    "until": "u",
    "before": "b",
    "after": "f",
    "from": "t",
    "and": "&",
    "my": "m",
    "weekend": "E",
    "part": "P",
    "recently": "V",
}
"""By name in `time_words.json`, those that carry no value. With one there are `M` a month, `c` its
abbreviation, `C` one that is also a verb, `W` a weekday, `U` a unit, `N` a number, `n` one in words, `Y` a
year, `y` one that is surely meant, `S` a season, `D` a day counted from today, `R` a unit counted from the
present one, and `@` a span that is read.
"""

UNSPACED: Final = ("zh", "ja", "ko")
"""Languages read character by character: their words are written together, or with their particles."""

_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS: Final[tuple[Unit, ...]] = ("hour", "day", "week", "month", "year")
_COUNTED: Final = re.compile(r"(in )?(\d+) (day|week|month|year)( ago)?")
_WORD: Final = re.compile(r"[^\W\d_]+")
_SHORTEST: Final = 3
"""Letters of a unit's name at least: `d` and `m` are anything."""


class Meaning(NamedTuple):
    """What a word or phrase tells."""

    role: Role
    value: int | tuple[Unit, int] | Unit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language's words."""

    name: str
    phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]]
    """By first word, the longest phrase first; in an unspaced language one word a phrase."""
    order: str
    """Of day, month and year in a date of numbers: `DMY`, `MDY` or `YMD`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWords:
    """All languages' words."""

    languages: dict[str, Language]
    anchors: dict[str, tuple[str, ...]]
    """Words that a time can hang on, with the languages that have them so."""
    orders: dict[Order, re.Pattern[str]]
    """Of questions for the first, the latest, or how long."""


def fold(text: str) -> str:
    """Folded case, compatibility forms composed: how words are compared."""
    # a Turkish capital I folds to two characters, of which the second is a dot
    return unicodedata.normalize("NFKC", text.casefold()).replace("i\u0307", "i")


@cache
def time_words() -> TimeWords:
    """All words, read once: a tenth of a second."""
    added = msgspec.json.decode(
        files("hearth.memory.recall").joinpath("time_words.json").read_bytes(),
        type=dict[str, dict[str, str]],
    )
    languages = {name: _language(name, words) for name, words in added.items()}
    anchors: dict[str, tuple[str, ...]] = {}
    for language in languages.values():
        for word in sorted(_anchors(language)):
            anchors[word] = (*anchors.get(word, ()), language.name)
    return TimeWords(languages=languages, anchors=anchors, orders=_orders(added))


def _language(name: str, added: dict[str, str]) -> Language:
    info = default_loader.get_locale(name).info
    meanings = dict(_parsers(name, info))
    meanings.update(_added(name, added))
    phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]] = {}
    for phrase, meaning in meanings.items():
        words = (phrase,) if name in UNSPACED else tuple(_WORD.findall(phrase))
        if words and words[0]:
            phrases.setdefault(words[0], []).append((words, meaning))
    for known in phrases.values():
        known.sort(key=lambda one: -len(one[0]))
    return Language(name=name, phrases=phrases, order=info.get("date_order", "DMY"))


def _parsers(name: str, info: dict[str, object]) -> Iterator[tuple[str, Meaning]]:
    """What dateparser knows."""
    for unit in _UNITS:
        for word in _listed(info, unit):
            if len(word) >= _SHORTEST or name in UNSPACED:
                yield word, Meaning("U", unit)
    for number, key in enumerate(_MONTHS, 1):
        words = _listed(info, key)
        for word in words:
            yield word, Meaning("c" if _is_short(word, words) else "M", number)
    for number, key in enumerate(_WEEKDAYS):
        words = _listed(info, key)
        yield from ((word, Meaning("W", number)) for word in words if not _is_short(word, words))
    for word in _listed(info, "ago"):
        if word != "before":
            yield word, Meaning("A")
    if name not in UNSPACED or name == "ja":
        yield from _counted(info)


def _counted(info: dict[str, object]) -> Iterator[tuple[str, Meaning]]:
    """Phrases for days and other units counted from the present one."""
    relative = msgspec.convert(info.get("relative-type", {}), dict[str, list[str]])
    for key, phrases in relative.items():
        if found := _COUNTED.fullmatch(key):
            count = int(found[2]) * (1 if found[1] else -1)
            unit = msgspec.convert(found[3], Unit)
            meaning = Meaning("D", count) if unit == "day" else Meaning("R", (unit, count))
            yield from ((fold(phrase), meaning) for phrase in phrases)


def _added(name: str, added: dict[str, str]) -> Iterator[tuple[str, Meaning]]:
    """What `time_words.json` adds to one language."""
    for key, line in added.items():
        if key in ROLES:
            yield from ((fold(phrase), Meaning(ROLES[key])) for phrase in line.split("|"))
        elif key in ("numbers", "seasons"):
            role = "S" if key == "seasons" else "N" if name in UNSPACED else "n"
            for number, phrases in enumerate(line.split(";"), 1):
                yield from ((fold(phrase), Meaning(role, number)) for phrase in phrases.split("|"))
        elif key in _VALUED:
            for entry in line.split("|"):
                phrase, _, value = entry.partition("=")
                yield fold(phrase), _valued(key, value)


_VALUED: Final = {"days": "D", "names": "M", "weekday_names": "W", "units": "U", "years": "R"}


def _valued(key: str, value: str) -> Meaning:
    if key == "units":
        return Meaning("U", msgspec.convert(value, Unit))
    return Meaning(_VALUED[key], ("year", int(value)) if key == "years" else int(value))


def _listed(info: dict[str, object], key: str) -> list[str]:
    return [fold(word) for word in msgspec.convert(info.get(key) or [], list[str])]


def _is_short(word: str, words: list[str]) -> bool:
    """True for an abbreviation: `mon` is French for `my`, and `sun` shines."""
    longest = max(map(len, words))
    return len(word) < longest and (
        len(word) <= _SHORTEST or any(w.startswith(word) and w != word for w in words)
    )


def _anchors(language: Language) -> Iterator[str]:
    for first, phrases in language.phrases.items():
        for words, meaning in phrases:
            if meaning.role in "McWUDRESV":
                yield first if language.name in UNSPACED else max(words, key=len)


def _orders(added: dict[str, dict[str, str]]) -> dict[Order, re.Pattern[str]]:
    return {order: _any_of(order, added) for order in ("first", "latest", "lasting")}


def _any_of(order: Order, added: dict[str, dict[str, str]]) -> re.Pattern[str]:
    spaced: list[str] = []
    unspaced: list[str] = []
    for name, words in added.items():
        (unspaced if name in UNSPACED else spaced).extend(fold(words[order]).split("|"))
    return re.compile(rf"\b(?:{'|'.join(spaced)})\b|{'|'.join(unspaced)}".replace(" ", r"\W+"))
