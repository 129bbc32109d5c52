"""What commands do on the machine itself, to all tenants: each is in the log, with who called it."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from hearth.gateway.cli import app
from hearth.gateway.commands.acts import doer
from hearth.gateway.commands.reference import commands
from hearth.memory.clock import SystemClock
from hearth.memory.encryption.master import new_master_key
from hearth.memory.events.sqlite_log import SqliteLog
from tests.events import memory

ACTS: list[tuple[list[str], str, str]] = [
    (["switch", "read", "--everyone", "--config", "{here}"], "switch", "everyone read"),
    (["retry", "--config", "{here}"], "retry", ""),
    (
        ["archive", "--before", "2026-01-01", "--tenant", "acme", "--config", "{here}"],
        *("archive", "before 2026-01-01T00:00:00+00:00, acme"),
    ),
    (["encryption", "apply", "--config", "{here}"], "encrypt", ""),
    (["encryption", "rotate", "--data-keys", "--config", "{here}"], "rotate", "data keys"),
    (["replay", "{here}", "--only", "views"], "replay", "views"),
    (["migrate", "{here}", "{there}", "--no-index"], "migrate", "to {log}"),
]
"""Commands that change something on the machine itself, with what their acts say."""
CHANGES_NOTHING = {
    *("serve", "worker", "demo", "check-config", "tune", "simulate"),
    *("key new", "encryption new-key", "encryption status"),
}
"""What else has no gateway's address: they run, show, or make something that is only printed."""


def call(*words: str) -> Result:
    done = CliRunner().invoke(app, words, env={"COLUMNS": "300"})
    assert done.exit_code == 0, done.output
    return done


def shown(config: Path, *options: str) -> list[dict[str, Any]]:
    told = call("events", "--installation", "--json", "--config", str(config), *options)
    items: list[dict[str, Any]] = json.loads(told.stdout)["items"]
    return items


def written(path: Path) -> Path:
    """A configuration of memory in files, encrypted."""
    hearth = {
        "data_dir": str(path.with_suffix("")),
        "keyless": True,
        "embedder": "hearth.testing.embedder:plain",
    }
    path.write_text(
        yaml.safe_dump({"hearth": {**hearth, "encryption": {"keys": ["os.environ/ACTS_MASTER"]}}})
    )
    return path


def test_each_command_that_works_without_a_gateway_is_an_act_or_changes_nothing() -> None:
    """A new one has to join those of the next test; all others go by a gateway, whose routes tell."""
    alone = {" ".join(path) for path, one in commands() if "url" not in {given.name for given in one.params}}
    acting = {words[0] if words[0] != "encryption" else " ".join(words[:2]) for words, *_ in ACTS}
    assert alone | {"switch"} == acting | CHANGES_NOTHING
    assert not acting & CHANGES_NOTHING


def test_each_act_tells_what_and_who(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order in which they were begun, also those that waited for the log, and in the copy of it."""
    monkeypatch.setenv("ACTS_MASTER", new_master_key())
    here, there = written(tmp_path / "here.yaml"), written(tmp_path / "there.yaml")
    asyncio.run(_fill(tmp_path / "here" / "log.db"))
    names = {"here": str(here), "there": str(there), "log": str(tmp_path / "there" / "log.db")}
    for words, _, _ in ACTS:
        call(*(word.format(**names) for word in words))
    acts = [(one["payload"]["act"], one["payload"]["about"]) for one in shown(there)]
    told = [(act, about.format(**names)) for _, act, about in ACTS]
    # what waited beside the log is let in by the first that empties the spool, with its own time
    assert acts == [*told[1:-1], told[0], told[-1]]
    assert acts == [(one["payload"]["act"], one["payload"]["about"]) for one in shown(here)]
    by = {one["payload"]["by"] for one in shown(there)}
    assert by == {doer()}
    assert doer().endswith(f"@{socket.gethostname()}")
    (last,) = shown(there, "--latest", "--limit", "1", "--since", "2026-01-01T00:00:00Z")
    assert last["payload"]["act"] == "migrate"


async def _fill(path: Path) -> None:
    log = SqliteLog(path, clock=SystemClock())
    await log.start()
    await log.append([memory("My bicycle is in the cellar.")])
    await log.close()


def test_the_installation_s_acts_are_read_while_a_gateway_has_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what has no log yet, or asks for what is a tenant's, is told so."""
    monkeypatch.setenv("ACTS_MASTER", new_master_key())
    config = written(tmp_path / "here.yaml")
    run, asked = CliRunner(), ["events", "--installation", "--config", str(config)]
    none = run.invoke(app, asked, env={"COLUMNS": "300"})
    assert (none.exit_code, "there is no event log" in none.output) == (1, True)
    for words in (["--tag", "x"], ["--user", "alice"], ["--follow"], ["--since", "soon"]):
        assert run.invoke(app, [*asked, *words]).exit_code == 2

    async def beside() -> list[dict[str, Any]]:
        log = SqliteLog(tmp_path / "here" / "log.db", clock=SystemClock())
        await log.start()
        found = await asyncio.to_thread(shown, config)
        await log.close()
        return found

    assert asyncio.run(beside()) == []
