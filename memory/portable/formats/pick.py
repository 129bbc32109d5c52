"""Which format a file has, and what its records say: the one place that knows all formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any, Final, Literal, TypeAlias, get_args

import msgspec

from hearth.memory.errors import BadInput
from hearth.memory.portable.form import FORMAT
from hearth.memory.portable.formats import chatgpt, claude, litellm, mem0, openai, zep
from hearth.memory.portable.formats.archive import is_archive, unpacked
from hearth.memory.portable.formats.found import Found, Source
from hearth.memory.portable.formats.scan import records

Foreign: TypeAlias = Literal["chatgpt", "claude", "openai", "mem0", "zep", "litellm"]
Format: TypeAlias = Literal["hearth", "turns", "chatgpt", "claude", "openai", "mem0", "zep", "litellm"]
"""`hearth`: an export; `turns`: dated turns, as `POST /import` documents them."""

_READERS: Final[dict[str, Callable[[Source, bytes], Iterator[Found]]]] = {
    "chatgpt": chatgpt.read,
    "claude": claude.read,
    "openai": openai.read,
    "mem0": mem0.read,
    "zep": zep.read,
    "litellm": litellm.read,
}
FOREIGN: Final[tuple[str, ...]] = get_args(Foreign)
_PEEKED: Final = 1 << 20
"""Bytes of the first record that are looked at."""


def format_of(source: Source) -> Format:
    """The file's format, by its first record. Raises BadInput where it is none that is known."""
    if is_archive(source.file):
        with unpacked(source.file, source.limits) as members:
            return _told_by(_first(members[0], source))
    source.file.seek(0)
    start = source.file.read(_PEEKED).lstrip()
    if start.startswith(f'{{"format":"{FORMAT}"'.encode()):
        return "hearth"
    source.file.seek(0)
    return _told_by(_first(source.file, source))


def found_in(source: Source, format: str) -> Iterator[tuple[str, Found]]:
    """What the records of a file say, each with its place. Raises BadInput that names the place."""
    if is_archive(source.file):
        with unpacked(source.file, source.limits) as members:
            for member in members:
                yield from _found(member, source, format)
    else:
        source.file.seek(0)
        yield from _found(source.file, source, format)


def _found(file: IO[bytes], source: Source, format: str) -> Iterator[tuple[str, Found]]:
    for number, raw in _records(file, source):
        place = f"record {number}"
        try:
            for one in _READERS[format](source, raw):
                yield place, one
        except (msgspec.MsgspecError, ValueError, OverflowError, OSError, RecursionError) as error:
            raise BadInput(place, raw[:60].decode(errors="replace"), f"{format}: {error}") from error


def _records(file: IO[bytes], source: Source) -> Iterator[tuple[int, bytes]]:
    return records(file, record_bytes=source.limits.record_bytes, most=source.limits.records)


def _first(file: IO[bytes], source: Source) -> dict[str, Any]:
    raw = next((raw for _, raw in _records(file, source)), None)
    if raw is None:
        raise BadInput("file", "", "at least one record")
    try:
        first = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput("record 1", raw[:60].decode(errors="replace"), f"JSON ({error})") from error
    if not isinstance(first, dict):
        raise BadInput("record 1", raw[:60].decode(errors="replace"), "an object")
    return first


_KNOWN: Final = f"the fields of {', '.join(get_args(Format))}; a turn has role, content and at"


def _told_by(first: dict[str, Any]) -> Format:
    """By the names that only one format has; a wrapped list by those of its own first record."""
    keys = first.keys()
    if chatgpt.KEYS & keys:
        return "chatgpt"
    if claude.KEYS & keys:
        return "claude"
    if keys >= litellm.KEYS:
        return "litellm"
    if mem0.KEYS & keys:
        return "mem0"
    if keys & {"turns"} or {"role", "content", "at"} <= keys:
        return "turns"
    if zep.KEYS & keys or zep.KEYS & _inner(first, "messages"):
        return "zep"
    if openai.KEYS & keys:
        return "openai"
    for name in ("results", "memories", "data"):
        if inner := _inner(first, name):
            return _told_by(dict.fromkeys(inner))
    raise BadInput("format", ", ".join(list(keys)[:10]), _KNOWN)


def _inner(first: dict[str, Any], name: str) -> set[str]:
    listed = first.get(name)
    inside = listed[0] if isinstance(listed, list) and listed else None
    return set(inside) if isinstance(inside, dict) else set()
