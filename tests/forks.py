"""A process that has loaded LiteLLM, Hearth and its embedder once, and forks into any number of programs.

To load them takes most of what a start takes. What is forked has a folder, an environment, files and an
output of its own and runs the whole program; only the interpreter and its modules are not new. Tests of the
start itself, and of what is read while modules load, start an interpreter.

One serves all test processes of a run: the first that needs it starts it, and it ends with the last of them.

python -m tests.forks SOCKET
"""

from __future__ import annotations

import array
import fcntl
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

ROOT = Path(__file__).parents[1]
ProgramName: TypeAlias = Literal["hearth", "litellm", "code", "vector child"]
"""`code`: the first argument, as `python -c` runs it. `vector child`: its one argument is a socket's place
among the files that are handed over.
"""
Files: TypeAlias = Sequence[int | IO[Any]]

# -- whoever asks -------------------------------------------------------------------------------------------


class Forked:
    """What came of a fork, as `subprocess.Popen` shows a process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reads = threading.Lock()
        self._lines = connection.makefile("rb")
        self.pid = int(self._lines.readline())
        self.returncode: int | None = None
        """Its exit status, as of the last look; below zero the signal that killed it."""

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        with self._reads:
            if self.returncode is None:
                if not select.select([self._connection], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
                self.returncode = int(self._lines.readline())
                self._lines.close()
                self._connection.close()
        return self.returncode

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


def fork(
    program: ProgramName,
    *arguments: str,
    files: Files,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Forked:
    """Fork into the program. `files`: its input, output and errors, and what else it is handed."""
    asked = {
        "program": program,
        "arguments": arguments,
        "folder": str(folder or Path.cwd()),
        "environment": dict(os.environ if environment is None else environment),
    }
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address())
    _ask(connection, asked, files)
    return Forked(connection)


def run(
    program: ProgramName,
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end; what it wrote. Raises subprocess.TimeoutExpired."""
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        forked = fork(program, *arguments, files=(nothing, out, err), folder=folder, environment=environment)
        try:
            status = forked.wait(timeout)
        finally:
            forked.kill()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(
            [program, *arguments], status, out.read().decode(), err.read().decode()
        )


def vector_child(theirs: socket.socket) -> Forked:
    """In place of a new process for the vector child (`vector_child_link`)."""
    with Path(os.devnull).open("rb") as nothing:
        return fork("vector child", "3", files=(nothing, 1, 2, theirs.fileno()))


SHIM = """#!{python} -IS
import json, os, socket, struct, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
asked = dict(program="hearth", arguments=sys.argv[1:], folder=os.getcwd(), environment=dict(os.environ))
body = json.dumps(asked).encode()
socket.send_fds(connection, [struct.pack("<I", len(body))], [0, 1, 2])
connection.sendall(body)
lines = connection.makefile("rb")
lines.readline()
sys.exit(int(lines.readline()))
"""


def shim(folder: Path) -> Path:
    """A folder with a command `hearth` that is a fork, for scripts that call it by name."""
    bin = folder / "bin"
    bin.mkdir(exist_ok=True)
    command = bin / "hearth"
    command.write_text(SHIM.format(python=sys.executable, address=address()))
    command.chmod(0o755)
    return bin


@cache
def address() -> str:
    """Where the process listens; it is started if nobody has, and stays at least as long as this process."""
    if _OWN:
        return _OWN[0]
    run_id = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    path = Path(tempfile.gettempdir()) / f"hearth-forks-{run_id[:16]}"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _leased(str(path)):
            _start(path)
    return str(path)


_OWN: list[str] = []
"""In the process itself and all that it becomes, its address."""
_LEASES: list[socket.socket] = []
_STARTED: list[subprocess.Popen[bytes]] = []


def _leased(path: str) -> bool:
    lease = socket.socket(socket.AF_UNIX)
    try:
        lease.connect(path)
    except OSError:
        lease.close()
        return False
    _ask(lease, {"program": "lease"}, ())
    _LEASES.append(lease)
    return True


def _start(path: Path) -> None:
    path.unlink(missing_ok=True)
    with path.with_suffix(".log").open("ab") as log:
        _STARTED.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.forks", str(path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                start_new_session=True,
            )
        )
    deadline = time.monotonic() + 60
    while not _leased(str(path)):
        assert time.monotonic() < deadline, path.with_suffix(".log").read_text()[-2000:]
        time.sleep(0.05)


def _ask(connection: socket.socket, asked: Mapping[str, Any], files: Files) -> None:
    body = json.dumps(asked).encode()
    handles = [one if isinstance(one, int) else one.fileno() for one in files]
    socket.send_fds(connection, [struct.pack("<I", len(body))], handles)
    connection.sendall(body)


# -- the process --------------------------------------------------------------------------------------------


def load() -> None:
    """Import all that a gateway and its vector child import, in an environment that decides nothing for those
    to come.
    """
    import hearth.gateway.loaded

    gc.disable()
    import anthropic  # noqa: F401
    import litellm.proxy.proxy_cli  # noqa: F401
    import openai  # noqa: F401

    import hearth.gateway.cli
    import hearth.memory.extract.patterns
    import hearth.memory.stores.edge_fresh
    import hearth.memory.stores.edge_succession
    import hearth.memory.stores.postgres_terms
    import hearth.memory.stores.qdrant_succession

    hearth.memory.extract.patterns.book()
    _embed_at_once()
    gc.enable()
    gc.freeze()


def _embed_at_once() -> None:
    """Vector children find the fast embedder loaded."""
    from hearth.memory.stores import vector_child_main

    plain = vector_child_main.load_embedder
    fast = plain("fast")
    vector_child_main.load_embedder = lambda name: fast if name == "fast" else plain(name)


class Server:
    """Forks for whoever connects, and tells each of its fork's end."""

    def __init__(self, path: str) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(path)
        self._listening.listen(512)
        self._path = path
        self._woken, self._wake = os.pipe()
        self._leases: set[socket.socket] = set()
        self._running: dict[int, socket.socket] = {}

    def serve(self) -> Callable[[], None] | None:
        """Until nobody holds a lease; in a fork it returns what that is to do. A fork lives no longer than
        whoever asked for it.
        """
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        while True:
            running = self._running.items()
            watched = [self._listening, self._woken, *self._leases, *self._running.values()]
            ready = select.select(watched, [], [])[0]
            for pid in [pid for pid, connection in running if connection in ready]:
                os.kill(pid, signal.SIGKILL)  # whoever asked for it is gone
                self._running.pop(pid).close()
            if self._woken in ready:
                os.read(self._woken, 512)
                self._tell_ends()
            if self._leases and not self._leases - set(ready):
                Path(self._path).unlink(missing_ok=True)
                return None
            for gone in self._leases & set(ready):
                self._leases.remove(gone)
                gone.close()
            if self._listening in ready and (work := self._accept()):
                return work

    def _accept(self) -> Callable[[], None] | None:
        connection, _ = self._listening.accept()
        handles = array.array("i")
        head, handles, _, _ = socket.recv_fds(connection, 4, 8)  # type: ignore[assignment]
        asked = json.loads(_read(connection, struct.unpack("<I", head)[0])) if len(head) == 4 else {}
        if asked.get("program") == "lease":
            self._leases.add(connection)
            return None
        pid = os.fork() if asked else -1
        if not pid:
            self._leave(connection)
            return lambda: become(asked, list(handles))
        for handle in handles:
            os.close(handle)
        if pid < 0:
            connection.close()
            return None
        self._running[pid] = connection
        self._tell(connection, pid)
        return None

    def _tell_ends(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if connection := self._running.pop(ended[0], None):
                    self._tell(connection, os.waitstatus_to_exitcode(ended[1]))
                    connection.close()

    def _tell(self, connection: socket.socket, number: int) -> None:
        with suppress(OSError):  # whoever asked is gone
            connection.sendall(b"%d\n" % number)

    def _leave(self, own: socket.socket) -> None:
        """Have nothing to do with the loaded process any more, in the fork."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for connection in (self._listening, own, *self._leases, *self._running.values()):
            connection.close()
        os.close(self._woken)
        os.close(self._wake)


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (part := connection.recv(size - len(found))):
        found += part
    return found


def become(asked: Mapping[str, Any], handles: list[int]) -> None:
    """Be the program."""
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    for place, handle in enumerate(handles[:3]):
        os.dup2(handle, place)
        os.close(handle)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    arguments = asked["arguments"]
    match asked["program"]:
        case "hearth":
            from hearth.gateway.cli import main as hearth
            from hearth.memory.stores import vector_child_link

            vector_child_link.spawn = vector_child
            sys.argv = ["hearth", *arguments]
            hearth()
        case "litellm":
            from litellm.proxy.proxy_cli import run_server

            sys.argv = ["litellm", *arguments]
            run_server()
        case "vector child":
            from hearth.memory.stores.vector_child_main import main as child

            sys.argv = ["vector child", str(handles[int(arguments[0])])]
            child()
        case "code":
            sys.argv = ["-c", *arguments[1:]]
            sys.path.insert(0, "")
            exec(compile(arguments[0], "<string>", "exec"), {"__name__": "__main__"})


def main() -> None:
    """Listen, load, fork."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _OWN.append(sys.argv[1])
    server = Server(sys.argv[1])
    load()
    if work := server.serve():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        work()


if __name__ == "__main__":
    main()
