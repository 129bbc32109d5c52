"""Plain text into blocks: paragraphs between blank lines."""

from __future__ import annotations

import re
from typing import Final

from hearth.memory.knowledge.blocks import Block, Parsed

_BLANK: Final = re.compile(r"\n[^\S\n]*\n\s*")


def read_plain(text: str) -> Parsed:
    """Its paragraphs."""
    return Parsed(title="", blocks=paragraphs(text))


def paragraphs(text: str, place: str = "") -> tuple[Block, ...]:
    """The paragraphs of a text, without blank ones."""
    parts = (part.strip("\n").rstrip() for part in _BLANK.split(text))
    return tuple(Block(kind="paragraph", text=part, place=place) for part in parts if part.strip())
