"""`hearth worker`: the worker in a process of its own, with its health and counters over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Response
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from hearth.config.settings import Settings
from hearth.gateway.api.health import AliveOut, PartOut, ReadyOut, parts_of
from hearth.gateway.file_policy import FilePolicy
from hearth.gateway.model import extraction_model
from hearth.gateway.runtime import RUNTIME
from hearth.gateway.server import serve_app
from hearth.gateway.servers import servers_of
from hearth.memory import metrics
from hearth.memory.gauges import exposed
from hearth.memory.health import Health, file_parts, overall, store_parts
from hearth.memory.opening import OpenWorker, open_worker


class WorkerOut(ReadyOut):
    """How the worker and the stores are."""

    parts: dict[str, PartOut]


class WorkerService:
    """The open worker, and what it says of itself."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._policy = FilePolicy(settings)
        self._open: OpenWorker | None = None

    @asynccontextmanager
    async def opened(self, ready: Callable[[], None]) -> AsyncIterator[None]:
        """At work, of which `ready` tells, until the end, which gives the leases back."""
        hearth = self._settings.hearth
        async with open_worker(
            hearth.data_dir,
            embedder=hearth.embedder,
            durability=hearth.durability,
            servers=servers_of(hearth),
            settled=self._policy,
            ledger=hearth.erasure.ledger,
            model=extraction_model(self._settings),
        ) as self._open:
            await self._open.worker.start()
            ready()
            yield

    async def health(self) -> Health:
        """Every part, asked now."""
        if self._open is None:
            return Health(state="down", reasons=("it does not run",), parts={})
        stores = self._open.stores
        parts = await store_parts(stores.log, stores.short_term, stores.long_term, self._open.worker)
        return overall(parts | file_parts(self._policy.account()))

    def app(self) -> FastAPI:
        """Liveness, readiness, health and counters; whoever may reach the port may read them."""
        app = FastAPI(title="Hearth worker", openapi_url=None, docs_url=None, redoc_url=None)

        @app.get("/health/live")
        async def live() -> AliveOut:
            return AliveOut()

        @app.get("/health/ready")
        async def ready(response: Response) -> ReadyOut:
            found = await self.health()
            response.status_code = 503 if RUNTIME.ending or self._open is None else 200
            return ReadyOut(status=found.state, reasons=list(found.reasons))

        @app.get("/health")
        async def health(response: Response) -> WorkerOut:
            found = await self.health()
            response.status_code = 503 if found.state == "down" else 200
            return WorkerOut(status=found.state, reasons=list(found.reasons), parts=parts_of(found))

        @app.get("/metrics")
        async def counters() -> Response:
            gauges = exposed(await self.health())
            return Response(generate_latest(metrics.REGISTRY) + gauges, media_type=CONTENT_TYPE_LATEST)

        return app


def work(settings: Settings, *, host: str, port: int, ready: Callable[[], None]) -> None:
    """Work until SIGTERM or SIGINT; `ready` is called once it does. Raises StartError."""
    service = WorkerService(settings)
    serve_app(service.app(), service.opened(ready), host=host, port=port, drain_seconds=0)
