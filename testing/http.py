"""A small HTTP/1.1 server protocol, in which a test decides about every byte that is written.

Written by hand because a server library hides what this double is for: where a write ends, a body that is
cut, a connection that stays open. A request also takes far less CPU than in what is benchmarked against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MAX_HEAD = 64 * 1024
"""Bytes of request line and headers, as most servers allow."""

_REASONS = {status.value: status.phrase for status in HTTPStatus} | {529: "Site is overloaded"}


@dataclass(slots=True)
class Incoming:
    """A request as it came over the wire."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    close: bool


Answer = Callable[[Incoming, "Connection"], Coroutine[Any, Any, None] | None]
"""Answers at once (None) or by a coroutine, which is cancelled when the client hangs up."""


class Connection(asyncio.Protocol):
    """One client connection: parses requests one after another, writes what the answer says."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._buffer = bytearray()
        self._head: tuple[str, str, list[tuple[str, str]], int, int] | None = None
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._busy = False
        self._close = False
        self._chunked = False
        self.lost = False
        self.on_lost: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the answer in progress and tell whoever asked."""
        self.lost = True
        if self._busy and self.on_lost is not None:
            self.on_lost()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Collect bytes; while an answer is in progress they wait."""
        self._buffer += data
        if not self._busy:
            self._advance()

    def _advance(self) -> None:
        while not self._busy and not self.lost:
            incoming = self._take()
            if incoming is None:
                return
            self._busy, self._close = True, incoming.close
            work = self._answer(incoming, self)
            if work is not None:
                self._task = asyncio.ensure_future(work)

    def _take(self) -> Incoming | None:
        """The next whole request out of the buffer, or None."""
        if self._head is None:
            self._head = self._read_head()
            if self._head is None:
                return None
        method, target, headers, start, length = self._head
        if length < 0:
            decoded = dechunk(self._buffer, start)
            if decoded is None:
                return None
            body, end = decoded
        else:
            end = start + length
            if len(self._buffer) < end:
                return None
            body = bytes(self._buffer[start:end])
        del self._buffer[:end]
        self._head = None
        close = any(name == "connection" and value.lower() == "close" for name, value in headers)
        return Incoming(method, target, headers, body, close)

    def _read_head(self) -> tuple[str, str, list[tuple[str, str]], int, int] | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                self.cut()
            return None
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        try:
            method, target, _ = lines[0].split(" ")
            headers = [
                (name.lower(), value.strip()) for name, value in (line.split(":", 1) for line in lines[1:])
            ]
        except ValueError:
            self.cut()
            return None
        length = 0
        for name, value in headers:
            if name == "content-length":
                length = int(value)
            elif name == "transfer-encoding" and "chunked" in value.lower():
                length = -1
            elif name == "expect":
                self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return method, target, headers, end + 4, length

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self.lost:
            self._transport.write(data)

    def head(self, status: int, headers: Mapping[str, str], *, length: int | None = None) -> None:
        """Write the status line and headers; without a length the body is chunked."""
        self._write(self._head_bytes(status, headers, length))

    def _head_bytes(self, status: int, headers: Mapping[str, str], length: int | None) -> bytes:
        self._chunked = length is None
        framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}", framing]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if self._close:
            lines.append("connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def send(self, data: bytes) -> None:
        """Write a part of the body, in a chunk of its own where the body is chunked."""
        self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def send_all(self, parts: list[bytes]) -> None:
        """Write several parts at once, each in a chunk of its own."""
        self._write(b"".join([b"%x\r\n%b\r\n" % (len(part), part) for part in parts]))

    def whole(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Write a complete response."""
        self._write(self._head_bytes(status, headers, len(body)) + body)
        self.end()

    def end(self) -> None:
        """End the response and turn to the next request."""
        if self._chunked:
            self._write(b"0\r\n\r\n")
        self._busy, self._chunked, self._task, self.on_lost = False, False, None, None
        if self._transport is None or self.lost:
            return
        if self._close:
            self._transport.close()
        elif self._buffer:
            asyncio.get_running_loop().call_soon(self._advance)

    def cut(self) -> None:
        """Close the connection, without an end of the body; what was written still goes out."""
        self._busy, self.on_lost = False, None
        if self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()


def dechunk(buffer: bytearray, start: int) -> tuple[bytes, int] | None:
    """The chunked body that begins at `start` and the offset after it, None if it is not whole yet."""
    parts: list[bytes] = []
    at = start
    while True:
        line = buffer.find(b"\r\n", at)
        if line < 0:
            return None
        size = int(buffer[at:line].split(b";")[0], 16)
        if len(buffer) < line + 4 + size:
            return None
        if size == 0:
            return b"".join(parts), line + 4
        parts.append(bytes(buffer[line + 2 : line + 2 + size]))
        at = line + 4 + size
