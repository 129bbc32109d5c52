"""Reading foreign JSON: each function gives an empty value for input of another kind, and none raises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

_decoder = msgspec.json.Decoder()
_NOTHING: dict[str, Any] = {}


def loads(raw: bytes) -> object:
    """The JSON value in `raw`; None where it is malformed or nested too deeply.

    Lone surrogates, which a strict parser refuses, come through and are replaced in whatever is kept.
    """
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError):
        pass
    try:
        return json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is an object."""
    return value if isinstance(value, dict) else _NOTHING


def sequence(value: object) -> list[Any]:
    """`value` if it is an array."""
    return value if isinstance(value, list) else []


def string(value: object) -> str:
    """`value` if it is a string."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """`value` if it is a number from 0 to 2**53, whole part only."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2**53:
        return 0
    return int(value)


def size(value: object) -> int:
    """Bytes of a string in UTF-8; of a list of text parts, their sum."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    return sum(size(mapping(part).get("text")) for part in sequence(value))
