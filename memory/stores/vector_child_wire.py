"""What the vector child and its parent say to each other: length-prefixed msgpack over a socket pair."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from hearth.memory.ports import Indexed, MemoryFilter
from hearth.memory.stores.qdrant_server import QdrantServer

_LENGTH = struct.Struct(">I")

READY = 0
"""The id of the one reply that nobody asked for: the child is ready, or says why it can't be."""


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """The first message to the child: what it is to open. Not in its arguments, which everybody can read."""

    directory: str
    """Folder of the collection or, with a server, of what stands beside it."""
    embedder: str
    """What `load_embedder` takes."""
    clean_after: float
    """Seconds at most until files are rewritten without what was removed."""
    qdrant: QdrantServer | None = None
    """The server that has the collection; None: it is embedded."""
    postgres_url: str = ""
    """Where the term statistics of a collection in a server are shared; empty: in a file of this process."""


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="ask", omit_defaults=True):
    id: int
    """Made by the parent, unique while the child lives; the reply carries it."""


class Search(_Message, frozen=True, kw_only=True, tag="search"):
    """A SearchRequest with its times on the clock that both processes share."""

    owners: tuple[str, ...]
    text: str
    lexical: str = ""
    vector: bytes = b""
    """The query's embedding, if the parent has it, by `pack_embedding`."""
    dense: bool = True
    """False: by words alone, since the child is too busy to embed."""
    limit: int
    where: MemoryFilter = MemoryFilter()
    embed_by: float
    """On CLOCK_MONOTONIC: an embedding that is not there then is not waited for."""
    deadline: float
    """On CLOCK_MONOTONIC: afterwards the search is not even begun."""


class Embed(_Message, frozen=True, kw_only=True, tag="embed"):
    """Queries to embed, nothing to search."""

    texts: tuple[str, ...]


class Get(_Message, frozen=True, kw_only=True, tag="get"):
    """Read records by id."""

    owner: str
    ids: tuple[str, ...]


class Walk(_Message, frozen=True, kw_only=True, tag="walk"):
    """Read some of an owner's records, and where the next ones begin."""

    owner: str
    after: str
    limit: int


class Vectors(_Message, frozen=True, kw_only=True, tag="vectors"):
    """Read records' `text` vectors by id, for work that nobody waits for."""

    owner: str
    ids: tuple[str, ...]


class Count(_Message, frozen=True, kw_only=True, tag="count"):
    """Count an owner's records."""

    owner: str


class Report(_Message, frozen=True, kw_only=True, tag="report"):
    """Ask for the child's state."""


class Upsert(_Message, frozen=True, kw_only=True, tag="upsert"):
    """Embed and store records, one after another."""

    records: tuple[Indexed, ...]


class Delete(_Message, frozen=True, kw_only=True, tag="delete"):
    """Remove records by id."""

    owner: str
    ids: tuple[str, ...]


class Clear(_Message, frozen=True, kw_only=True, tag="clear"):
    """Remove all of a user."""

    tenant: str
    user: str


class Purge(_Message, frozen=True, kw_only=True, tag="purge"):
    """Write files anew without what was removed, if they hold any of it."""


class Flush(_Message, frozen=True, kw_only=True, tag="flush"):
    """Make every write before this one durable."""


class Rebuilt(_Message, frozen=True, kw_only=True, tag="rebuilt"):
    """The collection holds what the log says."""

    collection: str
    """As `unfilled` named it."""


Read: TypeAlias = Search | Embed | Get | Walk | Count | Report
Write: TypeAlias = Upsert | Delete | Clear | Purge | Flush | Rebuilt
Background: TypeAlias = Write | Vectors
"""What goes in order, one after another, behind every `Read`."""
Ask: TypeAlias = Read | Background

Fault = Literal["", "input", "store", "late"]


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What the child knows of itself."""

    pid: int
    embedder: str
    dimension: int
    readers: int
    """Searches that it answers at once."""
    points: int
    unfilled: str
    """Names the collection while it is not filled from the log; empty afterwards."""
    set_aside: str
    """Folder of a shard that did not open, or empty."""
    unclean: bool
    """True while files hold bytes of what was removed, until they are written anew."""
    problem: str
    """Why the server can't be reached or refuses; empty if it answers, and where there is none."""
    answering: str
    """The embedder whose collection is asked: another one's while this one's is not filled."""
    refused: bool = False
    """Whether the server refuses what it is asked, such as for its key."""
    wanted: int = 0
    """Records that the collection before has, while it answers: as many as this one will have."""
    seconds_left: float | None = None
    """Until it is filled, at the pace so far; None where that can't be told."""

    @property
    def needs_rebuild(self) -> bool:
        """True while the collection is not filled from the log."""
        return bool(self.unfilled)


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one Ask."""

    id: int
    body: bytes = b""
    """JSON of what was asked for, vectors by `packed.pack_vectors`; empty for a write."""
    vector: bytes = b""
    """The query's embedding, where the child made it, by `pack_embedding`."""
    missing: tuple[str, ...] = ()
    milliseconds: float = 0.0
    """What a search took the child, embedding included, waiting not."""
    fault: Fault = ""
    error: str = ""
    unfilled: str = ""
    """See State."""


encode = msgspec.msgpack.Encoder().encode
encode_json = msgspec.json.Encoder().encode
decode_open = msgspec.msgpack.Decoder(Open).decode
decode_ask = msgspec.msgpack.Decoder(Ask).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode


def frame(message: msgspec.Struct) -> bytes:
    """The message with its length before it. Raises UnicodeEncodeError for a lone surrogate."""
    body = encode(message)
    return _LENGTH.pack(len(body)) + body


def frames(buffer: bytearray) -> Iterator[bytes]:
    """Take every whole message out of the front of `buffer`."""
    while len(buffer) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(buffer)
        end = _LENGTH.size + length
        if len(buffer) < end:
            return
        body = bytes(memoryview(buffer)[_LENGTH.size : end])
        del buffer[:end]
        yield body
