"""What encryption costs: `python benchmarks/encryption.py [folder]`.

The same is done over a plain memory and an encrypted one, in turns: a machine's moods meet both. CPU is
this process's: the vector child does the same work either way.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from hearth.memory.clock import SystemClock
from hearth.memory.encryption.master import MasterKeys
from hearth.memory.events.archive import ArchiveFolder
from hearth.memory.events.archiving import Archiving
from hearth.memory.events.kinds import Event, StepCaptured
from hearth.memory.events.sqlite_log import SqliteLog
from hearth.memory.opening import keys_for_stores, opened_short_term
from hearth.memory.ports import SearchRequest, ShortTerm
from hearth.memory.stores.encrypted_child import EncryptedChild
from hearth.memory.stores.vector_child import VectorChild
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Page, PlacedBlock, Scope

from log_append import captured  # isort: skip

EVENTS = 1_000
ROUNDS = 5
PAGES = 300
ASKED = 60
SCOPE = Scope(tenant="acme", user="alice", session="s1")
PLAIN = "hearth.testing.embedder:plain"

Figures = dict[str, list[float]]


async def spent(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Milliseconds of the clock and of this process's CPU."""
    started, cpu = time.perf_counter(), time.process_time()
    await work()
    return (time.perf_counter() - started) * 1000, (time.process_time() - cpu) * 1000


class Memory:
    """Log, short-term and long-term memory in a folder of their own."""

    def __init__(self, folder: Path, masters: MasterKeys | None) -> None:
        self.folder = folder
        self.log = SqliteLog(
            folder / "log.db",
            durability="process",
            clock=SystemClock(),
            archive=ArchiveFolder(folder / "archive"),
            masters=masters,
        )
        self.figures: Figures = defaultdict(list)
        self.child: VectorChild

    async def start(self) -> None:
        """Open all but short-term memory."""
        await self.log.start()
        keys = keys_for_stores(self.log)
        child = VectorChild if keys is None else partial(EncryptedChild, keys=keys)
        self.child = child(self.folder / "long_term", PLAIN)
        await self.child.start()

    async def close(self) -> None:
        """Close it."""
        await self.child.close()
        await self.log.close()

    async def round(self, events: list[Event], pages: list[Page]) -> None:
        """Append, read, push, look and search once."""
        await self._note("append", len(events), partial(self._append, events))
        await self._note("read", len(events), partial(self.log.read, tenant="acme", limit=len(events)))
        async with opened_short_term(self.folder, "", self.log) as (short_term, _):
            await self._note("short-term push", 50, partial(self._push, short_term, pages[:50]))
            await self._note("short-term look, ten pages", ASKED, partial(self._look, short_term))
        items = [index_record(page, None) for page in pages]
        await self._note("long-term write", len(items), partial(self.child.upsert, items))
        await self._note("long-term search, 100 candidates", ASKED, self._search)

    async def archived(self) -> tuple[int, int, int]:
        """Bytes of the payloads in the log, of the archives after them, and of long-term memory."""
        await self.child.flush()
        done = await Archiving(self.log, owner="benchmark").archive(
            "acme", datetime.now(UTC) + timedelta(days=1)
        )
        kept = sum(path.stat().st_size for path in (self.folder / "long_term").rglob("*") if path.is_file())
        return done.before, done.after, kept

    async def _note(self, what: str, count: int, work: Callable[[], Awaitable[object]]) -> None:
        taken, cpu = await spent(work)
        self.figures[what].append(taken / count)
        self.figures[f"{what}, CPU"].append(cpu / count)

    async def _append(self, events: list[Event]) -> None:
        for event in events:
            await self.log.append([event])

    async def _push(self, store: ShortTerm, pages: list[Page]) -> None:
        now = datetime.now(UTC)
        for page in pages:
            block = PlacedBlock(exchange=page.id, text=page.user_text, tokens=100, items=(page.id,), at=now)
            await store.push(page, vector=None, block=block)

    async def _look(self, store: ShortTerm) -> None:
        for _ in range(ASKED):
            await store.latest(SCOPE, limit=10)

    async def _search(self) -> None:
        for n in range(ASKED):
            request = SearchRequest(owners=(SCOPE.owner,), text=f"coat for Oslo the {n}th", deadline=5.0)
            await self.child.search(request)


def page_of(event: Event) -> Page:
    """The exchange of a step as a page."""
    assert isinstance(event.payload, StepCaptured)
    step = event.payload.step
    return Page(
        id=step.exchange,
        scope=SCOPE,
        generation=1,
        user_text=step.user_text,
        reply_text=step.reply_text,
        occurred_at=event.occurred_at,
    )


async def main() -> None:
    """Measure in turns, and print each figure of both and their ratio."""
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        plain = Memory(Path(folder) / "plain", None)
        encrypted = Memory(Path(folder) / "encrypted", MasterKeys([b"m" * 32]))
        for memory in (plain, encrypted):
            memory.folder.mkdir()
            await memory.start()
        for number in range(ROUNDS):
            events = [captured(n) for n in range(EVENTS)]
            pages = [page_of(event) for event in events[:PAGES]]
            for memory in (plain, encrypted) if number % 2 else (encrypted, plain):
                await memory.round(events, pages)
        print("| milliseconds each | plain | encrypted | ratio |\n|---|---|---|---|")
        for what in plain.figures:
            one, other = (statistics.median(m.figures[what]) for m in (plain, encrypted))
            print(f"| {what} | {one:.3f} | {other:.3f} | {other / one:.2f} |")
        sizes = [await memory.archived() for memory in (plain, encrypted)]
        for at, what in enumerate(("payloads in the log", "the same in archives", "long-term memory")):
            print(f"| {what}, kB | {sizes[0][at] / 1e3:.0f} | {sizes[1][at] / 1e3:.0f} |", end=" ")
            print(f"{sizes[1][at] / sizes[0][at]:.2f} |")
        for memory in (plain, encrypted):
            await memory.close()


if __name__ == "__main__":
    asyncio.run(main())
