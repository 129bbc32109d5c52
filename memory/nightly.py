"""The nightly verification: all events and stores once a night, each user's views once a week, and drift is
repaired.
"""

from __future__ import annotations

import logging
import zlib
from datetime import datetime, time, timedelta

from hearth.memory.ports import Clock, Consumers, EventLog
from hearth.memory.verify import Verification, Verified, Verifier

logger = logging.getLogger(__name__)

AT = time(2, 0)
"""When a night's verification begins, in UTC."""
CONSUMER = "verify"
"""The lease of the worker that does it."""
NIGHTS = 7
"""In which each user's events are folded anew once: that takes ten times as long as all else, and as long as
their whole life has events.
"""
HELD_SECONDS = 6 * 3600.0
"""Longer than the others look whether somebody has begun."""


class Nightly:
    """One worker of all that share a log verifies it, a part at each step."""

    def __init__(
        self, *, log: EventLog, consumers: Consumers, verifier: Verifier, clock: Clock, owner: str
    ) -> None:
        self._log = log
        self._consumers = consumers
        self._verifier = verifier
        self._clock = clock
        self._owner = owner
        self._due = _next(clock.now())
        self._left: list[str] = []
        self._after = ""
        self._began: datetime | None = None
        self._found = Verified()
        self.last: Verification | None = None
        """What the last whole one found, if this process made it."""

    async def step(self) -> None:
        """Do the next part, if one is due. Raises Unavailable; the part is done again at the next step."""
        now = self._clock.now()
        if self._began is None and now >= self._due:
            self._due = _next(now)
            lease = await self._consumers.lease(CONSUMER, 0, owner=self._owner, seconds=HELD_SECONDS)
            if lease is not None:
                self._left, self._after = await self._log.tenants(), ""
                self._began, self._found = now, Verified()
        if self._began is not None:
            await self._part(self._began)

    async def _part(self, began: datetime) -> None:
        if self._left:
            tenant, night = self._left[0], began.toordinal()
            found, after = await self._verifier.some(
                tenant, after=self._after, repair=True, folds=lambda user: is_folded(tenant, user, night)
            )
            self._found += found
            self._after = after or ""
            if after is None:
                self._left.pop(0)
        if not self._left:
            self.last = Verification(began=began, ended=self._clock.now(), found=self._found)
            self._began = None
            level = logging.ERROR if self._found.damages or self._found.missing else logging.INFO
            logger.log(
                level,
                "verified %d events of %d users: %d damaged, %d gone, %d records differed and were repaired",
                self._found.events,
                self._found.users,
                self._found.damages,
                self._found.missing,
                self._found.drift,
            )


def is_folded(tenant: str, user: str, night: int) -> bool:
    """Whether it is that night, by its day's number, that the user's views are compared with their events."""
    return zlib.crc32(f"{tenant}\0{user}".encode(errors="surrogatepass")) % NIGHTS == night % NIGHTS


def _next(now: datetime) -> datetime:
    """The next beginning of a night's verification."""
    tonight = datetime.combine(now.date(), AT, tzinfo=now.tzinfo)
    return tonight if tonight > now else tonight + timedelta(days=1)
