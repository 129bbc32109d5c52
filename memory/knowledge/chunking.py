"""Cuts a document into chunks along its structure: pure, and the same for the same blocks.

A chunk holds blocks that follow one another, headings among them, until it has enough. What is too long for a
chunk is cut between its own parts: the rows of a table, the lines of a list or of code, sentences. Nothing is
left out: the texts one after another, without their overlaps, are the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from hearth.memory.knowledge.blocks import Block
from hearth.memory.recall.abridge import sentences
from hearth.memory.types import Chunk

ENOUGH: Final = 200
"""Tokens, about, from which a chunk ends with its block."""
MOST: Final = 400
"""Tokens of a chunk, about; only its overlap may come on top."""
_SECTION: Final = 25
"""Tokens from which a chunk ends before a heading: a sentence or two are found by themselves, and what is
shorter together with the next section."""
_OVERLAP: Final = 40
"""Tokens of a sentence that is repeated at most, where a paragraph is cut."""
_HEADING: Final = 60
"""Tokens of a heading; what is longer is a paragraph."""
_BYTES: Final = 4
"""Of a token, about: letters are one byte each in English, and three in Chinese, where they say more."""


class _Unit(msgspec.Struct, frozen=True):
    """A block, or a part of one that is too long."""

    text: str
    place: str
    overlap: int = 0


class _Part(msgspec.Struct, frozen=True):
    """A unit with the headings right before it."""

    headings: tuple[str, ...]
    unit: _Unit
    path: tuple[str, ...]
    """Above the first of its headings, or above it."""

    @property
    def size(self) -> int:
        return tokens("\n".join([*self.headings, self.unit.text]))


def tokens(text: str) -> int:
    """How many tokens it has, about, for any model."""
    return -(-len(text.encode()) // _BYTES)


def chunks_of(blocks: Sequence[Block]) -> tuple[Chunk, ...]:
    """The chunks in the document's order."""
    chunks: list[Chunk] = []
    open_parts: list[_Part] = []
    for part in _parts(blocks):
        if open_parts and _ends(open_parts, part):
            chunks.append(_chunk(open_parts))
            open_parts = []
        open_parts.append(part)
    return (*chunks, _chunk(open_parts)) if open_parts else ()


def _ends(before: Sequence[_Part], part: _Part) -> bool:
    """Whether a chunk of those parts ends before that one."""
    size = sum(one.size for one in before)
    if part.unit.overlap or size + part.size > MOST or size >= ENOUGH:
        return True
    return bool(part.headings) and size >= _SECTION


def _chunk(parts: Sequence[_Part]) -> Chunk:
    lines = [line for part in parts for line in (*part.headings, part.unit.text)]
    return Chunk(
        text="\n".join(line for line in lines if line),
        path=parts[0].path,
        place=parts[0].unit.place,
        overlap=parts[0].unit.overlap,
    )


def _parts(blocks: Sequence[Block]) -> Iterator[_Part]:
    """Headings wait for what they are above; those at the very end make a part of their own."""
    above: list[tuple[int, str]] = []
    waiting: list[str] = []
    path: tuple[str, ...] = ()
    for block in blocks:
        if block.kind == "heading" and tokens(block.text) <= _HEADING:
            while above and above[-1][0] >= block.level:
                above.pop()
            path = path if waiting else tuple(text for _, text in above)
            above.append((block.level, block.text))
            waiting.append(block.text)
            continue
        for unit in _units(block):
            yield _Part(tuple(waiting), unit, path if waiting else tuple(text for _, text in above))
            waiting = []
    if waiting:
        yield _Part(tuple(waiting), _Unit("", blocks[-1].place), path)


def _units(block: Block) -> Iterator[_Unit]:
    if tokens(block.text) <= MOST:
        yield _Unit(block.text, block.place)
        return
    if block.kind in ("paragraph", "heading"):
        yield from _cut_text(block)
    else:
        yield from _cut_lines(block)


def _cut_text(block: Block) -> Iterator[_Unit]:
    """Between sentences; each part begins with the last sentence of the one before, if that is short."""
    repeated = ""
    for part in _filled([piece for one in sentences(block.text) for piece in _pieces(one)]):
        before = f"{repeated} " if repeated else ""
        yield _Unit(before + "".join(part).strip(), block.place, len(before))
        last = part[-1].strip()
        repeated = last if len(part) > 1 and tokens(last) <= _OVERLAP else ""


def _cut_lines(block: Block) -> Iterator[_Unit]:
    """Between lines; each part of a table begins with the table's head."""
    lines = [piece for line in block.text.splitlines(keepends=True) for piece in _pieces(line)]
    head = _table_head(lines) if block.kind == "table" else ""
    for number, part in enumerate(_filled(lines)):
        before = head if number else ""
        yield _Unit(before + "".join(part).rstrip(), block.place, len(before))


def _table_head(lines: Sequence[str]) -> str:
    """The first row, with the rule below it; empty where it is too long to be repeated."""
    ruled = len(lines) > 1 and not lines[1].strip(" |:-\n")
    head = "".join(lines[: 2 if ruled else 1])
    return head if tokens(head) <= _OVERLAP else ""


def _filled(pieces: Sequence[str]) -> Iterator[list[str]]:
    """Pieces that follow one another, of `ENOUGH` tokens together, about."""
    part: list[str] = []
    size = 0
    for piece in pieces:
        if part and size + len(piece.encode()) > ENOUGH * _BYTES:
            yield part
            part, size = [], 0
        part.append(piece)
        size += len(piece.encode())
    if part:
        yield part


def _pieces(text: str) -> Iterator[str]:
    """The text, cut between words where it is too long for a chunk, and within one that is."""
    most = ENOUGH * _BYTES
    while len(text.encode()) > most:
        head = text.encode()[:most].decode(errors="ignore")
        space = max(head.rfind(" "), head.rfind("\n"))
        at = space + 1 if space > len(head) // 2 else len(head)
        yield text[:at]
        text = text[at:]
    if text:
        yield text
