"""Facts that are asked for by what they are about, in words which they lack: `job` for `I'm a hydrologist`.

    python benchmarks/attributes.py [PATH/locomo-dev.json] [--exchanges 400] [--budget 256] [--show]

The facts are told in passing among other talk: LoCoMo's turns where a file of it is given (not part of
this repository), small talk else. `same` are questions in the fact's language, `other` in another. Asked
beside them are requests that no memory helps with (`everyday.py`).
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from everyday import REQUESTS, REQUESTS_HELD_OUT
from report import Row, write
from year import talk

from hearth.memory.simulation import Played, Simulation, simulated
from hearth.testing.year import START

TOLD: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "I'm a hydrologist.",
        "hydrologist",
        ("What is my job?", "What do I do for a living?", "What's my profession?"),
        ("Was bin ich von Beruf?", "Quel est mon métier ?"),
    ),
    (
        "I moved to Lausanne last spring.",
        "Lausanne",
        ("Where do I live?", "Which city is my home in?"),
        ("In welcher Stadt wohne ich?", "¿Dónde vivo?"),
    ),
    (
        "Ich bin mit Annika verheiratet.",
        "Annika",
        ("Wie heisst meine Frau?",),
        ("Who is my wife?", "Come si chiama mia moglie?"),
    ),
    (
        "I'm allergic to penicillin.",
        "penicillin",
        ("Do I have any allergies?", "What must a doctor not give me?"),
        ("¿Qué alergias tengo?", "Welche Allergien habe ich?"),
    ),
    (
        "I take rizatriptan every day.",
        "rizatriptan",
        ("Which medication am I on?",),
        ("Quel médicament je prends ?",),
    ),
    (
        "Ich arbeite bei Novartis.",
        "Novartis",
        ("Wer ist mein Arbeitgeber?", "In welcher Firma bin ich?"),
        ("Which company do I work for?",),
    ),
    (
        "My son Milo is in first grade.",
        "Milo",
        ("Do I have children?", "What are my kids called?"),
        ("Wie heissen meine Kinder?",),
    ),
    ("I'm vegan.", "vegan", ("What is my diet?", "What do I eat?"), ("Wie ernähre ich mich?",)),
    (
        "I speak Finnish and Estonian.",
        "Finnish",
        ("Which languages do I know?",),
        ("Welche Sprachen kann ich?",),
    ),
    ("I play the oboe.", "oboe", ("Which instrument do I play?",), ("Welches Instrument spiele ich?",)),
    ("I was born on 4 May 1988.", "4 May", ("When is my birthday?",), ("Wann habe ich Geburtstag?",)),
    (
        "I study marine biology.",
        "marine",
        ("What is my major?", "What am I studying?"),
        ("Was ist mein Studienfach?",),
    ),
    (
        "I have a tortoise named Gustav.",
        "Gustav",
        ("What pet do I have?",),
        ("Comment s'appelle mon animal ?",),
    ),
    ("Soy de Argentina.", "Argentina", ("¿Cuál es mi país de origen?",), ("Where do I come from?",)),
    (
        "I'm scared of heights.",
        "heights",
        ("What am I afraid of?", "Do I have a phobia?"),
        ("Wovor habe ich Angst?",),
    ),
    ("My hobby is origami.", "origami", ("What do I do in my free time?",), ("Was ist mein Hobby?",)),
    (
        "Mio fratello si chiama Dario.",
        "Dario",
        ("Ho fratelli?", "Come si chiama mio fratello?"),
        ("Do I have siblings?", "Wie heisst mein Bruder?"),
    ),
    ("Tengo diabetes tipo 1.", "diabetes", ("¿Qué enfermedad tengo?",), ("Which illness do I have?",)),
)
"""What is said, a word of it that shows it in a block, and questions in the same and in other languages."""


def script(other: Iterator[tuple[str, str]], exchanges: int) -> Iterator[Played]:
    """The talk, and each of the facts once, evenly spread."""
    apart = exchanges // len(TOLD)
    facts = iter(TOLD)
    for number in range(exchanges):
        said, reply = next(other)
        if number % apart == apart // 2 and (fact := next(facts, None)):
            said, reply = fact[0], "Noted."
        yield Played(
            at=START + timedelta(minutes=30 * number), session=f"{number // 5}", text=said, reply=reply
        )


async def asked(
    simulation: Simulation, kind: str, pairs: Sequence[tuple[str, str]], given: argparse.Namespace
) -> Row:
    """Ask each; the second of a pair is what has to stand in the block, or nothing."""
    found = blocks = tokens = 0
    for question, wanted in pairs:
        block = (await simulation.ask(question, budget=given.budget)).block
        right = bool(wanted) and wanted in block.text
        found, blocks, tokens = found + right, blocks + bool(block.text), tokens + block.tokens
        if (given.show and bool(wanted) != right) or (given.show and block.text and not wanted):
            print(f"{kind}: {question} {wanted!r}\n{block.text}\n")
    row: Row = {
        "": kind,
        "asked": len(pairs),
        "got a block, %": 100 * blocks / len(pairs),
        "tokens": tokens / len(pairs),
    }
    return {**row, "found, %": 100 * found / len(pairs)} if any(wanted for _, wanted in pairs) else row


async def played(given: argparse.Namespace) -> list[Row]:
    """Play, and ask all."""
    with TemporaryDirectory() as folder:
        async with simulated(folder, START, embedder=given.embedder) as simulation:
            await simulation.play(script(talk(given.path), given.exchanges))
            kinds = {
                "same": [(question, shows) for _, shows, same, _ in TOLD for question in same],
                "other": [(question, shows) for _, shows, _, other in TOLD for question in other],
                "everyday": [(request, "") for request in REQUESTS],
                "everyday, held out": [(request, "") for request in REQUESTS_HELD_OUT],
            }
            return [await asked(simulation, kind, pairs, given) for kind, pairs in kinds.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, play, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("path", type=Path, nargs="?", help="a file of LoCoMo's form, for the other talk")
    parser.add_argument("--exchanges", type=int, default=400)
    parser.add_argument("--budget", type=int, default=256, help="tokens of a block")
    parser.add_argument("--embedder", choices=("fast", "quality"), default="fast")
    parser.add_argument("--show", action="store_true", help="print what was missing, and blocks for nothing")
    parser.add_argument("--json", type=Path, help="write what was found here too")
    given = parser.parse_args(arguments)
    write(given.json, "attributes", vars(given), {"Facts by what they are about": asyncio.run(played(given))})


if __name__ == "__main__":
    main()
