"""Server-sent events: reading a whole body of them, and holding back the one that ends a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

_UNDECIDED_BYTES = 256
"""An unfinished event longer than this has shown what it is."""


_GAPS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class Event(NamedTuple):
    """One event of a stream."""

    name: str
    """Its `event:` field; empty where it has none."""
    data: bytes
    """Its `data:` lines, joined by line breaks."""
    whole: bool
    """False for an event that the end of the body cut off."""


def events(raw: bytes) -> Iterator[Event]:
    """The events of a body, in order; comments and events without data are left out.

    Lines may end in CR LF, LF or CR. A client dispatches nothing before the empty line, so what has none at
    the body's end is marked as not whole.
    """
    name = ""
    data: list[bytes] = []
    body = raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for line in body.split(b"\n"):
        if not line:
            if data:
                yield Event(name, b"\n".join(data), True)
            name, data = "", []
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    if data or name:
        yield Event(name, b"\n".join(data), False)


class Gate:
    """Lets a stream's bytes pass at once, all but its terminal event and what follows it.

    `feed` returns what may go out, `held` is what is kept; together they are the bytes that came in. An
    unfinished event at a chunk's end is kept until its kind shows, which delays nobody: a client can't
    dispatch it either.
    """

    def __init__(self, terminal: Callable[[bytes], int]) -> None:
        self._terminal = terminal
        self._pending = b""
        self._undecided = b""

    @property
    def held(self) -> bytes:
        """The bytes kept back so far."""
        return self._undecided + self._pending

    @property
    def closed(self) -> bool:
        """Whether the terminal event has begun."""
        return bool(self._pending)

    @property
    def complete(self) -> bool:
        """Whether the terminal event is there as a whole, so that the reply can be read."""
        return any(gap in self._pending for gap in _GAPS)

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes of the stream and return those that may pass now."""
        if self.closed:
            self._pending += chunk
            return b""
        data = self._undecided + chunk
        start = self._terminal(data)
        if start >= 0:
            self._undecided, self._pending = b"", data[start:]
            return data[:start]
        cut = _last_event_start(data)
        if len(data) - cut > _UNDECIDED_BYTES:
            cut = len(data)
        self._undecided = data[cut:]
        return data[:cut]


def _last_event_start(data: bytes) -> int:
    """Where the unfinished event at the end of `data` starts; its length where all are finished."""
    ends = [data.rfind(gap) + len(gap) for gap in _GAPS if gap in data]
    return max(ends, default=0)
