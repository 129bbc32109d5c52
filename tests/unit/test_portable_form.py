"""The file of an export, read: what stands in it is refused by its line or becomes the user's own."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from hearth.memory.errors import BadInput
from hearth.memory.events.codec import encode, encode_line
from hearth.memory.events.kinds import (
    VERSIONS,
    Event,
    ExchangeEnriched,
    ForgetAsked,
    ForgetDone,
    ForgetUndone,
    MemoryChanged,
    MemoryWithdrawn,
    PageMoved,
    PageOutdated,
    PageRead,
    PageSegmented,
    RecallDrawn,
    RecallJudged,
    SegmentChanged,
    SegmentEvicted,
    SegmentPinned,
    SegmentPromoted,
    SegmentVisited,
    SessionSummarised,
    is_decided,
)
from hearth.memory.events.kinds import Reading as Told
from hearth.memory.extract.secrets import mask_secrets
from hearth.memory.portable.checks import CARRIED, STAYS
from hearth.memory.portable.form import FORMAT, VERSION, Header, Limits, Reading, Writer
from hearth.memory.portable.formats.scan import records
from hearth.memory.portable.parcel import addressed, packed
from hearth.memory.tiers.heat import Heat
from hearth.memory.types import (
    CandidateFact,
    DrawnItem,
    Evidence,
    Memory,
    Outdated,
    Ranked,
    Ranking,
    Scope,
    Segment,
    SummaryLine,
    Usage,
)
from hearth.memory.working import DECIDERS
from tests.events import START, event, forget_memory, forget_page, memory, page, step

EVE = Scope(tenant="rivals", user="eve", agent="hers")
_RANKING = Ranking(signals=("text",), items=(Ranked(id="m", shown=True, values=(0.5,)),))
_SEGMENT = Segment(
    id="s",
    owner="acme/alice/hermit",
    pages=1,
    size=3,
    centroid=b"\x01\x02",
    keywords={"tea": 1},
    opened_at=START,
    last_at=START,
)
_MEMORY = Memory(
    id="m",
    scope=Scope(tenant="acme", user="alice"),
    generation=1,
    text="likes tea",
    occurred_at=START,
    created_at=START,
    updated_at=START,
    valid_from=START,
    metadata={"n": 1},
    evidence=(Evidence(id="x", role="user", quote="tea", at=START),),
)
_SAID = CandidateFact(statement="I like tea.", quote="tea", valid_from=START)
EVENTS: list[Event] = [
    step("x", timezone="Europe/Bern"),
    event(ExchangeEnriched(exchange="x", usage=Usage(input=3), cost=0.1)),
    page("x"),
    memory("likes tea", id="m"),
    event(MemoryChanged(memory=_MEMORY, changed=("text",))),
    event(PageOutdated(page="x", outdated=(Outdated(role="user", quote="tea", fact="m", until=START),))),
    event(PageMoved(page="x", state="inactive", reason="left")),
    event(PageSegmented(page="x", segment="s", reason="count")),
    event(SegmentChanged(segment=_SEGMENT, heat=Heat(level=1.5, touched=START))),
    event(SegmentVisited(segment="s", exchange="x", weight=1.0, heat=Heat(level=2.0, touched=START))),
    event(SegmentPromoted(segment="s", pages=1, warmth=3.0)),
    event(SegmentPinned(segment="s", pinned=True)),
    event(SegmentEvicted(segment="s", reason="count", warmth=0.1)),
    event(
        RecallDrawn(
            trace="t", exchange="x", items=(DrawnItem(id="m", share=0.4, used=True),), ranking=_RANKING
        )
    ),
    event(RecallJudged(trace="t", judgement="useful", items={"m": "wrong"}, ranking=_RANKING, note="hm")),
    event(MemoryWithdrawn(memory="m")),
    event(PageRead(page="x", by="model:m", said=(Told(fact="m", said=_SAID),), refused={"not said": 1})),
    event(
        ForgetAsked(
            exchange="x",
            understood="topic",
            outcome="forgotten",
            memories=("m",),
            pages={"x": "active"},
            until=START,
        )
    ),
    event(
        SessionSummarised(
            session="s-7",
            owner="acme/alice",
            lines=(SummaryLine(page="x", at=START, text="I like tea."),),
        )
    ),
    event(ForgetUndone(exchange="x")),
    event(ForgetDone(exchange="x")),
    forget_memory("m"),
    forget_page("x"),
]
"""One of each kind that an export has."""
_HEADER = Header(format=FORMAT, version=VERSION, tenant="acme", user="alice", exported_at=START)


def _file(lines: list[tuple[str, bytes]]) -> io.BytesIO:
    writer = Writer()
    parts = [writer.header(_HEADER), *(writer.event(kind, line) for kind, line in lines)]
    return io.BytesIO(b"".join(parts) + writer.footer())


def _lines() -> list[tuple[str, bytes]]:
    return [(one.kind, encode_line(packed(one, decided=True))) for one in EVENTS]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*path, name)
        yield from _paths(one, (*path, name))


_DOCUMENTS = [json.loads(line) for _, line in _lines()]
_PLACES = [(number, path) for number, one in enumerate(_DOCUMENTS) for path in _paths(one)]
_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=9),
    st.sampled_from(["", "2026-01-01T00:00:00", "9999-12-31T23:59:59+00:00", "rivals", [], {}, [[]], "\x00"]),
    st.just({"kind": "user.erased", "generation": 2}),
)


def _read(file: io.BytesIO) -> list[Event]:
    """The events, or none where a line is named as the reason."""
    try:
        return [one for _, one in Reading(file, Limits(), START)]
    except BadInput as error:
        if not error.field.startswith("line "):
            raise
        return []


def _strangers(value: Any) -> set[str]:
    """Every tenant, user and owner that a payload names."""
    found: set[str] = set()
    if isinstance(value, dict):
        for name, one in value.items():
            if name in ("tenant", "user", "owner") and isinstance(one, str):
                found.add(one)
            found |= _strangers(one)
    elif isinstance(value, list | tuple):
        for one in value:
            found |= _strangers(one)
    return found


@settings(max_examples=200)
@given(st.sampled_from(_PLACES), _VALUES)
def test_any_value_anywhere_is_refused_by_its_line_or_is_the_users_own(
    place: tuple[int, tuple[Any, ...]], value: Any
) -> None:
    """Nothing but BadInput comes out of a changed file, and no event that names anybody but the importer."""
    number, (*parents, last) = place
    document = json.loads(json.dumps(_DOCUMENTS[number]))
    inner = document
    for name in parents:
        inner = inner[name]
    inner[last] = value
    lines = _lines()
    kind = (document.get("event") or {}).get("payload", {}) if isinstance(document.get("event"), dict) else {}
    kind = kind.get("kind", "") if isinstance(kind, dict) else ""
    lines[number] = (kind if isinstance(kind, str) else "", json.dumps(document).encode() + b"\n")
    for one in _read(_file(lines)):
        moved = addressed(one, EVE, 7, mask_secrets)
        encode(moved.payload)
        assert (moved.tenant, moved.user, moved.generation) == ("rivals", "eve", 7)
        named = _strangers(to_builtins(moved.payload))
        assert all(name in ("rivals", "eve") or name.startswith("rivals/eve") for name in named)


def test_each_kind_of_event_is_carried_or_stays() -> None:
    """A new kind has to be one of both; the sample events here have one of each that is."""
    kinds = [str(one.__struct_config__.tag) for one in (*CARRIED, *STAYS)]
    assert sorted(kinds) == sorted(VERSIONS)
    assert {type(one.payload) for one in EVENTS} == set(CARRIED)


def test_what_a_decider_reads_says_whether_it_is_decided() -> None:
    """Else a decider would decide once more where an export comes in. What stays never comes in."""
    staying = {str(one.__struct_config__.tag) for one in STAYS}
    read = {kind for kinds in DECIDERS.values() for kind in kinds} - staying
    sent = [packed(one, decided=True).payload for one in EVENTS if one.kind in read]
    assert {str(one.__struct_config__.tag) for one in sent} == read
    assert all(is_decided(one) for one in sent)


def test_every_kind_survives_the_way() -> None:
    """What was packed comes out as it was; without its digests, and of an isolated agent as that agent's."""
    read = [one for _, one in Reading(_file(_lines()), Limits(), START)]
    assert [one.payload for one in read] == [packed(one, decided=True).payload for one in EVENTS]
    segment = next(one for one in read if isinstance(one.payload, SegmentChanged))
    moved = addressed(segment, EVE, 1, mask_secrets).payload
    assert isinstance(moved, SegmentChanged)
    assert moved.segment.owner == "rivals/eve/hermit"


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=30) | st.integers(), max_size=3)))
def test_records_are_those_that_a_parser_finds(wanted: list[dict[str, Any]]) -> None:
    """An array and values one after another give the same records, whatever their strings hold."""
    array, lines = json.dumps(wanted), "\n".join(json.dumps(one) for one in wanted)
    pretty = json.dumps(wanted, indent=2, ensure_ascii=False)
    for text in (array, lines, pretty):
        raw = io.BytesIO(text.encode("utf-8", "surrogatepass"))
        found = [json.loads(one) for _, one in records(raw, record_bytes=1_000_000, most=10_000)]
        assert found == wanted


def test_a_digest_is_of_all_lines() -> None:
    """The footer's digest is the SHA-256 of what stands before it."""
    raw = _file(_lines()).getvalue()
    body, _, footer = raw.rstrip(b"\n").rpartition(b"\n")
    assert json.loads(footer)["end"]["sha256"] == hashlib.sha256(body + b"\n").hexdigest()
