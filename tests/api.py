"""A gateway's API over a real log and in-process stores, with clients for several keys of two tenants."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from hearth.config.settings import HearthSettings, Settings
from hearth.gateway.api import create_api
from hearth.gateway.api.door import Door
from hearth.gateway.flow import Flow
from hearth.gateway.keys import Key, key_table, presented_key
from hearth.gateway.life import settled_by
from hearth.gateway.runtime import Gateway
from hearth.gateway.switchboard import FileSwitchboard
from hearth.memory.admission import PolicyAdmission
from hearth.memory.capture import Capture
from hearth.memory.engine import Engine
from hearth.memory.erasure.eraser import Eraser
from hearth.memory.erasure.files import Files
from hearth.memory.erasure.ledger import Ledger
from hearth.memory.erasure.provider_held import PLACE as PROVIDER
from hearth.memory.erasure.provider_held import Providers
from hearth.memory.erasure.purger import Purger
from hearth.memory.erasure.restoring import apply_ledger
from hearth.memory.events.archive import ArchiveFolder
from hearth.memory.events.archiving import Archiving
from hearth.memory.events.spool import Spool
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.policies import Policies, Settled, nothing_settled
from hearth.memory.ports import ChatModel, Embedder, Extractor, LongTerm, Shared
from hearth.memory.recall.policy import RecallPolicy, Weights
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.worker import Worker
from hearth.testing.embedder import ScriptedEmbedder
from tests.events import ManualClock

KEYS: list[dict[str, Any]] = [
    {"name": "alice", "tenant": "acme", "user": "alice"},
    {"name": "bob", "tenant": "acme", "user": "bob"},
    {"name": "reader", "tenant": "acme", "user": "alice", "scopes": ["read"]},
    {"name": "app", "tenant": "acme", "users": "named", "user_header": "X-App-User"},
    {"name": "crm", "tenant": "acme", "users": "named", "user_namespace": "crm"},
    {"name": "admin", "tenant": "acme", "user": "root", "scopes": ["read", "write", "admin"]},
    {"name": "hermit", "tenant": "acme", "user": "alice", "agent": "hermit", "isolate_agents": True},
    {"name": "rival", "tenant": "rivals", "users": "named"},
    {"name": "rival-admin", "tenant": "rivals", "user": "boss", "scopes": ["read", "write", "admin"]},
]


def secret(name: str) -> str:
    """The key that is presented for the configured key of that name."""
    return f"sk-hearth-test-{name}"


class App:
    """The API of one gateway: FastAPI's app is one for all, since to take its routes apart takes long."""

    def __init__(self, gateway: Gateway, *, local: bool) -> None:
        self.gateway, self.local = gateway, local
        self.keys = key_table(gateway.settings.hearth)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a call."""
        token = _CALLED.set(self)
        try:
            await _mounted()(scope, receive, send)
        finally:
            _CALLED.reset(token)

    @property
    def routes(self) -> list[BaseRoute]:
        """Where the API is mounted."""
        return _mounted().routes


_CALLED: ContextVar[App] = ContextVar("_CALLED")


@cache
def _mounted() -> FastAPI:
    async def authenticate(request: Request) -> Key | None:
        return _CALLED.get().keys.find(presented_key(request.headers.items()))

    door = Door(authenticate=authenticate, is_local=lambda request: _CALLED.get().local)
    app = FastAPI(openapi_url=None)
    app.mount("/memory", create_api(lambda: _CALLED.get().gateway, door=door))
    return app


def document() -> Mapping[str, Any]:
    """The API's OpenAPI document."""
    mounted: Any = _mounted().routes[-1]
    found: Mapping[str, Any] = mounted.app.openapi()
    return found


@dataclass(frozen=True, kw_only=True)
class Api:
    """The API under test, and what lies under it."""

    app: App
    engine: Engine
    gateway: Gateway

    def client(self, key: str | None = None, **headers: str) -> httpx.AsyncClient:
        """A client with the key of that name; without a key where None."""
        given = {"authorization": f"Bearer {secret(key)}"} if key else {}
        transport = httpx.ASGITransport(app=self.app)
        return httpx.AsyncClient(
            transport=transport, base_url="http://gateway/memory/v1", headers={**given, **headers}
        )


@asynccontextmanager
async def open_api(
    home: Path,
    *,
    clock: ManualClock | None = None,
    embedder: Embedder | None = None,
    long_term: LongTerm | None = None,
    local: bool = False,
    extractor: Extractor | None = None,
    model: ChatModel | None = None,
    life: LifePolicy | None = None,
    settings: Mapping[str, Any] | None = None,
    providers: Providers | None = None,
    elsewhere: Sequence[str] = (),
) -> AsyncIterator[Api]:
    """The API over a log in `home`; `local` says whether callers count as being on this machine.

    `settings` go into the section `hearth:`; the worker's policy is `life`, or what they say.
    """
    embedder = embedder or ScriptedEmbedder()
    keys = [{**key, "key": secret(key["name"])} for key in KEYS]
    hearth = HearthSettings.model_validate({"data_dir": home, "keys": keys, **(settings or {})})
    async with open_engine(
        home,
        clock or ManualClock(),
        embedder,
        long_term,
        extractor=extractor,
        model=model,
        life=life if settings is None or life else LifePolicy.for_embedder(embedder.name),
        settled=settled_by(hearth),
        providers=providers,
        elsewhere=elsewhere,
    ) as engine:
        gateway = Gateway(
            settings=Settings(hearth=hearth),
            flow=Flow(engine),
            switchboard=FileSwitchboard(home / "switches.json"),
        )
        yield Api(app=App(gateway, local=local), engine=engine, gateway=gateway)


@contextmanager
def served(home: Path, **options: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """The API over HTTP on this machine, in a thread; its address, and what waits for its worker."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        started = threading.Event()
        opened: list[tuple[Api, uvicorn.Server, asyncio.AbstractEventLoop]] = []

        async def serve() -> None:
            async with open_api(home, local=True, **options) as api:
                config = uvicorn.Config(api.app, log_level="critical", lifespan="off", ws="none")
                opened.append((api, uvicorn.Server(config), asyncio.get_running_loop()))
                started.set()
                await opened[0][1].serve(sockets=[listener])

        thread = threading.Thread(target=asyncio.run, args=(serve(),))
        thread.start()
        assert started.wait(30)
        api, server, loop = opened[0]

        def drain() -> None:
            asyncio.run_coroutine_threadsafe(api.engine.drain(), loop).result(60)

        yield f"http://127.0.0.1:{listener.getsockname()[1]}", drain
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def _admission(policies: Policies, home: Path) -> PolicyAdmission:
    return PolicyAdmission(policies, FileSwitchboard(home / "switches.json"))


@asynccontextmanager
async def open_engine(
    home: Path,
    clock: ManualClock,
    embedder: Embedder,
    long_term: LongTerm | None = None,
    *,
    shared: Shared | None = None,
    weights: Mapping[str, Weights] | None = None,
    extractor: Extractor | None = None,
    model: ChatModel | None = None,
    life: LifePolicy | None = None,
    settled: Settled = nothing_settled,
    providers: Providers | None = None,
    elsewhere: Sequence[str] = (),
) -> AsyncIterator[Engine]:
    """An engine over a real log in `home`, with a worker at work and stores in this process.

    `elsewhere`: steps of receipts that others than this worker do.
    """
    log = SqliteLog(
        home / "log.db", durability="process", clock=clock, archive=ArchiveFolder(home / "archive")
    )
    await log.start()
    short_term, long_term = InMemoryShortTerm(), long_term or MemoryLongTerm(embedder)
    own = life or LifePolicy(facts="rules" if extractor else "off")
    policies = Policies(log=log, clock=clock, own=own, settled=settled)
    await policies.look()
    spool, ledger = Spool(home / "spool", _admission(policies, home)), Ledger(home / "erasures.ledger")
    capture = Capture(
        log=log,
        spool=spool,
        short_term=short_term,
        ack_seconds=5.0,
        appended=lambda: worker.notify(),
    )
    outside = elsewhere if providers is None else (PROVIDER,)
    eraser = Eraser(
        log=log,
        office=log,
        mid_term=log,
        long_term=long_term,
        clock=clock,
        steps=("log", "archives", "short_term", "long_term", "spool", "ledger", *outside),
    )
    await ledger.start()
    await apply_ledger(ledger, eraser, log, log, clock)
    worker = Worker(
        log=log,
        consumers=log,
        mid_term=log,
        short_term=short_term,
        long_term=long_term,
        clock=clock,
        extractor=extractor,
        model=model,
        policy=policies.sure,
        purger=Purger(
            eraser=eraser,
            log=log,
            office=log,
            short_term=short_term,
            long_term=long_term,
            clock=clock,
            shared=shared,
            ledger=ledger,
            files=Files(home, {"log.db": "log"}, spool=home / "spool"),
            archiving=Archiving(log, owner="test"),
            empty_spool=capture.empty_spool_now,
            providers=providers,
        ),
    )
    engine = Engine(
        log=log,
        office=log,
        eraser=eraser,
        mid_term=log,
        consumers=log,
        short_term=short_term,
        long_term=long_term,
        capture=capture,
        worker=worker,
        counter=LocalTokenCounter(),
        clock=clock,
        policy=RecallPolicy(),
        policies=policies,
        shared=shared,
        weights=weights,
    )
    await worker.start()
    try:
        yield engine
    finally:
        await capture.drain()
        spool.close()
        await worker.stop()
        await log.close()
