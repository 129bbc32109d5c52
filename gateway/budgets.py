"""What a call's block may cost, by the policy that holds now."""

from __future__ import annotations

from typing import Final

from hearth.gateway.keys import Budget, Key
from hearth.gateway.runtime import Gateway
from hearth.memory.errors import BadInput
from hearth.memory.tiers.layers import Source
from hearth.memory.types import BudgetFrom

_BY: Final[dict[Source, BudgetFrom]] = {"tenant": "tenant", "agent": "agent", "key": "key"}


def asked_budget(
    gateway: Gateway, key: Key, agent: str, model: str, asked: int | None
) -> tuple[int, BudgetFrom]:
    """The tokens of a block that a request asks for, None: the key's own number, and whose number that is.

    Raises BadInput for more than the key may have.
    """
    allowance = key.policy.for_model(model, budget_of(gateway, key, agent))
    if asked is None:
        return allowance.budget, allowance.budget_from
    if asked > allowance.budget_max:
        raise BadInput("budget", asked, f"at most {allowance.budget_max} tokens")
    return asked, "request"


def budget_of(gateway: Gateway, key: Key, agent: str) -> Budget:
    """The budget of a call by that key to that agent.

    What was set for a tenant, an agent or a key is also the most that a call can ask for.
    """
    policies = gateway.flow.engine.policies
    tokens = policies.value("recall.budget_tokens", key.tenant, agent, key.name)
    most = gateway.settings.hearth.recall.budget_max
    return Budget(
        tokens=int(tokens.value or 0),
        most=int(tokens.value or 0) if tokens.source in _BY else most,
        by=_BY.get(tokens.source, "settings"),
        daily=policies.of(key.tenant, agent, key.name).recall.daily_memory_tokens,
    )
