"""Episodes: what happened, when, and with whom, in the user's own words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hearth.memory.tiers.episodes import episode_text, people
from hearth.memory.types import Page, Scope, Segment

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TRIP = (
    "Last Friday I went up the Rigi, and Ludmila came along.",
    "The hut was full when Ludmila and I arrived, and so was Lisbon in May.",
    "On Friday in Lisbon it rained, said Tom.",
    "Should I ask Tom again?",
)


def page(text: str, **more: str) -> Page:
    scope = Scope(tenant="t", user="u", session="s")
    return Page(id=text, scope=scope, generation=1, user_text=text, reply_text="", occurred_at=NOON, **more)


def whole(pages: list[Page]) -> str:
    segment = Segment(
        id="s",
        owner="t/u",
        pages=len(pages),
        size=0,
        centroid=b"",
        keywords={"hut": 1, "full": 1},
        opened_at=NOON,
        last_at=NOON,
    )
    return episode_text(segment, pages)


def test_whom_the_user_named_again_and_again_was_part_of_it() -> None:
    """No day, no place, nobody who was named once, and not the speaker; questions count for nothing."""
    assert people([page(text) for text in TRIP]) == ["Ludmila"]
    assert people([page(text, user_name="Ludmila Novak") for text in TRIP]) == []


@pytest.mark.parametrize("text", ["Ich war mit Anna im Kino. Anna fand es gut.", "アンナと映画を見た。"])
def test_where_capitals_tell_nothing_nobody_is_named(text: str) -> None:
    """Every noun has one in German, and no word in Japanese."""
    assert people([page(text)]) == []


def test_an_episode_names_those_whom_its_sentences_leave_out() -> None:
    """Beside the days; who stands in the sentences is not named twice."""
    short = [f"I met Tom at {hour}." for hour in ("noon", "one", "two", "three", "four")]
    long = [
        f"There was this whole long and winding {thing} that went on about nothing, Ludmila and all of it."
        for thing in ("story", "path")
    ]
    assert whole([page(text) for text in (*short, *long)]).startswith("2026-05-01 (Ludmila): I met Tom")
