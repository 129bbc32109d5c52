"""The runtime switches of memory, which outlive a restart and reach every process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from hearth.config.switches import AWAITED, UNREAD, Mode, ModeName, Switches, effective_mode
from hearth.memory.errors import LogUnavailable

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""Between two looks at switches that another gateway may set."""
NOTE = "switches"


class Switchboard(Protocol):
    """The switches of all processes of this gateway."""

    def current(self) -> Switches:
        """The switches as far as this process knows; where they can't be known nothing is recalled."""
        ...

    def admits(self, tenant: str, key: str) -> bool:
        """Whether anything may be captured of that key's calls, as far as this process knows."""
        ...

    async def set(self, mode: ModeName, *, tenant: str = "", key: str = "") -> Switches:
        """Switch all (neither named), one tenant or one key; `on` lifts that switch again."""
        ...

    async def look(self) -> None:
        """Know what others set until now. Raises LogUnavailable."""
        ...

    async def follow(self) -> None:
        """Look for what others set, until cancelled."""
        ...


class FileSwitchboard:
    """In a file of the data folder: read at each change of it, and set atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = -1
        self._switches = Switches()

    def current(self) -> Switches:
        """See `Switchboard.current`. A file that can't be read turns memory off, and is logged."""
        try:
            stamp = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return Switches()
        if stamp != self._stamp:
            self._switches = self._read()
            self._stamp = stamp
        return self._switches

    async def set(self, mode: ModeName, *, tenant: str = "", key: str = "") -> Switches:
        """See `Switchboard.set`."""
        return await asyncio.to_thread(self._set, mode, tenant, key)

    def admits(self, tenant: str, key: str) -> bool:
        """See `Switchboard.admits`."""
        return _admits(self.current(), tenant, key)

    async def look(self) -> None:
        """Each call looks at the file. Raises LogUnavailable while that can't be read."""
        if self.current().unread:
            raise LogUnavailable(f"the switches in {self._path} can't be read")

    async def follow(self) -> None:
        """Nothing to do."""

    def _set(self, mode: ModeName, tenant: str, key: str) -> Switches:
        new = _switched(self.current(), mode, tenant, key)
        draft = self._path.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(new))
        draft.replace(self._path)
        return new

    def _read(self) -> Switches:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Switches)
        except (OSError, msgspec.MsgspecError):
            logger.exception("the switches in %s can't be read; memory is off for all", self._path)
            return UNREAD


@runtime_checkable
class Notes(Protocol):
    """A log that keeps notes for all processes."""

    async def note(self, name: str) -> bytes:
        """The note of that name; empty where there is none. Raises LogUnavailable."""
        ...

    async def change_note(self, name: str, change: Callable[[bytes], bytes]) -> bytes:
        """Replace it by what `change` makes of it. Raises LogUnavailable."""
        ...


class SharedSwitchboard:
    """In the database of the event log: every gateway over it follows within `LOOK_SECONDS`.

    Until it was read once nothing is recalled, and what is captured waits; when it can't be read any more the
    last state holds.
    """

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._switches = AWAITED

    def current(self) -> Switches:
        """See `Switchboard.current`."""
        return self._switches

    def admits(self, tenant: str, key: str) -> bool:
        """See `Switchboard.admits`."""
        return _admits(self._switches, tenant, key)

    async def set(self, mode: ModeName, *, tenant: str = "", key: str = "") -> Switches:
        """See `Switchboard.set`. Raises LogUnavailable."""

        def change(body: bytes) -> bytes:
            return msgspec.json.encode(_switched(_decoded(body), mode, tenant, key))

        self._switches = _decoded(await self._notes.change_note(NOTE, change))
        return self._switches

    async def look(self) -> None:
        """See `Switchboard.look`."""
        self._switches = _decoded(await self._notes.note(NOTE))

    async def follow(self) -> None:
        """See `Switchboard.follow`."""
        while True:
            try:
                await self.look()
            except LogUnavailable as error:
                logger.warning("the switches can't be read; the last ones hold: %s", error)
            await asyncio.sleep(LOOK_SECONDS)


def _admits(switches: Switches, tenant: str, key: str) -> bool:
    decided = effective_mode(switches, tenant=tenant, key=key, default=Mode.ON, ceiling=Mode.ON)
    return Mode.CAPTURE in decided.mode


def switchboard(log: object, folder: Path) -> Switchboard:
    """The switches of gateways with this log and data folder."""
    return SharedSwitchboard(log) if isinstance(log, Notes) else FileSwitchboard(folder / "switches.json")


def _decoded(body: bytes) -> Switches:
    return msgspec.json.decode(body, type=Switches) if body else Switches()


def _switched(now: Switches, mode: ModeName, tenant: str, key: str) -> Switches:
    now = msgspec.structs.replace(now, unread=False)
    if tenant:
        return msgspec.structs.replace(now, tenants=_with(now.tenants, tenant, mode))
    if key:
        return msgspec.structs.replace(now, keys=_with(now.keys, key, mode))
    return msgspec.structs.replace(now, everyone=mode)


def _with(modes: object, name: str, mode: ModeName) -> dict[str, ModeName]:
    changed = {**msgspec.convert(modes, dict[str, ModeName]), name: mode}
    if mode == "on":
        del changed[name]
    return changed
