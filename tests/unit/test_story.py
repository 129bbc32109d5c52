"""Stories, heat over time and their drawings as pure functions of what the log tells."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec import structs

from hearth.gateway.commands.drawing import bar, heat_curve, span_line, spans, sparkline
from hearth.gateway.commands.svg import timeline_svg
from hearth.memory.events.kinds import (
    Event,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
    PageMoved,
    PageOutdated,
    PageSegmented,
    Payload,
    RecallDrawn,
    SegmentEvicted,
    SegmentPromoted,
    SegmentVisited,
)
from hearth.memory.ports import WaitingPage
from hearth.memory.story import chapters, subject_in
from hearth.memory.tiers.heat import Heat, HeatPolicy, touch
from hearth.memory.tiers.keywords import keywords, readable
from hearth.memory.tiers.segments import begun_by
from hearth.memory.timeline import heat_points
from hearth.memory.types import DrawnItem, Evidence, Memory, Outdated, Ranking, Scope
from tests.events import START, event, page

ALICE = Scope(tenant="acme", user="alice")
HOUR = timedelta(hours=1)
POLICY = HeatPolicy()


def told(*payloads: Payload | Event) -> list[Event]:
    """One event an hour, in the order of the log."""
    events = [
        one if isinstance(one, Event) else event(one, at=START + hour * HOUR)
        for hour, one in enumerate(payloads)
    ]
    return [structs.replace(one, seq=seq) for seq, one in enumerate(events, 1)]


def fact(text: str = "I live in Chur.", **more: Any) -> Memory:
    given = {
        "id": "m1",
        "scope": ALICE,
        "generation": 1,
        "type": "persona",
        "attribute": "residence",
        "value": "Chur",
        "confidence": 0.9,
        "occurred_at": START,
        "created_at": START,
        "updated_at": START,
        "evidence": (quoted("p1"),),
        "source": "extraction",
    }
    return Memory(text=text, **(given | more))


def quoted(page: str, hours: float = 0) -> Evidence:
    return Evidence(id=page, role="user", quote="I live in Chur", at=START + hours * HOUR)


def changed(memory: Memory, *names: str) -> MemoryChanged:
    return MemoryChanged(memory=memory, changed=names)


def story(id: str, *payloads: Payload | Event) -> list[tuple[str, str]]:
    """What happened, with the other record in it."""
    return [(one.what, one.of) for one in chapters(id, told(*payloads))]


def texts(id: str, *payloads: Payload | Event) -> list[str]:
    return [one.text for one in chapters(id, told(*payloads))]


# -- stories -----------------------------------------------------------------------------------------------


def test_a_fact_is_said_read_confirmed_and_replaced() -> None:
    """In that order, with the exchanges, the words and the memory that took its place."""
    first = fact()
    twice = structs.replace(first, evidence=(quoted("p1"), quoted("p2", 1)), confidence=0.99)
    closed = structs.replace(twice, valid_to=START + 2 * HOUR, successor="m2", ended_by="p3")
    other = fact("I live in Bern.", id="m2", value="Bern", occurred_at=START + 2 * HOUR)
    found = chapters(
        "m1", told(MemoryAdded(memory=first), changed(twice), changed(closed), MemoryAdded(memory=other))
    )
    assert [(one.what, one.of, one.quote) for one in found] == [
        ("said", "p1", "I live in Chur"),
        ("read", "", ""),
        ("confirmed", "p2", "I live in Chur"),
        ("replaced", "m2", "I live in Bern."),
    ]
    assert found[1].text == "read from the user's words as a persona, 90% sure: I live in Chur."
    assert found[2].text == "said again, which makes it 99% sure"


def test_what_never_was_is_set_right() -> None:
    """It ends where it begins; the right one takes its place."""
    never = structs.replace(fact(), valid_from=START, valid_to=START, successor="m2")
    assert story("m1", MemoryAdded(memory=fact()), changed(never))[-1] == ("corrected", "m2")


@pytest.mark.parametrize(("by", "text"), [("p9", "ended by what was said"), ("", "ended by hand")])
def test_a_fact_ends_without_another(by: str, text: str) -> None:
    """By words or by hand, and it can hold again."""
    ended = structs.replace(fact(), valid_to=START + HOUR, ended_by=by)
    again = structs.replace(fact(), valid_to=None)
    found = chapters("m1", told(MemoryAdded(memory=fact()), changed(ended), changed(again)))
    assert [one.what for one in found] == ["said", "read", "ended", "holds again"]
    assert found[2].text == f"{text}, on 2026-03-01"


def test_a_memory_by_hand_is_added_changed_and_forgotten() -> None:
    """Fields that were changed by hand are named; nothing was said."""
    mine = fact(source="api", evidence=())
    retagged = structs.replace(mine, tags=("home",), pinned=True)
    forgotten = MemoryForgotten(memory="m1", reason="requested")
    assert texts("m1", MemoryAdded(memory=mine), changed(retagged), forgotten) == [
        "added by hand as a persona: I live in Chur.",
        "changed by hand: pinned, tags",
        "forgotten: requested",
    ]


def test_a_branch_takes_a_fact_along_and_brings_it_back() -> None:
    """It is withdrawn, and returns as it was, without being read anew."""
    added = MemoryAdded(memory=fact())
    assert [what for what, _ in story("m1", added, MemoryWithdrawn(memory="m1"), added)] == [
        *("said", "read", "withdrawn", "returned"),
    ]


def test_an_exchange_goes_through_the_tiers() -> None:
    """Its facts, its marks, its segment, and what its reply drew on."""
    marks = (Outdated(role="user", quote="I live in Chur", fact="m1", until=START + HOUR),)
    items = (DrawnItem(id="x", share=0.9, used=True), DrawnItem(id="y", share=0.0, used=False))
    found = story(
        "p1",
        page("p1", user_text="I live\nin Chur."),
        MemoryAdded(memory=fact(occurred_at=START)),
        RecallDrawn(trace="t", exchange="p1", items=items, ranking=Ranking(signals=(), items=())),
        PageSegmented(page="p1", segment=begun_by("p1"), reason="tokens"),
        PageOutdated(page="p1", outdated=marks),
        PageOutdated(page="p1", outdated=marks),
        PageMoved(page="p1", state="inactive", reason="the client went elsewhere"),
        PageSegmented(page="p1", segment=None, reason="left its branch"),
        PageMoved(page="p1", state="active", reason="the client came back"),
    )
    assert found == [
        ("said", ""),
        ("read", "m1"),
        ("drew", ""),
        ("moved", begun_by("p1")),
        ("outdated", "m1"),
        ("left its branch", "p1"),
        ("left its segment", "p1"),
        ("returned", "p1"),
    ]


def test_a_segment_tells_of_its_pages_and_why_it_left() -> None:
    """Visits in a row are one chapter, at the time of the last; its episode is quoted."""
    segment = begun_by("p1")
    visits = [SegmentVisited(segment=segment, exchange=f"x{n}", weight=1.0, heat=Heat()) for n in range(3)]
    episode = fact("In March: soup.", id="e1", type="episode", evidence=(), metadata={"segment": segment})
    found = chapters(
        segment,
        told(
            PageSegmented(page="p1", segment=segment, reason="pages", affinity=0.2),
            PageSegmented(page="p2", segment=segment, reason="age", affinity=0.8),
            *visits,
            SegmentPromoted(segment=segment, pages=2, warmth=5.2),
            visits[0],
            SegmentEvicted(segment=segment, reason="segments", warmth=0.01),
            MemoryAdded(memory=episode),
        ),
    )
    assert [(one.what, one.of) for one in found] == [
        ("moved", "p1"),
        ("moved", "p2"),
        ("visited", "x2"),
        ("promoted", segment),
        ("visited", "x0"),
        ("evicted", segment),
        ("summed up", "e1"),
    ]
    assert [one.text for one in found][:4] == [
        "began a segment (affinity 0.20 with the nearest): short-term memory had more pages than it may",
        "joined a segment (affinity 0.80): it was too old for short-term memory",
        "3 recalls warmed the segment, since 2026-03-01",
        "the segment was hot (5.2) and was summed up with its 2 pages",
    ]
    assert "it was the coldest" in found[5].text
    assert found[6].quote == "In March: soup."


def test_a_record_is_told_by_what_is_about_it() -> None:
    """Memories, segments, and exchanges, also before one is closed; a story of nothing is empty."""
    assert subject_in(told(MemoryForgotten(memory="m1"))) == "memory"
    assert subject_in(told(SegmentEvicted(segment="s", reason="age", warmth=0.0))) == "segment"
    assert subject_in(told(page("p1"))) == "exchange"
    assert chapters("m1", []) == []


# -- heat over time ----------------------------------------------------------------------------------------


def member(id: str, hours: float, *, drawn: int = 0, visited: float | None = None) -> WaitingPage:
    return WaitingPage(
        id=id,
        session="s1",
        at=START + hours * HOUR,
        size=10,
        drawn=drawn,
        seen=0,
        visited=None if visited is None else START + visited * HOUR,
        facts=0,
    )


def test_heat_is_told_as_it_was_made() -> None:
    """A page from when it was said, with its earlier visits; a visit as its event says; then what is now."""
    heat = touch(touch(Heat(), 1.0, START, POLICY), 1.0, START + 2 * HOUR, POLICY)
    events = told(
        PageSegmented(page="p1", segment="s", reason="pages"),
        PageSegmented(page="p2", segment="s", reason="pages"),
        SegmentVisited(segment="s", exchange="x", weight=1.0, heat=heat),
        SegmentPromoted(segment="s", pages=2, warmth=5.5),
    )
    members = [member("p1", 0), member("p2", 0.5, drawn=2, visited=1)]
    found = heat_points(events, members, POLICY, now=(START + 26 * HOUR, heat))
    assert [(one.what, one.of) for one in found] == [
        *(("page", "p1"), ("page", "p2"), ("visit", "x"), ("promotion", ""), ("now", "")),
    ]
    fade = math.exp(-1 / 24)
    assert found[0].heat == 2.0
    assert found[1].heat == pytest.approx(fade + math.exp(-0.5 / 24) + 2 + 1, abs=1e-3)
    assert found[2].heat == pytest.approx(math.exp(-2 / 24) + 2, abs=1e-3)
    assert found[3].heat == 5.5
    assert found[4].heat == pytest.approx(found[2].heat / math.e, abs=1e-3)


def test_heat_ends_with_the_eviction() -> None:
    """An episode that is made anew later is no second one; without events there are no points."""
    events = told(
        PageSegmented(page="gone", segment="s", reason="pages"),
        SegmentEvicted(segment="s", reason="age", warmth=0.1),
        SegmentEvicted(segment="s", reason="lost a page", warmth=0.0),
    )
    assert [one.what for one in heat_points(events, [], POLICY)] == ["page", "eviction"]
    assert heat_points([], [], POLICY) == []


def test_keywords_are_shown_as_they_are_written() -> None:
    """The most frequent form of each; the stem where no text has it; scripts without spaces as they are."""
    words = ["Potatoes in a recipe.", "More recipes, more potatoes: two recipes!", "Grandma's recipe"]
    stems = [*keywords("recipes potatoes Grandma"), "xyzzi"]
    assert sorted(readable(stems, words)) == ["Grandma's", "potatoes", "recipe", "xyzzi"]
    assert readable(keywords("韭葱汤"), ["韭葱汤"]) == list(keywords("韭葱汤"))
    assert readable([], words) == []


# -- drawings ----------------------------------------------------------------------------------------------


def line(*points: tuple[float, float, str], id: str = "5e2f0c1d7a9b45d8", **more: Any) -> dict[str, Any]:
    """The heat of a segment as the API tells it."""
    told = [
        {"at": (START + hours * HOUR).isoformat(), "heat": heat, "what": what, "of": ""}
        for hours, heat, what in points
    ]
    given = {"id": id, "words": ["soup"], "live": True, "promotion": 5.0, "fade_hours": 24.0, "points": told}
    return given | more


def test_bars_and_curves_have_the_height_of_their_values() -> None:
    """To an eighth; nothing is empty, and what is too much is full."""
    assert [bar(value, 4, 4) for value in (0, 1, 1.5, 4, 9)] == ["", "█", "█▌", "████", "████"]
    assert bar(1, 0, 4) == ""
    assert sparkline([0, None, 3.5, 7, 9], 7) == "▁ ▅██"


def test_a_curve_fades_between_its_points() -> None:
    """From the last point on, and not before the first nor after the eviction."""
    curve = heat_curve(line((0, 2.0, "page"), (24, 1.0, "eviction")), 5, last=START + 48 * HOUR)
    assert curve == [2.0, pytest.approx(2 / math.sqrt(math.e)), 1.0, None, None]
    early = heat_curve(line((0, 2.0, "page")), 2, first=START - HOUR, last=START)
    assert early == [None, 2.0]
    assert heat_curve(line(), 3) == [None, None, None]


def test_spans_are_what_held_when() -> None:
    """By attribute and time; what never was so has none; a line shows where it lies in the whole time."""

    def held(value: str, start: int, end: int | None) -> dict[str, Any]:
        at = (START + start * HOUR).isoformat()
        until = None if end is None else (START + end * HOUR).isoformat()
        return {
            "attribute": "residence",
            "type": "persona",
            "subject": "user",
            "value": value,
            "text": "",
            "valid_from": None,
            "occurred_at": at,
            "valid_to": until,
        }

    found = spans([held("Bern", 2, None), held("Chur", 0, 2), held("Basel", 2, 2)])
    assert [(one.value, one.end is None) for one in found] == [("Chur", False), ("Bern", True)]
    first, last = START, START + 8 * HOUR
    assert span_line(first, START + 2 * HOUR, first, last, 8) == "━━······"
    assert span_line(last, last, first, last, 8) == "·······━"
    assert span_line(first, first, first, first, 8)[0] == "━"


def test_a_picture_is_sound_whatever_is_in_it() -> None:
    """Marks and control characters of strangers' words do no harm; either part may be missing."""
    facts = spans(
        [
            {
                "attribute": "<b>&",
                "type": "fact",
                "subject": "user",
                "value": 'x"\x1b<script>',
                "text": "",
                "valid_from": None,
                "occurred_at": START.isoformat(),
                "valid_to": None,
            }
        ]
    )
    now = datetime(2026, 4, 1, tzinfo=UTC)
    whole = timeline_svg("<t>", [line((0, 2.0, "page"), (9, 1.0, "now"), words=["<a>"])], facts, now)
    for picture in (whole, timeline_svg("t", [], facts, now), timeline_svg("t", [], [], now)):
        root = ElementTree.fromstring(picture)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert float(root.get("height") or 0) > 0
    assert "<script>" not in whole
    assert "\x1b" not in whole
