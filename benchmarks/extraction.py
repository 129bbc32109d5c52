"""How much of what exchanges tell the rules, or a model, read, and how much of what they read was told.

    python benchmarks/extraction.py [--half NAME|both] [--show] [--json FILE]
    python benchmarks/extraction.py --model openai/gpt-4o-mini [--seconds 60] [--most 20]

A model is named as LiteLLM knows it and reached by the usual variables, such as `OPENAI_API_KEY` and, for a
server of one's own, `OPENAI_API_BASE`; what it takes in tokens and dollars is shown too.

`labelled.py` says what the labels mean and when a fact matches one. `precision` is the share of right facts
among those read, but for readings that are neither right nor wrong, and `recall` the share of labelled facts
that were read; both in per cent.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from extraction_model import ModelReader
from labelled import HALVES, Exchange, Judged, judge, read
from report import Row, write

from hearth.config.settings import HearthSettings, Settings
from hearth.gateway.model import LiteLLMModel
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


def by_model(exchanges: Sequence[Exchange], name: str, seconds: float) -> tuple[list[Judged], Row]:
    """What the model reads of them, and what that took. Raises ModelUnavailable."""
    reader = ModelReader(LiteLLMModel(Settings(hearth=HearthSettings())), name, seconds=seconds)
    found = asyncio.run(reader.read([one.page() for one in exchanges]))
    return [judge(*pair) for pair in zip(exchanges, found, strict=True)], reader.spent()


def main() -> None:
    """Read the arguments, extract and print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--half", default="dev", choices=[*HALVES, "both"])
    arguments.add_argument("--model", help="read by this one, as LiteLLM knows it, in place of the rules")
    arguments.add_argument("--seconds", type=float, default=60, help="in which its answer must have come")
    arguments.add_argument("--most", type=int, help="read so many exchanges, the first, and no more")
    arguments.add_argument("--show", action="store_true", help="print what was missed and what is wrong")
    arguments.add_argument("--json", type=Path, help="write what was found here too")
    given = arguments.parse_args()
    halves = ["dev", "held"] if given.half == "both" else [given.half]
    exchanges = [one for half in halves for one in read(half)][: given.most]
    spent: list[Row] = []
    if given.model:
        name = given.model
        judged, took = by_model(exchanges, name, given.seconds)
        spent.append(took)
    else:
        extractor = RuleExtractor()
        name = extractor.name
        judged = [judge(one, extractor.extract(one.page())) for one in exchanges]
    tables = {
        name: [row("all", judged)],
        "by category": rows(judged, lambda one: one.exchange.category),
        "by language": rows(judged, lambda one: one.exchange.language),
    }
    if spent:
        tables["spent"] = spent
    write(given.json, "extraction", {"half": given.half, "model": given.model}, tables)
    for one in judged if given.show else ():
        if one.missed or one.wrong:
            show(one)


if __name__ == "__main__":
    main()
