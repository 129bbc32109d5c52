"""Reads the words that the extractors look for, which stand in files beside them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any


def read_book(name: str) -> dict[str, Any]:
    """The TOML file of that name in this package."""
    return tomllib.loads(files("hearth.memory.extract").joinpath(name).read_text(encoding="utf-8"))
