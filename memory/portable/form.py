"""The file that holds all of a user: JSON lines, a header, one event each, a footer. See docs/export.md."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Final, Literal, NoReturn

import msgspec

from hearth.memory.errors import BadInput, UnknownEvent
from hearth.memory.events.codec import decode_line
from hearth.memory.events.kinds import Event
from hearth.memory.portable.checks import check

FORMAT: Final = "hearth-export"
VERSION: Final = 1
_SHOWN: Final = 120
"""Characters of a refused line that are shown again."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much one import may be."""

    file_bytes: int = 2_000_000_000
    """Of the file as it is sent."""
    unpacked_bytes: int = 8_000_000_000
    """Of what an archive holds, as it is unpacked."""
    ratio: int = 200
    """How many times its packed size something in an archive may be."""
    record_bytes: int = 64_000_000
    """Of one line, conversation or other record."""
    records: int = 1_000_000
    """In one file."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    format: Literal["hearth-export"]
    version: int
    tenant: str
    user: str
    """Whose memory it is; of which tenant. Where it comes in, the key decides that anew."""
    exported_at: datetime


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """What a whole file holds."""

    events: int
    kinds: dict[str, int]
    sha256: str
    """Of every byte before the last line, hexadecimal."""


class Footer(msgspec.Struct, frozen=True, kw_only=True):
    """The last line: without it the file was cut off."""

    end: Totals


class Writer:
    """Makes the lines of a file, and counts them for the last one."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._kinds: Counter[str] = Counter()

    def header(self, header: Header) -> bytes:
        """The first line."""
        return self._line(msgspec.json.encode(header) + b"\n")

    def event(self, kind: str, line: bytes) -> bytes:
        """A line of `codec.encode_line`."""
        self._kinds[kind] += 1
        return self._line(line)

    def footer(self) -> bytes:
        """The last line."""
        totals = Totals(
            events=self._kinds.total(),
            kinds=dict(sorted(self._kinds.items())),
            sha256=self._digest.hexdigest(),
        )
        return msgspec.json.encode(Footer(end=totals)) + b"\n"

    def _line(self, line: bytes) -> bytes:
        self._digest.update(line)
        return line


class Reading:
    """Reads a file of this form from its start. Every event it gives was checked; BadInput names the line."""

    def __init__(self, file: IO[bytes], limits: Limits, now: datetime) -> None:
        """Raises BadInput for what is no such file, or of a version that this program does not know."""
        file.seek(0)
        self._file, self._limits, self._now = file, limits, now
        self._digest = hashlib.sha256()
        self._number = 0
        self.header = self._header()

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        """The events, each with the bytes of its line. That the file is whole is known at the end alone."""
        kinds: Counter[str] = Counter()
        ids: set[bytes] = set()
        while line := self._next():
            if line.startswith(b'{"end":'):
                self._check_end(line, kinds)
                return
            event = self._event(line)
            id = bytes.fromhex(event.id)
            if id in ids:
                self._refuse(event.id, "an event id that no line before has", "event.id")
            if len(ids) >= self._limits.records:
                self._refuse(len(ids) + 1, f"at most {self._limits.records} events in a file")
            ids.add(id)
            kinds[event.kind] += 1
            self._digest.update(line)
            yield len(line), event
        self._number += 1
        self._refuse("the end of the file", "the footer: the file was cut off")

    def _next(self) -> bytes:
        line = self._file.readline(self._limits.record_bytes + 1)
        if line:
            self._number += 1
        if len(line) > self._limits.record_bytes:
            self._refuse(_begin(line), f"a line of at most {self._limits.record_bytes} bytes")
        return line

    def _header(self) -> Header:
        line = self._next()
        try:
            header = msgspec.json.decode(line, type=Header)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError) as error:
            self._refuse(_begin(line), f"the header of an export ({error})")
        if header.version != VERSION:
            self._refuse(header.version, f"{VERSION}: an older or newer Hearth wrote this file", "version")
        self._digest.update(line)
        return header

    def _event(self, line: bytes) -> Event:
        if not line.endswith(b"\n"):
            self._refuse(_begin(line), "a whole line: the file was cut off")
        try:
            event = decode_line(line)
            check(event, self._now)
        except BadInput as error:
            self._refuse(error.value, error.expected, error.field)
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
            self._refuse(_begin(line), f"an event ({error})")
        except (RecursionError, OverflowError) as error:
            self._refuse(_begin(line), f"an event that is not nested without end ({error})")
        except UnknownEvent as error:
            self._refuse(error.kind, f"an event that this program can read ({error.reason})", "event.payload")
        return event

    def _check_end(self, line: bytes, kinds: Counter[str]) -> None:
        try:
            end = msgspec.json.decode(line, type=Footer).end
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._refuse(_begin(line), f"the footer ({error})")
        if (end.events, end.kinds) != (kinds.total(), dict(kinds)):
            self._refuse(end.events, f"the {kinds.total()} events that the file has", "end.events")
        if end.sha256 != self._digest.hexdigest():
            self._refuse(end.sha256, "the digest of the lines before: the file was changed", "end.sha256")
        if self._next():
            self._refuse("more", "nothing behind the footer")

    def _refuse(self, value: object, expected: str, field: str = "") -> NoReturn:
        where = f"line {self._number}"
        raise BadInput(f"{where}: {field}" if field else where, value, expected)


def _begin(line: bytes) -> str:
    return line[:_SHOWN].decode(errors="replace")
