"""The worker as others see it: how far its consumers are, whichever processes they run in."""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from hearth.memory.concept_decider import ConceptDecider
from hearth.memory.deciders import DrawnDecider, PageDecider
from hearth.memory.extraction import ExtractionDecider
from hearth.memory.fact_decider import FactDecider
from hearth.memory.ports import Consumers
from hearth.memory.projectors import IndexProjector
from hearth.memory.segment_decider import SegmentDecider
from hearth.memory.verify import Verification

LOOK_SECONDS = 0.1
"""Between two looks at how far workers elsewhere are."""


class ExtractionHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How the reading of facts by a model is."""

    lag: int
    """Pages not yet read."""
    waited: float
    """Seconds since the oldest of them was recorded."""
    error: str = ""
    """The last failure, if nothing has succeeded since; of a worker in this process."""


class WorkerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How the worker is."""

    running: bool
    lag: dict[str, int]
    """Events not yet handled, by consumer."""
    waited: float = 0.0
    """Seconds since the oldest of them was recorded."""
    parked: int
    """Events set aside."""
    stopped: dict[str, str]
    """Why a consumer handles nothing more, by name."""
    errors: dict[str, str]
    """The last failure of each consumer that has not succeeded since, by name."""
    verified: Verification | None = None
    """The last nightly verification that this process made."""
    extraction: ExtractionHealth | None = None
    """None where no model reads facts."""


CONSUMERS = {
    part.name: part.kinds
    for part in (
        PageDecider,
        FactDecider,
        IndexProjector,
        DrawnDecider,
        SegmentDecider,
        ExtractionDecider,
        ConceptDecider,
    )
}
"""The kinds that each consumer reads, by its name."""
DECIDERS = {part.name: part.kinds for part in (PageDecider, FactDecider, DrawnDecider, SegmentDecider)}
"""Of them, those that decide."""


async def progress(consumers: Consumers, *, extracting: bool) -> WorkerHealth:
    """How far the consumers are, whichever processes they run in. Raises LogUnavailable.

    `extracting`: whether a model reads facts, for which one waits as long as it takes.
    """
    lag = await consumers.lag(CONSUMERS)
    read = lag.pop(ExtractionDecider.name) if extracting else None
    return WorkerHealth(
        running=True,
        lag={name: one.events for name, one in lag.items()},
        waited=max(one.seconds for one in lag.values()),
        extraction=None if read is None else ExtractionHealth(lag=read.events, waited=read.seconds),
        parked=len(await consumers.parked()),
        stopped={},
        errors={},
    )


class Working(Protocol):
    """The worker as an engine sees it, in its own process or in others."""

    async def start(self) -> None:
        """Begin to work."""
        ...

    async def stop(self) -> None:
        """Stop, so that others may go on."""
        ...

    def notify(self) -> None:
        """Say that the log has something new."""
        ...

    async def drain(self) -> None:
        """Wait until every consumer has handled all that the log held."""
        ...

    async def health(self) -> WorkerHealth:
        """How it is. Raises LogUnavailable."""
        ...


class WorkersElsewhere:
    """Workers in processes of their own: they look for what is new by themselves."""

    def __init__(self, consumers: Consumers, *, extracting: bool = False) -> None:
        """`extracting`: whether they have a model read facts."""
        self._consumers = consumers
        self._extracting = extracting

    async def start(self) -> None:
        """Nothing to do."""

    async def stop(self) -> None:
        """Nothing to do."""

    def notify(self) -> None:
        """Nothing to do."""

    async def drain(self) -> None:
        """See `Working.drain`."""
        while await self._behind():  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(LOOK_SECONDS)

    async def _behind(self) -> bool:
        return any(one.events for one in (await self._consumers.lag(CONSUMERS)).values())

    async def health(self) -> WorkerHealth:
        """See `Working.health`."""
        return await progress(self._consumers, extracting=self._extracting)
