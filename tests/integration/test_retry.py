"""`hearth retry` by its configuration: what was set aside is handled once more."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from hearth.gateway.cli import app
from hearth.memory.clock import SystemClock
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.opening import Servers, open_memory, open_worker
from tests.events import memory

PLAIN = "hearth.testing.embedder:plain"


@pytest.fixture(name="config")
def _config(tmp_path: Path) -> Path:
    """An installation in files whose one memory was set aside, before the index had it."""
    path = tmp_path / "files.yaml"
    settings = {"data_dir": str(tmp_path / "files"), "embedder": PLAIN, "keyless": True}
    path.write_text(yaml.safe_dump({"hearth": settings}))
    asyncio.run(_set_aside(tmp_path / "files"))
    return path


async def _set_aside(folder: Path) -> None:
    log = SqliteLog(folder / "log.db", clock=SystemClock())
    await log.start()
    await log.append([memory("My bicycle is in the cellar.")])
    (event,) = await log.read()
    lease = await log.lease("index", 0, owner="embedded", seconds=1)
    assert lease is not None
    await log.advance(lease, seq=event.seq)
    await log.park("index", event, "boom")
    await log.close()


def retry(config: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["retry", "--config", str(config), *options], env={"COLUMNS": "300"})


async def _indexed(folder: Path) -> int:
    async with open_worker(folder, embedder=PLAIN, servers=Servers()) as opened:
        return await opened.stores.long_term.count("acme/alice")


def test_what_was_set_aside_is_in_the_index_afterwards(config: Path, tmp_path: Path) -> None:
    """And a second call finds nothing to do."""
    assert asyncio.run(_indexed(tmp_path / "files")) == 0
    done = retry(config)
    assert (done.exit_code, done.stdout) == (0, "1 event handled, 0 still set aside\n")
    assert json.loads(retry(config, "--json").stdout) == {"handled": 0, "left": 0}
    assert asyncio.run(_indexed(tmp_path / "files")) == 1


def test_what_fails_again_is_exit_code_1(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event stays set aside."""

    async def refused(*_: object) -> None:
        raise ValueError("can't embed that")

    monkeypatch.setattr("hearth.memory.projectors.IndexProjector.handle", refused)
    for _ in range(2):
        done = retry(config, "--json")
        assert (done.exit_code, json.loads(done.stdout)) == (1, {"handled": 0, "left": 1})


def test_a_folder_in_use_is_refused(config: Path, tmp_path: Path) -> None:
    """A gateway with its own stores has to be stopped first, and the message says who has them."""

    async def tried() -> Result:
        async with open_memory(tmp_path / "files", embedder=PLAIN):
            return await asyncio.to_thread(retry, config)

    done = asyncio.run(tried())
    assert done.exit_code == 1
    assert "in use" in done.output
