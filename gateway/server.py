"""`hearth serve`: our routes, LiteLLM's proxy app below them, and the edge around both, in one process."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from hearth.config.environment import bundled_token_tables, has_master_key, prepare_environment
from hearth.config.litellm_document import litellm_document, write_document
from hearth.config.settings import HearthSettings, Settings
from hearth.gateway.edge import MEGABYTE, Edge
from hearth.gateway.ending import Server
from hearth.gateway.file_policy import FilePolicy
from hearth.gateway.flow import Flow
from hearth.gateway.model import extraction_model
from hearth.gateway.provider_store import LiteLLMResponses
from hearth.gateway.runtime import RUNTIME, Gateway
from hearth.gateway.servers import servers_of
from hearth.gateway.starting import StartError, late_jobs_allowed, take_routes_apart
from hearth.gateway.switchboard import switchboard
from hearth.gateway.weights import weights_of
from hearth.memory.engine import Engine
from hearth.memory.errors import HearthError
from hearth.memory.events.spool import Spool
from hearth.memory.opening import open_memory
from hearth.memory.recall.policy import RecallPolicy, Shares

logger = logging.getLogger(__name__)

UNFINISHED = 3
"""Exit status where something acknowledged is not in the log yet."""
ABSENT = {"litellm.integrations.otel.logger": "opentelemetry.sdk", "prisma": "prisma"}
"""What LiteLLM 1.108.7 imports in every call, by the package without which that fails."""
DRAIN_SECONDS = 30
"""Time that calls in flight have to end after SIGTERM."""
IDLE_SECONDS = 75
"""For which a connection without a call stays open: longer than in any usual client or balancer (5 to 60), so
that it is they who close it. Where the server does, a call that is just on its way is lost.
"""
SERVED: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,
    "timeout_keep_alive": IDLE_SECONDS,
    "timeout_graceful_shutdown": DRAIN_SECONDS,
}
"""What uvicorn is told in whatever number of processes."""


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Gateway]:
    """The gateway over its stores, open until the end."""
    hearth = settings.hearth
    async with open_memory(
        hearth.data_dir,
        embedder=hearth.embedder,
        durability=hearth.durability,
        policy=recall_policy(hearth),
        spool=hearth.spool_dir,
        ack_seconds=hearth.capture.ack_ms / 1000,
        token_tables=bundled_token_tables(),
        servers=servers_of(hearth),
        worker=hearth.worker,
        weights={tenant: weights_of(hearth, tenant) for tenant in hearth.tenants},
        settled=FilePolicy(settings),
        ledger=hearth.erasure.ledger,
        model=extraction_model(settings),
        gate=partial(switchboard, folder=hearth.data_dir),
        providers=LiteLLMResponses(),
    ) as engine:
        gateway = gateway_over(engine, settings)
        beside = [gateway.switchboard.follow(), gateway.flow.daily.follow()]
        following = [asyncio.create_task(work) for work in beside]
        try:
            yield gateway
        finally:
            for task in following:
                task.cancel()


def gateway_over(engine: Engine, settings: Settings) -> Gateway:
    """The gateway's parts around an open engine."""
    return Gateway(
        settings=settings,
        flow=Flow(engine, full_tools=settings.hearth.capture.tools == "full"),
        switchboard=switchboard(engine.log, settings.hearth.data_dir),
    )


def recall_policy(hearth: HearthSettings) -> RecallPolicy:
    """The settings of recall as the engine's policy."""
    return RecallPolicy(
        deadline_seconds=hearth.recall.deadline_ms / 1000,
        budget_tokens=hearth.recall.budget_tokens,
        floor=hearth.recall.floor,
        shares=Shares(**hearth.recall.shares.model_dump()),
    )


class Composed(NamedTuple):
    """The gateway, ready to be opened and then served."""

    app: Edge
    opened: AbstractAsyncContextManager[None]
    """Stores, worker and LiteLLM, open until its end."""


def compose(settings: Settings) -> Composed:
    """The composed ASGI app. Imports LiteLLM, whose environment is set first. Raises OSError.

    No garbage is collected from here until it is open: hardly anything that loads is any, and to look for it
    again and again takes a quarter of the time.
    """
    gc.disable()
    administered = has_master_key(os.environ, settings)
    prepare_environment(os.environ, settings)
    document = litellm_document(settings, administered=administered)
    path = write_document(document, settings.hearth.data_dir)
    os.environ["CONFIG_FILE_PATH"] = str(path.resolve())
    sys.path.append(str(settings.folder))  # LiteLLM looks for callbacks' modules beside its own file alone
    from litellm.proxy.proxy_server import app as litellm_app

    from hearth.gateway.api import create_api
    from hearth.gateway.auth import install
    from hearth.gateway.headroom import headroom

    install(settings)
    _remember_what_is_absent()
    api = create_api(RUNTIME.running)
    for app in (api, litellm_app):
        take_routes_apart(app)
    outer = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    outer.mount("/memory", api)
    outer.mount("/", litellm_app)
    edge = Edge(outer, RUNTIME.running, headroom, most_bytes=settings.hearth.max_request_mb * MEGABYTE)
    return Composed(edge, _opened(settings, litellm_app))


@asynccontextmanager
async def _opened(settings: Settings, litellm_app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(running(settings))
        RUNTIME.install(gateway)
        stack.callback(RUNTIME.install, None)
        async with late_jobs_allowed():
            await stack.enter_async_context(litellm_app.router.lifespan_context(litellm_app))
        _spare_the_collector()
        yield


def _remember_what_is_absent() -> None:
    """Let an import that fails in each call fail at once: LiteLLM tries these two anew every time, and to run
    the first as far as the package that it lacks takes a tenth of the processor time of a call.
    """
    for name, lacking in ABSENT.items():
        if importlib.util.find_spec(lacking) is None:
            sys.modules[name] = None  # type: ignore[assignment]


def _spare_the_collector() -> None:
    """Collect garbage from here on, and take what stands after the start out of every later collection.

    It is 700,000 objects, nearly all LiteLLM's, and hardly any becomes garbage; a walk through them stops all
    calls for half a second.
    """
    gc.enable()
    gc.collect()
    gc.freeze()


def serve(settings: Settings, *, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT; calls in flight are finished and captured first.

    Raises StartError where files, stores or the port can't be had. Ends with status 3 where captures still
    wait in the spool, which stays for the next gateway on this folder.
    """
    try:
        app, opened = compose(settings)
    except OSError as error:
        raise StartError(f"the gateway can't start: {error}") from error
    serve_app(app, opened, host=host, port=port, drain_seconds=settings.hearth.drain_seconds)
    leave(settings)


def serve_app(
    app: ASGIApp,
    opened: AbstractAsyncContextManager[None],
    *,
    host: str,
    port: int,
    drain_seconds: float,
) -> None:
    """Serve `app` with `opened` around it until SIGTERM or SIGINT. Raises StartError."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="off",
        **SERVED,
    )
    server = Server(config, drain_seconds=drain_seconds)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.handle_exit)  # before uvicorn listens, and when it raises it once more
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(server, opened))


def leave(settings: Settings) -> None:
    """End the program with status 3 where captures wait in the spool and no other gateway has them."""
    if waiting := Spool(settings.hearth.spool_dir).left_behind():
        logger.critical("%d captures wait in %s for the event log", waiting, settings.hearth.spool_dir)
        sys.exit(UNFINISHED)


async def _serve(server: uvicorn.Server, opened: AbstractAsyncContextManager[None]) -> None:
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(opened)
        except (HearthError, OSError) as error:
            raise StartError(f"the gateway can't start: {error}") from error
        try:
            await server.serve()
        except SystemExit as end:  # uvicorn has logged the reason
            where = f"{server.config.host}:{server.config.port}"
            raise StartError(f"can't listen on {where}; name another address or port") from end
