"""Connections to a PostgreSQL server: a bounded pool on threads, none of which waits for ever."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolTimeout

from hearth.memory.addresses import without_secrets
from hearth.memory.errors import BadInput, LogUnavailable
from hearth.memory.events.postgres import Connection

T = TypeVar("T")
logger = logging.getLogger(__name__)

CONNECT_SECONDS = 3
"""For a new connection; PostgreSQL's client takes no less than 2."""
FREE_SECONDS = 1.0
"""For one that is free, a new one included."""
STUCK_SECONDS = 5.0
"""After so long without an answer a connection is cut, so that its thread is free again."""
IDLE_SECONDS = 300.0
"""After so long unused a connection beyond the first is closed."""

_WATCH_SECONDS = 0.5


class Watchdog:
    """Cuts connections that were lent for a time and whose server has not answered by its end."""

    def __init__(self) -> None:
        self._lent: dict[int, float] = {}
        self._change = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hearth-postgres-watch", daemon=True)
        self._thread.start()

    @contextmanager
    def limit(self, connection: Connection, seconds: float) -> Iterator[None]:
        """Cut the connection if the body takes longer."""
        descriptor = connection.fileno()
        with self._change:
            self._lent[descriptor] = time.monotonic() + seconds
        try:
            yield
        finally:
            with self._change:
                self._lent.pop(descriptor, None)

    def close(self) -> None:
        """Watch no more."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_WATCH_SECONDS):
            now = time.monotonic()
            with self._change:
                for descriptor in [one for one, end in self._lent.items() if end < now]:
                    del self._lent[descriptor]
                    _cut(descriptor)


def _cut(descriptor: int) -> None:
    """Shut the socket below the client library, whose wait then ends with an error."""
    logger.warning("a connection to PostgreSQL is cut: the server does not answer")
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as twin:
        twin.shutdown(socket.SHUT_RDWR)


class PostgresPool:
    """Runs work on threads, each with a connection of its own. Start it and close it on an event loop.

    At most `size` connections. What waits for a thread and is cancelled is never begun.
    """

    def __init__(
        self,
        url: str,
        *,
        size: int,
        settings: dict[str, str],
        name: str = "hearth",
        seconds: float | None = None,
    ) -> None:
        """`settings` are the server's own, such as `search_path`, for every connection; by `name` the server
        lists it. `seconds`: how long work may take, `STUCK_SECONDS` unless it is known to be long.
        """
        self._connections: ConnectionPool[Connection] = ConnectionPool(
            url,
            min_size=0,
            max_size=size,
            timeout=FREE_SECONDS,
            max_idle=IDLE_SECONDS,
            num_workers=1,
            reconnect_timeout=0,
            kwargs={
                "autocommit": True,
                "connect_timeout": CONNECT_SECONDS,
                "application_name": name,
                "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
            },
            connection_class=Connection,
            configure=Connection.prepare,
            open=False,
        )
        self._size = size
        self._seconds = seconds
        self._watchdog: Watchdog | None = None
        self._threads: ThreadPoolExecutor | None = None

    def open(self) -> None:
        """Begin; no connection is made yet."""
        self._watchdog = Watchdog()
        self._threads = ThreadPoolExecutor(self._size, thread_name_prefix="hearth-postgres")
        self._connections.open()

    def close(self) -> None:
        """End the work under way and hang up. Blocks."""
        if self._threads is not None and self._watchdog is not None:
            self._threads.shutdown(cancel_futures=True)
            self._connections.close()
            self._watchdog.close()
        self._threads = self._watchdog = None

    async def run(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns for a connection. Raises LogUnavailable where there is none, or none that
        answers in time.
        """
        if self._threads is None:
            raise LogUnavailable("the event log is not open")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.call, work)

    def call(self, work: Callable[[Connection], T]) -> T:
        """`run` on the caller's own thread."""
        watchdog = self._watchdog
        if watchdog is None:
            raise LogUnavailable("the event log is closed")
        with (
            translated(),
            self._connections.connection() as connection,
            watchdog.limit(connection, self._seconds or STUCK_SECONDS),
        ):
            return work(connection)


@contextmanager
def translated() -> Iterator[None]:
    """Turn the client library's errors into LogUnavailable, ids that PostgreSQL can't hold into BadInput."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise BadInput("event", error.object, "ids that are valid Unicode") from error
    except errors.DataError as error:
        raise BadInput("event", str(error), "ids without NUL characters") from error
    except PoolTimeout as error:
        raise LogUnavailable(
            "the event log's server can't be reached, or all connections are busy"
        ) from error
    except psycopg.Error as error:
        raise LogUnavailable(f"the event log's server: {error}") from error


def check_address(url: str) -> None:
    """Raises BadInput for what PostgreSQL's own library can't read, which no waiting would mend."""
    try:
        read = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        said = str(error).strip().replace(url, "it")
        said = said.partition(": ")[0] if "percent" in said else said  # that may be of the password
        expected = f"an address that PostgreSQL can read ({said})"
        raise BadInput("postgres_url", without_secrets(url), expected) from None
    if url.partition("?")[0].count("@") > 1 and "@" in f"{read.get('host')}{read.get('dbname')}":
        expected = "`@` and `/` of the password written as %40 and %2F"
        raise BadInput("postgres_url", without_secrets(url), expected)
