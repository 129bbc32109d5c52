"""`hearth simulate`: a life of dialogue played in minutes, to see what a policy makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from hearth.gateway.commands.options import Config, Json
from hearth.gateway.commands.output import MISUSED, counted, fail, note, say, say_json, table

if TYPE_CHECKING:
    from hearth.config.settings import HearthSettings
    from hearth.memory.simulation import Day, Played, Simulation
    from hearth.memory.tiers.layers import Setting

ROW = "{:<10}  {:>5}  {:>8}  {:>9}  {:>8}  {:>7}  {:>5}  {:>5}  {:>8}  {:>6}  {:>6}"
COLUMNS = (
    *("day", "pages", "segments", "promoted", "evicted", "records", "facts", "ended", "episodes", "tokens"),
    "worker",
)
UNITS = (
    "pages: in short-term memory. records: in long-term memory. tokens: of blocks, an exchange. "
    "worker: milliseconds an exchange."
)


def simulate(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Dialogue as `hearth import` takes it; none: a made-up year.", show_default=False
        ),
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days of the made-up year.")] = 365,
    every: Annotated[int, typer.Option(min=1, help="Days between two lines.")] = 30,
    tenant: Annotated[str, typer.Option(help="Whose policy, of the configuration.", show_default=False)] = "",
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Play dialogue on a clock of its own, with real stores in a folder that goes afterwards.

    Shows what becomes of it: pages, topics, facts, what is promoted and what leaves. Reaches no gateway and
    no model; replies of the made-up year repeat what was recalled.

    Example: hearth simulate --days 60
    """
    from hearth.gateway.commands.settings import load
    from hearth.memory.errors import HearthError

    hearth = load(config).hearth
    try:
        found = asyncio.run(_played(hearth, tenant, file, days, every, quiet=as_json))
    except HearthError as error:
        fail(error)
    if as_json:
        say_json(found)


async def _played(
    hearth: HearthSettings, tenant: str, file: Path | None, days: int, every: int, *, quiet: bool
) -> dict[str, object]:
    from hearth.gateway.life import settled_by
    from hearth.memory.simulation import simulated

    settled = settled_by(hearth)
    script = list(_made_up(days) if file is None else _of_file(file))
    if not quiet:
        note(f"{counted(len(script), 'exchange')}. {UNITS}")
        say(ROW.format(*COLUMNS))
    rows: list[Mapping[str, object]] = []
    with TemporaryDirectory(prefix="hearth-simulate-") as folder:
        async with simulated(
            folder,
            script[0].at,
            embedder=hearth.embedder,
            settled=lambda _, agent, key: _without_model(settled(tenant, agent, key)),
        ) as simulation:
            first = script[0].at.date()
            for _, part in groupby(script, key=lambda one: (one.at.date() - first).days // every):
                days_played: list[Day] = []
                await simulation.play(part, each=days_played.append)
                row = await _row(simulation, days_played)
                rows.append(row)
                if not quiet:
                    say(ROW.format(*(row[name] for name in COLUMNS)))
            known = await _known(simulation) if file is None else []
    if known and not quiet:
        table(
            ("question", "right answer", "in the block"),
            [(k["question"], k["answer"], k["there"]) for k in known],
        )
    return {"days": rows, "answers": known}


def _without_model(values: Sequence[Setting]) -> list[Setting]:
    """A simulation asks no model: rules read in its place."""
    return [
        structs.replace(one, value="rules") if (one.name, one.value) == ("facts", "model") else one
        for one in values
    ]


def _made_up(days: int) -> Iterator[Played]:
    from hearth.testing.year import script, small_talk

    return script(small_talk(), days=days)


def _of_file(file: Path) -> Iterator[Played]:
    """The file's exchanges, each a user's turn with the assistant's next one."""
    from hearth.gateway.api.imports import read_lines
    from hearth.gateway.api.problems import Problem
    from hearth.memory.simulation import Played

    try:
        turns = sorted(read_lines(file.read_bytes(), datetime.now(UTC)), key=lambda turn: turn.at)
    except OSError as error:
        fail(f"{file} can't be read: {error.strerror}", MISUSED)
    except Problem as problem:
        fail(f"{file}: {problem.detail}", MISUSED)
    said = [turn for turn in turns if turn.role == "user"]
    if not said:
        fail(f"{file}: it has no user's turn", MISUSED)
    for turn in said:
        later = (one for one in turns if one.role == "assistant" and one.session == turn.session)
        reply = next((one.content for one in later if one.at >= turn.at), "")
        yield Played(at=turn.at, session=turn.session, text=turn.content, reply=reply)


async def _row(simulation: Simulation, days: list[Day]) -> dict[str, object]:
    from hearth.memory.ports import MemoryFilter

    engine, scope = simulation.engine, simulation.scope
    log, exchanges = engine.log, sum(day.exchanges for day in days)
    user = (scope.tenant, scope.user)
    told = {
        kind: len(await log.read(kinds=[kind], limit=1_000_000))
        for kind in ("segment.promoted", "segment.evicted")
    }
    facts = MemoryFilter(types=("fact", "persona"))
    everything = MemoryFilter(types=("fact", "persona"), include_superseded=True)
    current = await log.count_memories(*user, where=facts)
    return {
        "day": days[-1].at.date().isoformat(),
        "pages": len(await engine.mid_term.waiting_pages(*user, scope.owner, limit=10_000)),
        "segments": sum(
            one.state == "live" for one in await engine.mid_term.segments(*user, scope.owner, after=0)
        ),
        "promoted": told["segment.promoted"],
        "evicted": told["segment.evicted"],
        "records": await engine.long_term.count(scope.owner),
        "facts": current,
        "ended": await log.count_memories(*user, where=everything) - current,
        "episodes": await log.count_memories(*user, where=MemoryFilter(types=("episode",))),
        "tokens": round(sum(day.tokens for day in days) / exchanges),
        "worker": round(1000 * sum(day.worker_seconds for day in days) / exchanges),
    }


async def _known(simulation: Simulation) -> list[dict[str, object]]:
    """The made-up year's questions, asked at its end."""
    from hearth.testing.year import PLANTED, START

    day = (simulation.clock.at - START).days
    found = []
    for thing in PLANTED:
        if answer := thing.answer(day):
            block = (await simulation.ask(thing.question, budget=512)).block.text
            there = "yes" if answer.casefold() in block.casefold() else "no"
            found.append({"question": thing.question, "answer": answer, "there": there})
    return found
