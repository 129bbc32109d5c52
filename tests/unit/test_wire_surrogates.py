"""Lone surrogates in a request's bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.gateway.wire.surrogates import without_lone_surrogates


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (rb'"a \ud83d b"', rb'"a \ufffd b"'),
        (rb'"a \uDE80 b"', rb'"a \ufffd b"'),
        (rb'"\ud83d\ude80"', rb'"\ud83d\ude80"'),
        (rb'"\ud83d\ud83d\ude80"', rb'"\ufffd\ud83d\ude80"'),
        (rb'"\ude80\ud83d"', rb'"\ufffd\ufffd"'),
        (rb'"C:\\ud83d"', rb'"C:\\ud83d"'),
        (rb'"C:\\\ud83d"', rb'"C:\\\ufffd"'),
        (rb'"\ud83d\n"', rb'"\ufffd\n"'),
        (rb'"plain \u00e9"', rb'"plain \u00e9"'),
    ],
)
def test_case_23_a_half_alone_is_replaced(raw: bytes, kept: bytes) -> None:
    """Each half that stands alone becomes U+FFFD; pairs, and backslashes that only look like one, stay."""
    assert without_lone_surrogates(raw) == kept


@given(st.text(st.characters(categories=["Cs", "Lu", "So", "Po"]), max_size=20))
def test_case_23_any_text_becomes_valid(text: str) -> None:
    """Whatever halves a text holds, what is left can be encoded, and its size stays."""
    raw = json.dumps(text).encode()
    kept = without_lone_surrogates(raw)
    assert len(kept) == len(raw)
    assert json.loads(kept).encode().decode() == text.encode("utf-16", "surrogatepass").decode(
        "utf-16", "replace"
    )
