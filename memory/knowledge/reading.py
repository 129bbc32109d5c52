"""A document's bytes into blocks, by its media type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from hearth.memory.errors import BadInput
from hearth.memory.extract.clean import well_formed
from hearth.memory.knowledge.blocks import Parsed
from hearth.memory.knowledge.html import read_html
from hearth.memory.knowledge.markdown import read_markdown
from hearth.memory.knowledge.pdf import read_pdf
from hearth.memory.knowledge.plain import read_plain

_OF_TEXT: Final[dict[str, Callable[[str], Parsed]]] = {
    "text/markdown": read_markdown,
    "text/plain": read_plain,
    "text/html": read_html,
}
PDF: Final = "application/pdf"
MEDIA_TYPES: Final = (*_OF_TEXT, PDF)
"""What can be loaded."""
MAX_CHARACTERS: Final = 2_000_000
"""Of a document's text: a thousand pages of a book."""


def read_document(raw: bytes, media_type: str, mask: Callable[[str], str]) -> Parsed:
    """The document, with secrets masked. Raises BadInput for what can't be read, has no text or too much."""
    if media_type not in MEDIA_TYPES:
        raise BadInput("media_type", media_type, f"one of {', '.join(MEDIA_TYPES)}")
    parsed = read_pdf(raw) if media_type == PDF else _OF_TEXT[media_type](mask(_text(raw)))
    size = sum(len(block.text) for block in parsed.blocks)
    if not size:
        raise BadInput("document", f"{len(raw)} bytes", "a document with text in it; a scan has none")
    if size > MAX_CHARACTERS:
        raise BadInput("document", f"{size} characters", f"at most {MAX_CHARACTERS}: split it")
    blocks = tuple(
        msgspec.structs.replace(block, text=well_formed(mask(block.text))) for block in parsed.blocks
    )
    return Parsed(title=" ".join(well_formed(mask(parsed.title)).split()), blocks=blocks)


def _text(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput("document", f"byte {error.start}", "text in UTF-8") from error
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
