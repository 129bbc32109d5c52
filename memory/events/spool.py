"""The spool: where events wait on disk while the log can't take them."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from uuid import uuid4

from hearth.memory.encryption.master import NAME_CHARACTERS, MasterKeyMissing, MasterKeys
from hearth.memory.errors import HearthError, PrivateSession, StaleGeneration, Unavailable, UnknownEvent
from hearth.memory.events.codec import decode_line, encode_line
from hearth.memory.events.database import sync_directory
from hearth.memory.events.kinds import UNKNOWN, Event
from hearth.memory.events.late import placed
from hearth.memory.ports import Admission, EventLog

logger = logging.getLogger(__name__)

_BATCH = 100
_SUFFIX = ".spool"
_ENCRYPTED = b"~"
"""What an encrypted line begins with; no JSON does. The master key's name follows."""
_PLACE = ("spool",)


class Spool:
    """Files of events, one a process run, on a path that outlives the process.

    A file is locked while its process writes to it, so that several gateways can share a directory and
    each file is drained by one. Use it from any thread.
    """

    def __init__(
        self, directory: Path, admission: Admission | None = None, *, masters: MasterKeys | None = None
    ) -> None:
        """`admission`: of what was captured while the log could not be asked; None: all of it.

        `masters`: what the lines are encrypted by, since the users' keys are in the log; None: nothing.
        """
        self._directory = directory
        self._admission = admission
        self._masters = masters
        self._mutex = threading.Lock()
        self._file: IO[bytes] | None = None
        self._counted: dict[Path, tuple[int, int]] = {}
        """Size and events of each file when it was last looked at."""

    def write(self, events: Sequence[Event]) -> None:
        """Add the events and sync them to the disk. Blocks: call it in a thread. Raises OSError.

        After a failure the next write goes to a file of its own, so that what was cut off stays at an end.
        """
        lines = b"".join(self._line(event) for event in events)
        with self._mutex:
            file = self._file or self._new_file()
            try:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                self._close()
                raise

    async def drain(self, log: EventLog) -> int:
        """Bring what is spooled to the log, and remove each file once the log has all of it.

        Returns how many events the log took, had, or no longer wants (an erased user's). A line that was
        cut off at a file's end was never acknowledged and is passed over, and so is what is not admitted.
        Raises LogUnavailable, and then keeps what was not taken. Events that the log refuses for another
        reason stay in their file, logged.
        """
        drained = 0
        for path in await asyncio.to_thread(self._rotate):
            drained += await self._drain_file(path, log)
        return drained

    def pending(self) -> int:
        """How many events wait. Blocks for a reading of the files that changed since the last look."""
        counted = {}
        for path in self._paths():
            with suppress(FileNotFoundError):  # drained meanwhile
                size = path.stat().st_size
                known = self._counted.get(path, (-1, 0))
                counted[path] = known if known[0] == size else (size, path.read_bytes().count(b"\n"))
        self._counted = counted
        return sum(events for _, events in counted.values())

    def left_behind(self) -> int:
        """How many events wait in files that no process has, so that none will bring them. Blocks."""
        left = 0
        for path in self._paths():
            if (file := _claim(path)) is not None:
                with file:
                    left += file.read().count(b"\n")
        return left

    def close(self) -> None:
        """Let go of the file in use; what is in it waits for the next `drain`."""
        with self._mutex:
            self._close()

    # -- inside ------------------------------------------------------------------------------------------

    def _line(self, event: Event) -> bytes:
        line = encode_line(event)
        if self._masters is None:
            return line
        name = self._masters.newest.encode()
        return _ENCRYPTED + name + b64encode(self._masters.wrap(line, _PLACE)) + b"\n"

    def _plain(self, line: bytes) -> bytes:
        """Raises MasterKeyMissing, DecryptionError."""
        if not line.startswith(_ENCRYPTED):
            return line
        if self._masters is None:
            raise MasterKeyMissing("it is encrypted: name its master key in hearth.encryption.keys")
        at = len(_ENCRYPTED) + NAME_CHARACTERS
        name = line[len(_ENCRYPTED) : at].decode(errors="replace")
        return self._masters.unwrap(name, b64decode(line[at:]), _PLACE)

    def _read(self, file: IO[bytes], path: Path) -> tuple[list[Event], bool]:
        """The file's events, and whether every complete line was one."""
        events: list[Event] = []
        whole = True
        for number, line in enumerate(_lines(file), start=1):
            try:
                events.append(decode_line(self._plain(line)))
            except (UnknownEvent, MasterKeyMissing, ValueError):
                whole = False
                logger.exception("line %d of the spool file %s can't be read; the file is kept", number, path)
        return events, whole

    def _new_file(self) -> IO[bytes]:
        self._directory.mkdir(parents=True, exist_ok=True)
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{os.getpid()}-{uuid4().hex[:8]}{_SUFFIX}"
        self._file = (self._directory / name).open("ab")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        sync_directory(self._directory)
        return self._file

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                logger.warning(
                    "a spool file could not be closed; its last line may be cut off", exc_info=True
                )

    def _rotate(self) -> list[Path]:
        """Stop adding to the file in use; the files to drain, oldest first."""
        self.close()
        return self._paths()

    def _paths(self) -> list[Path]:
        return sorted(self._directory.glob(f"*{_SUFFIX}"))

    async def _drain_file(self, path: Path, log: EventLog) -> int:
        file = await asyncio.to_thread(_claim, path)
        if file is None:
            return 0
        with file:
            events, whole = await asyncio.to_thread(self._read, file, path)
            taken, refused = 0, 0
            for start in range(0, len(events), _BATCH):
                batch = [event for event in events[start : start + _BATCH] if event.generation != UNKNOWN]
                kept_back = await _hand_over(batch, log)
                taken, refused = taken + len(batch) - kept_back, refused + kept_back
            late = [event for event in events if event.generation == UNKNOWN]
            for event in await self._admitted(late):  # one by one: a later one continues an earlier one
                kept_back = await _hand_over_one(await placed(event, log), log)
                taken, refused = taken + 1 - kept_back, refused + kept_back
            if whole and not refused:
                await asyncio.to_thread(self._remove, path)
        return taken

    async def _admitted(self, late: Sequence[Event]) -> Sequence[Event]:
        if self._admission is None or not late:
            return late
        await self._admission.look()
        admitted = map(self._admission.admitted, late)
        return [event for event in admitted if event is not None]

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        sync_directory(self._directory)


def _claim(path: Path) -> IO[bytes] | None:
    """The file, locked for this drain; None where its process still writes or another one drains it."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    return (line for line in file.read().split(b"\n")[:-1] if line)


async def _hand_over(events: Sequence[Event], log: EventLog) -> int:
    """Append the events, one by one where they don't go together; returns how many the log refused."""
    try:
        await log.append(events)
    except Unavailable:
        raise
    except HearthError:
        return sum([await _hand_over_one(event, log) for event in events])
    return 0


async def _hand_over_one(event: Event, log: EventLog) -> int:
    try:
        await log.append([event])
    except StaleGeneration:
        logger.info("a spooled event of an erased user was dropped")
    except PrivateSession:
        logger.info("a spooled call of a private session was dropped")
    except Unavailable:
        raise
    except HearthError:
        logger.exception("the log refused the spooled event %s; its file is kept", event.id)
        return 1
    return 0
