"""Hearth inside a proxy that LiteLLM starts: name `hearth.gateway.stock.instance` as a callback.

Capture is best effort here: LiteLLM's log event is all there is. Importing this module reads the proxy's own
configuration file and refuses what can't work, so that a mistake stops the proxy at its start.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack

from litellm.proxy import proxy_server

from hearth.config.check import check, check_stock_plugin
from hearth.config.load import load_settings
from hearth.config.problems import SettingsError
from hearth.config.settings import Settings
from hearth.gateway.auth import install
from hearth.gateway.plugin import HearthPlugin
from hearth.gateway.plugin import instance as plugin
from hearth.gateway.runtime import RUNTIME, Gateway
from hearth.gateway.server import running

logger = logging.getLogger(__name__)


def start_stock() -> HearthPlugin:
    """Check the proxy's configuration and begin to open memory. Raises SettingsError with every problem."""
    settings = _settings()
    install(settings)
    stack = AsyncExitStack()

    async def starter() -> Gateway:
        return await stack.enter_async_context(running(settings))

    RUNTIME.start_with(starter)
    _tasks.add(asyncio.get_running_loop().create_task(_open_early()))
    return plugin


def _settings() -> Settings:
    path = proxy_server.user_config_file_path or os.environ.get("CONFIG_FILE_PATH")
    if path is None:
        raise RuntimeError("hearth.gateway.stock finds no configuration file: start litellm with --config")
    settings = load_settings(path, os.environ)
    problems = [*check_stock_plugin(settings.litellm), *check(settings)]
    for problem in problems:
        logger.warning("%s", problem)
    if any(problem.level == "error" for problem in problems):
        raise SettingsError(problems)
    return settings


async def _open_early() -> None:
    """Open memory before the first call; a call that comes first, or after a failure, tries again itself."""
    try:
        await RUNTIME.gateway()
    except Exception:
        logger.exception("memory could not be opened; calls go through without it")


_tasks: set[asyncio.Task[None]] = set()
instance = start_stock()
