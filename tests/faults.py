"""A TCP relay in front of a real server that a test makes slow, silent, refusing or gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

Mode = Literal["pass", "slow", "hang", "refuse", "cut"]


class Relay:
    """Passes bytes between clients and `target`, a (host, port) or the path of a Unix socket.

    `mode` may be changed at any time: `slow` holds each answer back for `delay` seconds, `hang` passes
    nothing on, `refuse` ends new connections at once and old ones too, `cut` ends each in its next answer.
    """

    def __init__(self, target: tuple[str, int] | str) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._open: set[asyncio.StreamWriter] = set()
        self._mode: Mode = "pass"
        self.delay = 2.0
        self.port = 0

    @property
    def mode(self) -> Mode:
        """What becomes of the bytes."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        if mode == "refuse":
            self._loop.call_soon_threadsafe(self._end_all)

    def start(self) -> None:
        """Listen on a free port."""
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def stop(self) -> None:
        """End every connection."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _close(self) -> None:
        self._server.close()
        self._mode = "refuse"
        self._end_all()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        await asyncio.gather(*tasks, return_exceptions=True)

    def _end_all(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "refuse":
            writer.transport.abort()
            return
        try:
            answers, questions = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        both = (writer, questions)
        self._open.update(both)
        try:
            await asyncio.gather(
                self._pass(reader, questions, both, "asks"),
                self._pass(answers, writer, both, "answers"),
            )
        finally:
            self._open.difference_update(both)
            for one in both:
                one.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, str):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection(*self._target)

    async def _pass(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, ...],
        side: str,
    ) -> None:
        with suppress(OSError):
            while chunk := await source.read(1 << 16):
                if self._mode == "slow" and side == "answers":
                    await asyncio.sleep(self.delay)
                while self._mode == "hang":  # noqa: ASYNC110 (set from another thread)
                    await asyncio.sleep(0.02)
                if self._mode == "cut" and side == "answers":
                    target.write(chunk[: len(chunk) // 2])
                    break
                target.write(chunk)
                await target.drain()
        for one in both:
            one.close()


@contextmanager
def relay(target: tuple[str, int] | str) -> Iterator[Relay]:
    """A relay that listens, until the end."""
    one = Relay(target)
    one.start()
    try:
        yield one
    finally:
        one.stop()
