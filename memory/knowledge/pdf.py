"""PDF into blocks: the text of each page, with the page's number as its place.

A file may take any time and memory to read, so that it is read in a process of its own, within bounds:
`python -m hearth.memory.knowledge.pdf` reads it from standard input and writes the pages to standard output.
"""

from __future__ import annotations

import io
import re
import resource
import subprocess
import sys
from typing import Final

import msgspec
from pypdf import PdfReader
from pypdf.errors import PyPdfError

from hearth.memory.errors import BadInput
from hearth.memory.knowledge.blocks import Parsed
from hearth.memory.knowledge.plain import paragraphs

MAX_PAGES: Final = 2_000
SECONDS: Final = 60
"""For a file; a thousand pages of text take about twenty."""
MOST_BYTES: Final = 2 << 30
"""Of memory while one is read."""
_HYPHEN: Final = re.compile(r"(?<=[^\W\d_])-\n(?=[a-zß-öø-ÿ])")
"""A word that goes on in the next line."""


class Pages(msgspec.Struct, frozen=True, kw_only=True):
    """What was read, or what is wrong with the file."""

    title: str = ""
    texts: list[str] = []
    got: str = ""
    """What it is that can't be read; empty where it could."""
    expected: str = ""


def read_pdf(raw: bytes) -> Parsed:
    """The paragraphs of its pages. Blocks. Raises BadInput for what is damaged, locked or too much."""
    pages = _apart(raw)
    if pages.got:
        raise BadInput("document", pages.got, pages.expected)
    blocks = [
        block
        for number, text in enumerate(pages.texts, 1)
        for block in paragraphs(text, place=f"page {number}")
    ]
    return Parsed(title=pages.title, blocks=tuple(blocks))


def _apart(raw: bytes) -> Pages:
    command = [sys.executable, "-P", "-m", __name__]
    try:
        done = subprocess.run(command, input=raw, capture_output=True, timeout=SECONDS, check=True)  # noqa: S603 (nothing of it is anybody's input)
        return msgspec.json.decode(done.stdout, type=Pages)
    except subprocess.TimeoutExpired:
        return Pages(got="a PDF", expected=f"one that can be read within {SECONDS} s: split it")
    except (subprocess.CalledProcessError, msgspec.DecodeError):
        return Pages(got="a PDF", expected="one that can be read in two gigabytes of memory: split it")


def pages_of(raw: bytes) -> Pages:
    """The text of each page, here and now."""
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            return Pages(got="an encrypted PDF", expected="one that opens without a password")
        if len(reader.pages) > MAX_PAGES:
            return Pages(got=f"{len(reader.pages)} pages", expected=f"at most {MAX_PAGES}: split it")
        texts = [_HYPHEN.sub("", page.extract_text().replace("\x00", "")) for page in reader.pages]
        title = str((reader.metadata and reader.metadata.title) or "").strip()
        return Pages(title=_sound(title), texts=[_sound(text) for text in texts])
    except (PyPdfError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        # what pypdf meets in a damaged file: its own errors, and those of what it expected there
        return Pages(got="application/pdf", expected=_sound(f"a PDF that can be read ({error})"))


def _sound(text: str) -> str:
    """Without lone surrogates, which JSON can't carry."""
    return text.encode(errors="replace").decode()


def main() -> None:
    """Read one file, in bounded time and memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    sys.stdout.buffer.write(msgspec.json.encode(pages_of(sys.stdin.buffer.read())))


if __name__ == "__main__":
    main()
