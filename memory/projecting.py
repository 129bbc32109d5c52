"""Projects the whole log again, for stores that lost what they had."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from hearth.memory import metrics
from hearth.memory.errors import Unavailable
from hearth.memory.events.kinds import Event
from hearth.memory.ports import EventLog
from hearth.memory.projectors import IndexProjector

logger = logging.getLogger(__name__)

REPLAY_ROWS = 500
"""Events read at once in a replay."""


async def project_again(
    log: EventLog, index: IndexProjector, watch: Callable[[int], None] = lambda _: None
) -> int:
    """Project the whole log again, for stores that lost what they had; returns the number of events.

    `watch` is told how many they are so far. Decides nothing, and goes on past an event that fails: that
    one is logged and counted. Raises Unavailable; what was projected until then stays.
    """
    after = count = 0
    while events := await log.read(after=after, limit=REPLAY_ROWS, kinds=index.kinds):
        at = 0
        while at < len(events):
            size = index.together(events[at:])
            await _project(index, events[at : at + size])
            at += size
        after, count = events[-1].seq, count + len(events)
        watch(count)
    return count


async def _project(index: IndexProjector, events: Sequence[Event]) -> None:
    try:
        await index.handle(events)
    except Unavailable:
        raise
    except Exception:
        if len(events) > 1:
            for event in events:
                await _project(index, [event])
            return
        logger.exception("event %s can't be projected again", events[0].id)
        metrics.FAILURES.labels("worker.replay").inc()
