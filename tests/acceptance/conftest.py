"""A real gateway process in front of a scripted provider."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import httpx
import pytest
import yaml

from hearth.testing.provider import ScriptedProvider
from tests.forks import Forked, ProgramName, fork
from tests.servers import free_port

START_SECONDS = 240
AnyProcess: TypeAlias = subprocess.Popen[bytes] | Forked
ALICE, BOB, APP, ADMIN = (f"sk-test-{name}-0123456789abcdef" for name in ("alice", "bob", "app", "admin"))


@dataclass(frozen=True)
class GatewayProcess:
    """A running `hearth serve`."""

    url: str
    process: AnyProcess
    home: Path

    def client(self, key: str, **headers: str) -> httpx.Client:
        """An HTTP client that calls with `key`."""
        return httpx.Client(
            base_url=self.url, headers={"authorization": f"Bearer {key}", **headers}, timeout=30
        )

    def drain(self) -> None:
        """Wait until background work is done, that of a capture which a slow disk sent to the spool too."""
        with self.client(ADMIN) as client:
            wait_until(lambda: not any(self._waiting(client)))

    @staticmethod
    def _waiting(client: httpx.Client) -> list[int]:
        parts = client.get("/memory/v1/health").json()["parts"]
        return [parts["spool"]["numbers"]["waiting"], *parts["worker"]["numbers"]["lag"].values()]


def wait_until(holds: object, seconds: float = 20) -> None:
    """Wait until the callable `holds` returns true; it is an AssertionError if it never does."""
    assert callable(holds)
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"it did not hold within {seconds} s"
        time.sleep(0.05)


def document(provider: ScriptedProvider, home: Path) -> dict[str, object]:
    """A configuration with one model a wire format and a key a kind of caller."""
    openai = {"api_base": provider.openai_url, "api_key": "provider-key"}
    anthropic = {"api_base": provider.url, "api_key": "provider-key"}

    def key(name: str, plain: str, **fields: object) -> dict[str, object]:
        return {"name": name, "key": plain, "tenant": "acme", **fields}

    return {
        "model_list": [
            {"model_name": "gpt", "litellm_params": {"model": "openai/gpt-4o-mini", **openai}},
            {"model_name": "gpt-5.6", "litellm_params": {"model": "openai/gpt-5.6", **openai}},
            {"model_name": "claude", "litellm_params": {"model": "anthropic/claude-sonnet-4-5", **anthropic}},
            {
                "model_name": "compat",
                "litellm_params": {"model": "openai/any", "use_chat_completions_api": True, **openai},
            },
            {
                "model_name": "instruct",
                "litellm_params": {"model": "text-completion-openai/gpt-3.5-turbo-instruct", **openai},
            },
        ],
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "hearth": {
            "data_dir": str(home),
            "recall": {"deadline_ms": 10_000},  # beside other tests, 150 ms are not enough for each call
            "keys": [
                key("alice", ALICE, user="alice"),
                key("bob", BOB, user="bob"),
                key("app", APP, users="named"),
                key("admin", ADMIN, user="root", scopes=["read", "write", "admin"]),
            ],
        },
    }


def start(
    config: dict[str, Any],
    home: Path,
    *,
    port: int | None = None,
    workers: int = 1,
    anew: bool = False,
    **environment: str,
) -> GatewayProcess:
    """Start `hearth serve` and wait until it is ready; `anew` as in `run_hearth`."""
    port = port or free_port()
    options = ("--port", str(port), "--workers", str(workers))
    # Several processes are each started anew by their parent, which they take for a program.
    process, log = run_hearth(home, config, "serve", *options, anew=anew or workers > 1, **environment)
    gateway = GatewayProcess(url=f"http://127.0.0.1:{port}", process=process, home=home)
    await_answer(process, f"{gateway.url}/memory/v1/health/ready", log)
    return gateway


def start_worker(config: dict[str, Any], home: Path, **environment: str) -> GatewayProcess:
    """Start `hearth worker` and wait until it works."""
    port = free_port()
    process, log = run_hearth(home, config, "worker", "--port", str(port), **environment)
    worker = GatewayProcess(url=f"http://127.0.0.1:{port}", process=process, home=home)
    await_answer(process, f"{worker.url}/health/ready", log)
    return worker


def run_hearth(
    home: Path, config: dict[str, Any], command: str, *options: str, anew: bool = False, **environment: str
) -> tuple[AnyProcess, Path]:
    """Start a command of `hearth` with the configuration; its process and log. Does not wait.

    By a fork of a process that has loaded everything or, `anew`, by an interpreter of its own, which reads
    the environment while it loads.
    """
    path, log = home.parent / f"{home.name}.yaml", home.parent / f"{home.name}.log"
    path.write_text(yaml.safe_dump(config))
    arguments = [command, "--config", str(path), *options]
    whole = {**os.environ, **environment}
    if not anew:
        return _forked("hearth", *arguments, folder=home.parent, log=log, environment=whole), log
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "hearth.gateway.cli", *arguments],
            stdout=output,
            stderr=output,
            cwd=home.parent,
            env=whole,
        )
    return process, log


def start_litellm(
    config: dict[str, Any], folder: Path, *, anew: bool = False
) -> tuple[AnyProcess, str, Path]:
    """Start `litellm --config` on a free port; its process, address and log. Does not wait. `anew` as in
    `run_hearth`.
    """
    path, port, log = folder / "litellm_config.yaml", free_port(), folder / "litellm.log"
    path.write_text(yaml.safe_dump(config))
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    arguments = ["--config", str(path), "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    if not anew:
        return _forked("litellm", *arguments, folder=folder, log=log, environment=environment), url, log
    command = [str(Path(sys.executable).with_name("litellm")), *arguments]
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=environment)
    return process, url, log


def _forked(
    program: ProgramName, *arguments: str, folder: Path, log: Path, environment: dict[str, str]
) -> Forked:
    with Path(os.devnull).open("rb") as nothing, log.open("ab") as output:
        files = (nothing, output, output)
        return fork(program, *arguments, files=files, folder=folder, environment=environment)


def await_answer(process: AnyProcess, url: str, log: Path, seconds: float = START_SECONDS) -> None:
    """Wait until `url` answers 200; an AssertionError with the end of the log if the process ends instead."""

    def ready() -> bool:
        assert process.poll() is None, log.read_text()[-4000:]
        try:
            return client.get(url).status_code == 200
        except httpx.TransportError:
            return False

    with httpx.Client() as client:
        wait_until(ready, seconds)


def stop(gateway: GatewayProcess) -> int:
    """Ask the process to end and return its exit status."""
    gateway.process.terminate()
    return gateway.process.wait(60)


@pytest.fixture(scope="session")
def _provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


@pytest.fixture(scope="session")
def gateway(
    _provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    """One gateway for all tests; they keep apart by their users."""
    home = tmp_path_factory.mktemp("gateway") / "data"
    running = start(document(_provider, home), home)
    yield running
    assert stop(running) == 0


@pytest.fixture(autouse=True)
def _gateway_lives(request: pytest.FixtureRequest) -> Iterator[None]:
    """The test after which a shared gateway is gone says so, with the end of its log."""
    yield
    if "gateway" in request.fixturenames:
        running: GatewayProcess = request.getfixturevalue("gateway")
        status = running.process.poll()
        log = running.home.parent / f"{running.home.name}.log"
        assert status is None, f"the gateway ended with {status}:\n{log.read_text()[-4000:]}"


@pytest.fixture
def provider(_provider: ScriptedProvider) -> Iterator[ScriptedProvider]:
    """The provider with nothing scripted and nothing received yet; nothing is left for whoever comes next."""
    _provider.clear()
    yield _provider
    _provider.clear()
    _provider.answer = None


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    """A user of the app's key that no other test has."""
    return f"{crc32(request.node.nodeid.encode()):08x} {request.node.name}"[:120]
