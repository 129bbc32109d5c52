"""The names of common things in many languages: folded, each of one thing alone."""

from collections import Counter

from hearth.memory.extract.attributes import folded_value
from hearth.memory.extract.books import read_book

THINGS = read_book("things.toml")
EVERY = [name for own, others in THINGS.items() for name in (own, *others)]


def test_each_name_is_of_one_thing():
    """Neither twice in one entry nor in two."""
    assert [name for name, times in Counter(EVERY).items() if times > 1] == []


def test_names_stand_as_they_are_compared():
    """Folded, without articles: otherwise no value would find them."""
    assert [name for name in EVERY if folded_value(name) != name] == []


def test_each_has_names_in_many_languages_and_scripts():
    """A Cyrillic, an Arabic and a Chinese or Japanese one at least, for nearly all."""
    lacking = [
        own
        for own, others in THINGS.items()
        if not all(
            any(first <= letter <= last for name in others for letter in name)
            for first, last in (("а", "я"), ("ء", "ي"), ("一", "鿿"), ("가", "힣"))
        )
        and not any("ァ" <= letter <= "ヺ" for name in others for letter in name)
    ]
    assert len(lacking) <= len(THINGS) // 20, lacking
