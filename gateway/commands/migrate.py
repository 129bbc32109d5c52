"""`hearth migrate`: a memory moves to other stores, from files to servers or back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hearth.gateway.commands.options import Json, Place
from hearth.gateway.commands.output import FAILED, err, fail, note, say, say_json

if TYPE_CHECKING:
    from hearth.memory.events.copying import Copied, Watch
    from hearth.memory.events.sql_log import SqlLog
    from hearth.memory.migrating import Installation, Migrated

_NewPlace = Annotated[
    Path,
    typer.Argument(
        help="The configuration that it is to have, or a data folder that exists.", show_default=False
    ),
]


def migrate(
    source: Place,
    target: _NewPlace,
    index: Annotated[
        bool, typer.Option("--index/--no-index", help="Fill long-term memory, or leave it to the worker.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Copy a memory to other stores and compare both; exit code 1 if they are not the same.

    Stop its gateways and workers first. The source stays as it is. What was interrupted goes on when the
    command is called again.

    Example: hearth migrate files.yaml servers.yaml
    """
    from hearth.memory.errors import HearthError
    from hearth.memory.migrating import fill

    here, there = installation(source), installation(target)
    try:
        with progress() as watch:
            done = asyncio.run(_migrated(here, there, watch))
        _show(done, here, as_json=as_json)
        if index and not done.copied.differences:
            with progress() as watch:
                total = sum(done.copied.kinds.values())
                asyncio.run(fill(there, lambda count: watch("Indexing", count, total)))
    except HearthError as error:
        fail(error)
    if done.copied.differences:
        raise typer.Exit(FAILED)
    if not index:
        note("Long-term memory is filled once a worker runs; until then recall finds less than there is.")


def installation(path: Path) -> Installation:
    """The memory of a configuration, or of a data folder with Hearth's own settings."""
    from hearth.gateway.commands.settings import load
    from hearth.gateway.servers import servers_of
    from hearth.memory.migrating import Installation
    from hearth.memory.opening import Servers

    if path.is_dir():
        return Installation(home=path, spool=path / "spool", servers=Servers())
    hearth = load(path).hearth
    return Installation(
        home=hearth.data_dir,
        spool=hearth.spool_dir,
        servers=servers_of(hearth),
        embedder=hearth.embedder,
        durability=hearth.durability,
    )


async def _migrated(here: Installation, there: Installation, watch: Watch) -> Migrated:
    from hearth.gateway.switchboard import switchboard
    from hearth.memory.migrating import migrate

    return await migrate(
        here,
        there,
        watch=watch,
        also=partial(_move_switches, here.home, there.home),
        gate=partial(switchboard, folder=here.home),
    )


async def _move_switches(old: Path, new: Path, source: SqlLog, target: SqlLog) -> None:
    """What was switched off stays off."""
    from hearth.gateway.switchboard import switchboard

    found, board = switchboard(source, old), switchboard(target, new)
    await found.look()
    now = found.current()
    await board.set(now.everyone)
    for tenant, mode in now.tenants.items():
        await board.set(mode, tenant=tenant)
    for key, mode in now.keys.items():
        await board.set(mode, key=key)


@contextmanager
def progress() -> Iterator[Watch]:
    """A bar on a terminal, nothing elsewhere."""
    if not err.is_terminal:
        yield lambda *_: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task("Opening", total=None)
        yield lambda stage, done, total: progress.update(task, description=stage, completed=done, total=total)


def _show(done: Migrated, source: Installation, *, as_json: bool) -> None:
    copied = done.copied
    if as_json:
        say_json(_document(copied) | {"left_in_spool": done.spooled})
    else:
        events = sum(copied.kinds.values())
        say(
            f"{events} events of {copied.rows['users']} users, {copied.redacted} of them redacted,"
            f" digest {copied.digest[:16]}"
        )
        say("everything was compared and is the same" if not copied.differences else "NOT the same:")
        for one in copied.differences:
            say(f"  {one}")
    if done.spooled:
        note(f"{done.spooled} captures stay in {source.spool}: this program can't read them", style="yellow")


def _document(copied: Copied) -> dict[str, object]:
    import msgspec

    document: dict[str, object] = msgspec.to_builtins(copied)
    return document
