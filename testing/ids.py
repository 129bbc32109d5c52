"""Identifiers in the forms that the providers use, counted up so that a run can be repeated."""

from __future__ import annotations

import itertools


class Ids:
    """Makes ids; two makers with different seeds never make the same one."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._numbers = itertools.count(1)

    def _tail(self, digits: int) -> str:
        return f"{self._seed:04x}{next(self._numbers):0{digits - 4}x}"

    def chat(self) -> str:
        """A chat completion's id."""
        return f"chatcmpl-{self._tail(29)}"

    def completion(self) -> str:
        """A text completion's id."""
        return f"cmpl-{self._tail(29)}"

    def call(self) -> str:
        """An OpenAI tool call's id."""
        return f"call_{self._tail(24)}"

    def message(self) -> str:
        """An Anthropic message's id."""
        return f"msg_01{self._tail(22)}"

    def tool_use(self) -> str:
        """An Anthropic tool call's id."""
        return f"toolu_01{self._tail(22)}"

    def item(self, prefix: str) -> str:
        """The id of a response (`resp`) or of one of its items (`msg`, `fc`, `rs`), or of a conversation."""
        return f"{prefix}_{self._tail(48)}"

    def request(self) -> str:
        """The id in the header that support asks for."""
        return f"req_{self._tail(32)}"
