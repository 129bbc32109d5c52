"""Fixtures that more than one suite uses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hearth.memory.events.sqlite_log import SqliteLog
from tests.events import ManualClock
from tests.servers import redis_url

__all__ = ["redis_url"]


@pytest.fixture(name="clock")
def _clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


@pytest.fixture(name="sqlite_log")
async def _sqlite_log(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteLog]:
    """An empty event log on its file."""
    log = SqliteLog(tmp_path / "log.db", clock=clock)
    await log.start()
    yield log
    await log.close()
