"""Values out of the words behind a pattern: places, names, lists of things; none where there is none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from hearth.memory.extract.patterns import book
from hearth.memory.extract.tongues import Tongue


class Value(NamedTuple):
    """A value and where it stands."""

    text: str
    start: int
    end: int


class _Word(NamedTuple):
    text: str
    start: int
    end: int

    @property
    def folded(self) -> str:
        return self.text.casefold()

    @property
    def capital(self) -> bool:
        """It begins with a capital, a digit, or a letter of a script that has none."""
        return not self.text[0].islower()


_LONGEST: Final = 8
"""Words of a value at most."""
_SHORTEST: Final = 3
"""Letters of what is liked or not at least: anything shorter is half of a saying."""
_ITEMS: Final = 6
"""Of a list at most."""
_PIECE: Final = re.compile(
    r"(?P<word>(?:Dr|Mr|Mrs|Ms|Prof|St)\.|\d+(?:[:.,]\d+)+|[^\W_](?:[\w'+#/&.-]*[\w'+#])?)|(?P<comma>[,、，])"
    r"|(?P<quote>[\"“”„«»‹›「」『』《》])|\S"
)
_CONNECTING: Final = (
    "de da do dos das di del della la le les los las el am an der den von van zu of upon sur en the y i und"
    " and &"
)
_CONNECTS: Final = frozenset(_CONNECTING.split())
"""Words in small letters within a name, before its next capital."""


def values(text: str, start: int, end: int, kind: str, tongue: Tongue, *, casual: bool) -> list[Value]:
    """The values that the words from `start` on tell, up to `end`; empty where they tell none of that kind.

    `casual`: the speaker writes without capitals, so that a name may have none.
    """
    return _READERS[kind](_Words(text, start, end, tongue, casual))


_CLAUSE: Final = re.compile(
    r"\b(?:\w+n't|cannot|can|will|would|cant|wont|dont|nicht|niet|não|nie)\b|(?<!\w)не(?!\w)"
    r"|\A(?:mr|mrs|ms|mx|dr|herr|frau|señora?|monsieur|madame)\.?\Z",
    re.IGNORECASE,
)


def is_thing(value: Value) -> bool:
    """False for what is no thing and no name: it holds a verb that is denied, or is a title alone."""
    return _CLAUSE.search(value.text) is None


class _Words:
    """The words of a stretch of text, and what the language says of them."""

    def __init__(self, text: str, start: int, end: int, tongue: Tongue, casual: bool) -> None:
        self.text, self.start, self.end, self.tongue, self.casual = text, start, end, tongue, casual

    def runs(self) -> Iterator[tuple[list[_Word], str]]:
        """Words up to each comma or sign, and what stands there."""
        run: list[_Word] = []
        for piece in _PIECE.finditer(self.text, self.start, self.end):
            if piece["word"]:
                run.append(_Word(piece.group(), piece.start(), piece.end()))
            elif piece["comma"]:
                yield run, ","
                run = []
            elif not piece["quote"]:
                yield run, piece.group()
                return
        yield run, ""

    def after(self, place: int) -> _Word | None:
        piece = _PIECE.search(self.text, place, len(self.text))
        return _Word(piece.group(), piece.start(), piece.end()) if piece and piece["word"] else None

    def value(self, words: list[_Word]) -> Value:
        start, end = words[0].start, words[-1].end
        return Value(self.text[start:end], start, end)

    def without_article(self, words: list[_Word]) -> list[_Word]:
        """A capital's article is part of a title: `The National`."""
        return words[1:] if words and words[0].text in self.tongue.articles else words


def _until(words: list[_Word], stops: frozenset[str]) -> list[_Word]:
    return words[: next((i for i, word in enumerate(words) if word.folded in stops), len(words))]


def _named(words: list[_Word], most: int, bad: frozenset[str]) -> list[_Word]:
    """The leading words that are written as a name is."""
    taken: list[_Word] = []
    for i, word in enumerate(words):
        joins = taken and word.folded in _CONNECTS and i + 1 < len(words) and words[i + 1].capital
        if word.text in ("I", "I'm", "I've") or not (
            word.capital or (joins and word.folded not in ("and", "und", "y", "i"))
        ):
            break
        if not taken and word.folded in bad:
            break
        taken.append(word)
    return taken[:most]


def _place(words: _Words) -> list[Value]:
    """`Bern`, `the Netherlands`, `Bern, Switzerland`, `southern France`."""
    runs = list(words.runs())
    first = runs[0][0]
    lead = 0
    while lead < min(2, len(first)) and first[lead].folded in _BEFORE_PLACES:
        lead += 1
    named = _named(first[lead:], 4, words.tongue.bad)
    if named and named[0].text[0].isdigit():
        return []
    if not named:
        return _casual(words, first, 2)
    taken = first[:lead] + named
    if len(taken) == len(first) and len(runs) > 1 and runs[0][1] == ",":
        country = _named(runs[1][0], 3, words.tongue.bad | words.tongue.stop)
        whole = (
            len(country) == len(runs[1][0])
            or runs[1][0][len(country)].folded in words.tongue.stop | words.tongue.soft
        )
        if country and whole and country[0].folded not in words.tongue.stop:
            taken = taken + country
    return [words.value(taken)]


_WHEREABOUTS: Final = (
    "the southern northern western eastern central downtown upstate rural greater south north west east near"
    " la le les el los las der die das den dem l'"
)
_BEFORE_PLACES: Final = frozenset(_WHEREABOUTS.split())


def _casual(words: _Words, run: list[_Word], most: int) -> list[Value]:
    """A name in small letters, of a speaker who has no capitals at all."""
    tongue = words.tongue
    taken = _until(run, tongue.stop | tongue.soft | tongue.joining)
    if not words.casual or not 0 < len(taken) <= most or taken[0].folded in tongue.bad | tongue.articles:
        return []
    return (
        [words.value(taken)]
        if all(word.text.replace("'", "").replace("-", "").isalpha() for word in taken)
        else []
    )


def _name(words: _Words) -> list[Value]:
    first = next(words.runs())[0]
    named = _named(first, 3, words.tongue.bad)
    if named and named[0].text.isdigit():
        return []
    return [words.value(named)] if named else _casual(words, first, 1)


def _names(words: _Words) -> list[Value]:
    """`Tom and Mia`, `Rex, Bello und Lady`."""
    tongue = words.tongue
    found: list[Value] = []
    for run, _ in words.runs():
        for item in _items(run, tongue):
            named = _named(item, 2, tongue.bad)
            ends = len(named) < len(item)
            if not named or (
                found and ends and item[len(named)].folded not in tongue.soft | tongue.stop - tongue.verbs
            ):
                return found
            found.append(words.value(named))
            if ends:
                return found
    return found


def _items(run: list[_Word], tongue: Tongue) -> Iterator[list[_Word]]:
    """The run's words parted where the language joins a list's items."""
    item: list[_Word] = []
    for word in run:
        if word.folded in tongue.joining:
            yield item
            item = []
        else:
            item.append(word)
    yield item


def _org(words: _Words) -> list[Value]:
    """`Acme`, `the Red Cross`, `a small bank`."""
    tongue = words.tongue
    first = next(words.runs())[0]
    articles = 1 if first and first[0].folded in tongue.articles else 0
    named = _named(first[articles:], 5, tongue.bad)
    if named:
        return [words.value(first[:articles] + named)]
    if not articles:
        return _casual(words, first, 2)
    taken = _until(first[1:], tongue.stop | tongue.soft | tongue.joining)
    if not 0 < len(taken) <= 4 or taken[0].folded in tongue.bad:
        return []
    of = first[1 + len(taken) :]
    named = _named(of[1:], 4, tongue.bad) if of and of[0].folded in _CONNECTS - tongue.joining else []
    return [words.value(first[:1] + taken + (of[:1] + named if named else []))]


def _job(words: _Words) -> list[Value]:
    """`nurse`, `senior software engineer`, without the article."""
    tongue = words.tongue
    taken = words.without_article(_until(next(words.runs())[0], tongue.stop | tongue.soft | tongue.joining))
    cut = next((i for i, word in enumerate(taken) if i and tongue.cuts.fullmatch(word.text)), len(taken))
    taken = taken[:cut]
    if any("'" in word.text for word in taken):
        return []
    return [words.value(taken)] if 0 < len(taken) <= 5 and taken[0].folded not in tongue.bad else []


def _thing(words: _Words) -> list[Value]:
    return _listed(words, words.tongue.stop | words.tongue.soft)


def _like(words: _Words) -> list[Value]:
    """A thing with all that describes it; none where it goes on in a clause."""
    found = _listed(words, words.tongue.stop)
    after = words.after(found[-1].end) if found else None
    if after and after.folded in words.tongue.breaks:
        return []
    return [one for one in found if len(one.text) >= _SHORTEST or not one.text.isascii()]


def _listed(words: _Words, stops: frozenset[str]) -> list[Value]:
    """A list's items without their articles. It goes on behind a comma only to a last item that is joined."""
    tongue = words.tongue
    found: list[Value] = []
    pending: list[Value] = []
    for run, sign in words.runs():
        joined = False
        for number, item in enumerate(_items(run, tongue)):
            first = not found and not pending
            taken = _item(words, _until(item if first else _unhedged(item, tongue), stops), first=first)
            if taken is None:
                return found
            cut = taken[-1] is not item[-1]
            after = words.after(taken[-1].end) if cut and not (first or taken[0].capital) else None
            if after is not None and after.folded in tongue.soft:
                return found  # `bees and work with them` goes on as a clause
            value = words.value(taken)
            joined = joined or number > 0
            if found or pending:
                pending.append(value)
            else:
                found.append(value)
            if number > 0:
                found, pending = found + pending, []
            if cut:
                return found
        if sign != "," or joined or len(found) + len(pending) > _ITEMS:
            return found
    return found


def _unhedged(item: list[_Word], tongue: Tongue) -> list[_Word]:
    """Without `a bit of`."""
    begins = next((i for i, word in enumerate(item) if word.folded not in tongue.hedges), 0)
    return item[begins:]


def _item(words: _Words, item: list[_Word], *, first: bool) -> list[_Word] | None:
    tongue = words.tongue
    taken = words.without_article(item)
    if not taken or len(taken) > (_LONGEST if first else 3) or taken[0].folded in tongue.bad:
        return None
    if not first and any(word.folded in tongue.articles | tongue.bad for word in taken[1:]):
        return None
    return taken


def _tool(words: _Words) -> list[Value]:
    """`Postgres 16`, `VS Code and Docker`: what has a capital or is known to have none."""
    found: list[Value] = []
    for run, sign in words.runs():
        for item in _items(run, words.tongue):
            named = _tool_name(item, words.tongue.bad)
            if not named:
                return found
            found.append(words.value(named))
            if len(named) < len(item):
                return found
        if sign != ",":
            break
    return found


def _tool_name(item: list[_Word], bad: frozenset[str]) -> list[_Word]:
    taken: list[_Word] = []
    for word in item:
        known = word.capital and not (word.text.startswith("I'") or word.text == "I")
        if not (known or book().tools.fullmatch(word.text)) or (
            not taken and (word.folded in bad or word.text.isdigit())
        ):
            break
        taken.append(word)
    return taken[:4]


def _rest(words: _Words) -> list[Value]:
    """Everything up to the end."""
    shown = words.text[words.start : words.end]
    start = words.start + len(shown) - len(shown.lstrip(" ,:"))
    rest = shown.strip(" ,:\"'")
    return [Value(rest, start, start + len(rest))] if rest else []


def _phrase(words: _Words) -> list[Value]:
    """Everything up to the next clause."""
    first = next(words.runs())[0]
    if not first:
        return []
    join = words.tongue.joins.search(words.text, first[0].start, first[-1].end)
    taken = [word for word in first if join is None or word.end <= join.start()]
    return [words.value(taken)] if taken else []


_PARTS: Final = re.compile(r"[、，,/・]|以及|还有|還有|和|跟|与|與|及|や|と(?!こ|き|も)|,")


def _signs(words: _Words) -> list[Value]:
    """A list in a language whose words are not parted."""
    found, place = [], words.start
    stretch = words.text[words.start : words.end]
    for part in [*_PARTS.finditer(stretch), None]:
        end = words.start + part.start() if part else words.end
        item = words.text[place:end].strip(' "「」『』《》')
        if item:
            start = words.text.index(item, place)
            found.append(Value(item, start, start + len(item)))
        place = words.start + part.end() if part else end
    return found[:_ITEMS]


def _whole(words: _Words) -> list[Value]:
    """The whole stretch without its article."""
    found = _rest(words)
    if not found or found[0].text.casefold() in words.tongue.bad:
        return []
    article, _, rest = found[0].text.partition(" ")
    if rest and article in words.tongue.articles:
        return [Value(rest, found[0].end - len(rest), found[0].end)]
    return found


_READERS: Final[dict[str, Callable[[_Words], list[Value]]]] = {
    "place": _place,
    "name": _name,
    "names": _names,
    "org": _org,
    "job": _job,
    "thing": _thing,
    "like": _like,
    "tool": _tool,
    "phrase": _phrase,
    "rest": _rest,
    "signs": _signs,
    "whole": _whole,
}
"""By the name that a pattern gives as its `kind`."""
