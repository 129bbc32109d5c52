"""Serving in this process: says at once what takes its time, and tells when calls are answered."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import httpx

from hearth.config.settings import Settings
from hearth.gateway.commands.output import fail, waiting
from hearth.gateway.starting import StartError
from hearth.memory.errors import LogUnavailable
from hearth.memory.events.database import take_lock

LOOK_SECONDS = 0.1
"""Between two looks at whether calls are answered."""


def run(
    settings: Settings,
    *,
    host: str,
    port: int,
    ready: Callable[[float], None],
    quiet: bool = False,
    config: Path | None = None,
    workers: int = 1,
) -> None:
    """Serve until SIGTERM or SIGINT, by several processes where `workers` says so, which read `config`.

    `ready` is called once, in a thread of its own, with the seconds that the start took. What LiteLLM prints
    while it starts goes to stderr, or nowhere if `quiet`: stdout is for results. Ends the command with 1
    and one line for a start that fails, and with 3 where captures still wait in the spool.
    """
    _refuse_taken(host, port)
    _refuse_held(settings.hearth.data_dir / "log.db.lock")
    try:
        with _watched(host, port, ready, quiet=quiet):
            _serve(settings, config, host=host, port=port, workers=workers)
    except StartError as error:
        fail(error)


def _serve(settings: Settings, config: Path | None, *, host: str, port: int, workers: int) -> None:
    if workers > 1 and config is not None:
        from hearth.gateway.processes import serve_many

        serve_many(settings, config, host=host, port=port, workers=workers)
    else:
        from hearth.gateway.server import serve

        serve(settings, host=host, port=port)


@contextmanager
def _watched(host: str, port: int, ready: Callable[[float], None], *, quiet: bool) -> Iterator[None]:
    """Say what takes its time, and when calls are answered."""
    ended = threading.Event()
    begun = time.monotonic()

    def watch() -> None:
        with (
            waiting("Loading LiteLLM …"),
            redirect_stdout(StringIO() if quiet else sys.stderr),
        ):
            while not _answers(host, port) and not ended.wait(LOOK_SECONDS):
                pass
        if not ended.is_set():
            ready(time.monotonic() - begun)

    watcher = threading.Thread(target=watch, name="start-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def stop() -> None:
    """End the serving of this process, from any thread; calls in flight are finished first."""
    os.kill(os.getpid(), signal.SIGTERM)


def _answers(host: str, port: int) -> bool:
    try:
        path = f"http://{_reachable(host)}:{port}/memory/v1/health/live"
        return httpx.get(path, timeout=1.0, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _reachable(host: str) -> str:
    """An address at which this machine reaches what listens on `host`."""
    if host in ("", "0.0.0.0"):  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    return "[::1]" if host in ("::", "[::]") else f"[{host.strip('[]')}]" if ":" in host else host


def _refuse_taken(host: str, port: int) -> None:
    """Say that the port is taken now, not after LiteLLM has loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            fail(f"can't listen on {host}:{port}: {error.strerror}; name another with --port")


def _refuse_held(lock: Path) -> None:
    """Say that another process has the data folder now, not after LiteLLM has loaded."""
    if not lock.exists():
        return
    try:
        take_lock(lock).close()
    except (LogUnavailable, OSError) as error:
        fail(f"the data folder can't be used: {error}")
