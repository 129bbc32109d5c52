"""Keys of users for the suites of stores, which know no log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from hearth.memory.encryption.master import MasterKeys
from hearth.memory.errors import StoreUnavailable
from hearth.memory.events.data_keys import DataKey, Keyring
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.events.store_keys import LogKeys
from tests.events import ManualClock, step

MASTERS = MasterKeys([b"0123456789abcdef" * 2])
"""A master key."""


class _Everybodys(LogKeys):
    """Of whoever is asked for: the log learns of who it does not know."""

    async def newest(self, tenant: str, user: str, generation: int) -> DataKey:
        try:
            return await super().newest(tenant, user, generation)
        except StoreUnavailable:
            await self._log.append([msgspec.structs.replace(step(user=user), tenant=tenant)])
            return await super().newest(tenant, user, generation)


@asynccontextmanager
async def keys_of_everybody(folder: Path) -> AsyncIterator[LogKeys]:
    """Keys in a log of its own in the folder."""
    log = SqliteLog(folder / "keys.db", clock=ManualClock(), durability="process", masters=MASTERS)
    await log.start()
    assert isinstance(log.keys, Keyring)
    yield _Everybodys(log, log.keys)
    await log.close()
