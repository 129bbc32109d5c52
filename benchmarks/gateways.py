"""The processes of a benchmark: a local provider, bare LiteLLM, and Hearth, with what they cost in CPU time.

    python benchmarks/gateways.py CONFIG PORT      serve bare LiteLLM (used by `bare` below)

Bare LiteLLM is its own app under uvicorn with the very arguments that `hearth serve` gives it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

MASTER = "sk-benchmark-master-0123456789abcdef"
APP = "sk-benchmark-app-0123456789abcdef"
START_SECONDS = 120
COMPILED = Path(tempfile.gettempdir()) / "hearth-benchmark" / "compiled"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Served:
    """A process that answers at `url`."""

    url: str
    process: subprocess.Popen[bytes]
    output: Path

    def kill(self) -> None:
        """End it as the kernel ends a process: no handler runs."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def cpu(self) -> tuple[float, float]:
        """Seconds of CPU time, user and system, of the process itself and of its living children."""
        own = cpu_seconds(self.process.pid)
        return own, sum(map(cpu_seconds, children(self.process.pid)))


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, all threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def children(pid: int) -> list[int]:
    """The living children of a process."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for one in found for child in one.read_text().split()]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def document(provider: str, *, hearth: Mapping[str, Any] | None) -> dict[str, Any]:
    """The one configuration of both: three routes' models, a master key, and Hearth's section or none."""
    models = {
        "gpt": {"model": "openai/gpt-4o-mini", "api_base": f"{provider}/v1"},
        "claude": {"model": "anthropic/claude-sonnet-4-5", "api_base": provider},
    }
    made: dict[str, Any] = {
        "model_list": [
            {"model_name": name, "litellm_params": {"api_key": "provider-key", **params}}
            for name, params in models.items()
        ],
        "router_settings": {"num_retries": 0},
        "general_settings": {"master_key": MASTER},
    }
    if hearth is not None:
        keys = [{"name": "app", "key": APP, "tenant": "acme", "users": "named"}]
        made["hearth"] = {"keys": keys, **hearth}
    return made


@contextmanager
def provider(folder: Path, *, words: int, gap_ms: float = 0.0) -> Iterator[str]:
    """A scripted provider in a process of its own; yields its address."""
    port = free_port()
    command = ["-m", "hearth.testing.provider", "--port", str(port), "--tokens", str(words)]
    served = _spawn([*command, "--gap-ms", str(gap_ms)], folder / "provider.log", port)
    _await(served, "/v1/models")
    try:
        yield served.url
    finally:
        served.stop()


def bare(folder: Path, provider_url: str) -> Served:
    """Bare LiteLLM, ready. Its callers use the master key, LiteLLM's quickest authentication."""
    port = free_port()
    config = _write(folder / "bare.yaml", document(provider_url, hearth=None))
    served = _spawn([__file__, str(config), str(port)], folder / "bare.log", port)
    return _await(served, "/health/liveliness")


def hearth(folder: Path, provider_url: str, **section: Any) -> Served:
    """`hearth serve` over `section` (data_dir at least), ready."""
    return _await(_command("serve", folder, provider_url, section), "/memory/v1/health/ready")


def worker(folder: Path, provider_url: str, **section: Any) -> Served:
    """`hearth worker` over `section`, which says `worker: external`, at work."""
    return _await(_command("worker", folder, provider_url, section), "/health/ready")


def _command(name: str, folder: Path, provider_url: str, section: Mapping[str, Any]) -> Served:
    port = free_port()
    config = _write(folder / "hearth.yaml", document(provider_url, hearth=section))
    command = ["-m", "hearth.gateway.cli", name, "--config", str(config), "--port", str(port)]
    return _spawn(command, folder / "hearth.log", port)


def lag(served: Served) -> int:
    """Events that Hearth's worker has not handled yet."""
    worker = httpx.get(f"{served.url}/memory/v1/health", timeout=30).json()["parts"]["worker"]
    return sum(worker["numbers"]["lag"].values())


def drained(served: Served, *, seconds: float) -> float:
    """Wait until the worker has handled everything; returns the seconds that took."""
    began = time.monotonic()
    while lag(served) and time.monotonic() - began < seconds:
        time.sleep(0.1)
    return time.monotonic() - began


def _write(path: Path, config: Mapping[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(dict(config)))
    return path


def _spawn(arguments: list[str], output: Path, port: int) -> Served:
    with output.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=log,
            stderr=log,
            env=_environment(),
        )
    return Served(url=f"http://127.0.0.1:{port}", process=process, output=output)


def _environment() -> dict[str, str]:
    """Ours, with compiled modules kept as in any installation.

    LiteLLM imports a module of OpenTelemetry's in every call, which fails where that is not installed. Where
    nothing may be kept, the module is compiled anew each time: 4 ms that make both sides slower and the
    ratio better than it is.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(COMPILED), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def _await(served: Served, path: str) -> Served:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if served.process.poll() is not None:
            raise RuntimeError(f"it did not start:\n{served.output.read_text()[-3000:]}")
        try:
            if httpx.get(served.url + path, timeout=5).status_code < 500:
                return served
        except httpx.TransportError:
            time.sleep(0.1)
    served.kill()
    raise RuntimeError(f"{served.url}{path} gave no answer in {START_SECONDS} s")


def _serve_bare(config: str, port: int) -> None:
    import uvicorn

    os.environ["CONFIG_FILE_PATH"] = config
    from litellm.proxy.proxy_server import app

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    _serve_bare(sys.argv[1], int(sys.argv[2]))
