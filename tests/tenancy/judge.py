"""Attempts at a world, and what must hold of each: nothing of another tenant or user is shown or changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import httpx

from hearth.gateway.identity import is_no_name, usable_id
from hearth.gateway.keys import Key
from hearth.memory.events.kinds import (
    ActDone,
    Event,
    HoldPlaced,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    PageForgotten,
    SessionForgotten,
    UserErased,
)
from hearth.memory.extract.clean import well_formed
from hearth.memory.types import EVERYBODY, OFFICE
from tests.tenancy.attempts import Attempt, Dice
from tests.tenancy.terminal import run
from tests.tenancy.world import Owner, World

DECIDED = ("page.", "segment.", "session.summarised", "recall.drawn", "memory.withdrawn", "erasure.changed")
"""Kinds of events that the worker adds later, to whosesoever earlier ones."""
ASKED = ("segment.pinned", "page.forgotten")
"""Of those, what requests do."""
ERASING = (UserErased, SessionForgotten, PageForgotten, MemoryForgotten)
RENEWED = 100
"""Attempts between two looks at what is left of the users."""


class Tally:
    """What came of the attempts."""

    def __init__(self) -> None:
        self.attempts = 0
        self.statuses: Counter[int] = Counter()
        self.showed = 0
        """That were shown something which is theirs."""
        self.wrote = 0
        self.held: set[str] = set()
        """Users who were under a legal hold: erasures that waited for its end follow by themselves."""
        self.faults: list[str] = []
        """What was shown or changed of another, and what broke."""


def attack(world: World, seed: int, count: int, tally: Tally | None = None) -> Tally:
    """Make so many attempts, and look at each reply, each prompt and each event that came of it.

    `tally` is added to, for whoever breaks off.
    """
    tally, dice = tally or Tally(), Dice(world, seed)
    for number in range(count):
        if number % RENEWED == 0:
            world.runner.run(world.renew())
        attempt = dice.attempt()
        world.models.prompts.clear()
        answer = _tried(world, attempt)
        events = world.runner.run(world.happened())
        shown = [*world.marks(_bytes(answer)), *(one for p in world.models.prompts for one in world.marks(p))]
        tally.attempts += 1
        tally.statuses[answer.status_code] += 1
        tally.showed += bool(shown)
        tally.wrote += bool(events)
        tally.held |= {one.payload.user for one in events if isinstance(one.payload, HoldPlaced)}
        events = [one for one in events if not (one.user in tally.held and isinstance(one.payload, ERASING))]
        tally.faults += [f"{fault}: {attempt}" for fault in faults(world, attempt, answer, shown, events)]
    return tally


def _tried(world: World, attempt: Attempt) -> httpx.Response:
    if attempt.method == "hearth":
        return run(world, attempt.sent["arguments"])
    return world.runner.run(world.send(attempt.method, attempt.path, **attempt.sent))


def _bytes(answer: httpx.Response) -> bytes:
    return answer.content + repr(answer.headers.raw).encode()


def faults(
    world: World, attempt: Attempt, answer: httpx.Response, shown: Sequence[Owner], events: Sequence[Event]
) -> Iterator[str]:
    """What this attempt did that no key may: shown what is of `shown`, followed by `events`."""
    key = world.keys[attempt.key]
    if answer.status_code >= 500:
        yield f"it broke with {answer.status_code}, {answer.text}"
    if b'tenant="rivals"' in answer.content:
        yield "it was shown a metric of the other tenant"
    for owner in shown:
        if not _may_see(key, owner, attempt):
            yield f"it was shown what is of {owner}"
    for event in events:
        if event.tenant != key.tenant or not (_is_decided(event) or _may_write(key, event, attempt)):
            yield f"it wrote {event.kind} for {event.user} of {event.tenant}"


def _may_see(key: Key, owner: Owner, attempt: Attempt) -> bool:
    if owner.tenant != key.tenant:
        return False
    if not owner.user:
        return True
    if not key.personal and "previous_response_id" in str(attempt.sent) and _names_nobody(attempt):
        return True  # an app may go on with a conversation of its own that it names nobody for
    if key.isolated and owner.agent != key.agent:
        return False
    return _reaches(key, owner.user, attempt)


def _may_write(key: Key, event: Event, attempt: Attempt) -> bool:
    if isinstance(event.payload, ActDone):
        named = event.payload.user
        return event.payload.by == key.name and (not named or _reaches(key, named, attempt))
    if event.user in (EVERYBODY, OFFICE):
        return "admin" in key.scopes
    model_call = attempt.path.startswith("/v1/")  # a key's scopes are about the API
    return (model_call or "write" in key.scopes) and _reaches(key, event.user, attempt)


def _reaches(key: Key, user: str, attempt: Attempt) -> bool:
    if "admin" in key.scopes:
        return True
    return user == key.user if key.personal else user in map(key.qualified, map(well_formed, attempt.named))


def _names_nobody(attempt: Attempt) -> bool:
    """Or, first of all, what can be no name."""
    return not attempt.named or any(is_no_name(name) or not usable_id(name) for name in attempt.named)


def _is_decided(event: Event) -> bool:
    payload = event.payload
    if isinstance(payload, MemoryForgotten):
        return payload.reason != "requested"
    if isinstance(payload, MemoryAdded | MemoryChanged):
        return payload.memory.source == "extraction"
    return event.kind.startswith(DECIDED) and event.kind not in ASKED
