"""Acts of the installation: what is done to all of its tenants, on the machine itself and by no key."""

from __future__ import annotations

from datetime import datetime

from hearth.memory.events.kinds import ActDone, Event, OnTheMachine, happened
from hearth.memory.ports import Clock, EventLog
from hearth.memory.types import INSTALLATION, OFFICE, Scope

_OURS = Scope(tenant=INSTALLATION, user=OFFICE)
_GENERATION = 1
"""Of an office, which nobody erases."""


def act_event(act: OnTheMachine, *, by: str, about: str = "", at: datetime) -> Event:
    """An act that is not in the log yet. `by`: who began it, as `ActDone` has it."""
    return happened(_OURS, ActDone(act=act, by=by, about=about), _GENERATION, at=at)


async def write_down(log: EventLog, clock: Clock, act: OnTheMachine, *, by: str, about: str = "") -> None:
    """Append an act that begins now. Raises LogUnavailable."""
    await log.append([act_event(act, by=by, about=about, at=clock.now())])
