"""How much of what exchanges tell the rules read, and how much of what they read was told.

    python benchmarks/extraction.py [--half dev|held|fresh|both] [--show] [--json FILE]

`labelled.py` says what the labels mean and when a fact matches one. `precision` is the share of right facts
among those read, but for readings that are neither right nor wrong, and `recall` the share of labelled facts
that were read; both in per cent.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from labelled import HALVES, Judged, judge, read
from report import Row, write

from hearth.memory.extract.rules import RuleExtractor


def row(name: str, judged: Sequence[Judged]) -> Row:
    """The counts of some exchanges."""
    right, wrong, missed = (
        sum(counts)
        for counts in zip(*((one.right, len(one.wrong), len(one.missed)) for one in judged), strict=True)
    )
    return {
        "": name,
        "exchanges": len(judged),
        "facts": right + missed,
        "right": right,
        "missed": missed,
        "wrong": wrong,
        "precision": 100 * right / (right + wrong) if right + wrong else "",
        "recall": 100 * right / (right + missed) if right + missed else "",
    }


def rows(judged: Sequence[Judged], group: Callable[[Judged], str]) -> list[Row]:
    """One row a group, in the order in which groups come."""
    names = dict.fromkeys(map(group, judged))
    return [row(name, [one for one in judged if group(one) == name]) for name in names]


def show(one: Judged) -> None:
    """Print what was missed and what is wrong, and the text."""
    print(f"\n{one.exchange.id} ({one.exchange.language}): {one.exchange.user}")
    for title, facts in (("missed", one.missed), ("wrong", one.wrong)):
        for fact in facts:
            days = [str(day) for day in (fact.happens_at, fact.valid_from, fact.valid_to) if day]
            said = (fact.subject, fact.attribute, fact.value, fact.act, *days)
            print(f"  {title}: {' | '.join(said)}, of {fact.quote!r}")


def main() -> None:
    """Read the arguments, extract and print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--half", default="dev", choices=[*HALVES, "both"])
    arguments.add_argument("--show", action="store_true", help="print what was missed and what is wrong")
    arguments.add_argument("--json", type=Path, help="write what was found here too")
    given = arguments.parse_args()
    extractor = RuleExtractor()
    halves = ["dev", "held"] if given.half == "both" else [given.half]
    judged = [judge(one, extractor.extract(one.page())) for half in halves for one in read(half)]
    tables = {
        extractor.name: [row("all", judged)],
        "by category": rows(judged, lambda one: one.exchange.category),
        "by language": rows(judged, lambda one: one.exchange.language),
    }
    write(given.json, "extraction", {"half": given.half}, tables)
    for one in judged if given.show else ():
        if one.missed or one.wrong:
            show(one)


if __name__ == "__main__":
    main()
