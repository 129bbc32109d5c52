"""A collection of Qdrant Edge filled in a folder beside the one in use, which it then replaces."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shutil import rmtree

from hearth.memory.events.database import sync_directory
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.stores.whole import write_whole

_BESIDE, _PLACE, _SWITCHING, _STALE = "replay", "place", "switching", "stale"


class EdgeFresh:
    """The Fresh port over two folders. Raises StoreUnavailable while another process has the collection."""

    def __init__(self, directory: Path, *, embedder: str, dimension: int, loader: str = "") -> None:
        """`loader`: what `load_embedder` takes; it stands with the collection."""
        finish_switch(directory)
        self._beside = directory / _BESIDE
        if not self._kept.exists():
            rmtree(self._beside, ignore_errors=True)
        of = partial(EdgeIndex, embedder=embedder, dimension=dimension, loader=loader)
        self.source = of(directory)
        self._directory = directory
        self._beside.mkdir(exist_ok=True)
        self.target = of(self._beside)

    @property
    def _kept(self) -> Path:
        return self._beside / _PLACE

    def place(self) -> bytes:
        """See Fresh."""
        return self._kept.read_bytes() if self._kept.exists() else b""

    def keep_place(self, place: bytes) -> None:
        """See Fresh."""
        write_whole(self._kept, place)

    def held(self) -> int:
        """See Fresh."""
        return self.target.points()

    def hand_over(self) -> None:
        """See Fresh: nobody else has the folder."""

    def switch(self) -> None:
        """See Fresh."""
        self.target.mark_rebuilt(self.target.unfilled)
        self.close()
        write_whole(self._beside / _SWITCHING, b"")
        finish_switch(self._directory)

    def close(self) -> None:
        """See Fresh."""
        self.target.close()
        self.source.close()


def settle(directory: Path) -> None:
    """Finish a switch that was killed, and remove what an unfinished replay left: nobody forgets in that."""
    finish_switch(directory)
    rmtree(directory / _BESIDE, ignore_errors=True)


def finish_switch(directory: Path) -> None:
    """Put the filled collection where the one in use was, unless no switch was begun."""
    beside = directory / _BESIDE
    if not (beside / _SWITCHING).exists():
        return
    for fresh in _collections(beside):
        live = directory / fresh.name
        if live.exists():
            live.rename(beside / _STALE)
        fresh.rename(live)
    sync_directory(directory)
    (beside / _PLACE).unlink(missing_ok=True)  # first: alone it would be gone on from, without what it is of
    rmtree(beside)


def _collections(beside: Path) -> Iterator[Path]:
    for path in list(beside.iterdir()):
        if path.is_dir() and path.name != _STALE:
            yield path
