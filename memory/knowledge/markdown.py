"""Markdown into blocks, in its own words: what markup says, a reader of the block understands too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hearth.memory.knowledge.blocks import Block, BlockKind, Parsed, title_of

_KINDS: Final[dict[str, BlockKind]] = {
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "table_open": "table",
    "fence": "code",
    "code_block": "code",
}
_RULE: Final = re.compile(r"\s*(?:[-*_]\s*){3,}")
_UNDERLINE: Final = re.compile(r"\s{0,3}(?:=+|-+)\s*")
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}(?:\s+(.*?))?(?:\s+#+)?\s*")


def read_markdown(text: str) -> Parsed:
    """The blocks of CommonMark with tables. Lines that make nothing visible are kept as paragraphs."""
    lines = text.split("\n")
    blocks: list[Block] = []
    done = _front_matter(lines)
    if done:
        blocks.append(Block(kind="code", text="\n".join(lines[:done])))
    tokens = _parser().parse("\n".join([*[""] * done, *lines[done:]]))
    for token in tokens:
        if token.level or token.map is None:
            continue
        start, end = token.map
        blocks += _paragraphs(lines[done:start])
        blocks += _block(token, lines[start:end])
        done = max(done, end)
    blocks += _paragraphs(lines[done:])
    found = tuple(blocks)
    return Parsed(title=title_of(found), blocks=found)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


def _front_matter(lines: Sequence[str]) -> int:
    """How many lines the YAML at the very top takes; 0 without one."""
    if lines[0].rstrip() != "---":
        return 0
    ends = (at for at, line in enumerate(lines[1:200], 1) if line.rstrip() in ("---", "..."))
    end = next(ends, 0)
    return end + 1 if end > 1 else 0


def _block(token: Token, lines: Sequence[str]) -> Iterator[Block]:
    if token.type == "heading_open":
        text = _heading(lines)
        if text:
            yield Block(kind="heading", text=text, level=int(token.tag[1:]))
        return
    text = "\n".join(lines).strip("\n").rstrip()
    if text.strip() and token.type != "hr":
        yield Block(kind=_KINDS.get(token.type, "paragraph"), text=text)


def _heading(lines: Sequence[str]) -> str:
    hashes = _HEADING.fullmatch(lines[0]) if len(lines) == 1 else None
    if hashes is not None:
        return (hashes.group(1) or "").strip()
    return " ".join(line.strip() for line in lines if not _UNDERLINE.fullmatch(line)).strip()


def _paragraphs(lines: Sequence[str]) -> Iterator[Block]:
    """Lines that the parser makes nothing of, as definitions of links."""
    text = "\n".join(line for line in lines if not _RULE.fullmatch(line)).strip()
    if text:
        yield Block(kind="paragraph", text=text)
