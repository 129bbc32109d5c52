"""PDF into blocks: the text of each page, with the page's number as its place."""

from __future__ import annotations

import io
import re
from typing import Final

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from hearth.memory.errors import BadInput
from hearth.memory.knowledge.blocks import Block, Parsed
from hearth.memory.knowledge.plain import paragraphs

MAX_PAGES: Final = 2_000
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-\n(?=[a-zß-öø-ÿ])")
"""A word that goes on in the next line."""


def read_pdf(raw: bytes) -> Parsed:
    """The paragraphs of its pages. Raises BadInput for what is damaged, locked or too long."""
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise BadInput("document", "an encrypted PDF", "one that opens without a password")
        if len(reader.pages) > MAX_PAGES:
            raise BadInput("document", f"{len(reader.pages)} pages", f"at most {MAX_PAGES}: split it")
        blocks = [block for number in range(len(reader.pages)) for block in _page(reader, number)]
        title = str((reader.metadata and reader.metadata.title) or "").strip()
    except (PyPdfError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        # what pypdf meets in a damaged file: its own errors, and those of what it expected there
        raise BadInput("document", "application/pdf", f"a PDF that can be read ({error})") from error
    return Parsed(title=title, blocks=tuple(blocks))


def _page(reader: PdfReader, number: int) -> tuple[Block, ...]:
    text = _HYPHEN.sub("", reader.pages[number].extract_text().replace("\x00", ""))
    return paragraphs(text, place=f"page {number + 1}")
