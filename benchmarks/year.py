"""A year of one person's conversations: what is still known of what was told, and what it costs to know it.

    python benchmarks/year.py [PATH/locomo-dev.json] [--days 365] [--policies heat lru lfu none]

Forty planted things, some of which change, end or return (`hearth.testing.year`), among 20 exchanges a day
of other talk: LoCoMo's turns where its file is given (not part of this repository), small talk else. Each
policy of eviction has the same room. Asked after three quarters and at the end, within 512 tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from locomo import read_dialogues
from report import Row, write

from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.simulation import Day, Simulation, simulated
from hearth.memory.tiers.heat import HeatPolicy
from hearth.memory.tiers.layers import Setting, Value
from hearth.memory.tiers.life import LifePolicy, values_of
from hearth.memory.types import Page
from hearth.testing.year import PLANTED, START, script, small_talk

HEATS = {
    "heat": HeatPolicy(),
    "lru": HeatPolicy(visit=1e-9, seen=1.0, page=1e-9),
    "lfu": HeatPolicy(fade_hours=1e9, seen=1.0, recency=0.0),
    "none": HeatPolicy(),
}
"""Least recently and least frequently used as what heat is without its other part."""
UNBOUNDED = 10**9
"""Segments: more than a year has pages."""
OWN = frozenset(
    {
        *("residence", "employer", "occupation", "allergy", "pet", "favourite tea", "plays", "learns"),
        *("owns", "diet"),
    }
)
"""Attributes of which the other talk must say nothing: it would be the same person's, and true."""


@dataclass
class Course:
    """What one policy's year was like."""

    worker: list[float] = field(default_factory=list)
    """Seconds an exchange, by day."""
    processor: list[float] = field(default_factory=list)
    """Of them, those of processor time, of this process and of the one that embeds."""
    tokens: int = 0
    exchanges: int = 0
    asked: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """Day, questions, right answers, stale answers alone, stale ones beside the right one."""
    sizes: list[tuple[int, int]] = field(default_factory=list)
    """Day, records in long-term memory."""


def talk(path: Path | None) -> Iterator[tuple[str, str]]:
    """Other talk without end; LoCoMo's again and again, in other words each time round."""
    if path is None:
        return small_talk()
    pairs = [
        (page.user_text, page.reply_text)
        for dialogue in read_dialogues(path)
        for page in dialogue.pages
        if page.user_text and not _tells_of_own(page)
    ]
    return (
        (f"{said} ({round_})" if round_ else said, reply)
        for round_, (said, reply) in ((n // len(pairs), pairs[n % len(pairs)]) for n in itertools.count())
    )


def _tells_of_own(page: Page) -> bool:
    said = RuleExtractor().extract(page)
    return any(one.subject == "user" and one.attribute in OWN for one in said)


async def year(given: argparse.Namespace, policy: str) -> Course:
    """Play the year and ask."""
    limits: dict[str, Value | None] = {"limits.segments": UNBOUNDED}
    limits |= {} if policy == "none" else {"limits.pages": given.pages, "limits.episodes": given.episodes}
    course = Course()

    def settled(tenant: str, agent: str, key: str) -> list[Setting]:
        own = values_of(LifePolicy(heat=HEATS[policy]))
        given = {name: value for name, value in own.items() if name.startswith("heat.")} | limits
        return [
            Setting(name=name, value=value, level="installation", source="hearth.life")
            for name, value in given.items()
            if value is not None
        ]

    with _folder(given.folder, policy) as folder:
        async with simulated(
            folder, START, embedder=given.embedder, settled=settled, processor=_processor()
        ) as simulation:
            quarters = {given.days * 3 // 4, given.days}
            played = script(talk(given.path), days=given.days, a_day=given.a_day)
            for day, exchanges in itertools.groupby(played, key=lambda one: (one.at - START).days):
                await simulation.play(exchanges, each=lambda day: _note(course, day))
                if day + 1 in quarters:
                    await _ask(simulation, day, course, show=given.show)
                if day % 30 == 29 or day + 1 in quarters:
                    owner = simulation.scope.owner
                    course.sizes.append((day + 1, await simulation.engine.long_term.count(owner)))
    return course


def _note(course: Course, day: Day) -> None:
    course.worker.append(day.worker_seconds / day.exchanges)
    course.processor.append(day.processor_seconds / day.exchanges)
    course.tokens += day.tokens
    course.exchanges += day.exchanges


async def _ask(simulation: Simulation, day: int, course: Course, *, show: bool) -> None:
    right = alone = beside = asked = 0
    at = START + timedelta(days=day, hours=23)
    for thing in PLANTED:
        if not (answer := thing.answer(day)):
            continue
        asked += 1
        block = (await simulation.ask(thing.question, at=at, budget=512)).block.text
        found = answer.casefold() in block.casefold()
        old = [item for item in block.split("\n- ") if _says_stale(item, thing.stale(day), answer)]
        right += found
        alone, beside = alone + bool(old and not found), beside + bool(old and found)
        if not found or old:
            print(f"  day {day}: {thing.question} {answer!r} {'is there' if found else 'is missing'}; {old}")
            if show:
                print(f"{block}\n")
    course.asked.append((day + 1, asked, right, alone, beside))


def _processor() -> Callable[[], float]:
    """Seconds of processor time so far, of this process and those that it has when it is first asked."""
    every: list[psutil.Process] = []

    def seconds() -> float:
        if not every:
            own = psutil.Process()
            every.extend((own, *own.children()))
        times = (one.cpu_times() for one in every)
        return sum(one.user + one.system for one in times)

    return seconds


def _folder(kept: Path | None, policy: str) -> AbstractContextManager[str | Path]:
    """Where the year's memory lies: a new folder of the kept one, or one that goes with the run."""
    if kept is None:
        return TemporaryDirectory()
    (folder := kept / policy).mkdir(parents=True)
    return nullcontext(folder)


def _says_stale(item: str, stale: frozenset[str], answer: str) -> bool:
    """True for an item that says what held once, neither with its end nor with what holds now."""
    said = item.casefold()
    if answer.casefold() in said or re.search(r"\(until \d{4}-\d\d-\d\d", item):
        return False
    return any(re.search(rf"\b{re.escape(old.casefold())}\b", said) for old in stale)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, play, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", help="a file of LoCoMo's form, for the other talk")
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--a-day", type=int, default=20, help="exchanges")
    parser.add_argument("--pages", type=int, default=1_500, help="room of mid-term memory")
    parser.add_argument("--episodes", type=int, default=2_000, help="room for what left is summed up in")
    parser.add_argument("--embedder", choices=("fast", "quality"), default="fast")
    parser.add_argument("--policies", nargs="+", choices=tuple(HEATS), default=tuple(HEATS))
    parser.add_argument(
        "--show", action="store_true", help="print the block of each answer that is missing or stale"
    )
    parser.add_argument("--folder", type=Path, help="keep each policy's memory here, in a folder of its name")
    parser.add_argument("--json", type=Path, help="write what was found here too")
    given = parser.parse_args(arguments)
    answers: list[Row] = []
    sizes: dict[int, dict[str, Any]] = {}
    for policy in given.policies:
        started = time.perf_counter()
        course = asyncio.run(year(given, policy))
        for day, asked, right, alone, beside in course.asked:
            answers.append(
                {
                    "eviction": policy,
                    "day": day,
                    "asked": asked,
                    "right, %": 100 * right / max(asked, 1),
                    "stale alone": alone,
                    "stale, dated, before the right one": beside,
                    "worker, ms an exchange": 1000 * sum(course.worker) / len(course.worker),
                    "of processor time": 1000 * sum(course.processor) / len(course.processor),
                    "block, tokens an exchange": course.tokens / course.exchanges,
                    "minutes": (time.perf_counter() - started) / 60,
                }
            )
        for day, records in course.sizes:
            sizes.setdefault(day, {"day": day})[policy] = records
    write(
        given.json,
        "year",
        vars(given),
        {"What is known": answers, "Records in long-term memory": list(sizes.values())},
    )


if __name__ == "__main__":
    main()
