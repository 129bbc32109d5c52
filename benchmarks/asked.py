"""How well requests to forget, and standing instructions, are read in what people write.

    python benchmarks/asked.py [--show] [--json FILE]

`forgetting.py` and `instructions.py` say what the labels mean. A request is right where what it asks and what
that is about agree. `precision` is the share of right ones among those read, `recall` the share of all that
were read right, in per cent.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from forgetting import MESSAGES, Message
from instructions import is_read
from instructions import messages as instructions
from report import Row, write

from hearth.memory.extract.forgetting import forget_request


def instructed() -> Row:
    """The counts of the messages that instruct, or seem to."""
    read = [(one.instructs, is_read(one)) for one in instructions()]
    right, wrong = read.count((True, True)), read.count((False, True))
    asked = sum(instructs for instructs, _ in read)
    return {
        "": "all",
        "messages": len(read),
        "instructions": asked,
        "right": right,
        "wrong": wrong,
        "precision": 100 * right / (right + wrong),
        "recall": 100 * right / asked,
    }


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A message, and what was read."""

    message: Message
    asks: str
    about: str

    @property
    def right(self) -> bool:
        """True for a request that was read as what it is."""
        return bool(self.asks) and (self.asks, self.about) == (self.message.asks, self.message.about)


def judged() -> list[Judged]:
    """All messages, read."""
    found = []
    for message in msgspec.json.decode(MESSAGES.read_bytes(), type=list[Message]):
        request = forget_request(message.text)
        asks, about = ("", "") if request is None else (request.kind, request.about)
        found.append(Judged(message=message, asks=asks, about=about))
    return found


def row(name: str, some: Sequence[Judged]) -> Row:
    """The counts of some messages."""
    right, read = sum(one.right for one in some), sum(bool(one.asks) for one in some)
    asked = sum(bool(one.message.asks) for one in some)
    return {
        "": name,
        "messages": len(some),
        "requests": asked,
        "right": right,
        "wrong": read - right,
        "precision": 100 * right / read if read else "",
        "recall": 100 * right / asked if asked else "",
    }


def rows(some: Sequence[Judged], group: Callable[[Judged], str]) -> list[Row]:
    """One row a group, in the order in which groups come."""
    names = dict.fromkeys(map(group, some))
    return [row(name, [one for one in some if group(one) == name]) for name in names]


def main() -> None:
    """Read the arguments, read the messages and print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--show", action="store_true", help="print what was read wrong or missed")
    arguments.add_argument("--json", type=Path, help="write what was found here too")
    given = arguments.parse_args()
    found = judged()
    tables = {
        "requests to forget": [row("all", found)],
        "instructions": [instructed()],
        "by language": rows(found, lambda one: one.message.language),
        "by what is asked": rows(found, lambda one: one.message.asks or "nothing"),
    }
    write(given.json, "asked", {}, tables)
    for one in found if given.show else ():
        if (one.asks, one.about) != (one.message.asks, one.message.about):
            print(f"{one.message.text}\n  read as: {one.asks} {one.about!r}")


if __name__ == "__main__":
    main()
