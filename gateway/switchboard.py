"""The runtime switches of memory, kept in a file so that they outlive a restart and reach every process."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from hearth.config.switches import ModeName, Switches

logger = logging.getLogger(__name__)


class Switchboard:
    """Reads the switches at each change of the file; sets one atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = -1
        self._switches = Switches()

    def current(self) -> Switches:
        """The switches as the file says now; a file that can't be read turns memory off, and is logged."""
        try:
            stamp = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return Switches()
        if stamp != self._stamp:
            self._switches = self._read()
            self._stamp = stamp
        return self._switches

    def set(self, mode: ModeName, *, tenant: str = "", key: str = "") -> Switches:
        """Switch all (neither named), one tenant or one key; `on` lifts that switch again."""
        now = self.current()
        if tenant:
            new = msgspec.structs.replace(now, tenants=_with(now.tenants, tenant, mode))
        elif key:
            new = msgspec.structs.replace(now, keys=_with(now.keys, key, mode))
        else:
            new = msgspec.structs.replace(now, everyone=mode)
        draft = self._path.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode(new))
        draft.replace(self._path)
        return new

    def _read(self) -> Switches:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Switches)
        except (OSError, msgspec.MsgspecError):
            logger.exception("the switches in %s can't be read; memory is off for all", self._path)
            return Switches(everyone="off")


def _with(modes: object, name: str, mode: ModeName) -> dict[str, ModeName]:
    changed = {**msgspec.convert(modes, dict[str, ModeName]), name: mode}
    if mode == "on":
        del changed[name]
    return changed
