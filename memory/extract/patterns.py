"""The patterns by which words state facts, and the words that forbid it, by language, out of `patterns/*.toml`.

A pattern's text is a regular expression in which `<NAME>` stands for an entry of its file's `[words]` and a
space for white space. It is tried where a clause begins, and only in a sentence that has one of its `keys`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final

from hearth.memory.types import Act

UNPARTED: Final = ("zh", "ja", "ko")
"""Languages whose words are written together, or with their particles: a key is looked for anywhere."""
_MACRO: Final = re.compile(r"<([A-Z_]+)>")
_WORDS: Final = re.compile(r"[^\W\d_]+")
_GROUP: Final = re.compile(r"\(\?P<([a-z_]+)>")
_NEVER: Final = re.compile(r"(?!)")


class Words:
    """A regular expression that is compiled when it is first tried: most are of languages nobody speaks here."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self._text, re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One way of saying something.

    Its named groups: `value`, `who`, `rel`, `not`, `ends`, `also`,
    `wrong`, `of`.
    """

    language: str
    attribute: str
    """`@rel`: what the relation in the group `rel` is to the user."""
    text: Words
    kind: str = "thing"
    """How the value is read that begins where the match ends, or stands in the group `value`."""
    only: Words | None = None
    """What a value must be as a whole."""
    act: Act = "asserts"
    ahead: bool | None = None
    """Where its time lies: True after the day of the message, False before it."""
    dated: bool = False
    """It states something only with a time."""
    constant: str = ""
    """The value, where the words hold none of their own."""
    elided: Words | None = None
    """The same without its subject, which an earlier clause has named."""
    subject: str = ""
    """The subject that `elided` lacks, as shown."""
    order: bool = False
    """It tells the assistant to do something, with what else leads a clause in: `please`."""
    anywhere: bool = False
    """It need not begin a clause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """One language's words and patterns."""

    name: str
    lead: re.Pattern[str]
    """What may stand before a clause without changing it: `well`, `by the way`."""
    joins: re.Pattern[str]
    """Conjunctions after which a clause of the speaker's own begins."""
    unreal: re.Pattern[str]
    """Within a clause: it is no plain statement."""
    governs: re.Pattern[str]
    """Anywhere before a clause in its sentence: a condition, or somebody else's speech."""
    asks: re.Pattern[str]
    """How a question begins."""
    tags: re.Pattern[str]
    """A question's end that asks whether what stands before it is so."""
    stop: frozenset[str]
    """Words that end a value."""
    soft: frozenset[str]
    """Prepositions that end a short value: a place, a name."""
    breaks: frozenset[str]
    """Words that make a value of what is liked a part of something else: `people who`."""
    bad: frozenset[str]
    """Words with which no value begins."""
    joining: frozenset[str]
    """Words between a list's last two items."""
    articles: frozenset[str]
    also: re.Pattern[str]
    """After a value: it stands beside others."""
    more: re.Pattern[str]
    """After a value that is denied: it held until now."""
    instead: re.Pattern[str]
    """After a value: the one that is wrong, in the group `wrong`."""
    kin: re.Pattern[str]
    """Somebody whom a pronoun can stand for: `my sister Ana`."""
    women: re.Pattern[str]
    men: re.Pattern[str]
    """What tells whom `she` or `he` can't be."""
    her: frozenset[str]
    him: frozenset[str]
    refutes: re.Pattern[str]
    """In a sentence before: what the assistant believed is wrong."""
    verbs: frozenset[str]
    """Behind a value: it was the subject of another clause."""
    mine: frozenset[str]
    """What makes a relation the speaker's own: `my`."""
    relations: tuple[tuple[str, re.Pattern[str]], ...] = ()
    patterns: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """All languages."""

    tongues: Mapping[str, Tongue]
    by_word: Mapping[str, tuple[Pattern, ...]]
    unparted: tuple[tuple[str, tuple[Pattern, ...]], ...]
    """By key, of languages whose words aren't parted."""
    whole: re.Pattern[str]
    """Makes the whole message somebody else's words: role play."""
    onward: re.Pattern[str]
    """From here on the message is invented."""
    tasks: re.Pattern[str]
    """An order to work on a text that comes with it."""
    headers: re.Pattern[str]
    """From here on the message is somebody's mail."""
    jokes: re.Pattern[str]
    tools: re.Pattern[str]
    """Tools that are written in small letters too."""

    def likely(self, sentence: str) -> list[Pattern]:
        """The patterns of which the folded sentence has a key, in the order of their files."""
        found: dict[int, Pattern] = {}
        for word in set(_WORDS.findall(sentence)):
            found.update((id(pattern), pattern) for pattern in self.by_word.get(word, ()))
        if not sentence.isascii():
            for key, patterns in self.unparted:
                if key in sentence:
                    found.update((id(pattern), pattern) for pattern in patterns)
        return list(found.values())


@dataclass(slots=True)
class _Index:
    by_word: dict[str, list[Pattern]] = field(default_factory=dict)
    unparted: dict[str, list[Pattern]] = field(default_factory=dict)


@cache
def book() -> Book:
    """All patterns, compiled once."""
    folder = files("hearth.memory.extract").joinpath("patterns")
    read = {
        file.name.removesuffix(".toml"): tomllib.loads(file.read_text("utf-8"))
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    }
    shared = read.pop("shared")
    index = _Index()
    tongues = {name: _tongue(name, given, shared, index) for name, given in read.items()}
    everyone = [*read.values(), shared]
    return Book(
        tongues=tongues,
        by_word={word: tuple(found) for word, found in index.by_word.items()},
        unparted=tuple((key, tuple(found)) for key, found in index.unparted.items()),
        whole=_united(everyone, "whole"),
        onward=_united(everyone, "onward"),
        tasks=_united(everyone, "tasks"),
        headers=_united(everyone, "headers"),
        jokes=_united(everyone, "jokes"),
        tools=_compiled(shared["words"]["TOOLS"], {}),
    )


def _united(everyone: Iterable[Mapping[str, Any]], name: str) -> re.Pattern[str]:
    texts = [_filled(given["message"][name], given.get("words", {})) for given in everyone if name in given.get("message", {})]
    return re.compile("|".join(texts), re.IGNORECASE | re.MULTILINE) if texts else _NEVER


def _tongue(name: str, given: Mapping[str, Any], shared: Mapping[str, Any], index: _Index) -> Tongue:
    words = {**shared["words"], **given.get("words", {})}
    guards = given.get("guards", {})

    def pattern(key: str) -> re.Pattern[str]:
        return _compiled(guards[key], words) if guards.get(key) else _NEVER

    def listed(key: str) -> frozenset[str]:
        return frozenset(guards.get(key, "").split())

    patterns = tuple(_pattern(name, entry, words, given.get("subjects", {}), index) for entry in given["say"])
    return Tongue(
        name=name,
        lead=_compiled(guards.get("lead", ""), words),
        **{key: pattern(key) for key in ("joins", "unreal", "governs", "asks", "tags", "also", "more", "instead", "kin", "women", "men", "refutes")},
        **{key: listed(key) for key in ("stop", "soft", "breaks", "bad", "joining", "articles", "mine", "verbs", "her", "him")},
        relations=tuple((key, _compiled(text, words)) for key, text in given.get("relations", {}).items()),
        patterns=patterns,
    )


def _pattern(
    language: str, entry: Mapping[str, Any], words: Mapping[str, str], subjects: Mapping[str, str], index: _Index
) -> Pattern:
    text = entry["text"]
    subject = next((name for name in subjects if text.startswith(f"<{name}>")), "")
    made = Pattern(
        language=language,
        attribute=entry["attribute"],
        text=Words(_filled(text, words)),
        kind=entry.get("kind", "thing"),
        only=Words(_filled(entry["only"], words)) if "only" in entry else None,
        act=entry.get("act", "asserts"),
        ahead=entry.get("ahead"),
        dated=entry.get("dated", False),
        constant=entry.get("constant", ""),
        elided=Words(_filled(text.removeprefix(f"<{subject}>"), words)) if subject else None,
        subject=subjects.get(subject, entry.get("subject", "")),
        order=entry.get("order", False),
        anywhere=entry.get("anywhere", False),
    )
    kept = index.unparted if language in UNPARTED else index.by_word
    for key in entry["keys"].split():
        kept.setdefault(key, []).append(made)
    return made


def _compiled(text: str, words: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile(_filled(text, words), re.IGNORECASE)


def _filled(text: str, words: Mapping[str, str]) -> str:
    """The text with what its names stand for, and any white space for a space."""
    while (macro := _MACRO.search(text)) is not None:
        text = text[: macro.start()] + f"(?:{words[macro[1]]})" + text[macro.end() :]
    return _numbered(text.replace(" ", r"\s+"))


def _numbered(text: str) -> str:
    """The text with a number behind each group's name that it has already had: `also`, `also2`."""
    seen: dict[str, int] = {}

    def name(group: re.Match[str]) -> str:
        seen[group[1]] = seen.get(group[1], 0) + 1
        return f"(?P<{group[1]}{seen[group[1]] if seen[group[1]] > 1 else ''}>"

    return _GROUP.sub(name, text)


def groups(match: re.Match[str]) -> dict[str, tuple[int, int]]:
    """Where each named group stands that took part, whichever of its numbers."""
    return {
        name.rstrip("0123456789"): match.span(name)
        for name, said in match.groupdict().items()
        if said
    }
