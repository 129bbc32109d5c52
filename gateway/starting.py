"""A start: how one fails, what is done in it and not at the first call, and a scheduler's empty warnings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI

SCHEDULER = "apscheduler.executors.default"
"""The logger that tells of jobs which were due while the event loop was busy."""
DUE_SECONDS = 0.05
"""Enough for the scheduler to look at every job that is due."""


class StartError(Exception):
    """The gateway can't start; says why, for whoever started it."""


def take_routes_apart(app: FastAPI) -> None:
    """Have FastAPI find out what each route needs, which it does at the first call that comes by it.

    LiteLLM's take 1.6 s, in which the first callers after a start and all others would wait. Once is enough.
    """
    nowhere = {"type": "http", "method": "GET", "path": "/-", "root_path": "", "headers": []}
    for route in app.router.routes:
        route.matches(dict(nowhere))


@asynccontextmanager
async def late_jobs_allowed() -> AsyncIterator[None]:
    """Keep the scheduler from warning of jobs that were due while LiteLLM loads: they run at their next time.

    Ends when those jobs have been looked at, so that a warning of a running gateway is always heard.
    """
    scheduler = logging.getLogger(SCHEDULER)
    before = scheduler.level
    scheduler.setLevel(logging.ERROR)
    try:
        yield
        await asyncio.sleep(DUE_SECONDS)
    finally:
        scheduler.setLevel(before)
