"""The words by which people ask for a fact, which the fact itself may lack: `job` for `I'm a hydrologist`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from hearth.memory.extract.patterns import book
from hearth.memory.types import Memory

_EVERYWHERE: Final = "en"


def heading(fact: Memory) -> str:
    """Such words for its attribute, in English and in the languages that its text may be in; empty where its
    attribute has none.
    """
    named = headings().get(fact.attribute)
    if named is None:
        return ""
    languages = {pattern.language for pattern in book().likely(fact.text.casefold())} | {_EVERYWHERE}
    return "; ".join(words for language, words in named.items() if language in languages)


@cache
def headings() -> Mapping[str, Mapping[str, str]]:
    """All of them: words by language, by attribute."""
    return tomllib.loads(files("hearth.memory.tiers").joinpath("headings.toml").read_text("utf-8"))
