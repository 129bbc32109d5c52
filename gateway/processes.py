"""Several gateway processes on one port, over shared servers, kept alive and ended by one parent."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import uvicorn
import uvicorn._subprocess
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.supervisors.multiprocess import Multiprocess

from hearth.config.load import load_settings
from hearth.config.settings import Settings
from hearth.gateway.ending import after, end_when_told
from hearth.gateway.runtime import RUNTIME
from hearth.gateway.server import SERVED, compose, leave
from hearth.gateway.starting import StartError
from hearth.memory.errors import HearthError

CONFIG = "HEARTH_CONFIG"
"""Names the configuration for the processes."""
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder in which they count together."""
HEALTH_SECONDS = 120
"""A process that says nothing for so long is replaced."""
LOADED = "hearth.gateway.loaded"
"""What the process has imported that all others are forked from: to load LiteLLM takes most of a start."""


class Served:
    """An ASGI app with what is open while it serves: the form in which uvicorn starts several."""

    def __init__(self, app: ASGIApp, opened: AbstractAsyncContextManager[None]) -> None:
        self._app = app
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a call, or the app's life from its start to its end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._app(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._opened.__aenter__()
        except (HearthError, OSError) as error:
            await send({"type": "lifespan.startup.failed", "message": f"the gateway can't start: {error}"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._opened.__aexit__(None, None, None)
        ended: Message = {"type": "lifespan.shutdown.complete"}
        await send(ended)


def app() -> Served:
    """One process's app, by the configuration that the environment names."""
    end_when_told()
    RUNTIME.counted_together = True
    # While LiteLLM loads, which takes long and serves nobody yet, a signal to end means just that.
    handlers = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGINT)}
    composed = compose(load_settings(Path(os.environ[CONFIG]), os.environ))
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return Served(composed.app, composed.opened)


class Gateways(Multiprocess):
    """uvicorn's processes, of which none is ready for a while before they end."""

    drain_seconds = 0.0
    _ending = False

    def keep_subprocess_alive(self) -> None:
        """Called twice a second: replaces a process that ended, or that says nothing for long."""
        for process in self.processes:
            # While the parent holds this end too, one that is killed before it answers looks busy.
            process.child_conn.close()
        super().keep_subprocess_alive()

    def handle_term(self) -> None:
        """Called for SIGTERM; a second one ends them at once."""
        if not self.drain_seconds or self._ending:
            self.should_exit.set()
            return
        self._ending = True
        for process in self.processes:
            if process.pid is not None:
                os.kill(process.pid, signal.SIGUSR1)
        after(self.drain_seconds, self.should_exit.set)


def serve_many(settings: Settings, config: Path, *, host: str, port: int, workers: int) -> None:
    """Serve by so many processes until SIGTERM or SIGINT; calls in flight are finished and captured first.

    Raises StartError where the port can't be had or a process can't start. Ends with status 3 where captures
    still wait in the spool.
    """
    folder = settings.hearth.data_dir / "metrics"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    os.environ |= {CONFIG: str(config.resolve()), SHARED_FOLDER: str(folder.resolve())}
    served = uvicorn.Config(
        f"{__name__}:app",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        timeout_worker_healthcheck=HEALTH_SECONDS,
        lifespan="on",
        **SERVED,
    )
    try:
        sockets = [served.bind_socket()]
    except SystemExit as end:
        raise StartError(f"can't listen on {host}:{port}; name another address or port") from end
    multiprocessing.set_forkserver_preload([LOADED])
    # uvicorn has no setting for it
    uvicorn._subprocess.spawn = multiprocessing.get_context("forkserver")  # type: ignore[assignment]  # noqa: SLF001
    gateways = Gateways(served, sockets)
    gateways.drain_seconds = settings.hearth.drain_seconds
    gateways.run()
    if any(process.exitcode == uvicorn.config.STARTUP_FAILURE for process in gateways.processes):
        raise StartError("a gateway process can't start; its reason is above")
    leave(settings)
