"""Export and import, as the engine offers them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import IO

from hearth.memory.extract.personal import MaskFor
from hearth.memory.imports import imported_steps
from hearth.memory.portable.exporting import exported
from hearth.memory.portable.foreign import Bringing, Brought
from hearth.memory.portable.form import Limits
from hearth.memory.portable.formats.found import Source
from hearth.memory.portable.markdown import readable
from hearth.memory.portable.taking import Taken, Taking, here
from hearth.memory.ports import Clock, EventLog
from hearth.memory.types import ImportedTurn, Scope
from hearth.memory.working import DECIDERS


class Porter:
    """Takes a user's memory out into a file, and files in."""

    def __init__(self, *, log: EventLog, clock: Clock, appended: Callable[[], None], mask: MaskFor) -> None:
        """`appended` is called after each append. `mask`: what is done to the texts, by tenant and key."""
        self._mask = mask
        self._log, self._clock, self._appended = log, clock, appended

    def export(self, scope: Scope) -> AsyncIterator[bytes]:
        """All of the user as the file that `take` reads; see `exporting.exported`."""
        return exported(self._log, scope, clock=self._clock, deciders=DECIDERS)

    def markdown(self, scope: Scope) -> AsyncIterator[bytes]:
        """What is known of the user, for people to read; see `markdown.readable`."""
        return readable(self._log, scope, now=self._clock.now())

    async def take(
        self, scope: Scope, file: IO[bytes], *, limits: Limits, anew: bool = False, key: str = ""
    ) -> Taken:
        """Take an export in as that user's; see `Taking.file`.

        What is forgotten here stays so. So does what is from before the user's erasure, unless `anew`.
        `key`: by which it comes.
        """
        taking, _ = await self._taking(scope, anew=anew, key=key)
        return await taking.file(file, limits=limits, now=self._clock.now())

    async def bring(
        self,
        scope: Scope,
        file: IO[bytes],
        format: str,
        *,
        limits: Limits,
        source_user: str = "",
        at: datetime | None = None,
        key: str = "",
    ) -> Brought:
        """Take in another program's file, of one of `pick.FOREIGN`: all of it or, where it is broken, none.

        `source_user`: which of the file's users, where it has several: the scope's own by default, `*` for
        all. `at`: when things were said, where the file does not tell. `key`: by which
        it comes. Raises BadInput that names the record,
        StaleGeneration, LogUnavailable.
        """
        source = Source(file=file, limits=limits, user=source_user or scope.user, at=at)
        taking, generation = await self._taking(scope, anew=True, key=key)
        mask = self._mask(scope.tenant, key)
        bringing = Bringing(taking, source, format, scope=scope, generation=generation, mask=mask)
        return await bringing.all(self._clock.now())

    async def turns(self, scope: Scope, turns: Sequence[ImportedTurn], *, key: str = "") -> Brought:
        """Take in dated turns, none of them in the future. Raises StaleGeneration, LogUnavailable."""
        taking, generation = await self._taking(scope, anew=True, key=key)
        events = await asyncio.to_thread(
            imported_steps, scope, turns, generation=generation, mask=self._mask(scope.tenant, key)
        )
        taken = await taking.events(events)
        return Brought(
            taken=Taken(read=len(turns), added=taken.added, skipped=taken.skipped),
            turns=len(turns),
            exchanges=len(events),
        )

    async def _taking(self, scope: Scope, *, anew: bool, key: str) -> tuple[Taking, int]:
        known = await here(self._log, scope, anew=anew)
        mask = self._mask(scope.tenant, key)
        return Taking(self._log, known, mask=mask, appended=self._appended), known.generation
