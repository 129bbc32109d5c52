"""How each language states facts, and what forbids to read one, out of `languages/*.toml`.

A pattern's text is a regular expression in which `<NAME>` stands for an entry of its file's `[words]`, a
space for white space and ` ?` for white space that may lack. It is tried where a clause begins, and only in
a sentence that has one of its `keys`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

from hearth.memory.extract.accents import without_accents
from hearth.memory.extract.tongues import Book, Pattern, Tongue, Words
from hearth.memory.types import Act

_UNPARTED: Final = ("zh", "ja", "ko")
"""Languages whose words are written together, or with their particles: a key is looked for anywhere."""
_JOINED: Final = {"ar": "و"}
"""What a language writes as one with the word behind it: `and`."""
_MACRO: Final = re.compile(r"<([A-Z_]+)>")
_GROUP: Final = re.compile(r"\(\?P<([a-z]+)>")
_NOTHING: Final = "(?!)"
_TOKEN: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?P<\w+>|(?P<word>[^\W\d_]+)")
_LEAST: Final = 3
"""Letters of a word that may lack its accents; shorter ones would be others: `è` and `e`, `où` and `ou`."""


# The files


class _Say(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    attribute: str
    keys: str
    text: str
    kind: str = "thing"
    only: str = ""
    act: Act = "asserts"
    ahead: bool | None = None
    dated: bool = False
    constant: str = ""
    full: bool = False
    order: bool = False
    anywhere: bool = False
    bare: bool = False


class _Guards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lead: str
    joins: str
    unreal: str
    governs: str
    asks: str
    tags: str
    also: str
    more: str
    instead: str
    bad: str
    joining: str = ""
    inverted: str = _NOTHING
    recalls: str = _NOTHING
    dates: str = _NOTHING
    relative: str = _NOTHING
    cuts: str = _NOTHING
    home: str = ""
    refutes: str = _NOTHING
    amends: str = _NOTHING
    others: str = _NOTHING
    twists: str = _NOTHING
    kin: str = _NOTHING
    women: str = _NOTHING
    men: str = _NOTHING
    her: str = ""
    him: str = ""
    mine: str = ""
    stop: str = ""
    soft: str = ""
    breaks: str = ""
    verbs: str = ""
    articles: str = ""
    hedges: str = ""
    bare: str = ""
    owns: str = ""
    firsts: str = _NOTHING
    bare_keys: str = ""
    severs: str = ""
    chained: str = ""
    copulas: str = ""


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    whole: str = _NOTHING
    onward: str = _NOTHING
    real: str = _NOTHING
    tasks: str = _NOTHING
    about: str = _NOTHING
    judged: str = _NOTHING
    opens: str = _NOTHING
    speaker: str = _NOTHING
    whose: str = _NOTHING
    introduces: str = _NOTHING
    reports: str = _NOTHING
    roles: str = _NOTHING
    quotes: str = _NOTHING
    headers: str = _NOTHING
    jokes: str = _NOTHING
    dead: str = _NOTHING


class _Shared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: dict[str, str]
    message: _Message


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    say: list[_Say]
    guards: _Guards
    message: _Message
    words: dict[str, str] = {}
    subjects: dict[str, str] = {}
    """By how a clause begins: what a later one may lack, parted by `|`."""
    relations: dict[str, str] = {}


@cache
def book() -> Book:
    """All languages, read once: a tenth of a second."""
    folder = files("hearth.memory.extract").joinpath("languages")
    texts = {file.name.removesuffix(".toml"): file.read_bytes() for file in folder.iterdir()}
    shared = msgspec.toml.decode(texts.pop("shared"), type=_Shared)
    given = {name: msgspec.toml.decode(texts[name], type=_File) for name in sorted(texts)}
    by_word: dict[str, list[Pattern]] = {}
    by_sign: dict[str, list[Pattern]] = {}
    for name, one in given.items():
        _index(name, one, {**shared.words, **one.words}, by_sign if name in _UNPARTED else by_word)

    def every(field: str) -> re.Pattern[str]:
        return _any(getattr(one.message, field) for one in given.values())

    return Book(
        tongues={name: _tongue(one, {**shared.words, **one.words}) for name, one in given.items()},
        by_word=by_word,
        by_sign=by_sign,
        whole=_any(one.message.whole for one in given.values()),
        onward=_any(one.message.onward for one in given.values()),
        real=_any(one.message.real for one in given.values()),
        tasks=_any(one.message.tasks for one in given.values()),
        about=every("about"),
        judged=every("judged"),
        opens=every("opens"),
        speaker=every("speaker"),
        whose=every("whose"),
        introduces=every("introduces"),
        refutes=_any(one.guards.refutes for one in given.values()),
        reports=every("reports"),
        roles=every("roles"),
        quotes=every("quotes"),
        headers=_any([shared.message.headers]),
        jokes=_any([shared.message.jokes]),
        dead=_any([shared.message.dead]),
        tools=_any([shared.words["TOOLS"]]),
    )


def _any(texts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(texts), re.IGNORECASE | re.MULTILINE)


def _index(language: str, given: _File, words: Mapping[str, str], index: dict[str, list[Pattern]]) -> None:
    """Put the file's patterns under their keys."""
    for place, say in enumerate(given.say):
        made = _pattern(language, place, say, words)
        for key in dict.fromkeys(one for word in say.keys.split() for one in (word, _bare(word))):
            index.setdefault(key, []).append(made)
            if language in _JOINED:
                index.setdefault(_JOINED[language] + key, []).append(made)


def _pattern(language: str, place: int, say: _Say, words: Mapping[str, str]) -> Pattern:
    return Pattern(
        language=language,
        place=place,
        attribute=say.attribute,
        text=Words(_filled(say.text, words)),
        kind=say.kind,
        only=Words(_filled(say.only, words)) if say.only else None,
        act=say.act,
        ahead=say.ahead,
        dated=say.dated,
        constant=say.constant,
        full=say.full,
        order=say.order,
        anywhere=say.anywhere,
        bare=say.bare,
    )


def _tongue(given: _File, words: Mapping[str, str]) -> Tongue:
    guards = given.guards

    def compiled(text: str) -> re.Pattern[str]:
        return re.compile(_filled(text, words), re.IGNORECASE)

    def listed(text: str) -> frozenset[str]:
        return frozenset(one for word in text.split() for one in (word, _bare(word)))

    return Tongue(
        lead=compiled(guards.lead),
        joins=compiled(guards.joins),
        unreal=compiled(guards.unreal),
        governs=compiled(guards.governs),
        asks=compiled(guards.asks),
        tags=compiled(guards.tags),
        also=compiled(guards.also),
        more=compiled(guards.more),
        instead=compiled(guards.instead),
        inverted=compiled(guards.inverted),
        recalls=compiled(guards.recalls),
        dates=compiled(guards.dates),
        relative=compiled(guards.relative),
        cuts=compiled(guards.cuts),
        home=listed(guards.home),
        refutes=compiled(guards.refutes),
        amends=compiled(guards.amends),
        others=compiled(guards.others),
        twists=compiled(guards.twists),
        kin=compiled(guards.kin),
        women=compiled(guards.women),
        men=compiled(guards.men),
        her=listed(guards.her),
        him=listed(guards.him),
        mine=listed(guards.mine),
        stop=listed(guards.stop),
        soft=listed(guards.soft),
        breaks=listed(guards.breaks),
        bad=listed(guards.bad),
        verbs=listed(guards.verbs),
        joining=listed(guards.joining),
        articles=listed(guards.articles),
        hedges=listed(guards.hedges),
        subjects=tuple((begin, tuple(lacks.split("|"))) for begin, lacks in given.subjects.items()),
        bare=tuple(guards.bare.split("|")) if guards.bare else (),
        owns=compiled(guards.owns),
        firsts=compiled(guards.firsts),
        bare_keys=guards.bare_keys,
        severs=listed(guards.severs),
        chained=compiled(guards.chained),
        copulas=tuple(guards.copulas.split("|")) if guards.copulas else (" ",),
        relations=tuple((name, compiled(text)) for name, text in given.relations.items()),
    )


def _filled(text: str, words: Mapping[str, str]) -> str:
    """The text with what its names stand for, and its spaces as patterns of white space."""
    while (name := _MACRO.search(text)) is not None:
        text = f"{text[: name.start()]}(?:{words[name[1]]}){text[name.end() :]}"
    return _told_apart(_lenient(text).replace(" ?", r"\s?").replace(" ", r"\s+"))


def _lenient(text: str) -> str:
    """The regular expression, whose words may lack their accents: many type without."""

    def word(found: re.Match[str]) -> str:
        said = found["word"]
        if said is None or len(said) < _LEAST or said.isascii():
            return found[0]
        return "".join(
            one if one == bare else f"[{one}{bare}]" for one, bare in zip(said, _bare(said), strict=True)
        )

    return _TOKEN.sub(word, text)


def _bare(word: str) -> str:
    """A word of that many letters and more without its accents."""
    return without_accents(word) if len(word) >= _LEAST else word


def _told_apart(text: str) -> str:
    """The text with a number behind each group's name that it has already had: `also`, `also2`."""
    seen: dict[str, int] = {}

    def name(group: re.Match[str]) -> str:
        seen[group[1]] = seen.get(group[1], 0) + 1
        return f"(?P<{group[1]}{seen[group[1]] if seen[group[1]] > 1 else ''}>"

    return _GROUP.sub(name, text)


class Found(NamedTuple):
    """A pattern's match."""

    start: int
    end: int
    groups: dict[str, tuple[int, int]]
    """Where each named group stands that took part, whichever of its numbers."""
    said: dict[str, str]
    """Their words."""


def found(match: re.Match[str], shift: int = 0) -> Found:
    """The match with all its places moved by `shift`."""
    names = {name: name.rstrip("0123456789") for name, said in match.groupdict().items() if said}
    spans = {to: (match.start(name) + shift, match.end(name) + shift) for name, to in names.items()}
    return Found(
        match.start() + shift, match.end() + shift, spans, {to: match[name] for name, to in names.items()}
    )
