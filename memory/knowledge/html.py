"""HTML into blocks: what a page shows, without its navigation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from hearth.memory.errors import BadInput
from hearth.memory.knowledge.blocks import Block, BlockKind, Parsed, title_of

_UNSHOWN: Final = frozenset(
    (
        *("script", "style", "template", "noscript", "head", "nav", "svg", "iframe", "object", "canvas"),
        *("audio", "video", "select", "textarea", "button", "_comment", "-comment", "!doctype"),
    )
)
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_OPENS: Final = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div"),
        *("dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr"),
        *("html", "li", "main", "p", "section", "summary"),
    )
)
"""Elements that begin and end a paragraph."""
_SPACE: Final = re.compile(r"[^\S\n]+")
_LINES: Final = re.compile(r" ?\n ?")


def read_html(text: str) -> Parsed:
    """The blocks of the page's `main`, or only `article`, or all of it. Raises BadInput."""
    page = LexborHTMLParser(text)
    head = page.css_first("title")
    root = _root(page)
    try:
        blocks = tuple(_Walk().blocks(root)) if root is not None else ()
    except RecursionError as error:
        raise BadInput("document", "HTML", "elements that are not nested without end") from error
    title = _spaced(head.text()).strip() if head is not None else ""
    return Parsed(title=title or title_of(blocks), blocks=blocks)


def _root(page: LexborHTMLParser) -> LexborNode | None:
    main = page.css_first("main")
    articles = page.css("article")
    if main is not None:
        return main
    return articles[0] if len(articles) == 1 else page.body


class _Walk:
    """Goes through the elements, with the words of the paragraph that is open."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def blocks(self, node: LexborNode) -> Iterator[Block]:
        """The blocks below the node, in order."""
        yield from self._below(node)
        yield from self._end()

    def _below(self, node: LexborNode) -> Iterator[Block]:
        for child in node.iter(include_text=True):
            tag = child.tag or ""
            if tag == "-text":
                self._words.append(child.text(deep=False).replace("\n", " "))
            elif tag == "br":
                self._words.append("\n")
            elif tag in _UNSHOWN:
                continue
            elif tag in _HEADINGS or tag in _WHOLE:
                yield from self._end()
                yield from _whole(child, tag)
            elif tag in _OPENS:
                yield from self._end()
                yield from self._below(child)
                yield from self._end()
            else:
                yield from self._below(child)

    def _end(self) -> Iterator[Block]:
        text = _spaced("".join(self._words)).strip()
        self._words.clear()
        if text:
            yield Block(kind="paragraph", text=text)


_WHOLE: Final[dict[str, BlockKind]] = {
    "pre": "code",
    "ul": "list",
    "ol": "list",
    "menu": "list",
    "table": "table",
}


def _whole(node: LexborNode, tag: str) -> Iterator[Block]:
    """The one block of an element that is kept together."""
    if tag in _HEADINGS:
        text = " ".join(_shown(node).split())
        if text:
            yield Block(kind="heading", text=text, level=_HEADINGS[tag])
        return
    match _WHOLE[tag]:
        case "code":
            text = node.text().strip("\n").rstrip()
        case "list":
            text = "\n".join(_items(node, ordered=tag == "ol"))
        case _:
            text = "\n".join(_rows(node))
    if text.strip():
        yield Block(kind=_WHOLE[tag], text=text)


def _items(node: LexborNode, *, ordered: bool = False, depth: int = 0) -> Iterator[str]:
    """The lines of a list, those of lists within it below their items."""
    for number, item in enumerate(node.iter(), 1):
        inner = [child for child in item.iter() if child.tag in ("ul", "ol", "menu")]
        text = " ".join(_shown(item, without=("ul", "ol", "menu")).split())
        if text:
            yield f"{'  ' * depth}{f'{number}.' if ordered else '-'} {text}"
        for one in inner:
            yield from _items(one, ordered=one.tag == "ol", depth=depth + 1)


def _rows(node: LexborNode) -> Iterator[str]:
    """The rows of a table, a line each; what is nested in a cell is a part of its text."""
    for part in node.iter():
        if part.tag in ("thead", "tbody", "tfoot"):
            yield from _rows(part)
        elif part.tag == "tr":
            cells = [" ".join(_shown(cell).split()) for cell in part.iter()]
            if any(cells):
                yield f"| {' | '.join(cells)} |"
        elif part.tag == "caption":
            yield " ".join(_shown(part).split())


def _shown(node: LexborNode, *, without: tuple[str, ...] = ()) -> str:
    """The text below a node, elements of a block's kind set off by blanks."""
    parts: list[str] = []
    for child in node.iter(include_text=True):
        tag = child.tag or ""
        if tag == "-text":
            parts.append(child.text(deep=False))
        elif tag not in _UNSHOWN and tag not in without:
            gap = " " if tag in _OPENS or tag in _WHOLE or tag in ("br", "td", "th", "tr") else ""
            parts.append(f"{gap}{_shown(child, without=without)}{gap}")
    return "".join(parts)


def _spaced(text: str) -> str:
    return _LINES.sub("\n", _SPACE.sub(" ", text))
