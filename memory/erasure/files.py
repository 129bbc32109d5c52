"""The files of an embedded memory, and the search for fragments in every byte of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hearth.memory.erasure.receipt import Fragment, Scanned
from hearth.memory.erasure.scanning import Asked
from hearth.memory.errors import StoreUnavailable


class Files:
    """A data folder, and a spool that may be elsewhere."""

    def __init__(self, home: Path, places: Mapping[str, str], *, spool: Path) -> None:
        """`places`: by the beginning of a name in the folder, which place it is."""
        self._home, self._places, self._spool = home, places, spool

    def scan(self, wanted: Mapping[str, tuple[bytes, Sequence[Fragment]]]) -> dict[str, list[Scanned]]:
        """What is left of each erasure, by place. Blocks for as long as it takes to read everything. Raises
        StoreUnavailable.

        By a process of its own. Whoever closes a file gives up all locks that his process has on it
        (https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_),
        and the next program to open the log would take its write-ahead log away.
        """
        asked = Asked(
            home=str(self._home),
            places=self._places,
            spool=str(self._spool),
            wanted={erasure: (salt, tuple(fragments)) for erasure, (salt, fragments) in wanted.items()},
        )
        done = subprocess.run(
            [sys.executable, "-m", "hearth.memory.erasure.scanning"],
            input=msgspec.msgpack.encode(asked),
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            raise StoreUnavailable("the scan of files", f"it ended with {done.returncode}")
        return msgspec.msgpack.decode(done.stdout, type=dict[str, list[Scanned]])
