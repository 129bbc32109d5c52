"""`hearth migrate`: a memory moves to other stores, from files to servers or back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hearth.gateway.commands.acts import doer
from hearth.gateway.commands.options import Json, Place
from hearth.gateway.commands.output import FAILED, counted, err, fail, note, say, say_json

if TYPE_CHECKING:
    from hearth.memory.events.copying import Copied, Watch
    from hearth.memory.events.sql_log import SqlLog
    from hearth.memory.migrating import Installation, Migrated

_LOADING = "Loading"
"""The first stage: the program's own modules take seconds."""
_OPENING = "Loading the embedder and opening long-term memory"

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

    Stop its gateways and workers first. The source stays as it is, but for the act that is written down in
    it; nothing may have been started on the target before. What was interrupted goes on when the command is
    called again.

    Example: hearth migrate files.yaml servers.yaml
    """
    from hearth.memory.errors import HearthError

    try:
        with progress() as watch:
            here, there = installation(source), installation(target)
            done = asyncio.run(_migrated(here, there, watch))
        _show(done, here, as_json=as_json)
        if index and not done.copied.differences:
            with progress(_OPENING) as watch:
                asyncio.run(_filled(there, sum(done.copied.kinds.values()), watch))
    except HearthError as error:
        fail(error)
    if done.copied.differences:
        raise typer.Exit(FAILED)
    if not index:
        note("Long-term memory is filled once a worker runs; until then recall finds less than there is.")


def installation(path: Path) -> Installation:
    """The memory of a configuration, or of a data folder with Hearth's own settings."""
    from hearth.gateway.commands.settings import load_to_open
    from hearth.gateway.servers import servers_of
    from hearth.memory.migrating import Installation
    from hearth.memory.opening import Servers

    if path.is_dir():
        return Installation(home=path, spool=path / "spool", servers=Servers())
    hearth = load_to_open(path).hearth
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
        by=doer(),
    )


async def _filled(there: Installation, events: int, watch: Watch) -> None:
    from hearth.memory.migrating import fill

    await fill(there, events, watch)


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
def progress(first: str = _LOADING) -> Iterator[Watch]:
    """A bar on a terminal; elsewhere a line as each stage begins, `first` before all, and at each tenth."""
    if not err.is_terminal:
        lines = _Lines()
        lines.watch(first, 0, 0)
        yield lines.watch
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(_said(first, 0, 0), total=None)

        def watch(stage: str, done: int, total: int) -> None:
            said = _said(stage, done, total)
            progress.update(task, description=said, completed=done, total=total or None)

        yield watch


class _Lines:
    """What a bar would show, in few lines."""

    def __init__(self) -> None:
        self._last = ("", -1)

    def watch(self, stage: str, done: int, total: int) -> None:
        """Print it if it says more than the last line by a tenth of the whole."""
        now = (stage, done * 10 // total if total else 0)
        if now != self._last:
            note(_said(stage, done, total))
            self._last = now


def _said(stage: str, done: int, total: int) -> str:
    return f"{stage}: {done:,} of {total:,}" if total else f"{stage} …"


def _show(done: Migrated, source: Installation, *, as_json: bool) -> None:
    copied = done.copied
    if as_json:
        say_json(_document(copied) | {"left_in_spool": done.spooled})
    else:
        events = sum(copied.kinds.values())
        say(f"{counted(events, 'event')}, {copied.redacted} of them redacted, digest {copied.digest[:16]}")
        say("everything was compared and is the same" if not copied.differences else "NOT the same:")
        for one in copied.differences:
            say(f"  {one}")
    if done.spooled:
        note(f"{done.spooled} captures stay in {source.spool}: this program can't read them", style="yellow")


def _document(copied: Copied) -> dict[str, object]:
    import msgspec

    document: dict[str, object] = msgspec.to_builtins(copied)
    return document
