"""Chunks of documents: along their structure, of a bounded size, and with nothing left out."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hearth.memory.knowledge.blocks import Block
from hearth.memory.knowledge.chunking import ENOUGH, MOST, chunks_of, tokens
from hearth.memory.types import Chunk

LONGEST = MOST + 50
"""Tokens of a chunk with its overlap and what its headings add."""


def paragraph(text: str, **more: str) -> Block:
    return Block(kind="paragraph", text=text, **more)


def heading(text: str, level: int = 1) -> Block:
    return Block(kind="heading", text=text, level=level)


def said(chunk: Chunk) -> str:
    return chunk.text[chunk.overlap :]


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30)
TEXTS = st.one_of(
    WORDS,
    st.builds(lambda word, times: f"{word} is so. " * times, WORDS, st.integers(1, 200)),
    st.builds(lambda word, times: word * times, WORDS, st.integers(1, 400)),
    st.builds(lambda word, times: f"| {word} | 7 |\n" * times, WORDS, st.integers(1, 120)),
).filter(lambda text: bool(text.strip()))
BLOCKS = st.lists(
    st.builds(
        Block,
        kind=st.sampled_from(["heading", "paragraph", "list", "table", "code"]),
        text=TEXTS,
        level=st.integers(1, 6),
    ),
    max_size=12,
)


@given(blocks=BLOCKS)
def test_every_word_of_the_document_stands_in_the_chunks_in_order(blocks: list[Block]) -> None:
    """The texts without their overlaps, one after another, are the document's."""
    whole = "".join("".join(block.text for block in blocks).split())
    assert "".join("".join(said(chunk) for chunk in chunks_of(blocks)).split()) == whole


@given(blocks=BLOCKS)
def test_no_chunk_is_empty_or_too_long(blocks: list[Block]) -> None:
    """Whatever the blocks: a chunk has words, and no more than fit into a block beside others."""
    for chunk in chunks_of(blocks):
        assert said(chunk).strip()
        assert tokens(chunk.text) <= LONGEST + sum(tokens(b.text) for b in blocks if b.kind == "heading")


@given(blocks=BLOCKS)
def test_equal_blocks_give_equal_chunks(blocks: list[Block]) -> None:
    """Nothing but the blocks decides."""
    assert chunks_of(blocks) == chunks_of(list(blocks))


def test_nothing_gives_nothing() -> None:
    """A document without blocks has no chunk."""
    assert chunks_of([]) == ()


def test_a_chunk_knows_the_headings_above_it() -> None:
    """Its own heading stands in its text, those above are its path; a sibling's are not."""
    long = "word " * 120
    chunks = chunks_of(
        [
            heading("Handbook"),
            heading("Returns", 2),
            paragraph(long),
            heading("Shipping", 2),
            heading("Abroad", 3),
            paragraph(long),
        ]
    )
    assert [chunk.path for chunk in chunks] == [(), ("Handbook",)]
    assert chunks[0].text.startswith("Handbook\nReturns\nword")
    assert chunks[1].text.startswith("Shipping\nAbroad\nword")


def test_a_long_section_goes_on_below_its_headings() -> None:
    """The second chunk of a section has all headings as its path."""
    chunks = chunks_of([heading("A"), heading("B", 2), *(paragraph(f"p{n} " * 300) for n in range(2))])
    assert [chunk.path for chunk in chunks] == [(), ("A", "B")]


def test_short_sections_share_a_chunk() -> None:
    """A few words alone are too little to be found by."""
    (chunk,) = chunks_of([heading("A", 2), paragraph("one"), heading("B", 2), paragraph("two")])
    assert chunk.text == "A\none\nB\ntwo"


def test_a_table_is_kept_whole_or_cut_between_rows_below_its_head() -> None:
    """Up to the most that a chunk has it is one; of a longer one each part begins with the head."""
    head = "| city | hours |\n|---|---|\n"
    small = Block(kind="table", text=head + "| Bern | 9-17 |\n" * 40)
    assert len(chunks_of([paragraph("x " * 600), small])) == 2
    rows = [f"| City {n} | {n}-17 |" for n in range(200)]
    chunks = chunks_of([Block(kind="table", text=head + "\n".join(rows))])
    assert len(chunks) > 1
    assert all(chunk.text.startswith(head) for chunk in chunks)
    assert [line for chunk in chunks for line in chunk.text.splitlines()[2:]] == rows


def test_a_long_paragraph_is_cut_between_sentences_with_a_small_overlap() -> None:
    """Each part begins with the sentence that ends the one before, so that no reference is lost."""
    text = " ".join(f"This is sentence number {n} of a long paragraph." for n in range(60))
    chunks = chunks_of([paragraph(text)])
    assert len(chunks) > 1
    for before, after in pairwise(chunks):
        repeated = after.text[: after.overlap].strip()
        assert repeated
        assert before.text.endswith(repeated)
    assert all(tokens(chunk.text) <= ENOUGH + 60 for chunk in chunks)


def test_a_chunk_says_on_which_page_it_begins() -> None:
    """Of a document with pages."""
    chunks = chunks_of([paragraph("one " * 200, place="page 1"), paragraph("two " * 200, place="page 2")])
    assert [chunk.place for chunk in chunks] == ["page 1", "page 2"]
