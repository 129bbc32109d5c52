"""Gateway processes and workers over shared servers: one memory, whoever is asked, killed or broken."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import (
    ADMIN,
    ALICE,
    APP,
    GatewayProcess,
    start,
    start_worker,
    stop,
    wait_until,
)
from tests.acceptance.shared import Servers, shared_servers
from tests.acceptance.talk import Answer, ask, exchanges, remember

SAID = "I keep my bicycle in the cellar of the library."
QUESTION = "Where do I keep my bicycle?"


@pytest.fixture(scope="module", name="servers")
def _servers() -> Iterator[Servers]:
    with shared_servers() as servers:
        yield servers


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module", name="workers")
def _workers(_provider: ScriptedProvider, servers: Servers, folder: Path) -> Iterator[list[GatewayProcess]]:
    made = [
        start_worker(servers.config(_provider, folder / name), folder / name)
        for name in ("worker-one", "worker-two")
    ]
    yield made
    for worker in made:
        if worker.process.poll() is None:
            assert stop(worker) == 0


@pytest.fixture(scope="module", name="gateway")
def _gateway(
    _provider: ScriptedProvider, servers: Servers, folder: Path, workers: list[GatewayProcess]
) -> Iterator[GatewayProcess]:
    """Two processes on one port."""
    config = servers.config(_provider, folder / "gateway", drain_seconds=3)
    running = start(config, folder / "gateway", workers=2)
    yield running
    assert stop(running) == 0


def processes(gateway: GatewayProcess) -> list[psutil.Process]:
    """The gateway processes, below the one that they are forked from."""
    (loaded,) = [
        child
        for child in psutil.Process(gateway.process.pid).children()
        if any("forkserver" in part for part in child.cmdline())
    ]
    return [child for child in loaded.children() if child.status() != psutil.STATUS_ZOMBIE]


def health(gateway: GatewayProcess) -> dict[str, Any]:
    with gateway.client(ADMIN) as client:
        return client.get("/memory/v1/health").json()  # type: ignore[no-any-return]


def test_what_one_process_was_told_every_process_knows_at_once(gateway: GatewayProcess, user: str) -> None:
    """Each call comes by a connection of its own, to whichever process; each recalls it, on every route."""
    assert len(processes(gateway)) == 2
    ask(gateway, user, SAID)
    for route in ("chat", "messages", "responses") * 4:
        answer = ask(gateway, user, QUESTION, route=route)
        assert (answer.headers["x-hearth-status"], answer.recalled >= 1) == ("ok", True)


def test_workers_elsewhere_file_what_was_said(gateway: GatewayProcess, servers: Servers, user: str) -> None:
    """A memory added by hand is found by meaning a moment later, through an index that only workers write."""
    remember(gateway, user, SAID)
    gateway.drain()
    assert health(gateway)["parts"]["worker"]["status"] == "ok"
    answer = ask(gateway, user, QUESTION)
    assert (answer.headers["x-hearth-status"], answer.recalled) == ("ok", 1)
    assert servers.shim.did("upsert")


def test_an_erasure_reaches_the_provider_though_workers_are_elsewhere(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """Gateways have the response deleted, one of them; the workers do the rest and end the receipt."""
    assert ask(gateway, user, SAID, route="responses").status == 200
    gateway.drain()
    provider.clear()
    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        erased = client.delete(f"/memory/v1/users/{user}").json()
        wait_until(
            lambda: client.get(f"/memory/v1/erasures/{erased['receipt']}").json()["state"] == "purged",
            seconds=60,
        )
        (held,) = client.get(f"/memory/v1/erasures/{erased['receipt']}").json()["provider_held"]
    assert held["gone_at"]
    assert [one.method for one in provider.side] == ["DELETE"]


def test_calls_of_one_session_at_once_lose_and_double_nothing(gateway: GatewayProcess, user: str) -> None:
    """Forty calls of one session, from eight threads to two processes: forty exchanges and forty pages."""

    def call(number: int) -> None:
        text = f"My locker number {number} is in hall {number % 7}."
        answer = ask(gateway, user, text, headers={"x-hearth-session": "one"})
        assert answer.status == 200

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(call, range(40)))
    gateway.drain()
    kept = exchanges(gateway, user)
    assert Counter(one["user_text"] for one in kept) == Counter(
        f"My locker number {n} is in hall {n % 7}." for n in range(40)
    )
    assert {one["state"] for one in kept} == {"closed"}


def test_a_killed_worker_is_missed_by_nobody(
    gateway: GatewayProcess, workers: list[GatewayProcess], user: str
) -> None:
    """Of two workers one is killed amid its work; the other one files the rest."""
    for number in range(10):
        ask(gateway, user, f"In year {number} I lived in town {number}.")
    workers[0].process.kill()
    workers[0].process.wait()
    for number in range(10, 14):
        ask(gateway, user, f"In year {number} I lived in town {number}.")
    wait_until(lambda: not any(health(gateway)["parts"]["worker"]["numbers"]["lag"].values()), 90)
    assert len(exchanges(gateway, user)) == 14


def test_a_killed_gateway_process_is_replaced(gateway: GatewayProcess, user: str) -> None:
    """What its clients had received whole is kept, and the port is served all the while.

    It is killed while it owes its parent a sign of life, which the parent would wait for two minutes.
    """
    ask(gateway, user, SAID)
    doomed = processes(gateway)[0]
    doomed.suspend()
    time.sleep(1)
    doomed.kill()
    for _ in range(6):
        try:
            assert ask(gateway, user, QUESTION).recalled >= 1
        except httpx.TransportError:  # it was on its way to the killed one
            continue
    wait_until(lambda: len(processes(gateway)) == 2 and doomed not in processes(gateway), 60)
    assert SAID in [one["user_text"] for one in exchanges(gateway, user)]


def test_counters_are_those_of_all_processes(gateway: GatewayProcess, user: str) -> None:
    """Whichever process answers, what is counted is what all of them did."""

    def captures() -> float:
        with gateway.client(ADMIN) as client:
            lines = client.get("/memory/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("hearth_captures_total"))

    before = captures()
    for _ in range(10):
        ask(gateway, user, SAID)
    assert {captures() - before for _ in range(6)} == {10}


def test_case_46_without_its_database_calls_go_on_and_nothing_is_lost(
    gateway: GatewayProcess, servers: Servers, user: str
) -> None:
    """While PostgreSQL is away replies are given and captured to disk; afterwards each is in the log once."""
    ask(gateway, user, SAID)
    servers.postgres.mode = "refuse"
    try:
        for number in range(6):
            answer = ask(gateway, user, f"While it was away I read book {number}.", stream=bool(number % 2))
            assert answer.status == 200
    finally:
        servers.postgres.mode = "pass"
    wait_until(lambda: health(gateway)["parts"]["log"]["status"] == "ok", 60)
    wait_until(lambda: health(gateway)["parts"]["spool"]["numbers"]["waiting"] == 0, 60)
    kept = Counter(one["user_text"] for one in exchanges(gateway, user))
    assert max(kept.values()) == 1
    assert {text for text in kept if text.startswith("While it was away")} == {
        f"While it was away I read book {number}." for number in range(6)
    }


def test_a_gateway_that_starts_without_its_database_keeps_what_is_said(
    gateway: GatewayProcess, servers: Servers, folder: Path, provider: ScriptedProvider, user: str
) -> None:
    """It can't know what was switched off: captures wait, and those of a tenant that is off are not kept."""
    home = folder / "late"
    off, on = (f"While it was away {user} read book {which}." for which in ("one", "two"))
    with gateway.client(ADMIN) as client:
        switched = client.put("/memory/v1/switches", json={"mode": "off", "key": "alice"})
        switched.raise_for_status()
    servers.postgres.mode = "refuse"
    try:
        with served(servers.config(provider, home), home) as late:
            for route, stream in (("chat", False), ("messages", True), ("responses", False)):
                answer = ask(late, user, f"{on} {route}", route=route, stream=stream)
                assert answer.status == 200
                said = [answer.headers[f"x-hearth-{name}"] for name in ("status", "reason")]
                assert said == ["failed", "switches not read"]
            assert ask(late, "", off, key=ALICE).status == 200
            servers.postgres.mode = "pass"
            wait_until(lambda: health(late)["parts"]["spool"]["numbers"]["waiting"] == 0, 60)
            wait_until(lambda: ask(late, user, QUESTION).headers["x-hearth-status"] == "ok", 60)
    finally:
        servers.postgres.mode = "pass"
        with gateway.client(ADMIN) as client:
            client.put("/memory/v1/switches", json={"mode": "on", "key": "alice"}).raise_for_status()
    kept = Counter(one["user_text"] for one in exchanges(gateway, user))
    assert {text: kept[text] for text in kept if text != QUESTION} == dict.fromkeys(
        (f"{on} {route}" for route in ("chat", "messages", "responses")), 1
    )
    with gateway.client(ALICE) as client:
        assert off not in client.get("/memory/v1/exchanges").text


def test_ending_takes_readiness_away_first(
    gateway: GatewayProcess, servers: Servers, folder: Path, provider: ScriptedProvider, user: str
) -> None:
    """After SIGTERM it says that it is not ready and still serves; then it ends, and every reply is kept."""
    home = folder / "ending"
    provider.reply("One two three four five.", gap=0.5)
    answers: list[Answer] = []
    with served(servers.config(provider, home, drain_seconds=2), home) as ending:
        calling = threading.Thread(
            target=lambda: answers.append(ask(ending, user, "Count slowly, please.", stream=True))
        )
        calling.start()
        wait_until(lambda: provider.requests)
        os.kill(ending.process.pid, signal.SIGTERM)
        with ending.client(ADMIN) as client:
            wait_until(lambda: client.get("/memory/v1/health/ready").status_code == 503)
        assert ask(ending, user, "Are you still there?").status == 200
        assert ending.process.wait(60) == 0
        calling.join()
    assert answers[0].status == 200
    kept = {one["user_text"]: one["reply_text"] for one in exchanges(gateway, user)}
    assert kept["Count slowly, please."] == "One two three four five."
    assert "Are you still there?" in kept


@contextmanager
def served(config: dict[str, Any], home: Path) -> Iterator[GatewayProcess]:
    """A gateway that is gone at the end, whatever a test made of it."""
    gateway = start(config, home)
    try:
        yield gateway
    finally:
        gateway.process.kill()
        gateway.process.wait()
