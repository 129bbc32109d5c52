"""The failure matrix: each part of memory fails in each way, under calls, and comes back.

    python -m tests.acceptance.failures docs/operate.md

writes the table into the page, from a run of a gateway and a worker over real servers (Qdrant's REST
interface stands in for that one, and for PostgreSQL what it can't be made to do is done to its rights).
With `ONLY=redis` in the environment the faults of that name are tried, and the page's other rows stay.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, TypeAlias

import httpx
import psycopg
from redis import Redis

from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Reply
from tests.acceptance.conftest import ADMIN, APP, GatewayProcess, start, start_worker, stop
from tests.acceptance.failing_embedder import VARIABLE
from tests.acceptance.reader import READ, Reader, configure
from tests.acceptance.shared import Servers, shared_servers
from tests.acceptance.talk import Answer, RouteName, ask, remember
from tests.faults import Mode, Relay, relay

PartName = Literal["redis", "postgres", "qdrant", "embedder", "extraction model"]

SAID = "I keep my bicycle in the cellar of the library."
QUESTION = "Where do I keep my bicycle?"
REPLY = "Noted."
Way: TypeAlias = tuple[RouteName, bool]
WAYS: tuple[Way, ...] = tuple(
    (route, stream) for route in ("chat", "messages", "responses") for stream in (False, True)
)
HEALTH_PART: dict[PartName, str] = {
    "redis": "short_term",
    "postgres": "log",
    "qdrant": "long_term",
    "embedder": "recall",
    "extraction model": "extraction",
}
WELL_SECONDS = 90.0
"""For a part to be well again, by itself."""
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class World:
    """A gateway and a worker over the servers, and what a fault may touch."""

    servers: Servers
    gateway: GatewayProcess
    worker: GatewayProcess
    reader: Reader
    model: Relay
    """By which the worker reaches the model that reads facts, and nobody else does anything."""
    redis: Redis
    """One connection, not through the relay, that is there before any fault."""
    embedder: Path

    def relay(self, part: PartName) -> Relay:
        """That by which the part is reached."""
        found: Relay = self.model if part == "extraction model" else getattr(self.servers, part)
        return found

    def set_redis(self, *, cut: bool = False, **values: str) -> None:
        """Settings of the running Valkey; `cut` hangs up on everybody else."""
        for name, value in values.items():
            self.redis.config_set(name.replace("_", "-"), value)
        if cut:
            self.redis.client_kill_filter(_type="normal", skipme=True)

    def sql(self, *statements: str) -> None:
        """Statements of a superuser, not through the relay."""
        with psycopg.connect(self.servers.postgres_url, autocommit=True) as db:
            for statement in statements:
                db.execute(statement.encode())


Act = Callable[[World], object]

_CUT_ALL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND application_name = 'hearth'"
)


@dataclass(frozen=True)
class Fault:
    """One part failing in one way."""

    part: PartName
    way: str
    begin: Act
    end: Act
    excused: bool = False
    """True where nothing is lost and recall has all it needs, so health need not say a word."""

    def __str__(self) -> str:
        """Names it in a table or a test's id."""
        return f"{self.part} {self.way}"


def _relayed(part: PartName, way: str, mode: Mode) -> Fault:
    def begin(world: World) -> None:
        world.relay(part).mode = mode

    def end(world: World) -> None:
        world.relay(part).mode = "pass"

    return Fault(part, way, begin, end)


def _embedder(way: str, word: str) -> Fault:
    return Fault(
        "embedder",
        way,
        lambda world: _write(world.embedder, word),
        lambda world: _write(world.embedder, ""),
        excused=True,
    )


def _refusing(way: str, status: int) -> Fault:
    def answer_with(status: int) -> Act:
        def begin(world: World) -> None:
            world.reader.status = status

        return begin

    return Fault("extraction model", way, answer_with(status), answer_with(200))


def _write(path: Path, word: str) -> None:
    path.write_text(word)


def _nothing(world: World) -> None:
    """It mends itself."""


def _status(code: int) -> Act:
    def set_status(world: World) -> None:
        world.servers.shim.always = code

    return set_status


_RELAYED: tuple[tuple[str, Mode], ...] = (
    ("stopped", "refuse"),
    ("hung", "hang"),
    ("slow (2 s)", "slow"),
    ("cut amid its answers", "cut"),
)
_SERVERS: tuple[PartName, ...] = ("redis", "postgres", "qdrant")

FAULTS: tuple[Fault, ...] = (
    *(_relayed(part, way, mode) for part in _SERVERS for way, mode in _RELAYED),
    Fault(
        "redis",
        "out of memory",
        lambda world: world.set_redis(maxmemory="1", maxmemory_policy="noeviction"),
        lambda world: world.set_redis(maxmemory="0"),
        excused=True,
    ),
    Fault(
        "redis",
        "read-only replica",
        lambda world: world.redis.replicaof("127.0.0.1", "1"),
        lambda world: world.redis.replicaof("NO", "ONE"),
        excused=True,
    ),
    Fault(
        "redis",
        "wrong password",
        lambda world: world.set_redis(requirepass="another", cut=True),
        lambda world: world.set_redis(requirepass=""),
    ),
    Fault(
        "redis",
        "no connection free",
        lambda world: world.set_redis(maxclients="1", cut=True),
        lambda world: world.set_redis(maxclients="10000"),
    ),
    Fault("redis", "restarted empty", lambda world: world.redis.flushall(), _nothing, excused=True),
    Fault(
        "postgres",
        "read-only",
        lambda world: world.sql("ALTER ROLE hearth SET default_transaction_read_only = on", _CUT_ALL),
        lambda world: world.sql("ALTER ROLE hearth RESET default_transaction_read_only", _CUT_ALL),
    ),
    Fault(
        "postgres",
        "wrong password",
        lambda world: world.sql("ALTER ROLE hearth NOLOGIN", _CUT_ALL),
        lambda world: world.sql("ALTER ROLE hearth LOGIN"),
    ),
    Fault(
        "postgres",
        "no connection free",
        lambda world: world.sql("ALTER ROLE hearth CONNECTION LIMIT 0", _CUT_ALL),
        lambda world: world.sql("ALTER ROLE hearth CONNECTION LIMIT -1"),
    ),
    Fault("qdrant", "full (500)", _status(500), _status(0)),
    Fault("qdrant", "overloaded (429)", _status(429), _status(0)),
    Fault("qdrant", "wrong key (401)", _status(401), _status(0)),
    Fault("qdrant", "restarted empty", lambda world: world.servers.shim.forget(), _nothing, excused=True),
    _embedder("slow (2 s)", "slow"),
    _embedder("hung", "hang"),
    _embedder("raises", "raise"),
    _embedder("its process dies", "die"),
    *(_relayed("extraction model", way, mode) for way, mode in _RELAYED),
    _refusing("wrong key (401)", 401),
    _refusing("overloaded (429)", 429),
)


@dataclass(kw_only=True)
class Outcome:
    """What a fault did to the calls, and how it ended."""

    fault: Fault
    calls: int = 0
    answered: int = 0
    """With status 200 and the provider's whole reply."""
    added: list[float] = field(default_factory=list)
    """Milliseconds beyond the healthy median of the same way, each call."""
    said: Counter[str] = field(default_factory=Counter)
    """The calls' `x-hearth-status` and reason."""
    named: str = ""
    """What health said of the part while it failed."""
    counted: float = 0.0
    """Failures, missing parts and refills that the counters have more."""
    kept: Counter[int] = field(default_factory=Counter)
    """How many of the exchanges are in the log so many times."""
    recalled: bool = False
    """Whether what was told before and during the fault is recalled afterwards."""
    seconds: float = 0.0
    """Until all was well, nothing waited and the worker had caught up."""
    wanting: str = ""
    """What was not well yet when that was last looked at."""


@contextmanager
def world(provider: ScriptedProvider, folder: Path, *, deadline_ms: int = 500) -> Iterator[World]:
    """Everything started, in the folder. The stand-in for Qdrant takes its time, and so recall gets more."""
    embedder = folder / "embedder"
    embedder.write_text("")
    with ExitStack() as stack:
        servers = stack.enter_context(shared_servers())
        with psycopg.connect(servers.postgres_url, autocommit=True) as db:
            db.execute("CREATE ROLE hearth LOGIN; GRANT CREATE ON DATABASE postgres TO hearth")
        model = stack.enter_context(relay(("127.0.0.1", provider.port)))
        provider.answer = reader = Reader(REPLY, "Parcel number")
        url = f"postgresql://hearth@127.0.0.1:{servers.postgres.port}/postgres"
        settings = {
            "postgres_url": url,
            "embedder": "tests.acceptance.failing_embedder:embedder",
            "recall": {"deadline_ms": deadline_ms},
        }
        environment = {VARIABLE: str(embedder), "PYTHONPATH": str(ROOT)}
        processes = []
        for name, started in (("worker", start_worker), ("gateway", start)):
            config = servers.config(provider, folder / name, **settings)
            configure(config, f"http://127.0.0.1:{model.port}/v1")
            processes.append(started(config, folder / name, **environment))
            stack.callback(_end, processes[-1])
        worker, gateway = processes
        redis = stack.enter_context(Redis(port=servers.valkey.port, single_connection_client=True))
        yield World(
            servers=servers,
            gateway=gateway,
            worker=worker,
            reader=reader,
            model=model,
            redis=redis,
            embedder=embedder,
        )


def _end(process: GatewayProcess) -> None:
    if process.process.poll() is None:
        stop(process)


class Trial:
    """One fault, tried on one user who is told something before, during and after it."""

    def __init__(self, world: World, fault: Fault, baseline: dict[Way, float]) -> None:
        self._world, self._fault, self._baseline = world, fault, baseline
        self._user = str(fault)
        self._reads = fault.part == "extraction model"
        """Whether a model reads what is told."""
        self._told: list[str] = []
        self.outcome = Outcome(fault=fault)

    def run(self, *, calls: int, at_once: int) -> Outcome:
        """So many calls while it lasts, several at once, then wait until all is well."""
        remember(self._world.gateway, self._user, SAID)
        ask(self._world.gateway, self._user, QUESTION)  # a page, which short-term memory can lose
        self._world.gateway.drain()
        before = _failures(self._world.gateway)
        self._fault.begin(self._world)
        try:
            with ThreadPoolExecutor(at_once) as threads:
                answers = list(threads.map(self._tell, range(calls), cycle(WAYS)))
            self._note(answers)
            self.outcome.named = self._await_named() if self._reads else self._named()
        finally:
            self._fault.end(self._world)
        self.outcome.counted = _failures(self._world.gateway) - before
        self._await_well()
        self._check_kept()
        return self.outcome

    def _tell(self, number: int, way: Way) -> tuple[Answer | None, float, Way]:
        text = f"Parcel number {number} lies in locker {number * 7} of {self._user}. {QUESTION}"
        self._told.append(text)
        started = time.perf_counter()
        try:
            key = READ if self._reads else APP
            answer = ask(self._world.gateway, self._user, text, route=way[0], stream=way[1], key=key)
        except httpx.HTTPError:
            return None, time.perf_counter() - started, way
        return answer, time.perf_counter() - started, way

    def _note(self, answers: list[tuple[Answer | None, float, Way]]) -> None:
        for answer, seconds, way in answers:
            self.outcome.calls += 1
            self.outcome.added.append(max(seconds - self._baseline[way], 0.0) * 1000)
            if answer is None:
                continue
            self.outcome.answered += answer.status == 200 and REPLY.encode() in answer.raw
            status, reason = (answer.headers.get(f"x-hearth-{name}", "") for name in ("status", "reason"))
            self.outcome.said[f"{status}: {reason}" if reason else status] += 1

    def _named(self) -> str:
        """The part's own account or, where it takes itself to be well, that of the recalls without it."""
        parts = _parts(self._world.worker, "/health") if self._reads else _health(self._world.gateway)
        own, recall = parts[HEALTH_PART[self._fault.part]], parts.get("recall")
        missed = recall and not self._fault.excused and any("without" in one for one in recall["reasons"])
        said = recall if missed and not own["reasons"] else own
        return f"{said['status']}: {'; '.join(said['reasons'])}" if said["reasons"] else str(said["status"])

    def _await_named(self) -> str:
        """The same once the part has failed: no call waits for it, so that they may be over before."""
        started = time.monotonic()
        while (named := self._named()) == "ok" and time.monotonic() - started < WELL_SECONDS:
            time.sleep(0.1)
        return named

    def _await_well(self) -> None:
        started = time.monotonic()
        while time.monotonic() - started < WELL_SECONDS:
            self.outcome.wanting = _wanting(self._world.gateway) or self._unread() or self._forgotten()
            if not self.outcome.wanting:
                self.outcome.recalled = True
                break
            time.sleep(0.25)
        self.outcome.seconds = time.monotonic() - started

    def _forgotten(self) -> str:
        """What a new conversation does not recall whole, of what was told before and what was told last."""
        for question in (QUESTION, f"Where does parcel number {len(self._told) - 1} lie?"):
            answer = ask(self._world.gateway, self._user, question)
            if answer.headers.get("x-hearth-status") != "ok" or not answer.recalled:
                return f"{question} {answer.headers}"
        return ""

    def _unread(self) -> str:
        """What no fact or more than one was read of, where a model reads."""
        if not self._reads:
            return ""
        with self._world.gateway.client(APP, **{"x-hearth-user": self._user}) as client:
            found = client.get("/memory/v1/memories", params={"types": "fact", "limit": 100}).json()["items"]
        facts = Counter(one["text"] for one in found)
        lacking = [text for text in self._told if facts[text.removesuffix(f" {QUESTION}")] != 1]
        return f"{len(lacking)} of {len(self._told)} are not read once" if lacking else ""

    def _check_kept(self) -> None:
        with self._world.gateway.client(APP, **{"x-hearth-user": self._user}) as client:
            found = client.get("/memory/v1/exchanges", params={"limit": 200}).json()["items"]
        times = Counter(one["user_text"] for one in found)
        self.outcome.kept = Counter(times[text] for text in self._told)


def measure(world: World, *, rounds: int) -> dict[Way, float]:
    """The healthy median of each way, in seconds, as many at once as in a trial."""
    user = "healthy"
    remember(world.gateway, user, SAID)
    seconds: dict[Way, list[float]] = {way: [] for way in WAYS}

    def call(way: Way) -> None:
        started = time.perf_counter()
        ask(world.gateway, user, QUESTION, route=way[0], stream=way[1])
        seconds[way].append(time.perf_counter() - started)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(call, WAYS * rounds))
    return {way: statistics.median(times) for way, times in seconds.items()}


def _health(gateway: GatewayProcess) -> dict[str, Any]:
    """The parts of the gateway's health."""
    return _parts(gateway, "/memory/v1/health")


def _parts(process: GatewayProcess, path: str) -> dict[str, Any]:
    with process.client(ADMIN) as client:
        found: dict[str, Any] = client.get(path).json()["parts"]
        return found


def _wanting(gateway: GatewayProcess) -> str:
    """The first part that is not well yet, with what it says; empty where all are and nothing waits."""
    parts = _health(gateway)
    behind = parts["worker"]["numbers"].get("lag", {"": 1})
    unread = parts.get("extraction", {"numbers": {"lag": 1}})["numbers"]["lag"]
    for name in ("log", "short_term", "long_term"):
        slow_disk = name == "log" and parts[name]["status"] == "degraded"
        if parts[name]["status"] != "ok" and not slow_disk:
            return f"{name}: {parts[name]}"
    if parts["spool"]["numbers"]["waiting"] or any(behind.values()) or unread:
        return f"spool: {parts['spool']}, worker: {parts['worker']}, unread: {unread}"
    return ""


def _failures(gateway: GatewayProcess) -> float:
    """All that the counters of failures, missing parts, refills and spooled captures say."""
    names = ("failures", "recall_missing", "short_term_refilled", "capture_spooled")
    counters = tuple(f"hearth_{name}_total" for name in names)
    with gateway.client(ADMIN) as client:
        lines = client.get("/memory/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(counters))


BEGIN, END = "<!-- failures -->", "<!-- end of failures -->"


def table(outcomes: list[Outcome]) -> str:
    """The matrix as a page shows it."""
    rows = [
        "| part | fault | answered | added p50 / p95, ms | calls said | health said | kept | well after |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        added = statistics.quantiles(one.added, n=20)
        said = ", ".join(f"`{word}`" for word, _ in one.said.most_common(2))
        rows.append(
            f"| {one.fault.part} | {one.fault.way} | {one.answered} of {one.calls}"
            f" | {statistics.median(one.added):.0f} / {added[-1]:.0f} | {said} | {one.named}"
            f" | {one.kept[1]} of {sum(one.kept.values())} | {one.seconds:.0f} s |"
        )
    return "\n".join(rows)


def merged(old: str, new: str) -> str:
    """The new table with the old one's rows of faults that it has not."""
    rows = _by_fault(old) | _by_fault(new)
    known = [rows[key] for fault in FAULTS if (key := (fault.part, fault.way)) in rows]
    return "\n".join([*new.splitlines()[:2], *known])


def _by_fault(table: str) -> dict[tuple[str, ...], str]:
    return {tuple(line.strip("| ").split(" | ")[:2]): line for line in table.splitlines()}


def main(page: Path | None, *, only: str = "", calls: int = 36) -> int:
    """Run the matrix and write its table into the page; 1 where anything is not as it should be."""
    outcomes: list[Outcome] = []
    chosen = [fault for fault in FAULTS if only in str(fault)]
    with ScriptedProvider(default=Reply(text=REPLY)) as provider:
        for part in dict.fromkeys(fault.part for fault in chosen):
            faults = [fault for fault in chosen if fault.part == part]
            outcomes += _tried(provider, faults, calls=calls)
    if page is not None:
        before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        old, _, after = rest.partition(END)
        new = merged(old, table(outcomes))
        page.write_text(f"{before}{BEGIN}\n{new}\n{END}{after}", encoding="utf-8")
    return int(not all(sound(one) for one in outcomes))


def _tried(provider: ScriptedProvider, faults: Sequence[Fault], *, calls: int) -> Iterator[Outcome]:
    """Each fault in one world. It should not grow old: the stand-in for Qdrant looks through all it has."""
    with tempfile.TemporaryDirectory() as folder, world(provider, Path(folder)) as made:
        baseline = measure(made, rounds=8)
        for fault in faults:
            outcome = Trial(made, fault, baseline).run(calls=calls, at_once=3)
            wrong = "" if sound(outcome) else f"\n    {outcome}"
            sys.stdout.write(f"{table([outcome]).splitlines()[-1]}{wrong}\n")
            sys.stdout.flush()
            yield outcome


def sound(one: Outcome) -> bool:
    """No call failed, none of its exchanges is lost or doubled, all came back, and it was not silent."""
    silent = one.named == "ok" and not (one.fault.excused and one.counted)
    return one.answered == one.calls and set(one.kept) == {1} and one.recalled and not silent


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else None, only=os.environ.get("ONLY", "")))
