"""A made-up year of one person: facts that are told, change, return and contradict, and questions for them.

Nothing of it is anybody's data. Each planted fact is told in passing within other talk, is asked for days or
months later, and has one right answer at any time, or none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from hearth.memory.simulation import Played

_ASKED: Final = 0.02
"""Chance that a planted thing is asked for on a day."""
START: Final = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One statement of the year."""

    day: int
    text: str
    answer: str
    """What is right from then on; empty where the fact has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One thing that is told, and may change."""

    question: str
    told: tuple[Told, ...]

    def answer(self, day: int) -> str:
        """What is right on that day; empty before the first telling and after an end."""
        return next((one.answer for one in reversed(self.told) if one.day <= day), "")

    def stale(self, day: int) -> frozenset[str]:
        """What was right once and is not on that day."""
        return frozenset(one.answer for one in self.told if one.day <= day) - {self.answer(day), ""}


def _p(question: str, *told: tuple[int, str, str]) -> Planted:
    return Planted(
        question=question, told=tuple(Told(day=day, text=text, answer=answer) for day, text, answer in told)
    )


PLANTED: Final[Sequence[Planted]] = (
    _p(
        "Where do I live?",
        (3, "By the way, I live in Winterthur, so shops close early here.", "Winterthur"),
        (140, "We finally did it: I moved to Lausanne last week, boxes everywhere.", "Lausanne"),
        (290, "I'm back in the old town: I moved to Winterthur again.", "Winterthur"),
    ),
    _p(
        "Which company do I work for?",
        (5, "I work at Quantek as a hydrologist, in case that matters for the report.", "Quantek"),
        (120, "I left Quantek, I'm at Borealis Labs now.", "Borealis"),
    ),
    _p("What is my job?", (6, "I'm a hydrologist, so please don't explain aquifers to me.", "hydrologist")),
    _p(
        "What food am I allergic to?", (8, "I'm allergic to cashews, so no pesto with them please.", "cashew")
    ),
    _p(
        "What is my dog called?",
        (9, "My dog is called Bilbo and he ate my slippers.", "Bilbo"),
    ),
    _p(
        "Which gym do I go to?",
        (12, "I signed up at the gym Ironhall, three times a week is the plan.", "Ironhall"),
        (170, "I quit Ironhall, it was too crowded; I train at the gym Boulderei now.", "Boulderei"),
    ),
    _p(
        "What is the number of my locker?",
        (15, "Note to self: my locker at the office has the number 4471.", "4471"),
        (200, "They gave me another locker, the number is 2098 now.", "2098"),
    ),
    _p("Who is my dentist?", (18, "My dentist is Dr. Okonkwo, she's patient with me.", "Okonkwo")),
    _p(
        "What is my favourite tea?",
        (20, "My favourite tea is lapsang souchong, the smoky one.", "lapsang"),
        (230, "I've changed my mind, my favourite tea is genmaicha these days.", "genmaicha"),
    ),
    _p("Where does my sister live?", (22, "My sister lives in Tromsø and hates the dark months.", "Tromsø")),
    _p("Which instrument do I play?", (25, "I play the bassoon, badly but with joy.", "bassoon")),
    _p(
        "Which car do I drive?",
        (28, "I drive a Skoda Octavia, can you find its tyre pressure?", "Skoda"),
        (180, "I sold the Skoda and bought a Renault Zoe.", "Renault"),
    ),
    _p("When is my wedding anniversary?", (30, "Our wedding anniversary is on the 17th of September.", "17")),
    _p(
        "Do I smoke?",
        (35, "I smoke too much, a pack a day.", "smoke"),
        (190, "Good news: I don't smoke any more.", "don't smoke any more"),
    ),
    _p(
        "Which language am I learning?",
        (40, "I'm learning Icelandic with an app in the evenings.", "Icelandic"),
    ),
    _p(
        "What is the name of my boss?",
        (44, "My boss is called Marguerite, she likes short memos.", "Marguerite"),
    ),
    _p(
        "Which database do we use at work?",
        (48, "We use CockroachDB at work for the sensor data.", "Cockroach"),
    ),
    _p(
        "How much do I pay for rent?",
        (50, "The rent of my flat is 1840 francs a month, that's half my wage.", "1840"),
        (150, "In the new flat the rent is 2210 francs a month.", "2210"),
    ),
    _p("What do I take for my migraine?", (55, "I take rizatriptan when the migraine comes.", "rizatriptan")),
    _p(
        "Which book did I lend to Jonas?",
        (60, "I lent Jonas my copy of Piranesi, I want it back.", "Piranesi"),
    ),
    _p(
        "Where did I hide the spare key?",
        (65, "The spare key is under the terracotta frog on the balcony.", "frog"),
    ),
    _p(
        "Who is my flatmate?",
        (70, "My flatmate is Priya, she cooks on Sundays.", "Priya"),
        (145, "Priya is not my flatmate any more, I share the new flat with Tomasz.", "Tomasz"),
    ),
    _p("What is my blood type?", (75, "For the form: my blood type is AB negative.", "AB")),
    _p("Which train do I take to work?", (80, "I take the S12 at 7:14 to work every day.", "S12")),
    _p("What did the plumber say was broken?", (85, "The plumber says the flush valve is broken.", "valve")),
    _p(
        "What colour did we paint the kitchen?",
        (90, "We painted the kitchen sage green on Saturday.", "sage"),
    ),
    _p("Wie heisst meine Katze?", (95, "Meine Katze heisst Fräulein Smilla.", "Smilla")),
    _p("¿Dónde vive mi madre?", (100, "Mi madre vive en Salamanca, hablamos los domingos.", "Salamanca")),
    _p("What is my running goal?", (105, "My goal is to run a half marathon under 1:55 this year.", "1:55")),
    _p("Which bank am I with?", (110, "I bank with Raiffeisen, their app is slow.", "Raiffeisen")),
    _p(
        "What is my daughter's school called?",
        (115, "My daughter's school is called Rosenberg.", "Rosenberg"),
    ),
    _p("What do I never eat?", (125, "I never eat mushrooms, the texture is awful.", "mushroom")),
    _p("Who repaired my bike?", (130, "Velo Otto repaired my bike, the gears are like new.", "Otto")),
    _p(
        "What size are my ski boots?",
        (135, "My ski boots are size 26.5, remember that for the hire.", "26.5"),
    ),
    _p("What is our project called?", (160, "Our project at work is called Meltwater.", "Meltwater")),
    _p("Which doctor did my back surgery?", (165, "Dr. Farkas did my back surgery in spring.", "Farkas")),
    _p("What does my partner do?", (175, "My partner is a cellist in the city orchestra.", "cellist")),
    _p(
        "Which wine did we like in Porto?", (210, "In Porto we loved the wine from Quinta do Vale.", "Quinta")
    ),
    _p("Where is my passport?", (220, "My passport is in the blue tin on the shelf.", "blue tin")),
    _p("Which course did I book?", (240, "I booked a pottery course for the autumn.", "pottery")),
)
"""Forty things; fourteen of them change."""

_SMALL: Final = (
    "Can you shorten this sentence for me?",
    "What's a nice soup for tonight?",
    "Please write a friendly reminder about the meeting on Thursday.",
    "How do I centre a div?",
    "Explain the difference between a lake and a reservoir.",
    "Convert 14 miles to kilometres.",
    "Suggest a name for a blog about rivers.",
    "What's a polite way to say no to a party?",
    "The weather was grim, so we stayed in and played cards.",
    "I had a long call with the insurance about the water damage.",
)


def small_talk() -> Iterator[tuple[str, str]]:
    """Requests without end that say nothing of what is planted, with their replies."""
    generator = random.Random(7)  # noqa: S311 - a script, not a secret
    while True:
        yield generator.choice(_SMALL), "Here you are."


def script(
    talk: Iterator[tuple[str, str]], *, days: int = 365, a_day: int = 20, planted: Sequence[Planted] = PLANTED
) -> Iterator[Played]:
    """The year: so many exchanges a day in sessions of five, what is planted among them.

    Each planted thing is asked for now and then, as people come back to what concerns them.
    """
    generator = random.Random(1)  # noqa: S311 - a script, not a secret
    for day in range(days):
        said: list[tuple[str, str | None]] = [next(talk) for _ in range(a_day)]
        told = [(one.text, "Noted.") for thing in planted for one in thing.told if one.day == day]
        asked = [
            (thing.question, None) for thing in planted if thing.answer(day) and generator.random() < _ASKED
        ]
        mine = [*told, *asked][:a_day]
        for slot, one in zip(sorted(generator.sample(range(a_day), len(mine))), mine, strict=True):
            said[slot] = one
        for number, (text, reply) in enumerate(said):
            at = START + timedelta(days=day, hours=8, minutes=number * 40)
            yield Played(at=at, session=f"{day}-{number // 5}", text=text, reply=reply)
