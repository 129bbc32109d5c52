"""The records of a JSON file, one at a time: the elements of an array, or values that follow one another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Final

from hearth.memory.errors import BadInput

DEPTH: Final = 100
"""Most levels of a record: the formats have fewer than twenty."""
_CHUNK: Final = 1 << 16
_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_STRING: Final = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_INSIDE: Final = re.compile(rb"[{}\[\]]|" + _STRING + rb'|"', re.DOTALL)
_SCALAR: Final = re.compile(_STRING + rb"|[^\s{}\[\],:\"]+", re.DOTALL)
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_SHOWN: Final = 60


def records(file: IO[bytes], *, record_bytes: int, most: int) -> Iterator[tuple[int, bytes]]:
    """Each record with its number from 1, as JSON that is not nested too deeply.

    Raises BadInput that names the record for a file that is no JSON, for a record that is too large and for
    more than `most` of them.
    """
    scan = _Scan(file, record_bytes)
    found = scan.elements() if scan.look() == b"[" else scan.values()
    for number, raw in enumerate(found, 1):
        if number > most:
            raise BadInput(f"record {number}", number, f"at most {most} records in a file")
        yield number, paired(raw) if b"\\u" in raw else raw


def paired(raw: bytes) -> bytes:
    """The JSON with U+FFFD for each lone half of a surrogate pair, which no UTF-8 can hold."""
    return _ESCAPE.sub(lambda found: b"\\ufffd" if found[1] else found[0], raw)


class _Scan:
    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file, self._limit = file, limit
        self._held = b""
        self._at = 0
        self._number = 0

    def look(self) -> bytes:
        """The next byte that is no white space, which is not taken; empty at the end."""
        while True:
            found = _SPACE.match(self._held, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._held):
                return self._held[self._at : self._at + 1]
            if not self._more():
                return b""

    def elements(self) -> Iterator[bytes]:
        """The elements of the array that begins here, which is all of the file."""
        self._at += 1
        if self.look() == b"]":
            self._at += 1
        else:
            yield self._value()
            while (next_ := self.look()) == b",":
                self._at += 1
                yield self._value()
            self._expect(next_, b"]")
        if self.look():
            self._refuse("nothing behind the array")

    def values(self) -> Iterator[bytes]:
        """Values that follow one another, as JSON lines do."""
        while self.look():
            yield self._value()

    def _value(self) -> bytes:
        self._number += 1
        first = self.look()
        self._held, self._at = self._held[self._at :], 0
        if first in (b"{", b"["):
            return self._nested()
        while True:
            found = _SCALAR.match(self._held, 0)
            if found is not None and (found.end() < len(self._held) or not self._more()):
                self._at = found.end()
                return found[0]
            if found is None and not self._more():
                self._refuse("a JSON value")

    def _nested(self) -> bytes:
        depth, at = 0, 0
        while True:
            found = _INSIDE.search(self._held, at)
            if found is None or found[0] == b'"':
                at = len(self._held) if found is None else found.start()
                if not self._more():
                    self._refuse("the record's end: the file was cut off")
                continue
            at = found.end()
            if found[0] in (b"{", b"["):
                depth += 1
                if depth > DEPTH:
                    self._refuse(f"a record of at most {DEPTH} levels")
            elif found[0] in (b"}", b"]"):
                depth -= 1
                if depth == 0:
                    self._at = at
                    return self._held[:at]

    def _more(self) -> bool:
        if len(self._held) - self._at > self._limit:
            self._refuse(f"a record of at most {self._limit} bytes")
        chunk = self._file.read(max(_CHUNK, len(self._held) - self._at))
        self._held, self._at = self._held[self._at :] + chunk, 0
        return bool(chunk)

    def _expect(self, found: bytes, wanted: bytes) -> None:
        if found != wanted:
            self._refuse("a comma or the array's end" if found else "the array's end: the file was cut off")
        self._at += 1

    def _refuse(self, expected: str) -> None:
        shown = self._held[self._at : self._at + _SHOWN].decode(errors="replace")
        raise BadInput(f"record {max(self._number, 1)}", shown, expected)
