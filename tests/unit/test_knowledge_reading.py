"""Documents of each media type into blocks, from small files made here."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from hearth.memory.errors import BadInput
from hearth.memory.extract.secrets import mask_secrets
from hearth.memory.knowledge import pdf as pdf_reader
from hearth.memory.knowledge import reading
from hearth.memory.knowledge.blocks import Parsed
from hearth.memory.knowledge.reading import MEDIA_TYPES, read_document

MARKDOWN = """---
owner: support
---

# Handbook

We sell *lamps*.

## Returns

- within 30 days
- with the receipt

| city | hours |
|------|-------|
| Bern | 9-17  |

```python
print("# no heading")
```

Shipping
--------

See [prices].

[prices]: https://example.org/prices
"""

HTML = """<!doctype html><html><head><title>Our
 Handbook</title><style>p {color: red}</style></head><body>
<nav><ul><li>Home</li></ul></nav>
<h1>Handbook</h1> We sell <b>lam</b>ps<br>and bulbs.
<div><p>First.</p>Second.<script>alert(1)</script></div>
<ul><li>within <i>30</i> days<ul><li>in Bern</li></ul></li><li>with the receipt</li></ul>
<table><tr><th>city</th><th>hours</th></tr><tbody><tr><td>Bern</td><td>9-17</td></tr></tbody></table>
<pre>a
  b</pre></body></html>"""


def read(raw: str | bytes, kind: str = "text/markdown") -> Parsed:
    return read_document(raw.encode() if isinstance(raw, str) else raw, kind, mask_secrets)


def told(parsed: Parsed) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in parsed.blocks]


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF with a line of text for each line of a page."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(300, 300)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in text.split("\n"))
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 250 Td {lines}ET".encode())
        page[NameObject("/Contents")] = stream
    if title:
        writer.add_metadata({"/Title": title})
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_markdown_gives_its_parts_in_its_own_words() -> None:
    """Headings of both kinds, lists, tables and code whole; front matter and definitions of links stay."""
    parsed = read(MARKDOWN)
    assert parsed.title == ""
    assert told(parsed) == [
        ("code", "---\nowner: support\n---"),
        ("heading", "Handbook"),
        ("paragraph", "We sell *lamps*."),
        ("heading", "Returns"),
        ("list", "- within 30 days\n- with the receipt"),
        ("table", "| city | hours |\n|------|-------|\n| Bern | 9-17  |"),
        ("code", '```python\nprint("# no heading")\n```'),
        ("heading", "Shipping"),
        ("paragraph", "See [prices]."),
        ("paragraph", "[prices]: https://example.org/prices"),
    ]
    assert [block.level for block in parsed.blocks if block.kind == "heading"] == [1, 2, 2]
    assert read("# Handbook\n\ntext").title == "Handbook"


@given(st.text(st.sampled_from("ab#-*|`>1.[]():= \n\t~_<&;!"), max_size=80))
def test_markdown_loses_no_word(text: str) -> None:
    """Whatever is written, each letter and number of it stands in a block, in order."""
    try:
        blocks = read(text).blocks
    except BadInput:
        blocks = ()
    kept = "".join(block.text for block in blocks)
    assert [c for c in kept if c in "ab1"] == [c for c in text if c in "ab1"]


def test_plain_text_gives_paragraphs() -> None:
    """Blank lines part them, line breaks of any kind do not."""
    parsed = read("\ufeffOne\r\nline.\r\n\r\n \r\n  Two.\n", "text/plain")
    assert told(parsed) == [("paragraph", "One\nline."), ("paragraph", "Two.")]


def test_html_gives_what_a_page_shows() -> None:
    """Words across elements stay whole, navigation and scripts are left out, lists and tables have lines."""
    parsed = read(HTML, "text/html")
    assert parsed.title == "Our Handbook"
    assert told(parsed) == [
        ("heading", "Handbook"),
        ("paragraph", "We sell lamps\nand bulbs."),
        ("paragraph", "First."),
        ("paragraph", "Second."),
        ("list", "- within 30 days\n  - in Bern\n- with the receipt"),
        ("table", "| city | hours |\n| Bern | 9-17 |"),
        ("code", "a\n  b"),
    ]


def test_of_html_with_a_main_part_only_that_is_read() -> None:
    """What stands around it is the same on each page of a site."""
    page = "<body><header>Shop</header><main><p>We sell lamps.</p></main><footer>2026</footer></body>"
    assert told(read(page, "text/html")) == [("paragraph", "We sell lamps.")]


def test_html_without_end_is_refused() -> None:
    """Nested deeper than anybody writes: an error, and no crash."""
    with pytest.raises(BadInput, match="nested without end"):
        read("<i>" * 100_000 + "x", "text/html")


def test_pdf_gives_its_pages() -> None:
    """Each paragraph with its page, the title from the file's own data."""
    parsed = read(pdf("We sell lamps.", "Returns within 30 days.", title="Handbook"), "application/pdf")
    assert parsed.title == "Handbook"
    assert [(block.text.strip(), block.place) for block in parsed.blocks] == [
        ("We sell lamps.", "page 1"),
        ("Returns within 30 days.", "page 2"),
    ]


def test_secrets_are_masked_in_every_format() -> None:
    """As everywhere: a marker stands in their place."""
    key = "sk-proj-" + "a1B2" * 12
    for kind, raw in {
        "text/markdown": f"The key is {key}.".encode(),
        "text/plain": f"The key is {key}.".encode(),
        "text/html": f"<p>The key is {key}.</p>".encode(),
        "application/pdf": pdf(f"The key is {key}."),
    }.items():
        text = " ".join(block.text for block in read(raw, kind).blocks)
        assert "[secret:" in text, kind
        assert key not in text, kind


@pytest.mark.parametrize(
    ("raw", "kind", "expected"),
    [
        (b"", "text/plain", "a document with text in it"),
        (b" \n\n ", "text/markdown", "a document with text in it"),
        (b"<body><script>1</script></body>", "text/html", "a document with text in it"),
        (b"\xff\xfe\x00", "text/plain", "text in UTF-8"),
        (b"no PDF at all", "application/pdf", "a PDF that can be read"),
        (b"%PDF-1.7\ntruncated", "application/pdf", "a PDF that can be read"),
        (pdf(), "application/pdf", "a document with text in it"),
        (b"text", "application/msword", "one of text/markdown"),
    ],
)
def test_what_can_not_be_read_is_refused_with_the_reason(raw: bytes, kind: str, expected: str) -> None:
    """Nothing is loaded then, and the error says what would be."""
    with pytest.raises(BadInput, match=expected):
        read(raw, kind)


def test_a_locked_pdf_is_refused() -> None:
    """Nobody is there to give the password."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf("We sell lamps.")))
    writer.encrypt("secret", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    with pytest.raises(BadInput, match="without a password"):
        read(out.getvalue(), "application/pdf")


def test_a_pdf_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read in a process of its own, which ends then."""
    monkeypatch.setattr(pdf_reader, "SECONDS", 0.001)
    with pytest.raises(BadInput, match="that can be read within"):
        read(pdf("We sell lamps."), "application/pdf")


def test_a_pdf_that_ends_its_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one does that asks for more memory than it may have."""
    monkeypatch.setattr(pdf_reader.sys, "executable", "false")
    with pytest.raises(BadInput, match="in two gigabytes of memory"):
        read(pdf("We sell lamps."), "application/pdf")


def test_too_much_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how much there may be."""
    monkeypatch.setattr(reading, "MAX_CHARACTERS", 10)
    for kind in MEDIA_TYPES[:3]:
        with pytest.raises(BadInput, match="at most 10"):
            read("twelve letters", kind)
