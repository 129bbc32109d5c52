"""The collections of several embedders in one folder, of which one is in force."""

from __future__ import annotations

import logging
from pathlib import Path
from shutil import rmtree

from hearth.memory.ports import Embedder
from hearth.memory.stores.edge_collection import made_in
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.stores.succession import Before, loaded

_log = logging.getLogger(__name__)


class EdgeSuccession:
    """The Succession port over a folder that this process alone has."""

    def __init__(self, directory: Path, embedder: Embedder, loader: str) -> None:
        """Others that are not filled are removed: what is written from now on would not reach them. So are
        all where this one is filled.
        """
        self.embedder = embedder
        self.index = EdgeIndex(directory, embedder=embedder.name, dimension=embedder.dimension, loader=loader)
        self._directory = directory
        if not self.index.unfilled:
            self.retire()

    def before(self) -> Before | None:
        """See Succession."""
        for folder in self._others():
            made = made_in(folder)
            if made is None or not made.filled:
                self._remove(folder)
                continue
            embedder, dense = loaded(made)
            index = EdgeIndex(
                self._directory, embedder=made.embedder, dimension=made.dimension, loader=made.loader
            )
            return Before(embedder=embedder, index=index, dense=dense)
        return None

    def retire(self) -> None:
        """See Succession."""
        for folder in self._others():
            self._remove(folder)

    def reach_all(self) -> None:
        """See Succession: its opening removed what a replay left, and none goes on meanwhile."""

    def _others(self) -> list[Path]:
        mine = self.index.collection.folder
        folders = (path.parent for path in self._directory.glob("*/collection.json"))
        return sorted(folder for folder in folders if folder != mine)

    def _remove(self, folder: Path) -> None:
        _log.warning("the collection %s is removed: that of %s has its place", folder, self.embedder.name)
        rmtree(folder, ignore_errors=True)
