"""What redaction finds and what it takes for something else: precision and recall by kind.

    python benchmarks/redaction.py [--show]

`redaction.txt`, labelled texts, is made up. A find is right if kind, beginning and end are those of a label.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from hearth.memory.extract.personal import KINDS, mask_of

TEXTS = Path(__file__).with_name("redaction.txt")
KINDS_COUNTED: Final = ("secret", *KINDS)
_LABEL: Final = re.compile("⟦([a-z-]+):(.*?)⟧")
_MARKER: Final = re.compile(r"\[(secret|personal):([a-z-]+)\]")


class Span(NamedTuple):
    """Something to be masked, or masked."""

    kind: str
    start: int
    end: int


class Labelled(NamedTuple):
    """A text, and what has to be masked in it."""

    text: str
    spans: frozenset[Span]


class Counts(NamedTuple):
    """Of one kind."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """Of what was masked, the part that had to be; 1 where nothing was."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """Of what had to be masked, the part that was."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def texts() -> list[Labelled]:
    """The labelled texts."""
    lines = TEXTS.read_text(encoding="utf-8").splitlines()
    return [_labelled(line) for line in lines if line and not line.startswith("# ")]


def _labelled(line: str) -> Labelled:
    text, spans, last = "", set(), 0
    for label in _LABEL.finditer(line):
        text += line[last : label.start()]
        spans.add(Span(label[1], len(text), len(text) + len(label[2])))
        text, last = text + label[2], label.end()
    return Labelled(text + line[last:], frozenset(spans))


def masked(text: str) -> frozenset[Span]:
    """What is masked in the text, with everything chosen."""
    result = mask_of(KINDS)(text)
    pattern, kinds, last = "", [], 0
    for marker in _MARKER.finditer(result):
        pattern += re.escape(result[last : marker.start()]) + "(.+?)"
        kinds.append(marker[1] if marker[1] == "secret" else marker[2])
        last = marker.end()
    found = re.fullmatch(pattern + re.escape(result[last:]), text, re.DOTALL)
    assert found is not None, (text, result)
    return frozenset(Span(kind, *found.span(place)) for place, kind in enumerate(kinds, 1))


def measure(labelled: list[Labelled]) -> dict[str, Counts]:
    """The counts by kind."""
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    for one in labelled:
        found = masked(one.text)
        right.update(span.kind for span in found & one.spans)
        wrong.update(span.kind for span in found - one.spans)
        missed.update(span.kind for span in one.spans - found)
    return {kind: Counts(right[kind], wrong[kind], missed[kind]) for kind in KINDS_COUNTED}


def _shown(labelled: list[Labelled]) -> Iterator[str]:
    for text, spans in labelled:
        found = masked(text)
        for sign, some in (("wrong ", found - spans), ("missed", spans - found)):
            yield from (f"{sign} {kind:11} {text[start:end]!r} in {text!r}" for kind, start, end in some)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="what was wrong or missed")
    show = parser.parse_args().show
    labelled = texts()
    traps = sum(not one.spans for one in labelled)
    print(f"{len(labelled)} texts, {traps} of them traps")
    print("| kind | labelled | precision, % | recall, % |\n|---|---|---|---|")
    for kind, counts in measure(labelled).items():
        asked = counts.right + counts.missed
        print(f"| {kind} | {asked} | {counts.precision * 100:.1f} | {counts.recall * 100:.1f} |")
    for line in _shown(labelled) if show else ():
        print(line)


if __name__ == "__main__":
    main()
