"""What concepts save: blocks with and without them, and what of the evidence stands in both.

    python benchmarks/concepts.py [--days 365] [--budget 512]

The planted things of a made-up year (`hearth.testing.year`), each on its day, and what one person tells of
some things over weeks. Asked at the end, each question raw and compacted from one search.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from report import Row, write

from hearth.memory.ports import MemoryFilter
from hearth.memory.recall.comparing import Compared
from hearth.memory.simulation import Played, simulated
from hearth.testing.year import PLANTED, START

ABOUT: dict[str, tuple[str, ...]] = {
    "What do you know about my dog Bilbo?": (
        "My dog is called Bilbo.",
        "My dog is afraid of thunder.",
        "My dog is five years old.",
        "My dog is allergic to chicken.",
        "My dog is trained by Petra on Mondays.",
    ),
    "Tell me about my sister Ana.": (
        "My sister is called Ana.",
        "My sister is a nurse in Porto.",
        "My sister is married to Rui.",
        "My sister is learning the cello.",
    ),
    "What do I like to eat?": ("I like sushi.", "I like ramen.", "I like old cheddar.", "I like rye bread."),
    "Which languages do I speak?": (
        "I speak German.",
        "I speak Portuguese.",
        "I speak some Polish.",
        "I speak Romansh.",
    ),
    "What do I know about our cabin?": (
        "Our cabin is above Davos.",
        "Our cabin is heated with wood.",
        "Our cabin is rented out in August.",
        "Our cabin is insured with Helvetia.",
    ),
}
"""What is told of one thing, a statement every third day."""


def script(days: int) -> list[Played]:
    """All that is told, in order."""
    told = [(one.day, one.text) for thing in PLANTED for one in thing.told if one.day < days]
    for number, statements in enumerate(ABOUT.values()):
        told += [(10 + number * 20 + 3 * at, text) for at, text in enumerate(statements)]
    return [
        Played(
            at=START + timedelta(days=day, hours=9, minutes=n % 600),
            session=f"{day}",
            text=text,
            reply="Noted.",
        )
        for n, (day, text) in enumerate(sorted(told))
        if day < days
    ]


async def measure(days: int, budget: int) -> list[Row]:
    """A row for questions about one thing each, and one for those about what several facts are of."""
    with TemporaryDirectory() as folder:
        async with simulated(folder, START) as simulation:
            await simulation.play(script(days))
            engine, scope = simulation.engine, simulation.scope
            simulation.clock.at = START + timedelta(days=days)
            made = await engine.count_memories(
                scope.tenant, scope.user, where=MemoryFilter(types=("concept",))
            )
            planted = [thing.question for thing in PLANTED if thing.answer(days)]
            groups = {"one planted fact": planted, "several facts of one thing": list(ABOUT)}
            rows = []
            for name, questions in groups.items():
                found = [await engine.compare(scope, question, budget=budget) for question in questions]
                rows.append({"questions about": name, "concepts in memory": made, **_row(found)})
            return rows


def _row(found: Sequence[Compared]) -> Row:
    raw = [one for each in found for one in each.evidence if one.raw]
    used = [each for each in found if any(one.concept for one in each.evidence)]
    before, after = (sum(each.raw.tokens for each in some) for some in (found, used))
    return {
        "asked": len(found),
        "with a concept": len(used),
        "tokens, raw": before,
        "tokens, compacted": sum(each.compacted.tokens for each in found),
        "of those with one: saved, %": 100 * (1 - sum(e.compacted.tokens for e in used) / after)
        if used
        else 0.0,
        "records in raw": len(raw),
        "of them kept, %": 100 * sum(one.compacted for one in raw) / max(len(raw), 1),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, tell, ask, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--budget", type=int, default=512, help="tokens of a block")
    parser.add_argument("--json", type=Path, help="write what was found here too")
    given = parser.parse_args(arguments)
    rows = asyncio.run(measure(given.days, given.budget))
    write(given.json, "concepts", vars(given), {"Blocks with and without concepts": rows})


if __name__ == "__main__":
    main()
