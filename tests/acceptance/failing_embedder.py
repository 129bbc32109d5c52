"""The default embedder with faults that a file names: the embedder of a gateway under test."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from hearth.memory.embed.load import load_embedder
from hearth.memory.types import Vector

VARIABLE = "FAILING_EMBEDDER"
"""Names the file: empty, `slow`, `hang`, `raise` or `die`."""


class FailingEmbedder:
    """Passes on to the default embedder, as far as the file lets it."""

    def __init__(self) -> None:
        self._real = load_embedder("fast")
        self._file = Path(os.environ[VARIABLE])
        self.name, self.dimension = self._real.name, self._real.dimension

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """See `Embedder.embed_queries`."""
        self._fail()
        return self._real.embed_queries(texts)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """See `Embedder.embed_documents`."""
        self._fail()
        return self._real.embed_documents(texts)

    def _fail(self) -> None:
        match self._file.read_text():
            case "slow":
                time.sleep(2)
            case "hang":
                while self._file.read_text() == "hang":
                    time.sleep(0.1)
            case "raise":
                raise RuntimeError("the embedder is out of memory")
            case "die":
                os._exit(9)
            case _:
                pass


def embedder() -> FailingEmbedder:
    """What `embedder: tests.acceptance.failing_embedder:embedder` makes."""
    return FailingEmbedder()
