"""Which Qdrant server holds long-term memory, and how its collection is made."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from hearth.memory.errors import BadInput

Quantization = Literal["none", "scalar", "binary"]

PREFIX = "hearth-"
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


class QdrantServer(msgspec.Struct, frozen=True, kw_only=True):
    """An address and the options of the collection; those of one that exists already stay as they are.

    Raises BadInput for an address or a prefix that can't be one.
    """

    url: str
    """`http://` or `https://`, host, port (6333 where none is named) and, behind a proxy, a path."""
    api_key: str = ""
    prefix: str = PREFIX
    """Begins the collection's alias: letters, digits, `_`, `.` and `-`."""
    connections: int = 8
    """Searches under way at once; each has a connection."""
    shards: int | None = None
    """None leaves it to the server: one a node."""
    replicas: int | None = None
    """Copies of each shard; None leaves it to the server."""
    write_consistency: int | None = None
    """Copies that must confirm a write; None leaves it to the server."""
    on_disk: bool = False
    """Whether vectors and words stay on disk, with what is often read in the page cache."""
    quantization: Quantization = "none"
    """`scalar` keeps a quarter of a vector's bytes in memory, `binary` 1 in 32; the originals go to disk."""
    oversampling: float = 2.0
    """With quantization: so many times the candidates are looked at by their originals."""
    rescore: bool = True
    """With quantization: whether originals are looked at to find candidates; final scores are exact."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise BadInput("qdrant_url", self.address, "http:// or https://, host, port and perhaps a path")
        if self.prefix and not _PLAIN.fullmatch(self.prefix):
            raise BadInput("prefix", self.prefix, "letters, digits, _, . and -")

    @property
    def address(self) -> str:
        """The address for messages: what may be secret in it is left out."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        """Without the key."""
        return f"QdrantServer({self.address!r}, prefix={self.prefix!r})"
