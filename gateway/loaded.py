"""Loads, when it is imported, what every gateway process needs, in the one that they are forked from."""

from __future__ import annotations

import gc
import os

from hearth.config.environment import MASTER_KEY, prepare_environment

_had_one = MASTER_KEY in os.environ
prepare_environment(os.environ)
if not _had_one:
    del os.environ[MASTER_KEY]  # each process makes its own, and knows by it that nobody has one
gc.disable()
from litellm.proxy.proxy_server import app  # noqa: E402

import hearth.gateway.api  # noqa: E402
import hearth.gateway.auth  # noqa: E402
import hearth.gateway.headroom  # noqa: E402
import hearth.gateway.server  # noqa: E402, F401
from hearth.gateway.starting import take_routes_apart  # noqa: E402

take_routes_apart(app)
gc.enable()
gc.freeze()  # what is never looked at again stays the same memory in all of them
