"""Cursors of lists."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.gateway.api.cursor import read_cursor, read_name_cursor, write_cursor
from hearth.memory.errors import BadInput

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(id=IDS, at=st.datetimes(timezones=st.just(UTC)))
def test_a_cursor_reads_back_as_the_position_it_was_made_of(id: str, at: datetime) -> None:
    """Position in time to the microsecond, and any id, survive."""
    assert read_cursor("memories", write_cursor("memories", id, at)) == (at, id)


@given(id=IDS)
def test_a_name_reads_back_as_it_was(id: str) -> None:
    """A list in order of name has the last name alone as its position."""
    assert read_name_cursor("users", write_cursor("users", id)) == id


def test_no_cursor_is_the_start() -> None:
    """Absent and empty cursors start at the list's beginning."""
    for cursor in (None, ""):
        assert read_cursor("memories", cursor) is None
        assert read_name_cursor("users", cursor) == ""


def test_another_list_s_cursor_is_refused() -> None:
    """A position of one list means nothing in another, nor does a name in a list by time."""
    for cursor in (write_cursor("exchanges", "a", AT), write_cursor("memories", "a")):
        with pytest.raises(BadInput, match="cursor"):
            read_cursor("memories", cursor)


@given(st.text(min_size=1, max_size=60))
def test_any_other_text_is_refused_and_raises_nothing_else(text: str) -> None:
    """Garbage of any kind is bad input."""
    with pytest.raises(BadInput):
        read_cursor("memories", text)
