"""A deterministic embedder for tests, whose cosines can be set exactly."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

from hearth.memory.types import Vector

_Array = npt.NDArray[np.float64]


class ScriptedEmbedder:
    """Unrelated texts get nearly orthogonal vectors; `cosines` sets those of a query with documents.

    `cosines` maps a query's text to the cosine wanted with each document's text; squares of one query's
    cosines must sum to less than 1 for documents that are unrelated. `delay` is the seconds a query takes.
    """

    def __init__(
        self,
        cosines: Mapping[str, Mapping[str, float]] | None = None,
        *,
        dimension: int = 256,
        delay: float = 0.0,
        name: str = "scripted",
    ) -> None:
        self._cosines = dict(cosines or {})
        self._dimension = dimension
        self._delay = delay
        self._name = name
        self.queries: list[str] = []

    @property
    def name(self) -> str:
        """The name it was given."""
        return self._name

    @property
    def dimension(self) -> int:
        """The dimension it was given."""
        return self._dimension

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, with the cosines set for it. Remembers the texts in `queries`."""
        if self._delay:
            time.sleep(self._delay)
        self.queries.extend(texts)
        return [self._query(text).tolist() for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text; the same text has the same one in every process."""
        return [self._axis(text).tolist() for text in texts]

    def _axis(self, text: str) -> _Array:
        seed = crc32(text.encode(errors="replace"))
        vector: _Array = np.random.default_rng(seed).standard_normal(self._dimension)
        return vector / np.linalg.norm(vector)

    def _query(self, text: str) -> _Array:
        wanted = self._cosines.get(text)
        own = self._axis(text)
        if not wanted:
            return own
        documents = np.stack([self._axis(document) for document in wanted])
        inverse = np.linalg.pinv(documents)
        near = inverse @ np.array(list(wanted.values()))
        rest = own - inverse @ (documents @ own)
        scale = np.sqrt(max(1.0 - float(near @ near), 0.0)) / np.linalg.norm(rest)
        result: _Array = near + scale * rest
        return result


def plain() -> ScriptedEmbedder:
    """The embedder without any cosine set, as a factory that a child process can import."""
    return ScriptedEmbedder()


def slow() -> ScriptedEmbedder:
    """An embedder that takes 300 ms a query, longer than any recall's deadline."""
    return ScriptedEmbedder(delay=0.3, name="scripted-slow")


class SlowDocuments(ScriptedEmbedder):
    """Takes 20 ms a document and, holding the interpreter, lets nobody else work meanwhile."""

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """See ScriptedEmbedder."""
        time.sleep(0.02 * len(texts))
        return super().embed_documents(texts)


def changed() -> ScriptedEmbedder:
    """Another embedder than `plain`, whose vectors have another length."""
    return ScriptedEmbedder(dimension=96, name="scripted-changed")
