"""Points at which a process under test can be killed: calls that write to a store, and steps on files.

Nothing in Hearth knows of them. They are put around its stores in a process that ends with them.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from shutil import rmtree
from typing import Any

from hearth.memory.erasure.ledger import Ledger
from hearth.memory.events.kinds import Event
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.stores import edge_collection, edge_fresh
from hearth.memory.stores.edge import EdgeLongTerm
from hearth.memory.stores.edge_fresh import EdgeFresh
from hearth.memory.stores.fresh import Filling
from hearth.memory.stores.sqlite_short_term import SqliteShortTerm

_LOG = (
    "append",
    "lease",
    "start_attempt",
    "advance",
    "park",
    "unpark",
    "rebuild_views",
    "change",
    "truncate",
)
_INDEX = ("upsert", "delete", "clear", "flush")
_CALLS: tuple[tuple[Any, str, Sequence[str]], ...] = (
    (SqliteLog, "log", _LOG),
    (SqliteShortTerm, "short-term", ("push", "settle", "restore", "drop", "clear")),
    (EdgeLongTerm, "long-term", (*_INDEX, "purge", "mark_rebuilt")),
    (Filling, "fresh index", _INDEX),
    (EdgeFresh, "fresh index", ("keep_place", "switch")),
    (Ledger, "ledger", ("add",)),
)
"""Whose calls write, their name here, and which they are."""
_FILES = ("rename", "replace", "unlink", "mkdir")
_TRANSACTION = "_write"
_VARYING = re.compile(r"[0-9a-f]{16,}|\d{6,}[\dT-]*")
_VERB: ContextVar[str] = ContextVar("verb", default="")
"""What the log is at."""


class Points:
    """Counts the points that this process comes to, and kills it with SIGKILL at the one of that number."""

    def __init__(self, home: Path, *, kill_at: int | None = None) -> None:
        """`home`: the folder of the memory; steps on other files are no points."""
        self.passed: list[str] = []
        self._home = home
        self._kill_at = kill_at
        self._turn = threading.RLock()

    def reach(self, name: str, dying: Callable[[], None] = lambda: None) -> None:
        """One point; `dying` is what the process still does if it ends here."""
        with self._turn:
            self.passed.append(name)
            if len(self.passed) - 1 == self._kill_at:
                dying()
                os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Put the points around everything, for the rest of this process."""
        for owner, part, verbs in _CALLS:
            for verb in verbs:
                setattr(owner, verb, self._counted(getattr(owner, verb), part, verb))
        setattr(SqliteLog, _TRANSACTION, self._uncommitted(getattr(SqliteLog, _TRANSACTION)))
        for verb in _FILES:
            setattr(os, verb, self._on_file(getattr(os, verb), verb))
        for verb, dying in (("write_text", _emptied), ("touch", _nothing)):
            setattr(Path, verb, self._on_path(getattr(Path, verb), verb, dying))
        for module in (edge_collection, edge_fresh):
            module.rmtree = self._rmtree  # type: ignore[attr-defined]

    # -- what stands around ----------------------------------------------------------------------------

    def _counted(self, call: Any, part: str, verb: str) -> Any:
        if not asyncio.iscoroutinefunction(call):

            @wraps(call)
            def plain(*given: Any, **named: Any) -> Any:
                self.reach(f"{part}: {verb}")
                return call(*given, **named)

            return plain

        @wraps(call)
        async def counted(*given: Any, **named: Any) -> Any:
            name = f"{part}: {_said(verb, given[1:], named)}"
            self.reach(name)
            token = _VERB.set(name)
            try:
                return await call(*given, **named)
            finally:
                _VERB.reset(token)

        return counted

    def _uncommitted(self, write: Any) -> Any:
        """The rows of a transaction are written, and it is not committed."""

        @wraps(write)
        async def written(log: SqliteLog, run: Callable[[Any], Any], *, relaxed: bool = False) -> Any:
            name = _VERB.get()

            def then(db: Any) -> Any:
                result = run(db)
                self.reach(f"{name}, uncommitted")
                return result

            return await write(log, then if name else run, relaxed=relaxed)

        return written

    def _on_file(self, call: Any, verb: str) -> Any:
        @wraps(call)
        def step(path: Any, *given: Any, **named: Any) -> Any:
            if self._is_home(path) and os.path.lexists(path) != (verb == "mkdir"):
                self.reach(f"file: {verb} {self._short(path)}")
            return call(path, *given, **named)

        return step

    def _on_path(self, call: Any, verb: str, dying: Callable[[Path], None]) -> Any:
        @wraps(call)
        def step(path: Path, *given: Any, **named: Any) -> Any:
            if self._is_home(path):
                self.reach(f"file: {verb} {self._short(path)}", partial(dying, path))
            return call(path, *given, **named)

        return step

    def _rmtree(self, path: Path, *, ignore_errors: bool = False) -> None:
        """Ends before anything is removed, or when the one half of the files is or the other."""
        if path.exists():
            self.reach(f"file: remove {self._short(path)}")
            for rest in (0, 1):
                self.reach(f"file: halve {self._short(path)} ({rest})", partial(_halved, path, rest))
        rmtree(path, ignore_errors=ignore_errors)

    def _is_home(self, path: Any) -> bool:
        return isinstance(path, str | Path) and str(path).startswith(f"{self._home}/")

    def _short(self, path: Any) -> str:
        return _VARYING.sub("…", str(Path(path).relative_to(self._home)))


def _said(verb: str, given: Sequence[Any], named: Any) -> str:
    """The call in words, so that calls of one sort have one name."""
    match verb:
        case "append":
            return f"append {_kinds(given[0])}"
        case "lease" | "start_attempt":
            return f"{verb} for {given[0]}"
        case "advance":
            kinds = _kinds(named.get("decisions", ()))
            return f"advance {given[0].consumer}" + (f" with {kinds}" if kinds else "")
        case _:
            return verb


def _kinds(events: Sequence[Event]) -> str:
    return ", ".join(sorted({event.kind for event in events}))


def _halved(path: Path, rest: int) -> None:
    for file in sorted(one for one in path.rglob("*") if one.is_file())[rest::2]:
        file.unlink()


def _emptied(path: Path) -> None:
    """The file is there, and nothing is in it yet."""
    path.open("w").close()


def _nothing(path: Path) -> None:
    """Nothing of it is there."""
