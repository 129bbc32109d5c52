"""How many tokens memory may add to a prompt, for a client that asks before it sends it."""

from __future__ import annotations

import json
import logging

from fastapi import Request

from hearth.gateway.auth import authenticate
from hearth.gateway.call import Call
from hearth.gateway.identity import IdentityError, Off
from hearth.gateway.plugin import as_served
from hearth.gateway.runtime import RUNTIME
from hearth.gateway.whose import identity_of
from hearth.gateway.wire import WIRES
from hearth.memory import metrics

logger = logging.getLogger(__name__)


async def headroom(request: Request, call: Call) -> int:
    """Most tokens that memory adds if the counted prompt is sent now; `call` says why it is none.

    Never raises: a count without it is still the provider's own.
    """
    try:
        return await _headroom(request, call)
    except IdentityError:
        call.off("identity")
    except Exception:
        logger.exception("it could not be told what memory adds to a counted prompt")
        metrics.FAILURES.labels("headroom").inc()
        call.status, call.reason = "failed", "error"
    return 0


async def _headroom(request: Request, call: Call) -> int:
    gateway = RUNTIME.running()
    key = await authenticate(request)
    if key is None or isinstance(key, Off):
        call.off("unknown key" if key is None else key.reason)
        return 0
    prompt = WIRES["messages"].read_request(json.loads(call.raw_body))
    identity = identity_of(gateway, call.headers, prompt, key)
    if isinstance(identity, Off):
        call.off(identity.reason)
        return 0
    prompt, window = as_served(prompt)
    return await gateway.flow.headroom(call, prompt, identity, window=window)
