"""Kills a memory with -9 at each point of its life, and compares what stands once it has gone on.

    python benchmarks/kills.py [--each-once] [--stage NAME] [--points] [--json PATH]

A small memory lives through a life (`hearth.testing.lived`): captured, filed, promoted, evicted, forgotten,
erased, made anew and moved elsewhere, in stages that each begin in a process of their own. Before each call
that writes to a store, before each commit of the log and before each step on files a process is killed
(`hearth.testing.fault_points`). The next one is told again what was not acknowledged, and ends the stage.
Then all must stand as it stands without a kill: every event in its order, every view, the index with its
vectors and words, short-term memory.

Processes are forks of this one, which has everything loaded and opens nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from report import Row, write

from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.types import Page, Scope
from hearth.testing import standing
from hearth.testing.embedder import plain
from hearth.testing.fault_points import Points
from hearth.testing.holes import copy_folder
from hearth.testing.lived import ERASED, MOVED, STAGES, START, Stage, come_back, live

FORSAKEN = ("events", "view", "long-term", "words")
"""What a replay that is not gone on with leaves as it was; short-term memory may hold more pages then."""
HAPPENS = (
    "page.moved",
    "segment.promoted",
    "segment.evicted",
    "page.forgotten",
    "user.erased",
    "file: rename",
)
"""What a memory's life has to pass through."""
HAVING = "files with the words"
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Kill:
    """One kill, and what was not the same after it."""

    stage: str
    point: str
    at: int
    differences: Sequence[str]


@dataclass
class Lived:
    """A stage that nobody killed: the points that it came to, and what stood before it and after."""

    points: Sequence[str]
    before: dict[str, Any]
    after: dict[str, Any]


@dataclass
class World:
    """Folders of memories, one for the beginning of each stage, and one in which kills are tried."""

    folder: Path
    lived: list[Lived] = field(default_factory=list)

    def live(self) -> None:
        """Live the whole life, keeping a copy of each stage's beginning."""
        self._at(0).mkdir()
        before: dict[str, Any] = {}
        for number, stage in enumerate(STAGES):
            after = self._at(number + 1)
            copy_folder(self._at(number), after)
            if code := self._run(after, stage, counted=True):
                raise SystemExit(f"{stage.name} ended with {code}")
            self.lived.append(Lived(self._told("points"), before, self._told("stands")))
            before = self.lived[-1].after
        if wrong := list(_wrong(self.lived)):
            raise SystemExit(f"the life is not what it should be: {wrong}")

    def kill(self, number: int, at: int) -> Kill:
        """Begin the stage again, end at that point, go on, and compare."""
        stage, lived, home = STAGES[number], self.lived[number], self.folder / "killed"
        shutil.rmtree(home, ignore_errors=True)
        copy_folder(self._at(number), home)
        differences = []
        if (code := self._run(home, stage, kill_at=at)) != -signal.SIGKILL:
            differences.append(f"it was not killed and ended with {code}")
        elif code := self._run(home, stage, again=True):
            differences.append(f"it did not go on and ended with {code}")
        else:
            differences += _differences(stage, lived, self._told("stands"))
        return Kill(stage.name, lived.points[at], at, differences)

    def _at(self, number: int) -> Path:
        return self.folder / f"stage-{number}"

    def _told(self, what: str) -> Any:
        return json.loads((self.folder / what).read_text())

    def _run(self, home: Path, stage: Stage, **how: Any) -> int:
        """In a fork; its exit code."""
        process = _FORK.Process(target=_in_fork, args=(self.folder, home, stage), kwargs=how)
        process.start()
        process.join()
        return process.exitcode or 0


# -- in a fork ---------------------------------------------------------------------------------------------


def _in_fork(
    folder: Path,
    home: Path,
    stage: Stage,
    *,
    kill_at: int | None = None,
    counted: bool = False,
    again: bool = False,
) -> None:
    """Live the stage, or what is left of it; whoever comes to the end tells what stands then."""
    path, points = folder / "acknowledged", Points(home, kill_at=kill_at)
    if counted or kill_at is not None:
        points.watch()
    acknowledged = path.stat().st_size if again else 0
    with path.open("ab" if again else "wb", buffering=0) as told:
        if again and stage.forsaken:
            asyncio.run(come_back(home, stage))
        else:
            asyncio.run(live(home, stage, acknowledged, lambda: told.write(b".")))
    (folder / "points").write_text(json.dumps(points.passed))
    (folder / "stands").write_text(json.dumps(_standing(home)))


def _standing(home: Path) -> dict[str, Any]:
    stands = standing.everything(home, plain(), [ERASED])
    if (home / MOVED).exists():
        stands |= {f"moved {view}": rows for view, rows in standing.views(home / MOVED).items()}
    return stands


# -- what is told ------------------------------------------------------------------------------------------


def _wrong(life: Sequence[Lived]) -> Iterator[str]:
    """What does not happen in it, and what is not as it should be without any kill."""
    passed = "\n".join(point for lived in life for point in lived.points)
    yield from (kind for kind in HAPPENS if kind not in passed)
    for stage, lived in zip(STAGES, life, strict=True):
        if stage.forsaken:
            yield from _differences(stage, lived, lived.after)
    having = [bool(lived.after[HAVING]) for lived in life]
    if not (any(having) and not having[-1]):
        yield f"files with the words: {having}"


def _differences(stage: Stage, lived: Lived, stands: dict[str, Any]) -> list[str]:
    wanted, keys = lived.after, lived.after.keys() | stands.keys()
    if stage.forsaken:
        wanted, keys = lived.before, {key for key in keys if key.startswith(FORSAKEN)}
    return [
        _first(key, wanted.get(key), stands.get(key))
        for key in sorted(keys)
        if wanted.get(key) != stands.get(key)
    ]


def _first(key: str, wanted: Any, found: Any) -> str:
    """The first thing that is not the same."""
    if not (isinstance(wanted, list) and isinstance(found, list)):
        return f"{key}: {wanted} became {found}"
    lacking = [one for one in wanted if one not in found]
    beside = [one for one in found if one not in wanted]
    told = f"{key}: {len(wanted)} became {len(found)}, {len(lacking)} are lacking, {len(beside)} are new"
    return f"{told}: {str(lacking[:1])[:600]} {str(beside[:1])[:600]}"


def chosen(world: World, *, each_once: bool, stage: str) -> list[tuple[int, int]]:
    """Stages and points to kill at: all, or one of each sort and of each stage, by lot."""
    every = [
        (number, at)
        for number, lived in enumerate(world.lived)
        for at in range(len(lived.points))
        if STAGES[number].name.startswith(stage)
    ]
    if not each_once:
        return every
    random.Random(9).shuffle(every)
    sorts = {_sort(world.lived[number].points[at]): (number, at) for number, at in every}
    seen = {number for number, _ in sorts.values()}
    stages = {number: (number, at) for number, at in every if number not in seen}
    return sorted([*sorts.values(), *stages.values()])


def _sort(point: str) -> str:
    """What is called or done, whatever with."""
    part, _, call = point.partition(": ")
    return f"{part}: {'uncommitted' if call.endswith('uncommitted') else call.split()[0]}"


def rows(world: World, kills: Sequence[Kill]) -> list[Row]:
    """By stage: its points, how often it was killed, and after how many kills all was the same."""
    found = []
    for stage, lived in zip(STAGES, world.lived, strict=True):
        mine = [one for one in kills if one.stage == stage.name]
        if mine:
            found.append(
                {
                    "stage": stage.name,
                    "points": len(lived.points),
                    "killed": len(mine),
                    "all the same": sum(not one.differences for one in mine),
                }
            )
    return found


def _told(kill: Kill) -> Kill:
    for difference in kill.differences:
        print(f"{kill.stage}, {kill.at} ({kill.point}): {difference}", file=sys.stderr, flush=True)
    return kill


def _warm() -> None:
    """What every fork would else load for itself."""
    page = Page(
        id="0",
        scope=Scope(tenant="t", user="u"),
        generation=1,
        user_text="I live in Oslo now.",
        reply_text="Noted.",
        occurred_at=START,
    )
    RuleExtractor().extract(page)
    gc.collect()
    gc.freeze()  # a fork that looks for garbage would copy everything


def main() -> None:
    """Run the benchmark; exit status 1 where anything was not the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--each-once", action="store_true", help="one point of each sort and stage, not all")
    parser.add_argument("--stage", default="", help="only stages whose names begin so")
    parser.add_argument(
        "--points", action="store_true", help="list the points of each stage, and kill nothing"
    )
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    _warm()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.live()
        if given.points:
            for stage, lived in zip(STAGES, world.lived, strict=True):
                print(f"\n{stage.name}", *lived.points, sep="\n  ")
            return
        at = chosen(world, each_once=given.each_once, stage=given.stage)
        kills = [_told(world.kill(*one)) for one in at]
    cpu = sum(os.times()[:4])
    title = f"Kills ({len(kills)} in {time.perf_counter() - began:.0f} s, {cpu:.0f} s of processor time)"
    write(
        given.json, "kills", {"each once": given.each_once, "stage": given.stage}, {title: rows(world, kills)}
    )
    if any(one.differences for one in kills):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
