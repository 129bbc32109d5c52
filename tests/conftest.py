"""Fixtures that more than one suite uses."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from uuid import uuid4

import hypothesis
import pytest
import typer.testing

from hearth.memory.events.postgres_log import PostgresLog
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.stores import vector_child_link
from tests.encrypted import MASTERS
from tests.events import ManualClock
from tests.forks import vector_child
from tests.servers import database, postgres_url, redis_url

__all__ = ["database", "postgres_url", "redis_url"]

# One authority that has signed nothing, for every process of the tests: to read those of the whole world
# takes each HTTP client 40 ms of processor time, and nobody here is called by https.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("authority.pem"))
# How long an example takes is the machine's affair.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")
# The tree of commands is made once, as in a program: it takes a third of a second.
typer.testing._get_command = cache(typer.testing._get_command)


@pytest.fixture(autouse=True)
def _vector_children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vector children are forks where many tests run, but for the tests of their process."""
    if "PYTEST_XDIST_WORKER" in os.environ and request.path.stem != "test_vector_child":
        monkeypatch.setattr(vector_child_link, "spawn", vector_child)


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


@pytest.fixture(name="encrypted_log")
async def _encrypted_log(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteLog]:
    """An empty event log on its file, whose payloads are encrypted."""
    log = SqliteLog(tmp_path / "log.db", clock=clock, masters=MASTERS)
    await log.start()
    yield log
    await log.close()


@pytest.fixture(name="postgres_log")
async def _postgres_log(postgres_url: str, clock: ManualClock) -> AsyncIterator[PostgresLog]:
    """An empty event log in a schema of its own."""
    log = PostgresLog(postgres_url, schema=f"t{uuid4().hex}", clock=clock, server_clock=clock)
    await log.start()
    yield log
    await log.close()
