"""One life of the vector child: the process, the socket to it, and the calls that wait for its replies."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from typing import cast

import msgspec

from hearth.memory.errors import BadInput, StoreUnavailable
from hearth.memory.stores import vector_child_wire as wire

_log = logging.getLogger(__name__)

PART = "vector child"
START_SECONDS = 150.0
"""For a child that hangs: one that ends is missed at once. A busy machine takes a minute for an embedder."""
STOP_SECONDS = 10.0
_MODULE = "hearth.memory.stores.vector_child_main"


class Link(asyncio.Protocol):
    """A running child. Made by `open_link`; of no use once `closed` is set."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        loop = asyncio.get_running_loop()
        self.process = process
        self.closed = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[wire.Reply]] = {wire.READY: loop.create_future()}
        self._ready = self._waiting[wire.READY]
        self._last = wire.READY
        self._buffer = bytearray()

    @property
    def waiting(self) -> int:
        """Calls that have no reply yet."""
        return len(self._waiting)

    def next_id(self) -> int:
        """An id for the next ask."""
        self._last += 1
        return self._last

    def post(self, ask: wire.Ask) -> asyncio.Future[wire.Reply]:
        """Send the ask; the future holds its reply. Cancelling the future drops the reply.

        Raises BadInput for text that is no Unicode, StoreUnavailable if the child is gone.
        """
        try:
            raw = wire.frame(ask)
        except UnicodeEncodeError as error:
            raise BadInput("text", error.object, "text without lone surrogates") from error
        if self._transport is None or self.closed.is_set():
            raise StoreUnavailable(PART, "it is not running")
        future: asyncio.Future[wire.Reply] = asyncio.get_running_loop().create_future()
        self._waiting[ask.id] = future
        self._transport.write(raw)
        return future

    def drop(self, ask: int) -> None:
        """Nobody waits for that reply any more."""
        self._waiting.pop(ask, None)

    async def ready(self, what: wire.Open) -> wire.State:
        """Tell the child what to open; its state once it has. Raises StoreUnavailable if it can't."""
        if self._transport is not None:
            self._transport.write(wire.frame(what))
        reply = await self._ready
        if reply.fault:
            raise StoreUnavailable(PART, reply.error)
        return msgspec.json.decode(reply.body, type=wire.State)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop. uvloop's transports are no instances of asyncio's class."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self._buffer += data
        for raw in wire.frames(self._buffer):
            reply = wire.decode_reply(raw)
            future = self._waiting.pop(reply.id, None)
            if future is not None and not future.done():
                future.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio: the child ended. Every waiting call fails."""
        error = StoreUnavailable(PART, "it ended while the call was under way")
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
                future.exception()  # marks it as seen: its caller may be gone
        self._waiting.clear()
        self.closed.set()

    async def close(self) -> None:
        """Hang up, give the child time to flush, kill it after `STOP_SECONDS`."""
        if self._transport is not None:
            self._transport.close()
        await self.closed.wait()
        try:
            await asyncio.to_thread(self.process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            _log.warning("the vector child did not end by itself and is killed")
            self.process.kill()
            await asyncio.to_thread(self.process.wait)


async def open_link(what: wire.Open) -> tuple[Link, wire.State]:
    """Start a child that opens `what` and wait until it is ready. Raises StoreUnavailable."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        process = spawn(theirs)
    try:
        loop = asyncio.get_running_loop()
        _, link = await loop.create_connection(lambda: Link(process), sock=ours)
    except BaseException:
        ours.close()
        process.kill()
        process.wait()
        raise
    try:
        return link, await asyncio.wait_for(link.ready(what), START_SECONDS)
    except TimeoutError as error:
        process.kill()
        await link.close()
        raise StoreUnavailable(PART, f"it was not ready after {START_SECONDS:.0f} s") from error
    except BaseException:
        await link.close()
        raise


def spawn(theirs: socket.socket) -> subprocess.Popen[bytes]:
    """Start a child that answers on that socket. Raises StoreUnavailable.

    From the event loop's own thread: Linux ends the child with the thread that started it.
    """
    command = [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno())]
    try:
        return subprocess.Popen(  # noqa: S603 (no shell, our own module)
            command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL
        )
    except OSError as error:
        raise StoreUnavailable(PART, f"it can't be started: {error}") from error
