"""Long-term memory that finds candidates by quantized vectors, in Qdrant's own engine without a server.

Qdrant Edge is the server's engine as a library. A collection is filled as any other, opened again with the
form of vectors that a server would make by the same settings, and optimized, which gives all of it that form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import qdrant_edge as qdrant

from hearth.memory.ports import Embedder
from hearth.memory.stores.edge import EdgeLongTerm
from hearth.memory.stores.edge_index import EdgeIndex, _filter, _query
from hearth.memory.stores.hybrid import Condition, Queries

Kind = Literal["none", "scalar", "binary"]


class QuantizedIndex(EdgeIndex):
    """An index whose `find` looks at quantized vectors once it was told to; final scores stay exact."""

    _params: qdrant.SearchParams | None = None

    def quantize(self, kind: Kind, dimension: int, oversampling: float) -> None:
        """Give the collection's vectors that form, all of them."""
        self.collection.checkpoint()
        self.collection.shard.close()
        path = str(self.collection.folder / "shard")
        self.collection.shard = qdrant.EdgeShard.load(path, _config(kind, dimension))
        if not self.collection.shard.optimize():
            raise RuntimeError("nothing was quantized")
        chosen = qdrant.QuantizationSearchParams(rescore=True, oversampling=oversampling)
        self._params = qdrant.SearchParams(quantization=chosen)

    def find(
        self, queries: Queries, where: Sequence[Condition], limit: int
    ) -> Mapping[str, Mapping[qdrant.PointId, float]]:
        """See `EdgeIndex.find`."""
        only = _filter(where)
        asked = [
            qdrant.QueryRequest(limit=limit, query=_query(near), filter=only, params=self._params)
            for near in queries.values()
        ]
        answers = self.collection.shard.query_batch(qdrant.QueryBatchRequest(asked))
        return {
            name: {point.id: point.score for point in answer}
            for name, answer in zip(queries, answers, strict=True)
        }


class QuantizedEdge(EdgeLongTerm):
    """The store over such an index."""

    def __init__(self, directory: Path, embedder: Embedder, kind: Kind, oversampling: float) -> None:
        super().__init__(directory, embedder)
        self._index.close()
        self._quantized = QuantizedIndex(directory, embedder=embedder.name, dimension=embedder.dimension)
        self._index = self._quantized
        self._chosen = (kind, embedder.dimension, oversampling)

    async def settle(self) -> None:
        """Give what is stored so far that form."""
        if self._chosen[0] != "none":
            await self._run(lambda: self._quantized.quantize(*self._chosen))


def _config(kind: Kind, dimension: int) -> qdrant.EdgeConfig:
    """The collection's own form, with vectors quantized as `QdrantCollection` has a server do it."""
    form = (
        qdrant.ScalarQuantizationConfig(qdrant.ScalarType.Int8, quantile=0.99, always_ram=True)
        if kind == "scalar"
        else qdrant.BinaryQuantizationConfig(always_ram=True)
    )
    dense = qdrant.EdgeVectorParams(size=dimension, distance=qdrant.Distance.Cosine, quantization_config=form)
    return qdrant.EdgeConfig(
        vectors={"text": dense, "context": dense},
        sparse_vectors={"lexical": qdrant.EdgeSparseVectorParams()},
        optimizers=qdrant.EdgeOptimizersConfig(indexing_threshold=1),
        hnsw_config=qdrant.HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000, payload_m=16),
    )
