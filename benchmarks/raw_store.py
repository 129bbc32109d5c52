"""The vector store and nothing else, in a child process: a ready query in, the store's own answer out.

    python benchmarks/raw_store.py SOCKET...      (used by `RawStore` below)

It opens the same collection as Hearth's own child does, and is reached the same way, over socket pairs: as
many as the store answers at once. What it is asked is one batch of the three queries of a recall (nearest by
`text`, by `context`, by the words), a hundred results each, filtered by the owner: with ids and scores alone,
or with the stored records as well, without which a search is of no use to anybody. Nothing is embedded,
fused, ranked or decoded. The weights of the words come from Hearth's own statistics, beforehand (`words`).
"""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any

import msgspec
from raw_asks import Ask, RawIndex, Search, Words
from raw_edge import EdgeFiles
from raw_server import ServerCollection

from hearth.memory.ports import SearchRequest

Place = EdgeFiles | ServerCollection
"""Where a population is."""
_LENGTH = struct.Struct(">I")


class RawStore:
    """The other process, as the benchmark sees it; what the store does not answer at once waits for its turn.

    Use it as an async context manager: it runs until the end.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def __aenter__(self) -> RawStore:
        pairs = [socket.socketpair() for _ in range(self._place.connections)]
        self._process = self._spawn([theirs.fileno() for _, theirs in pairs])
        for ours, theirs in pairs:
            theirs.close()
            self._free.put_nowait(await asyncio.open_connection(sock=ours, limit=1 << 24))
        return self

    async def __aexit__(self, *_: object) -> None:
        for _connection in range(self._place.connections):
            writer = (await self._free.get())[1]
            writer.close()
            await writer.wait_closed()
        await asyncio.to_thread(self._process.wait, 60)

    async def words(self, owner: str, text: str) -> tuple[list[int], list[float]]:
        """Terms and their weights, as a recall would look them up."""
        terms, weights = await self._ask(Words(owner, text))
        return terms, weights

    async def search(self, ask: Search) -> int:
        """Results in all; they are received and not looked at."""
        return sum(map(len, await self._ask(ask)))

    def _spawn(self, descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
        command = [sys.executable, __file__, *map(str, descriptors)]
        process = subprocess.Popen(command, pass_fds=descriptors, stdin=subprocess.PIPE)
        assert process.stdin is not None
        with process.stdin as given:  # not in its arguments, which everybody can read
            given.write(msgspec.json.encode(self._place))
        return process

    async def _ask(self, ask: Ask) -> Any:
        raw = msgspec.msgpack.encode(ask)
        reader, writer = await self._free.get()
        try:
            writer.write(_LENGTH.pack(len(raw)) + raw)
            (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            return msgspec.msgpack.decode(await reader.readexactly(length))
        finally:
            self._free.put_nowait((reader, writer))


def _serve(place: Place, connections: Sequence[socket.socket]) -> None:
    with closing(place.opened()) as raw, ThreadPoolExecutor(len(connections)) as threads:
        gc.collect()
        gc.freeze()  # as in Hearth's own child: what was loaded is not searched for garbage again and again
        list(threads.map(partial(_answer, raw), connections))


def _answer(raw: RawIndex, connection: socket.socket) -> None:
    decode = msgspec.msgpack.Decoder(Ask).decode
    with connection, connection.makefile("rwb") as pipe:
        while header := pipe.read(_LENGTH.size):
            ask = decode(pipe.read(_LENGTH.unpack(header)[0]))
            answer = _weigh(raw, ask) if isinstance(ask, Words) else raw.search(ask)
            reply = msgspec.msgpack.encode(answer)
            pipe.write(_LENGTH.pack(len(reply)) + reply)
            pipe.flush()


def _weigh(raw: RawIndex, ask: Words) -> tuple[list[int], list[float]]:
    request = SearchRequest(owners=(ask.owner,), text=ask.text)
    held = raw.index.weigh(request.owners, raw.index.terms_of(request)).telling.held
    return list(held), list(held.values())


if __name__ == "__main__":
    _serve(
        msgspec.json.decode(sys.stdin.buffer.read(), type=Place),
        [socket.socket(fileno=int(descriptor)) for descriptor in sys.argv[1:]],
    )
