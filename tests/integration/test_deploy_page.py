"""What the page on deployment shows is run with the real programs, or read by those that it is for."""

from __future__ import annotations

import asyncio
import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import kubernetes_validate
import promql_parser
import pytest
import yaml
from redis import Redis, RedisError
from typer.main import get_command

from hearth.gateway.cli import app
from hearth.gateway.server import DRAIN_SECONDS
from hearth.memory import Scope, open_memory
from hearth.memory.clock import SystemClock
from hearth.memory.events.kinds import Event
from hearth.memory.events.postgres_log import PostgresLog
from hearth.memory.ports import EventLog
from tests.events import erase, forget_memory, memory, step
from tests.servers import postgres_program, postgres_server, valkey
from tests.unit.test_chart import LEAST, rendered_as

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
UNITS = sorted((ROOT / "deploy" / "systemd").iterdir())
ALICE = Scope(tenant="acme", user="alice")


def lines(program: str) -> list[str]:
    """The page's command lines that start a program."""
    return re.findall(rf"^\$ ({re.escape(program)} .*)$", PAGE, re.MULTILINE)


def run(line: str, folder: Path, **environment: str) -> None:
    """Run a line of the page, with PostgreSQL's programs where they are."""
    path = f"{Path(postgres_program('psql')).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line], cwd=folder, env={"PATH": path, **environment}, check=True
    )


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresLog]:
    log = PostgresLog(url, clock=SystemClock())
    await log.start()
    try:
        yield log
    finally:
        await log.close()


async def everything(log: EventLog) -> list[Event]:
    return await log.read(limit=10_000)


async def test_a_dump_restored_into_a_new_server_is_the_same_log(tmp_path: Path) -> None:
    """By the page's own lines: every event with its place, and a log that goes on from there, by a role that
    may do no more than that.
    """
    now = SystemClock().now()
    with postgres_server() as url, postgres_server() as other:
        async with opened(url) as log:
            await log.append([step(at=now - timedelta(seconds=n), user=f"user{n % 7}") for n in range(50)])
            await log.append([memory("Allergic to kiwi.", id="kiwi", at=now), step(at=now, user="gone")])
            await log.append([forget_memory("kiwi", at=now), erase(2, user="gone", at=now)])
            kept = await everything(log)
            (dump,) = lines("pg_dump")
            await asyncio.to_thread(run, dump, tmp_path, POSTGRES_URL=url)
        role = "CREATE ROLE hearth LOGIN"
        await asyncio.to_thread(run, f'psql "$ADMIN_URL" --command="{role}"', tmp_path, ADMIN_URL=other)
        restored = other.replace("postgres@", "hearth@").replace("/postgres?", "/hearth_restored?")
        for line in (*lines("createdb"), *lines("pg_restore")):
            await asyncio.to_thread(run, line, tmp_path, ADMIN_URL=other, RESTORED_URL=restored)
        async with opened(restored) as log:
            assert len(kept) >= 50
            assert await everything(log) == kept
            await log.append([step(at=now)])
            assert len(await everything(log)) == len(kept) + 1


async def test_a_copy_of_the_folder_is_the_same_memory(tmp_path: Path) -> None:
    """By the page's own line, while nothing has it open: the same events, and the same recall.

    The folder is reached by a link, as systemd has it.
    """
    private, live, copy = tmp_path / "private", tmp_path / "live", tmp_path / "copy"
    private.mkdir()
    live.symlink_to(private)
    async with open_memory(live) as engine:
        await engine.capture(ALICE, "My sister Ludmila lives in Valparaíso.", "Noted.")
        await engine.drain()
        kept = await everything(engine.log)
    (line,) = lines("cp --archive")
    line = line.replace("/var/lib/hearth", str(live)).replace("/backup/hearth", str(copy))
    await asyncio.to_thread(run, line, tmp_path)
    shutil.rmtree(private)
    async with open_memory(copy) as engine:
        assert await everything(engine.log) == kept
        found = await engine.recall(ALICE, "Where does my sister live?")
        assert "Valparaíso" in found.block.text


def test_two_passwords_of_valkey_work_until_the_old_one_is_taken_away() -> None:
    """The two commands of the page, between which gateways are restarted."""
    added, removed = re.findall(r"`(ACL SETUSER default [<>]\w+)`", PAGE)
    with valkey() as server:
        with Redis(port=server.port) as first:
            first.config_set("requirepass", "OLD")
        with Redis(port=server.port, password="OLD") as admin:
            admin.execute_command(*added.split())
            with Redis(port=server.port, password="NEW") as new:
                assert admin.ping()
                assert new.ping()
                new.execute_command(*removed.split())
        with (
            Redis(port=server.port, password="OLD") as old,
            pytest.raises(RedisError, match="invalid username-password"),
        ):
            old.ping()


def test_every_option_of_compose_exists() -> None:
    """As its own help has it, and the containers are called as Compose names them."""
    compose = Path(sys.executable).with_name("docker-compose")
    for line in lines("docker compose"):
        words = shlex.split(line)[2:]
        shown = subprocess.run(
            [compose, words[0], "--help"], capture_output=True, text=True, check=True
        ).stdout
        for word in words[1:]:
            assert not word.startswith("-") or re.search(rf"{word.partition('=')[0]}\b", shown), line
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    named = {name for line in lines("docker stop") for name in re.findall(r"hearth-(\w+)-\d", line)}
    assert services["name"] == "hearth"
    assert named == {"gateway"}


def blocks() -> list[Any]:
    """The page's YAML."""
    found = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return [yaml.safe_load(text) for text in found]


def test_the_autoscaler_by_lag_finds_its_workers_and_its_gauge() -> None:
    """It is one to Kubernetes, scales what the chart makes, and asks for what the adapter offers."""
    adapter, scaler = blocks()
    kubernetes_validate.validate(scaler, "1.37", strict=True)
    target = scaler["spec"]["scaleTargetRef"]
    made = {(m["apiVersion"], m["kind"], m["metadata"]["name"]) for m in rendered_as("hearth", LEAST)}
    assert (target["apiVersion"], target["kind"], target["name"]) in made
    (rule,) = adapter["rules"]["external"]
    assert scaler["spec"]["metrics"][0]["external"]["metric"]["name"] == rule["name"]["as"]
    query = promql_parser.parse(rule["metricsQuery"])
    assert isinstance(query, promql_parser.AggregateExpr)
    assert isinstance(query.expr, promql_parser.VectorSelector)
    assert query.expr.name == rule["seriesQuery"] == "hearth_worker_lag_events"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_what_there_is_and_lets_it_end(path: Path) -> None:
    """Command and options exist, its folder is its own, and it is killed no sooner than it may end."""
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path, encoding="utf-8")
    service = unit["Service"]
    program, command, *options = service["ExecStart"].split()
    assert Path(program).name == "hearth"
    known = {option for one in get_command(app).commands[command].params for option in one.opts}  # type: ignore[attr-defined]
    assert {word for word in options if word.startswith("--")} <= known
    folder = f"/var/lib/{service['StateDirectory']}"
    assert service["Environment"] == f"HEARTH_DATA_DIR={folder}"
    assert service["WorkingDirectory"] == folder
    drain = 15 if command == "serve" else 0
    assert int(service["TimeoutStopSec"]) > drain + DRAIN_SECONDS + 10
    assert service["DynamicUser"] == "yes"
