"""A start that fails says why in one line, and one that works keeps quiet about what means nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastapi.routing
import httpx
import pytest
import uvicorn
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from fastapi import APIRouter, FastAPI

import hearth.gateway.server as server_module
from hearth.config.settings import HearthSettings, Settings
from hearth.gateway.runtime import RUNTIME
from hearth.gateway.server import Composed, _serve, serve
from hearth.gateway.starting import SCHEDULER, StartError, late_jobs_allowed, take_routes_apart
from hearth.memory.errors import LogUnavailable
from hearth.memory.events.spool import Spool
from tests.events import step
from tests.servers import free_port

HEARTH = [sys.executable, "-m", "hearth.gateway.cli"]
START_SECONDS = 240


async def app(scope: Any, receive: Any, send: Any) -> None:
    """An app that is never asked for anything."""


def server(port: int = 0) -> uvicorn.Server:
    return uvicorn.Server(uvicorn.Config(app, port=port, lifespan="off", log_level="critical"))


@asynccontextmanager
async def failing(error: Exception) -> AsyncIterator[None]:
    """What opens the gateway, and can't."""
    raise error
    yield


@pytest.mark.parametrize(
    "error", [LogUnavailable("log.db is in use by another process"), PermissionError(13, "Permission denied")]
)
async def test_stores_that_can_not_be_opened_are_a_start_error(error: Exception) -> None:
    """What the operator must see to is a message, not a traceback."""
    with pytest.raises(StartError, match=str(error).replace("[", r"\[")):
        await _serve(server(), failing(error))


async def test_routes_are_taken_apart_in_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call finds it done: FastAPI does it by and by, while all callers wait."""
    router = APIRouter()
    router.get("/early")(lambda: "early")
    router.get("/late")(lambda: "late")
    found: list[str] = []
    plain = fastapi.routing.get_dependant

    def noted(*, path: str, **given: Any) -> Any:
        found.append(path)
        return plain(path=path, **given)

    monkeypatch.setattr(fastapi.routing, "get_dependant", noted)
    app = FastAPI()
    app.include_router(router, prefix="/v1")
    take_routes_apart(app)
    assert "/v1/late" in found
    found.clear()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://gateway") as client:
        assert (await client.get("/v1/late")).status_code == 200
    assert found == []


async def test_a_mistake_of_the_program_stays_one() -> None:
    """An error that nobody expected keeps its traceback."""
    with pytest.raises(ZeroDivisionError):
        await _serve(server(), failing(ZeroDivisionError()))


async def test_a_port_that_is_taken_while_the_gateway_loads_is_a_start_error() -> None:
    """What was opened is closed again, and the message names the address."""
    closed = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        try:
            yield
        finally:
            closed.append(True)

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"can't listen on 127.0.0.1:{port}"):
            await _serve(server(port), opened())
    assert closed == [True]


async def test_a_server_that_is_told_to_end_before_it_listens_ends() -> None:
    """A signal that comes while the gateway loads is not lost, and all is closed."""
    told, closed = server(), []

    @asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        told.should_exit = True
        yield
        closed.append(True)

    await asyncio.wait_for(_serve(told, opened()), 30)
    assert closed == [True]


@pytest.fixture
def _signals_as_they_were() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals_as_they_were")
@pytest.mark.parametrize("waiting", [0, 2])
def test_a_gateway_that_ends_says_by_its_status_whether_captures_still_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: int
) -> None:
    """0 where all is in the log, 3 where something is left in the spool for the next start."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        signal.raise_signal(signal.SIGTERM)
        yield

    monkeypatch.setattr(server_module, "compose", lambda _: Composed(app, opened()))
    monkeypatch.setattr(RUNTIME, "ending", False)  # other tests of this process go on
    settings = Settings(hearth=HearthSettings(data_dir=tmp_path))
    with closing(Spool(settings.hearth.spool_dir)) as spool:
        for _ in range(waiting):
            spool.write([step()])
    if waiting:
        with pytest.raises(SystemExit, match="3"):
            serve(settings, host="127.0.0.1", port=free_port())
    else:
        serve(settings, host="127.0.0.1", port=free_port())


def missed() -> AsyncIOScheduler:
    """A scheduler with a job that should have run a minute ago."""
    scheduler = AsyncIOScheduler()
    due = datetime.now(UTC) - timedelta(minutes=1)
    scheduler.add_job(lambda: None, "interval", seconds=300, next_run_time=due)
    scheduler.start()
    return scheduler


async def test_jobs_that_were_due_while_the_gateway_loaded_are_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """LiteLLM's scheduler warns of them at each start on a slow machine; once it runs, it is heard."""
    caplog.set_level(logging.WARNING)
    async with late_jobs_allowed():
        early = missed()
    assert caplog.records == []
    late = missed()
    async with asyncio.timeout(10):
        while not caplog.records:  # noqa: ASYNC110 (a scheduler tells nobody)
            await asyncio.sleep(0.01)
    assert [record.name for record in caplog.records] == [SCHEDULER]
    early.shutdown()
    late.shutdown()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("log.db.lock", "the data folder can't be used"),
        ("litellm.yaml", "the gateway can't start"),
        ("log.db", "the gateway can't start: the event log"),
    ],
)
def test_a_data_folder_that_can_not_be_used_is_one_line(tmp_path: Path, wrong: str, said: str) -> None:
    """Exit code 1 and no traceback, before LiteLLM is loaded or after."""
    (tmp_path / wrong).mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    done = subprocess.run(
        [*HEARTH, "serve", "--port", str(free_port())],
        env={**environ, "HEARTH_DATA_DIR": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"error: {said}")
    assert wrong in last
    assert "Traceback" not in done.stderr
