"""A gateway whose long-term memory is behind a Qdrant server's REST interface, which goes away under it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import ADMIN, APP, GatewayProcess, document, start, stop, wait_until
from tests.acceptance.talk import ask, remember
from tests.qdrant_shim import QdrantShim

SAID = "I keep my bicycle in the cellar of the library."
QUESTION = "Where do I keep my bicycle?"
KEY = "a-key-of-the-server"


@pytest.fixture(scope="module", name="shim")
def _shim() -> Iterator[QdrantShim]:
    with QdrantShim(api_key=KEY).running() as shim:
        yield shim


@pytest.fixture(scope="module", name="gateway")
def _gateway(
    _provider: ScriptedProvider, shim: QdrantShim, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("qdrant")
    config: dict[str, Any] = document(_provider, folder / "data")
    config["hearth"] |= {"qdrant_url": shim.url, "qdrant_api_key": KEY, "qdrant": {"prefix": "acme-"}}
    running = start(config, folder / "data")
    yield running
    assert stop(running) == 0
    assert KEY.encode() not in (folder / "data.log").read_bytes()


def long_term(gateway: GatewayProcess) -> dict[str, Any]:
    """Long-term memory in the gateway's own health."""
    with gateway.client(ADMIN) as client:
        part: dict[str, Any] = client.get("/memory/v1/health").json()["parts"]["long_term"]
        return part


def texts(shim: QdrantShim) -> str:
    """All records that the server has."""
    (collection,) = shim.client.get_collections().collections
    points, _ = shim.client.scroll(collection.name, limit=1000)
    return " ".join(str(point.payload) for point in points)


def test_what_is_remembered_stands_in_the_server(
    gateway: GatewayProcess, shim: QdrantShim, user: str
) -> None:
    """A memory is recalled by way of the server, and no file of the data folder holds an index."""
    remember(gateway, user, SAID)
    answer = ask(gateway, user, QUESTION, route="messages")
    assert (answer.headers["x-hearth-status"], answer.recalled) == ("ok", 1)
    assert SAID in texts(shim)
    assert [path.suffix for path in (gateway.home / "long_term").iterdir() if "-" not in path.suffix] == [
        ".sqlite"
    ]
    wait_until(lambda: long_term(gateway)["status"] == "ok")


def test_case_19_a_deletion_while_the_server_is_down_is_done_when_it_is_back(
    gateway: GatewayProcess, shim: QdrantShim, user: str
) -> None:
    """case_19, case_44: meanwhile calls are answered with what short-term memory has, the deletion says it is
    pending, nobody recalls what was deleted, and the server's copy goes once it is there again.
    """
    gone, kept = remember(gateway, user, SAID), remember(gateway, user, "My cat is called Zebedee.")
    shim.down()
    try:
        with gateway.client(APP, **{"x-hearth-user": user}) as client:
            reply = client.delete(f"/memory/v1/memories/{gone}")
        assert "long_term" in reply.json()["pending"]
        answer = ask(gateway, user, QUESTION, route="responses", stream=True)
        assert (answer.status, answer.headers["x-hearth-status"]) == (200, "partial")
        assert "long_term" in answer.headers["x-hearth-reason"]
        assert answer.recalled == 0
        wait_until(lambda: long_term(gateway)["status"] == "degraded", 40)
    finally:
        shim.up()
    gateway.drain()
    wait_until(lambda: long_term(gateway)["status"] == "ok", 40)
    wait_until(lambda: ask(gateway, user, "What is my cat called?").headers["x-hearth-status"] == "ok", 40)
    assert gone not in texts(shim)
    assert kept in texts(shim)
