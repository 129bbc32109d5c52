"""How a collection of a Qdrant server is made.

It is one for all owners, as Qdrant advises for many tenants ("Configure Multitenancy" in its documentation):
`owner` is a keyword index with `is_tenant`, which keeps an owner's points together on the disk; `m` is 0 and
`payload_m` is set, so that there is no graph over everybody, only one within each owner who has more than a
scan of them takes. The other indexes get no graph.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from hearth.memory.stores.qdrant_calls import QdrantCalls
from hearth.memory.stores.qdrant_names import DIMENSION, EMBEDDER, FILLED, LOADER, MADE
from hearth.memory.stores.qdrant_server import QdrantServer

INDEXES = {
    "owner": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "person": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False),
    "kind": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False),
}
"""The payload's fields that have an index."""
_PAYLOAD_M = 16
"""Edges of a point in its owner's graph; Qdrant's own value for `m`."""
_EXISTS = frozenset({400, 409})


def create(
    calls: QdrantCalls, server: QdrantServer, name: str, metadata: models.Payload, *, by: float
) -> None:
    """Make the collection; that another process does so at the same moment is as good."""
    options = _options(server, metadata)

    def make(client: QdrantClient, seconds: int) -> None:
        try:
            client.create_collection(name, timeout=seconds, **options)
        except UnexpectedResponse as error:
            if error.status_code not in _EXISTS or b"already exists" not in error.content:
                raise

    calls(make, by=by)


def fresh_metadata(embedder: str, dimension: int, loader: str) -> models.Payload:
    """Of a collection that is empty: a random name, and whose vectors it is for."""
    whose = {EMBEDDER: embedder, LOADER: loader, DIMENSION: dimension}
    return {MADE: uuid4().hex, FILLED: False, **whose}


def _options(server: QdrantServer, metadata: models.Payload) -> dict[str, Any]:
    dense = models.VectorParams(
        size=metadata[DIMENSION],
        distance=models.Distance.COSINE,
        on_disk=server.on_disk or server.quantization != "none",
    )
    sparse = models.SparseVectorParams(index=models.SparseIndexParams(on_disk=server.on_disk))
    return {
        "vectors_config": {"text": dense, "context": dense},
        "sparse_vectors_config": {"lexical": sparse},
        "hnsw_config": models.HnswConfigDiff(m=0, payload_m=_PAYLOAD_M),
        "quantization_config": _quantization(server),
        "shard_number": server.shards,
        "replication_factor": server.replicas,
        "write_consistency_factor": server.write_consistency,
        # Conditions beside the owner are tested on the owner's points alone and need no index.
        "strict_mode_config": models.StrictModeConfig(enabled=False),
        "metadata": metadata,
    }


def _quantization(server: QdrantServer) -> models.QuantizationConfig | None:
    match server.quantization:
        case "scalar":
            scalar = models.ScalarQuantizationConfig(
                type=models.ScalarType.INT8, quantile=0.99, always_ram=True
            )
            return models.ScalarQuantization(scalar=scalar)
        case "binary":
            return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
        case _:
            return None
