"""The process that reads every byte of an embedded memory: `python -m hearth.memory.erasure.scanning`."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from hearth.memory.erasure.fragments import WINDOW, Search
from hearth.memory.erasure.receipt import Fragment, Scanned

OTHER: Final = "other files"
_CHUNK: Final = 4 << 20


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, and where."""

    home: str
    places: Mapping[str, str]
    """By the beginning of a name in the folder, which place it is."""
    spool: str
    """A folder, which may be elsewhere."""
    wanted: Mapping[str, tuple[bytes, tuple[Fragment, ...]]]
    """By erasure: its salt and its fragments."""


def scan(asked: Asked) -> dict[str, list[Scanned]]:
    """What is left of each erasure, by place."""
    search = Search(asked.wanted)
    sizes: Counter[str] = Counter()
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for place, path in _files(asked):
        for chunk in _chunks(path):
            sizes[place] += len(chunk)
            found[place] += search.count(chunk)
    return {
        erasure: [
            Scanned(place=place, how="raw bytes", size=size, found=found[place][erasure])
            for place, size in sorted(sizes.items())
        ]
        for erasure in asked.wanted
    }


def _files(asked: Asked) -> Iterator[tuple[str, Path]]:
    home, spool = Path(asked.home), Path(asked.spool)
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).parts[0]
        if path.is_file() and not path.is_relative_to(spool):
            yield next((at for start, at in asked.places.items() if name.startswith(start)), OTHER), path
    for path in sorted(spool.glob("*")):
        yield "spool", path


def _chunks(path: Path) -> Iterator[bytes]:
    """The file, each chunk with the end of the one before: a fragment is whole in one of them, once."""
    before = b""
    with suppress(FileNotFoundError), path.open("rb") as file:  # gone meanwhile
        while raw := file.read(_CHUNK):
            yield before + raw
            before = raw[-(WINDOW - 1) :]


def main() -> None:
    """Entry of the process: what is asked comes by its input, what is found goes to its output."""
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Asked)
    sys.stdout.buffer.write(msgspec.msgpack.encode(scan(asked)))


if __name__ == "__main__":
    main()
