"""A start: how one fails, and what LiteLLM's scheduler says of it that means nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

SCHEDULER = "apscheduler.executors.default"
"""The logger that tells of jobs which were due while the event loop was busy."""
DUE_SECONDS = 0.05
"""Enough for the scheduler to look at every job that is due."""


class StartError(Exception):
    """The gateway can't start; says why, for whoever started it."""


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
