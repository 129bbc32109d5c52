"""The vector child's process: `python -m …vector_child_main SOCKET DIRECTORY EMBEDDER SECONDS`."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import socket
import sys
import threading
from pathlib import Path

from hearth.memory.embed.load import load_embedder
from hearth.memory.errors import HearthError
from hearth.memory.stores import vector_child_wire as wire
from hearth.memory.stores.cleanup import Cleanup
from hearth.memory.stores.edge_index import EdgeIndex
from hearth.memory.stores.vector_child_service import Service

_PR_SET_PDEATHSIG = 1
_STOP_SECONDS = 5.0
_CHUNK = 1 << 18


def serve(connection: socket.socket, directory: Path, embedder_spec: str, clean_after: float) -> int:
    """Answer until the parent's end closes; returns the exit status."""
    send = _Sender(connection)
    try:
        embedder = load_embedder(embedder_spec)
        index = EdgeIndex(directory, embedder=embedder.name, dimension=embedder.dimension)
    except HearthError as error:
        send(wire.Reply(id=wire.READY, fault="store", error=str(error)))
        return 1
    cleanup = Cleanup(waiting=index.collection.unclean, longest=clean_after)
    service = Service(embedder, index, send, cleanup)
    service.start()
    gc.collect()
    gc.freeze()
    send(wire.Reply(id=wire.READY, body=wire.encode_json(service.state())))
    _listen(connection, service)
    service.stop(seconds=_STOP_SECONDS)
    return 0


class _Sender:
    """Sends whole replies, whichever thread calls."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._turn = threading.Lock()

    def __call__(self, reply: wire.Reply) -> None:
        raw = wire.frame(reply)
        with self._turn:
            try:
                self._connection.sendall(raw)
            except OSError:
                # The parent is gone; the listening thread sees the same and ends the process.
                logging.getLogger(__name__).debug("nobody hears reply %s", reply.id)


def _listen(connection: socket.socket, service: Service) -> None:
    buffer = bytearray()
    while chunk := _receive(connection):
        buffer += chunk
        for raw in wire.frames(buffer):
            service.accept(wire.decode_ask(raw))


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_CHUNK)
    except ConnectionError:
        return b""


def _bind_to_parent() -> None:
    """Die with the parent, and with it alone: what stops a group of processes must let it drain first."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if number := getattr(signal, name, None):
            signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Entry of the process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s vector child: %(message)s")
    _bind_to_parent()
    descriptor, directory, embedder, clean_after = sys.argv[1:]
    connection = socket.socket(fileno=int(descriptor))
    status = serve(connection, Path(directory), embedder, float(clean_after))
    logging.shutdown()
    # Not sys.exit: a thread of the embedder that is late must not keep the process alive.
    os._exit(status)


if __name__ == "__main__":
    main()
