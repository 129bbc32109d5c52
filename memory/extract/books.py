"""Reads the words that the extractors look for, which stand in files beside them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

import msgspec


def read_book(name: str) -> dict[str, Any]:
    """The TOML file of that name in this package."""
    return tomllib.loads(files("hearth.memory.extract").joinpath(name).read_text(encoding="utf-8"))


def read_names() -> dict[str, list[str]]:
    """Other names of countries, languages and cities, by the name that stands for each; folded."""
    book = files("hearth.memory.extract").joinpath("names.json").read_bytes()
    return msgspec.json.decode(book, type=dict[str, list[str]])


def read_things() -> dict[str, dict[str, list[str]]]:
    """Other names of common things by the name that stands for each, in groups by what they are; folded."""
    return read_book("things.toml")
