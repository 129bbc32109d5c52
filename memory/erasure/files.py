"""The files of an embedded memory, and the search for fragments in every byte of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from hearth.memory.erasure.fragments import WINDOW, Search
from hearth.memory.erasure.receipt import Fragment, Scanned

_CHUNK: Final = 4 << 20
OTHER: Final = "other files"


class Files:
    """A data folder, and a spool that may be elsewhere."""

    def __init__(self, home: Path, places: Mapping[str, str], *, spool: Path) -> None:
        """`places`: by the beginning of a name in the folder, which place it is."""
        self._home, self._places, self._spool = home, places, spool

    def scan(self, wanted: Mapping[str, tuple[bytes, Sequence[Fragment]]]) -> dict[str, list[Scanned]]:
        """What is left of each erasure, by place. Blocks for as long as it takes to read everything."""
        search = Search(wanted)
        sizes: Counter[str] = Counter()
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for place, path in self._files():
            for chunk in _chunks(path):
                sizes[place] += len(chunk)
                found[place] += search.count(chunk)
        return {
            erasure: [
                Scanned(place=place, how="raw bytes", size=size, found=found[place][erasure])
                for place, size in sorted(sizes.items())
            ]
            for erasure in wanted
        }

    def _files(self) -> Iterator[tuple[str, Path]]:
        for path in sorted(self._home.rglob("*")):
            name = path.relative_to(self._home).parts[0]
            if path.is_file() and not path.is_relative_to(self._spool):
                yield next((at for start, at in self._places.items() if name.startswith(start)), OTHER), path
        for path in sorted(self._spool.glob("*")):
            yield "spool", path


def _chunks(path: Path) -> Iterator[bytes]:
    """The file, each chunk with the end of the one before: a fragment is whole in one of them, once."""
    before = b""
    with suppress(FileNotFoundError), path.open("rb") as file:  # gone meanwhile
        while raw := file.read(_CHUNK):
            yield before + raw
            before = raw[-(WINDOW - 1) :]
