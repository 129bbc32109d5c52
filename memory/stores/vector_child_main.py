"""The vector child's process: `python -m …vector_child_main SOCKET`, which then brings all else."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from hearth.memory.embed.load import load_embedder
from hearth.memory.errors import HearthError
from hearth.memory.stores import vector_child_wire as wire
from hearth.memory.stores.succession import Succession
from hearth.memory.stores.terms import TermStats
from hearth.memory.stores.vector_child_service import Service

_PR_SET_PDEATHSIG = 1
_STOP_SECONDS = 5.0
_CHUNK = 1 << 18


def serve(connection: socket.socket) -> int:
    """Open what the first message says and answer until the parent's end closes; returns the exit status."""
    send, messages = _Sender(connection), _messages(connection)
    if (first := next(messages, None)) is None:
        return 0
    what = wire.decode_open(first)
    try:
        service = Service(_succession(what), send, clean_after=what.clean_after)
    except HearthError as error:
        send(wire.Reply(id=wire.READY, fault="store", error=str(error)))
        return 1
    _one_core_for_matrices()
    service.start()
    gc.collect()
    gc.freeze()
    send(wire.Reply(id=wire.READY, body=wire.encode_json(service.state())))
    for raw in messages:
        service.accept(wire.decode_ask(raw))
    service.stop(seconds=_STOP_SECONDS)
    return 0


def _one_core_for_matrices() -> None:
    # A search's matrices are too small to gain anything by a second thread of BLAS, and after each OpenBLAS's
    # spins for some 40 ms, which was half of this process's time.
    threadpool_limits(1, user_api="blas")


def _succession(what: wire.Open) -> Succession:
    embedder = load_embedder(what.embedder)
    # Each form imports a library of its own, which takes half a second and 50 MB.
    if what.qdrant is None:
        from hearth.memory.stores.edge_fresh import settle
        from hearth.memory.stores.edge_succession import EdgeSuccession

        settle(Path(what.directory))
        return EdgeSuccession(Path(what.directory), embedder, what.embedder)
    from hearth.memory.stores.qdrant_succession import QdrantSuccession

    terms = shared_terms(what.postgres_url, what.qdrant.connections)
    return QdrantSuccession(what.qdrant, Path(what.directory), embedder, what.embedder, terms=terms)


def shared_terms(url: str, connections: int) -> Callable[[], TermStats] | None:
    """Makes the statistics that several processes share; None: each keeps its own."""
    if not url:
        return None
    from hearth.memory.stores.postgres_terms import PostgresTerms

    return partial(PostgresTerms, url, connections=connections)


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


def _messages(connection: socket.socket) -> Iterator[bytes]:
    buffer = bytearray()
    while chunk := _receive(connection):
        buffer += chunk
        yield from wire.frames(buffer)


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
    logging.getLogger("httpx").setLevel(logging.WARNING)
    _bind_to_parent()
    status = serve(socket.socket(fileno=int(sys.argv[1])))
    logging.shutdown()
    # Not sys.exit: a thread of the embedder that is late must not keep the process alive.
    os._exit(status)


if __name__ == "__main__":
    main()
