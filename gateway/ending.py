"""The end of a process: readiness goes first, then new calls are refused, then those under way end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType

import uvicorn

from hearth.gateway.runtime import RUNTIME


class Server(uvicorn.Server):
    """Serves on for `drain_seconds` after SIGTERM, as not ready, so that a balancer can notice it.

    SIGINT, and a second SIGTERM, end it at once.
    """

    def __init__(self, config: uvicorn.Config, *, drain_seconds: float) -> None:
        super().__init__(config)
        self._drain_seconds = drain_seconds

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called for a signal."""
        if sig == signal.SIGTERM and self._drain_seconds and not RUNTIME.ending:
            RUNTIME.ending = True
            after(self._drain_seconds, partial(super().handle_exit, sig, frame))
            return
        RUNTIME.ending = True
        super().handle_exit(sig, frame)


def after(seconds: float, work: Callable[[], None]) -> None:
    """Do it then, unless the process has ended."""
    later = threading.Timer(seconds, work)
    later.daemon = True
    later.start()


def end_when_told() -> None:
    """Let SIGUSR1, which a parent sends before SIGTERM, take readiness away."""

    def told(sig: int, frame: FrameType | None) -> None:
        RUNTIME.ending = True

    signal.signal(signal.SIGUSR1, told)
