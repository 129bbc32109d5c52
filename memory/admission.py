"""What waited for the log is let into it by what is switched and set when it is back."""

from __future__ import annotations

import logging
from typing import Protocol

import msgspec

from hearth.memory.events.kinds import Event, StepCaptured
from hearth.memory.extract.personal import Mask
from hearth.memory.policies import Policies
from hearth.memory.types import Step, ToolUse

logger = logging.getLogger(__name__)

KEPT_ERROR = 500
"""Characters of a provider's error that are kept."""


class Gate(Protocol):
    """For whom memory is switched on."""

    async def look(self) -> None:
        """Know what is switched until now. Raises LogUnavailable while that can't be known."""
        ...

    def admits(self, tenant: str, key: str) -> bool:
        """Whether what comes by that key may be stored, as of the last look."""
        ...


class PolicyAdmission:
    """See `Admission`: by the policy, and by the switches where there are any."""

    def __init__(self, policies: Policies, gate: Gate | None = None) -> None:
        self._policies = policies
        self._gate = gate

    async def look(self) -> None:
        """See `Admission.look`."""
        await self._policies.look()
        if self._gate is not None:
            await self._gate.look()

    def admitted(self, event: Event) -> Event | None:
        """See `Admission.admitted`. What is no call's is let in as it is."""
        if not isinstance(event.payload, StepCaptured):
            return event
        step = event.payload.step
        if self._gate is not None and not self._gate.admits(event.tenant, step.key):
            logger.warning("a spooled call of tenant %s is dropped: memory is switched off", event.tenant)
            return None
        step = masked(step, self._policies.mask(event.tenant, step.key))
        return msgspec.structs.replace(event, payload=StepCaptured(step=step))


def masked(step: Step, mask: Mask) -> Step:
    """The step as it may be stored: its texts masked, an error cut to what is kept of it."""
    return msgspec.structs.replace(
        step,
        user_text=mask(step.user_text),
        reply_text=mask(step.reply_text),
        alternatives=tuple(map(mask, step.alternatives)),
        error=mask(step.error)[:KEPT_ERROR],
        tools=tuple(_masked(tool, mask) for tool in step.tools),
    )


def _masked(tool: ToolUse, mask: Mask) -> ToolUse:
    said, answered = tool.arguments, tool.result
    return msgspec.structs.replace(tool, arguments=said and mask(said), result=answered and mask(answered))
