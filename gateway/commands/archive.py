"""`hearth archive`: old payloads leave the log's database for compressed files."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from hearth.gateway.commands.acts import write_down
from hearth.gateway.commands.options import Config, Json
from hearth.gateway.commands.output import MISUSED, fail, say, say_json, waiting

if TYPE_CHECKING:
    from hearth.config.settings import HearthSettings
    from hearth.memory.events.archiving import Archived


def archive(
    before: Annotated[
        str, typer.Option(help="Of events recorded before that day, or time with a zone.", show_default=False)
    ],
    tenants: Annotated[
        list[str], typer.Option("--tenant", help="Of this tenant; repeat for several; none: all.")
    ] = [],  # noqa: B006
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Move old payloads of the log into compressed files; they are read, forgotten and erased as before.

    Gateways and workers over servers go on meanwhile; a gateway with its own stores has to be stopped first.

    Example: hearth archive --before 2026-01-01
    """
    from hearth.gateway.commands.settings import load
    from hearth.memory.errors import HearthError

    moment = _moment(before)
    hearth = load(config).hearth
    try:
        with waiting("Archiving"):
            done = asyncio.run(_archived(hearth, moment, tenants))
    except (HearthError, OSError) as error:
        fail(error)
    if as_json:
        say_json({name: getattr(done, name) for name in done.__struct_fields__})
    else:
        taken = f"{done.before} bytes in the log, {done.after} in {done.files} files"
        say(f"{done.events} payloads moved: {taken}")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        expected = "a day such as 2026-01-01, or an ISO 8601 time with its zone"
        fail(f"--before {text}: expected {expected}", MISUSED)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


async def _archived(hearth: HearthSettings, before: datetime, tenants: list[str]) -> Archived:
    from hearth.gateway.servers import servers_of
    from hearth.memory.clock import SystemClock
    from hearth.memory.events.archiving import Archived, Archiving
    from hearth.memory.opening import opened_log, process_name

    async with opened_log(hearth.data_dir, hearth.durability, SystemClock(), servers_of(hearth)) as log:
        await write_down(log, "archive", ", ".join([f"before {before.isoformat()}", *tenants]))
        one, done = Archiving(log, owner=process_name()), Archived()
        try:
            await one.purge()
            for tenant in tenants or await log.tenants():
                done += await one.archive(tenant, before)
            await one.purge()
        finally:
            await one.release()
        if done.events:
            await log.compact()
    return done
