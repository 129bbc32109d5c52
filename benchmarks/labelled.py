"""Labelled exchanges, and which of the facts that an extractor read from one are right.

All are made up, and the rules were developed against all of them. What a label means:

- `facts` are what a careful reader keeps of the user's own words: what holds beyond the conversation. Passing
  states, what a request is about, text that a task is given (to translate, correct, sum up), play and
  suppositions say nothing. `may` are readings that are neither right nor wrong.
- `quote` carries the evidence, word for word. `subject` is `user`, a name or a relation as said, no pronoun;
  `my sister Ana` is read for `Ana` too.
- A relation with a name is a fact of the user's (`my grandson Theo`: relative, Theo), another is in `may`.
- What is denied or has ended stands without its negation: `I don't have a car` is owns, car, denies. Dislikes
  are asserted. Of `not X but Y` only Y is asked for, as a correction where it sets the assistant right.
- A day is the user's own. `happens_at` is when something takes or took place, `valid_from` since when it
  holds. Of a span (`last week`) it is the first day.
- An empty `attribute` is a free statement, such as what follows `remember that`; its value says nothing.
- An entry of `or` holds fields that may stand otherwise; any entries can be put in the label's place, several
  together too, and the reading is as right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from hearth.memory.types import Act, CandidateFact, Page, Scope, utc

HALVES = {
    half: Path(__file__).with_name(f"exchanges-{half}.json")
    for half in (
        "dev",
        "held",
        "fresh",
        "blind",
        "unseen",
        "trap",
        "later",
        "plain",
        "daily",
        "casual",
        "talk",
    )
}
SCOPE = Scope(tenant="t", user="u")


class Label(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fact that the user's words state."""

    subject: str
    attribute: str
    value: str
    quote: str
    act: Act
    wrong: str = ""
    happens_at: str = ""
    """These three: an ISO date; empty where none is asked for."""
    valid_from: str = ""
    valid_to: str = ""
    alternatives: tuple[dict[str, str], ...] = msgspec.field(default=(), name="or")

    def readings(self) -> list[Label]:
        """The label itself and all that is as right."""
        found = [self]
        for change in self.alternatives:
            found += [msgspec.structs.replace(one, **change) for one in found]
        return found


class Exchange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was said, and the facts in it."""

    id: str
    category: str
    language: str
    at: datetime
    timezone: str
    user: str
    assistant: str
    facts: tuple[Label, ...]
    may: tuple[Label, ...] = ()

    def page(self) -> Page:
        """The exchange as memory keeps it."""
        return Page(
            id=self.id,
            scope=SCOPE,
            generation=1,
            user_text=self.user,
            reply_text=self.assistant,
            occurred_at=utc(self.at),
            timezone=self.timezone,
        )


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What became of an exchange's labels and of the facts that were read from it."""

    exchange: Exchange
    right: int
    missed: tuple[Label, ...]
    wrong: tuple[CandidateFact, ...]
    """They match neither a fact nor a `may`, or one that another has matched."""


def read(half: str) -> list[Exchange]:
    """The exchanges of a half."""
    return msgspec.json.decode(HALVES[half].read_bytes(), type=list[Exchange])


def judge(exchange: Exchange, found: Sequence[CandidateFact]) -> Judged:
    """Match what was found with the labels, each with one at most and as many as can be."""
    matched = _pairs(
        [[i for i, one in enumerate(found) if fits(label, one, exchange)] for label in exchange.facts]
    )
    missed = set(range(len(exchange.facts))) - set(matched.values())
    return Judged(
        exchange=exchange,
        right=len(matched),
        missed=tuple(exchange.facts[i] for i in sorted(missed)),
        wrong=tuple(
            one
            for i, one in enumerate(found)
            if i not in matched and not any(fits(label, one, exchange) for label in exchange.may)
        ),
    )


def _pairs(fitting: Sequence[Sequence[int]]) -> dict[int, int]:
    """Label by what it is matched with; `fitting` has for each label all that it could be."""
    taken: dict[int, int] = {}

    def place(label: int, tried: set[int]) -> bool:
        for one in fitting[label]:
            if one not in tried:
                tried.add(one)
                if one not in taken or place(taken[one], tried):
                    taken[one] = label
                    return True
        return False

    for label in range(len(fitting)):
        place(label, set())
    return taken


def fits(label: Label, found: CandidateFact, exchange: Exchange) -> bool:
    """Whether the fact is one of the label's readings, by evidence from the same place."""
    overlap = _overlap(exchange.user, label.quote, found.quote)
    return overlap > 0 and any(
        _says(one, found, exchange) and (one.attribute or 2 * overlap >= len(label.quote))
        for one in label.readings()
    )


def _overlap(text: str, one: str, other: str) -> int:
    """Most characters that a place of the one and a place of the other share."""
    return max(
        (
            min(start + len(one), begin + len(other)) - max(start, begin)
            for start in _places(text, one)
            for begin in _places(text, other)
        ),
        default=0,
    )


def _places(text: str, part: str) -> list[int]:
    return [i for i in range(len(text)) if part and text.startswith(part, i)]


def _says(label: Label, found: CandidateFact, exchange: Exchange) -> bool:
    return (
        _same(label.subject, found.subject)
        and _kind(label.attribute) == _kind(found.attribute)
        and (not label.attribute or values_agree(label.value, found.value))
        and _act(label.act) == _act(found.act)
        and all(
            not day or day == _day(moment, exchange)
            for day, moment in (
                (label.happens_at, found.happens_at),
                (label.valid_from, found.valid_from),
                (label.valid_to, found.valid_to),
            )
        )
    )


def _same(label: str, found: str) -> bool:
    """Whether both are the same person: a name may stand behind who its bearer is to the user."""
    label, found = label.casefold(), found.casefold()
    return label == found or found.endswith(f" {label}")


def _kind(attribute: str) -> str:
    """What follows `favourite` is named in any language; the value says as much."""
    return "favourite" if attribute.startswith("favourite ") else attribute


def _act(act: Act) -> Act:
    return "asserts" if act == "adds" else act


def _day(moment: datetime | None, exchange: Exchange) -> str:
    return utc(moment).astimezone(ZoneInfo(exchange.timezone)).date().isoformat() if moment else ""


def values_agree(one: str, other: str) -> bool:
    """Whether one holds the other, apart from case and punctuation."""
    one, other = (" ".join(re.split(r"[^\w+#]+", value.casefold())).strip() for value in (one, other))
    return bool(one and other) and (one in other or other in one)
