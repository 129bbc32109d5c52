"""What a document consists of, whatever its format: headings, paragraphs, lists, tables and code in order."""

from __future__ import annotations

from typing import Literal

import msgspec

BlockKind = Literal["heading", "paragraph", "list", "table", "code"]


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a document, never empty."""

    kind: BlockKind
    text: str
    level: int = 0
    """Of a heading: 1 is the document's own."""
    place: str = ""
    """Where it stands in a document that has pages: `page 3`."""


class Parsed(msgspec.Struct, frozen=True, kw_only=True):
    """A document as its format's reader gives it."""

    title: str
    """As the document says; empty where it says none."""
    blocks: tuple[Block, ...]


def title_of(blocks: tuple[Block, ...]) -> str:
    """The first heading of the highest level, where the document begins with it; else empty."""
    first = blocks[0] if blocks else None
    return first.text if first is not None and first.kind == "heading" and first.level == 1 else ""
