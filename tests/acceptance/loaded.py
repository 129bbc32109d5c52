"""A process that has loaded LiteLLM and Hearth once and forks into any number of commands of `hearth`.

To load them takes six of the seven seconds of a start. What is forked has a folder, an environment and an
output of its own and runs the whole command; only the interpreter and its modules are not new. Tests of the
start itself, and of what is read while modules load, start an interpreter.

python -m tests.acceptance.loaded   takes a line of JSON for each by stdin, tells of pids and ends by stdout
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Forked:
    """What came of a fork, as `subprocess.Popen` shows a process."""

    def __init__(self, template: Template, pid: int) -> None:
        self._template = template
        self.pid = pid

    @property
    def returncode(self) -> int | None:
        """As `poll`."""
        return self.poll()

    def poll(self) -> int | None:
        """Its exit status, or None while it runs; below zero the signal that killed it."""
        return self._template.status(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + (timeout or float("inf"))
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(0.02)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class Template:
    """The loaded process, from outside."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.loaded"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        self._ended: dict[int, int] = {}

    def start(
        self, arguments: Sequence[str], *, folder: Path, output: Path, environment: Mapping[str, str]
    ) -> Forked:
        """Fork into `hearth` with the arguments."""
        assert self._process.stdin is not None
        asked = {
            "arguments": arguments,
            "folder": str(folder),
            "output": str(output),
            "environment": dict(environment),
        }
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        while "pid" not in (said := self._next()):
            self._ended[said["ended"]] = said["status"]
        return Forked(self, said["pid"])

    def status(self, pid: int) -> int | None:
        """The exit status of a fork; None while it runs."""
        assert self._process.stdout is not None
        while pid not in self._ended and select.select([self._process.stdout], [], [], 0)[0]:
            said = self._next()
            self._ended[said["ended"]] = said["status"]
        return self._ended.get(pid)

    def _next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):  # unbuffered, so that select sees what is left
            line += os.read(self._process.stdout.fileno(), 1) or b"{}\n"
        said: dict[str, Any] = json.loads(line)
        assert said, "the loaded process has ended"
        return said


@cache
def template() -> Template:
    """The one of this test process; it ends with it, as its stdin does."""
    return Template()


def load() -> None:
    """Import all that a gateway imports, in an environment that decides nothing for those to come."""
    from hearth.config.environment import MASTER_KEY, prepare_environment

    had = dict(os.environ)
    prepare_environment(os.environ)
    if MASTER_KEY not in had:
        del os.environ[MASTER_KEY]
    gc.disable()
    import litellm.proxy.proxy_server  # noqa: F401

    import hearth.gateway.api
    import hearth.gateway.auth
    import hearth.gateway.cli
    import hearth.gateway.server  # noqa: F401

    gc.enable()
    gc.freeze()


def main() -> None:
    """Load, then fork for each line and tell of each fork's end, until stdin ends."""
    load()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 512)
            _tell_ends()
        if 0 not in ready:
            continue
        if not (line := sys.stdin.buffer.readline()):
            return
        if not (pid := os.fork()):
            _leave(woken, wake)
            _become(json.loads(line))
            return
        _tell(pid=pid)


def _tell_ends() -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            _tell(ended=ended[0], status=os.waitstatus_to_exitcode(ended[1]))


def _leave(*handles: int) -> None:
    """Have nothing to do with the loaded process any more, in the fork."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for handle in handles:
        os.close(handle)


def _tell(**said: int) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def _become(asked: dict[str, Any]) -> None:
    """Be the command."""
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    output = os.open(asked["output"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for handle, place in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(handle, place)
    from hearth.gateway.cli import main as hearth

    sys.argv = ["hearth", *asked["arguments"]]
    hearth()


if __name__ == "__main__":
    main()
