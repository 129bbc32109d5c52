"""Episodes: what happened, when, and with whom, in the user's own words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hearth.memory.tiers.episodes import episode_of, people
from hearth.memory.types import Page, Scope

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
    assert episode_of([page(text) for text in (*short, *long)]).text.startswith(
        "2026-05-01 (Ludmila): I met Tom"
    )


CHAT = (
    "Wow, I really hope that we all get there some day, it would be so good for all of us.",
    "That is so true, and I love how they do it every single time.",
    "The garden was lovely and the garden smelled of the garden.",
    "Yes, that garden was something else again, it really was.",
    "I do feel that it was good for me to be there with them for a while.",
)


@pytest.mark.parametrize(
    "fact",
    [
        "I take the tram at 7:14 to work.",
        "My locker has the code QX-4471.",
        "Mi madre vive en Salamanca con Teresa.",
        "I repaired my bassoon with beeswax and cork.",
    ],
)
def test_what_is_said_in_passing_is_kept_before_chat_on_the_topic(fact: str) -> None:
    """Whatever the segment is about: what somebody will ask for is a detail."""
    assert fact in episode_of([page(text) for text in (*CHAT, fact)]).text


def test_an_episode_of_many_pages_has_more_sentences_but_not_as_many_more() -> None:
    """Four of a few pages; twice as many of four times the pages from there on."""
    said = [f"I keep the parcel of number {at} in room {at}." for at in range(64)]
    counts = [
        episode_of([page(text) for text in said[:pages]]).text.count("parcel") for pages in (2, 9, 16, 64)
    ]
    assert counts == [2, 6, 8, 16]


def test_an_episode_that_tells_more_for_its_length_is_more_important() -> None:
    """So that chat leaves first where there are too many; what nothing was told in says nothing."""
    chat = episode_of([page(text) for text in CHAT]).importance
    assert chat < episode_of([page("I take the tram at 7:14 to work.")]).importance <= 1.0
    assert episode_of([page("Should I ask Tom again?")]) == ("", 0.0)
