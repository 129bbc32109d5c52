"""The policy of every tenant, agent and key: what the file says, and what is set while the gateway runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from hearth.memory import metrics
from hearth.memory.errors import HearthError, LogUnavailable
from hearth.memory.events.kinds import PolicyChanged, happened
from hearth.memory.extract.personal import Mask, mask_of
from hearth.memory.knowledge.records import everybody
from hearth.memory.ports import Clock, EventLog
from hearth.memory.tiers.layers import Effective, Part, Setting, Value, effective
from hearth.memory.tiers.life import LifePolicy, policy_of, values_of

logger = logging.getLogger(__name__)

Settled: TypeAlias = Callable[[str, str, str], Sequence[Setting]]
"""What the file says for a tenant, an agent and a key, by their names; empty: for none in particular."""
PolicyOf: TypeAlias = Callable[[str, str, str], LifePolicy]
"""The policy of a tenant, an agent and a key. Raises LogUnavailable while it can't be known."""


class FileAccount(msgspec.Struct, frozen=True, kw_only=True):
    """How the file was found when it was last looked at."""

    unusable: bool = False
    """It has changed and can't be used: what it said before counts."""
    restart: int = 0
    """Settings of it that have changed and count after a restart."""


@runtime_checkable
class Changing(Protocol):
    """A file whose changes count while the process runs; it is `Settled` too."""

    def look(self) -> bool:
        """True where it says something else than at the last look. Blocks for a file's reading."""
        ...

    def account(self) -> FileAccount:
        """How it was found at the last look."""
        ...


FOLLOW_SECONDS: Final = 1.0
"""Between two looks at what other processes set."""
_KEPT: Final = 4096
"""Policies that are kept made: whoever calls names agents."""


def nothing_settled(tenant: str, agent: str, key: str) -> Sequence[Setting]:
    """What there is without a file."""
    return ()


class _Made(NamedTuple):
    policy: LifePolicy
    values: dict[str, Effective]


class Policies:
    """One instance serves all tenants of a process. What is set is an event, and so every process sees it."""

    def __init__(
        self, *, log: EventLog, clock: Clock, own: LifePolicy, settled: Settled = nothing_settled
    ) -> None:
        """`own` is what holds where nobody has set anything."""
        self._log = log
        self._clock = clock
        self._own = own
        self._settled = settled
        self._known = False
        self._changes: dict[str, int] = {}
        self._set: dict[str, Sequence[Setting]] = {}
        self._made: dict[tuple[str, str, str], _Made] = {}

    def of(self, tenant: str, agent: str = "", key: str = "") -> LifePolicy:
        """The policy as of the last look; before the first one what the file says."""
        return self._policy(tenant, agent, key).policy

    def sure(self, tenant: str, agent: str = "", key: str = "") -> LifePolicy:
        """The policy that a decision may rest on. Raises LogUnavailable until the log was looked at."""
        if not self._known:
            raise LogUnavailable("the policy is not known yet")
        return self.of(tenant, agent, key)

    def mask(self, tenant: str, key: str = "") -> Mask:
        """What is done to a text that comes by that key, before anything of it is stored."""
        return mask_of(self.of(tenant, "", key).capture.kinds)

    def value(self, name: str, tenant: str, agent: str = "", key: str = "") -> Effective:
        """One value of that policy, and who has set it."""
        return self._policy(tenant, agent, key).values[name]

    def effective(self, tenant: str, agent: str = "", key: str = "") -> list[Effective]:
        """Each value of that policy, and who has set it."""
        return list(self._policy(tenant, agent, key).values.values())

    def file(self) -> FileAccount | None:
        """How the file was found; None where there is none to follow."""
        return self._settled.account() if isinstance(self._settled, Changing) else None

    def set_in(self, tenant: str) -> Sequence[Setting]:
        """All that was set for the tenant, its agents and keys while the gateway ran."""
        return self._set.get(tenant, ())

    def set_for(self, tenant: str, agent: str = "", key: str = "") -> list[Setting]:
        """Of that what concerns this agent and this key."""
        whose = {"tenant": "", "agent": agent, "key": key}
        return [
            one
            for one in self.set_in(tenant)
            if one.level == "tenant" or (one.whose and whose.get(one.level) == one.whose)
        ]

    async def change(
        self, tenant: str, values: Mapping[str, Value | None], *, level: Part, whose: str = "", by: str
    ) -> None:
        """Set values, or lift those that are None. Durable when it returns, and then in force in this
        process; in others within two seconds. What they are is for the caller to check. Raises
        LogUnavailable.
        """
        known = {
            one.name: one.value for one in self.set_in(tenant) if (one.level, one.whose) == (level, whose)
        }
        changed = {name: value for name, value in values.items() if known.get(name) != value}
        if changed:
            scope = everybody(tenant)
            generation = await self._log.generation(tenant, scope.user)
            change = PolicyChanged(level=level, whose=whose, values=changed, by=by)
            await self._log.append([happened(scope, change, generation, at=self._clock.now())])
        await self.look()

    async def look(self) -> None:
        """Know what was set until now, by whichever process. Raises LogUnavailable."""
        changes = await self._log.policy_changes()
        differ = {
            tenant
            for tenant in {*changes, *self._changes}
            if changes.get(tenant) != self._changes.get(tenant)
        }
        for tenant in sorted(differ):
            self._set[tenant] = await self._log.policy_settings(tenant)
        if differ:
            self._made.clear()
        self._changes, self._known = changes, True

    async def follow(self) -> None:
        """Look again and again, until cancelled. While the log is away what was seen last counts."""
        while True:
            try:
                await self._look_at_file()
                await self.look()
            except HearthError:
                logger.warning("changes of the policy are not seen for now", exc_info=True)
                metrics.FAILURES.labels("policies.follow").inc()
            await asyncio.sleep(FOLLOW_SECONDS)

    async def _look_at_file(self) -> None:
        if isinstance(self._settled, Changing) and await asyncio.to_thread(self._settled.look):
            self._made.clear()

    def _policy(self, tenant: str, agent: str, key: str) -> _Made:
        place = (tenant, agent, key)
        if place not in self._made:
            if len(self._made) >= _KEPT:
                self._made.clear()
            settings = [*self._settled(*place), *self.set_for(*place)]
            values = {one.name: one for one in effective(values_of(self._own), settings)}
            self._made[place] = _Made(policy_of(values.values()), values)
        return self._made[place]
