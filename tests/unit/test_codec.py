"""The stored form of events."""

from __future__ import annotations

import types
import typing
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.memory.errors import UnknownEvent
from hearth.memory.events import codec
from hearth.memory.events.codec import decode, decode_line, encode, encode_line, micros, moment
from hearth.memory.events.kinds import VERSIONS, Event, Payload, UserErased
from tests.events import memory, step

WHOLE_NUMBERS = st.integers(-(2**63), 2**63 - 1)
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=30),
    int: WHOLE_NUMBERS,
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=20),
    type(None): st.none(),
    datetime: st.datetimes(timezones=st.just(UTC)),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a contract type."""
    origin, args = typing.get_origin(hint), get_args(hint)
    if hint in SIMPLE:
        return SIMPLE[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        fields = {name: values(kind) for name, kind in typing.get_type_hints(hint).items()}
        return st.builds(hint, **{name: fields[name] for name in hint.__struct_fields__})
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([values(arg) for arg in args])
    if origin is tuple:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=3)
    raise TypeError(f"no strategy for {hint!r}")


PAYLOADS = st.one_of([values(kind) for kind in get_args(Payload)])
EVENTS = st.builds(
    Event,
    id=st.uuids().map(lambda u: u.hex),
    payload=PAYLOADS,
    occurred_at=SIMPLE[datetime],
    parent=st.none() | SIMPLE[str],
    **dict.fromkeys(("tenant", "user", "agent", "session"), SIMPLE[str]),
    generation=st.integers(1, 9),
)


@given(PAYLOADS)
@settings(max_examples=60)
def test_a_payload_survives_its_stored_form(payload: Payload) -> None:
    """Every payload of every kind decodes to itself."""
    stored = encode(payload)
    assert VERSIONS[stored.kind] == stored.version
    assert payload == stored.payload == decode(stored.kind, stored.version, stored.body)


@given(EVENTS)
@settings(max_examples=30)
def test_an_event_survives_its_line(event: Event) -> None:
    """Every event decodes from its line to itself, and a line has one newline, at its end."""
    line = encode_line(event)
    assert event == decode_line(line)
    assert len(line) - 1 == line.index(b"\n")


def test_each_kind_has_a_version() -> None:
    """No payload can be written without a version, and no version is of an unknown kind."""
    assert {str(kind.__struct_config__.tag) for kind in get_args(Payload)} == set(VERSIONS)


def test_case_23_surrogates_are_mended_in_stored_form_and_line() -> None:
    """Two halves become their character, one half becomes U+FFFD, in either form."""
    event = memory("\ud83d\ude80 and \ud83d", metadata={"k\udc00": "v"})
    stored = encode(event.payload)
    for payload in (
        stored.payload,
        decode(stored.kind, 1, stored.body),
        decode_line(encode_line(event)).payload,
    ):
        assert payload.memory.text == "\U0001f680 and \ufffd"  # type: ignore[union-attr]
        assert payload.memory.metadata == {"k\ufffd": "v"}  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "version"), [("segment.opened", 1), ("user.erased", 2)])
def test_what_this_program_does_not_know_is_said(kind: str, version: int) -> None:
    """A kind or version of a newer program is a typed error that names both."""
    body = encode(UserErased(generation=2)).body
    with pytest.raises(UnknownEvent, match=kind) as caught:
        decode(kind, version, body)
    assert (kind, version) == (caught.value.kind, caught.value.version)


def test_a_line_of_a_newer_program_is_said() -> None:
    """A spooled event of a newer version is the same typed error."""
    with pytest.raises(UnknownEvent):
        decode_line(encode_line(step()).replace(b'"version":1', b'"version":2'))


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-3], lambda b: b"junk", lambda b: b[:6] + b"\0" * (len(b) - 6)]
)
def test_a_cut_body_is_said(damage: Any) -> None:
    """A body that is no whole frame is a typed error."""
    with pytest.raises(UnknownEvent):
        decode("memory.added", 1, damage(encode(memory().payload).body))


def test_no_flipped_bit_passes_unseen() -> None:
    """Whichever bit of a body the disk turns over, the outcome is that error and never another payload."""
    payload = memory("the number is 4711").payload
    body = encode(payload).body
    for bit in range(8 * len(body)):
        damaged = bytearray(body)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            assert payload == decode("memory.added", 1, bytes(damaged))
        except UnknownEvent:
            continue


def test_an_old_version_is_lifted_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of version 1 passes the upcasters to 2 and to 3 and becomes today's payload."""
    old = encode(UserErased(generation=4)).body
    monkeypatch.setitem(VERSIONS, "user.erased", 3)
    monkeypatch.setitem(
        codec.UPCASTERS, ("user.erased", 1), lambda raw: {"kind": raw["kind"], "gen": raw["generation"]}
    )
    with pytest.raises(UnknownEvent, match="no upcaster from version 2"):
        decode("user.erased", 1, old)
    monkeypatch.setitem(
        codec.UPCASTERS, ("user.erased", 2), lambda raw: {"kind": raw["kind"], "generation": raw["gen"] + 1}
    )
    assert UserErased(generation=5) == decode("user.erased", 1, old)
    assert UserErased(generation=5) == decode("user.erased", 3, encode(UserErased(generation=5)).body)


@given(SIMPLE[datetime])
def test_a_moment_survives_its_microseconds(when: datetime) -> None:
    """Every moment to the microsecond comes back from its number."""
    assert when == moment(micros(when))
