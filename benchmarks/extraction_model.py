"""Exchanges read by a model, as the worker has them read, but each in a call of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from report import Row
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from hearth.memory.errors import BadAnswer, ModelUnavailable
from hearth.memory.extract.answer import claims
from hearth.memory.extract.grounding import Grounded, grounded, shown
from hearth.memory.extract.question import INSTRUCTION, SCHEMA, longest_answer, question
from hearth.memory.ports import ChatModel, ModelReply, ModelRequest
from hearth.memory.types import CandidateFact, Page

AT_ONCE = 4
"""Calls under way at once."""
TRIES = 5
"""Calls for one exchange while none answers."""


class ModelReader:
    """Asks the model for the facts of pages, and counts what that took."""

    def __init__(self, model: ChatModel, name: str, *, seconds: float) -> None:
        """`seconds` is how long one answer may take."""
        self._model, self._name, self._seconds = model, name, seconds
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._replies: list[ModelReply] = []
        self._unusable = 0
        self._refused = 0

    async def read(self, pages: Sequence[Page]) -> list[list[CandidateFact]]:
        """The facts of each page; none of one whose answer is unusable. Raises ModelUnavailable."""
        return await asyncio.gather(*map(self._facts, pages))

    def spent(self) -> Row:
        """Calls that were answered, tokens and dollars; claims that the user's words do not bear out."""
        costs = [one.cost for one in self._replies if one.cost is not None]
        return {
            "": self._name,
            "calls": len(self._replies),
            "input tokens": sum(one.usage.input for one in self._replies),
            "output tokens": sum(one.usage.output for one in self._replies),
            "dollars": f"{sum(costs):.6f}" if costs else "unknown",
            "unusable answers": self._unusable,
            "refused claims": self._refused,
        }

    async def _facts(self, page: Page) -> list[CandidateFact]:
        words = shown(page)
        if not any(map(str.isalnum, words.words)):
            return []
        request = ModelRequest(
            model=self._name,
            system=INSTRUCTION,
            prompt=question([words]),
            schema=SCHEMA,
            max_tokens=longest_answer(1),
            seconds=self._seconds,
        )
        try:
            async with self._turns:
                reply = await self._asked(request)
            found = [grounded(claim, [words]) for claim in claims(reply.text)]
        except BadAnswer:
            self._unusable += 1
            return []
        held = [one.said for one in found if isinstance(one, Grounded)]
        self._refused += len(found) - len(held)
        return held

    async def _asked(self, request: ModelRequest) -> ModelReply:
        retrying = AsyncRetrying(
            wait=wait_exponential_jitter(initial=1, max=20),
            stop=stop_after_attempt(TRIES),
            retry=retry_if_exception_type(ModelUnavailable),
            reraise=True,
        )
        reply: ModelReply = await retrying(self._model.complete, request)
        self._replies.append(reply)
        return reply
