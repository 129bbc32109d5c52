"""Whose memory a model call reaches, by all that the running gateway knows."""

from __future__ import annotations

from functools import partial

from hearth.config.switches import Switches
from hearth.gateway.budgets import budget_of
from hearth.gateway.call import HeaderPairs
from hearth.gateway.clients import recognise
from hearth.gateway.identity import Identity, Off, resolve
from hearth.gateway.keys import Key
from hearth.gateway.runtime import Gateway
from hearth.gateway.wire.types import WireRequest


def identity_of(gateway: Gateway, headers: HeaderPairs, request: WireRequest, key: Key) -> Identity | Off:
    """Whose memory a request of that key reaches. Raises IdentityError."""
    hints = recognise(headers, request, gateway.settings.hearth.clients)
    switches: Switches = gateway.switchboard.current()
    return resolve(key, headers, request, hints, switches, partial(budget_of, gateway, key))
