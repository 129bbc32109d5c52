"""`hearth replay`: what the log says is written into fresh stores, which then replace those in use."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING, Annotated

import typer

from hearth.gateway.commands.acts import doer
from hearth.gateway.commands.migrate import installation, progress
from hearth.gateway.commands.options import Json, Place
from hearth.gateway.commands.output import MISUSED, counted, fail, say, say_json

if TYPE_CHECKING:
    from hearth.memory.events.copying import Watch
    from hearth.memory.migrating import Installation
    from hearth.memory.replaying import Part, Replayed


def replay(
    place: Place,
    only: Annotated[
        list[str],
        typer.Option("--only", help="views, long-term or short-term; repeat for several; none: all."),
    ] = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    """Make memory anew from its log, in fresh stores beside those in use, which they then replace.

    It asks no model, and embeds only what no vector was kept of. A gateway with its own files has to be
    stopped first. What was interrupted goes on when the command is called again.

    Example: hearth replay litellm_config.yaml
    """
    from hearth.memory.errors import HearthError

    try:
        with progress() as watch:
            where, parts = installation(place), _parts(only)
            began = time.monotonic()
            done = asyncio.run(_replayed(where, parts, watch))
    except HearthError as error:
        fail(error)
    seconds = time.monotonic() - began
    if as_json:
        import msgspec

        say_json(msgspec.to_builtins(done) | {"seconds": round(seconds, 3), "parts": list(parts)})
        return
    say(f"{counted(done.events, 'event')}, {done.events / seconds:,.0f} a second: {', '.join(parts)}")
    if "long-term" in parts:
        say(f"{done.records} records in long-term memory, {done.embedded} texts embedded")
    if "short-term" in parts:
        say(f"{counted(done.users, 'user')} in short-term memory")


async def _replayed(where: Installation, parts: tuple[Part, ...], watch: Watch) -> Replayed:
    from hearth.memory.replaying import replay as replay_log

    gc.freeze()  # a tenth of the time would go to looking for garbage among what was loaded
    return await replay_log(where, parts, watch, by=doer())


def _parts(only: list[str]) -> tuple[Part, ...]:
    from hearth.memory.replaying import PARTS

    if unknown := [name for name in only if name not in PARTS]:
        fail(f"--only {unknown[0]}: expected {', '.join(PARTS)}", MISUSED)
    return tuple(part for part in PARTS if not only or part in only)
