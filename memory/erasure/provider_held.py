"""Responses that a model's provider keeps are deleted there, some at a time, until none of them is left."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Final, Protocol

import msgspec

from hearth.memory.erasure.receipt import ProviderHeld, Receipt, Step
from hearth.memory.errors import HearthError
from hearth.memory.ports import Clock

PLACE: Final = "provider"
"""Of a receipt's steps."""
KEPT: Final = timedelta(days=30)
"""After which a provider has let go of a response by itself."""
_AT_ONCE: Final = 8
"""Responses that are asked for together, of one erasure."""
_FIRST, _LONGEST = timedelta(seconds=1), timedelta(minutes=5)
"""Between two tries where one failed; each time it is twice as long."""


class Providers(Protocol):
    """What models' providers keep of replies, so that a conversation can go on by a response's id."""

    async def delete(self, response: str) -> None:
        """Remove the response, named as its client was told. One that is gone, or of a provider that keeps
        none, is no error. Raises HearthError where it may still be kept.
        """
        ...


class Deletions:
    """Works off the responses of receipts; how long each waits is known to one process alone."""

    def __init__(self, providers: Providers, clock: Clock) -> None:
        self._providers = providers
        self._clock = clock
        self._waiting: dict[str, tuple[datetime, timedelta]] = {}
        """By receipt: when it is tried again, and how long the wait was."""

    async def go_on(self, receipt: Receipt) -> Receipt:
        """The receipt with those that could be deleted now; its step is done once all are."""
        now = self._clock.now()
        until, _ = self._waiting.get(receipt.id, (now, _FIRST))
        if PLACE not in receipt.pending or now < until:
            return receipt
        left = [one for one in receipt.provider_held if one.gone_at is None and now - one.at <= KEPT]
        tried = await asyncio.gather(*map(self._deleted, left[:_AT_ONCE]))
        troubles = [trouble for _, trouble in tried if trouble]
        self._wait(receipt.id, failed=bool(troubles))
        known = {one.response: one for one, _ in tried}
        held = [known.get(one.response, one) for one in receipt.provider_held]
        if troubles:  # those behind them are not to wait for them
            failed = {one.response for one, trouble in tried if trouble}
            held.sort(key=lambda one: one.response in failed)
        over = len(left) <= _AT_ONCE and not troubles
        trouble = troubles[-1] if troubles else ""
        step = Step(place=PLACE, trouble=trouble, done_at=now if over else None)
        steps = tuple(step if one.place == PLACE else one for one in receipt.steps)
        return msgspec.structs.replace(receipt, provider_held=tuple(held), steps=steps)

    async def _deleted(self, one: ProviderHeld) -> tuple[ProviderHeld, str]:
        try:
            await self._providers.delete(one.response)
        except HearthError as error:
            return one, str(error)
        return msgspec.structs.replace(one, gone_at=self._clock.now()), ""

    def _wait(self, receipt: str, *, failed: bool) -> None:
        if not failed:
            self._waiting.pop(receipt, None)
            return
        _, last = self._waiting.get(receipt, (None, _FIRST / 2))
        wait = min(last * 2, _LONGEST)
        self._waiting[receipt] = (self._clock.now() + wait, wait)
