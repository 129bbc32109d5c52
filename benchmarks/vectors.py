"""An embedder that keeps what it has made in a file, since the slow one takes minutes for one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from hearth.memory.embed.load import load_embedder
from hearth.memory.ports import Embedder
from hearth.memory.types import Vector


class KeptEmbedder:
    """The embedder of that name, whose vectors are read from `path` and written there on leaving.

    Without a path they are kept for the run. A file of another embedder's is replaced.
    """

    def __init__(self, spec: str, path: Path | None) -> None:
        self._embedder: Embedder = load_embedder(spec)
        self._path = path
        self._kept = _read(path, self.name) if path is not None and path.exists() else {}
        self._read = len(self._kept)

    @property
    def name(self) -> str:
        """The embedder's own."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """The embedder's own."""
        return self._embedder.dimension

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order."""
        return self._vectors("query", texts, self._embedder.embed_queries)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order."""
        return self._vectors("document", texts, self._embedder.embed_documents)

    def __enter__(self) -> KeptEmbedder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._path is not None and len(self._kept) > self._read:
            keys, vectors = list(self._kept), np.array(list(self._kept.values()))
            with self._path.open("wb") as file:
                np.savez(file, embedder=self.name, keys=np.array(keys), vectors=vectors)

    def _vectors(
        self, side: str, texts: Sequence[str], embed: Callable[[Sequence[str]], list[Vector]]
    ) -> list[Vector]:
        keys = [sha256(f"{side}\n{text}".encode()).hexdigest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._kept}
        for key, vector in zip(new, embed(list(new.values())), strict=True):
            self._kept[key] = np.array(vector, dtype=np.float32)
        return [self._kept[key].tolist() for key in keys]


def of_embedder(path: Path | None, spec: str) -> Path | None:
    """The file beside `path` that has that embedder's vectors, where a run needs more than one's."""
    return None if path is None else path.with_suffix(f".{spec}.npz")


def _read(path: Path, embedder: str) -> dict[str, npt.NDArray[np.float32]]:
    with np.load(path) as file:
        if str(file["embedder"]) != embedder:
            return {}
        return dict(zip(file["keys"].tolist(), file["vectors"], strict=True))
