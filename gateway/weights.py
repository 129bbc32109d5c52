"""The weights that the settings give a tenant, as memory takes them."""

from __future__ import annotations

import msgspec

from hearth.config.settings import HearthSettings
from hearth.memory.recall.policy import Weights


def weights_of(hearth: HearthSettings, tenant: str) -> Weights:
    """The weights by which the tenant's recalls rank; those that its settings leave out are Hearth's own."""
    own = hearth.tenants.get(tenant)
    return msgspec.structs.replace(Weights(), **(own.weights if own else {}))
