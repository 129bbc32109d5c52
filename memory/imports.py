"""Dated turns from elsewhere → captured steps, so that imported and live dialogue take one path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from uuid import NAMESPACE_URL, uuid5

import msgspec

from hearth.memory.events.kinds import Event, StepCaptured
from hearth.memory.types import ImportedTurn, Scope, Step

_NAMESPACE = uuid5(NAMESPACE_URL, "hearth:import")
_PARTS = re.compile(r"[^\W_]+")
"""Of a name or an id: `ada.byron@example.org` is Ada Byron's."""


def imported_steps(
    scope: Scope, turns: Sequence[ImportedTurn], *, generation: int, mask: Callable[[str], str]
) -> list[Event]:
    """One `step.captured` for each exchange of the turns, in order; equal input gives equal ids.

    An exchange is the user's turns up to and with the assistant's that answer them, of one speaker: one whose
    name is not the user's states nothing of the user. `mask` is applied to
    every text before it goes anywhere. After an erasure, in a later generation, the ids are others.
    """
    events: list[Event] = []
    ordered = sorted(turns, key=lambda turn: turn.at)
    own = _own_name(scope.user, ordered)
    by_session = sorted(ordered, key=lambda turn: turn.session)
    for session, group in groupby(by_session, key=lambda turn: turn.session):
        place = msgspec.structs.replace(scope, session=session or scope.session or "import")
        parent: str | None = None
        for exchange in _exchanges(list(group)):
            event = _step(place, exchange, own=own, parent=parent, generation=generation, mask=mask)
            parent = event.payload.step.exchange if isinstance(event.payload, StepCaptured) else None
            events.append(event)
    return events


def _own_name(user: str, turns: Sequence[ImportedTurn]) -> str | None:
    """The name on the user's side that is the user's: the one that their id has, or else the only one.

    None where several stand there and none is known to be theirs.
    """
    names = list(dict.fromkeys(turn.name for turn in turns if turn.role == "user" and turn.name))
    parts = set(_PARTS.findall(user.casefold()))
    fit = [name for name in names if set(_PARTS.findall(name.casefold())) & parts]
    found = fit or names
    return found[0] if len(found) == 1 else None


def _exchanges(turns: Sequence[ImportedTurn]) -> Iterator[list[ImportedTurn]]:
    current: list[ImportedTurn] = []
    for turn in turns:
        if turn.role == "user" and any(
            earlier.role == "assistant" or earlier.name != turn.name for earlier in current
        ):
            yield current
            current = []
        current.append(turn)
    if current:
        yield current


def _step(
    scope: Scope,
    turns: Sequence[ImportedTurn],
    *,
    own: str | None,
    parent: str | None,
    generation: int,
    mask: Callable[[str], str],
) -> Event:
    identity = [
        *([str(generation)] if generation > 1 else []),
        scope.owner,
        scope.session,
        *(t.id or f"{t.at.isoformat()} {t.role} {t.content}" for t in turns),
    ]
    exchange = uuid5(_NAMESPACE, "\x1f".join(identity)).hex
    said = {role: [t for t in turns if t.role == role] for role in ("user", "assistant")}
    speaker = next((t.name for t in said["user"] if t.name), "")
    step = Step(
        exchange=exchange,
        isolated=scope.isolated,
        user_text=mask("\n".join(t.content for t in said["user"])),
        reply_text=mask("\n".join(t.content for t in said["assistant"])),
        user_name=speaker,
        reply_name=next((t.name for t in said["assistant"] if t.name), ""),
        by_other=speaker not in ("", own),
        user_shown=mask("\n".join(t.shown for t in said["user"] if t.shown)),
        reply_shown=mask("\n".join(t.shown for t in said["assistant"] if t.shown)),
        outcome="complete",
        closes=True,
        started_at=turns[0].at,
        finished_at=turns[-1].at,
        route="import",
        source="import",
    )
    return Event(
        id=uuid5(_NAMESPACE, exchange).hex,
        tenant=scope.tenant,
        user=scope.user,
        agent=scope.agent,
        session=scope.session,
        generation=generation,
        occurred_at=turns[0].at,
        parent=parent,
        payload=StepCaptured(step=step),
    )
