"""Who does something on the machine itself, how that gets into the log, and how it is read there."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hearth.gateway.commands.client import Answer
from hearth.gateway.commands.output import MISUSED, fail

if TYPE_CHECKING:
    from hearth.config.settings import HearthSettings
    from hearth.memory.events.kinds import OnTheMachine
    from hearth.memory.ports import EventFilter, EventLog

_TAKEN = {"kinds": "kind", "words": "words", "since": "since", "until": "until"}
"""Filters of the installation's events, with the options that give them."""


def doer() -> str:
    """The user whose process this is, and the host."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


async def write_down(log: EventLog, act: OnTheMachine, about: str = "") -> None:
    """Write down in the log what begins now. Raises LogUnavailable."""
    from hearth.memory import acts
    from hearth.memory.clock import SystemClock

    await acts.write_down(log, SystemClock(), act, by=doer(), about=about)


def write_down_beside(hearth: HearthSettings, act: OnTheMachine, about: str) -> None:
    """Write it down where the log's own process, which has the log, takes it from within two seconds, or once
    it is started. Raises OSError.
    """
    from hearth.gateway.servers import servers_of
    from hearth.memory import acts
    from hearth.memory.clock import SystemClock
    from hearth.memory.events.spool import Spool

    spool = Spool(hearth.spool_dir, masters=servers_of(hearth).masters)
    try:
        spool.write([acts.act_event(act, by=doer(), about=about, at=SystemClock().now())])
    finally:
        spool.close()


def installation_events(config: Path | None, asked: Answer) -> Callable[..., Answer]:
    """What asks for pages of the events of the whole installation, as `GET /events` gives those of a tenant,
    whether or not a gateway has the log. `asked`: filters of `hearth events`, of which it takes some. What
    goes wrong ends the command.
    """
    from hearth.gateway.commands.settings import load

    if others := [name for name, value in asked.items() if value and name not in _TAKEN]:
        options = ", ".join(f"--{one}" for one in _TAKEN.values())
        fail(f"--installation goes with {options}, --after, --latest and --limit; got {others[0]}", MISUSED)
    where, hearth = _filter(asked), load(config).hearth

    def page(*, after: int = 0, before: int | None = None, limit: int) -> Answer:
        from hearth.memory.errors import HearthError

        try:
            return asyncio.run(_page(hearth, where, after=after, before=before, limit=limit))
        except (HearthError, OSError) as error:
            fail(error)

    return page


def _filter(asked: Answer) -> EventFilter:
    from hearth.memory.ports import EventFilter
    from hearth.memory.types import INSTALLATION

    moments = {name: _moment(name, asked[name]) for name in ("since", "until")}
    kinds, words = tuple(asked["kinds"]), asked["words"] or ""
    return EventFilter(tenant=INSTALLATION, kinds=kinds, words=words, **moments)


async def _page(
    hearth: HearthSettings, where: EventFilter, *, after: int, before: int | None, limit: int
) -> Answer:
    from hearth.gateway.api.events import EventPage
    from hearth.gateway.servers import servers_of
    from hearth.memory.clock import SystemClock
    from hearth.memory.opening import opened_log

    servers = servers_of(hearth)
    opening = opened_log(hearth.data_dir, hearth.durability, SystemClock(), servers, reading=True)
    async with opening as log:
        found = await log.find(where, after=after, before=before, limit=limit)
    return EventPage.of(found).model_dump(mode="json")


def _moment(option: str, text: str | None) -> datetime | None:
    from hearth.memory.types import utc

    if text is None:
        return None
    try:
        return utc(datetime.fromisoformat(text))
    except ValueError:
        fail(f"--{option} {text}: expected an ISO 8601 time with its zone", MISUSED)
