"""Server-sent events, and the gate that holds back the end of a stream."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.gateway.wire import WIRES
from hearth.gateway.wire.sse import Event, Gate, events

quick = settings(max_examples=50)

CHAT = (
    b'data: {"choices": [{"delta": {"content": "a \\"data: [DONE]\\" in \\n the text"}}]}\n\n'
    b": ping\n\n"
    b'data: {"choices": [{"delta": {"content": "b"}, "finish_reason": "stop"}]}\n\n'
)
MESSAGES = (
    b'event: message_start\ndata: {"type": "message_start", "message": {}}\n\n'
    b'event: ping\ndata: {"type": "ping"}\n\n'
    b"event: content_block_delta\n"
    b'data: {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "message_stop"}}\n\n'
)
RESPONSES = (
    b'data: {"type": "response.created", "response": {"id": "r"}}\n\n'
    b'data: {"type": "response.output_text.delta", "delta": "{\\"type\\": \\"response.completed\\"}"}\n\n'
)
STREAMS = [
    ("chat", CHAT, b"data: [DONE]\n\n"),
    ("chat", CHAT, b'data: {"error": {"message": "no"}}\n\ndata: [DONE]\n\n'),
    ("completions", CHAT, b"data: [DONE]\n\n"),
    ("messages", MESSAGES, b'event: message_stop\ndata: {"type": "message_stop"}\n\n'),
    ("messages", MESSAGES, b'data: {"type":"message_stop"}\n\n'),
    ("messages", MESSAGES, b'event: error\ndata: {"type": "error", "error": {"message": "no"}}\n\n'),
    (
        "responses",
        RESPONSES,
        b'data: {"type": "response.completed", "response": {"id": "r"}}\n\ndata: [DONE]\n\n',
    ),
    ("responses", RESPONSES, b'event: response.failed\ndata: {"type":"response.failed","response":{}}\n\n'),
    (
        "responses",
        RESPONSES,
        b'data: {"sequence_number": 7, "type": "response.incomplete", "response": {}}\n\n',
    ),
    ("responses", RESPONSES, b'data: {"type": "error", "message": "no"}\n\n'),
]


def test_fields_comments_and_line_ends() -> None:
    """Data lines are joined, comments and unknown fields skipped, whatever the line ends."""
    raw = b"\xef\xbb\xbf: hello\n\nevent: a\ndata: 1\ndata:2\nid: 7\n\n\n\nevent: none\n\ndata: 3\n\n"
    expected = [Event("a", b"1\n2", True), Event("", b"3", True)]
    for end in (b"\n", b"\r\n", b"\r"):
        assert list(events(raw.replace(b"\n", end))) == expected


def test_what_the_end_cuts_off_is_marked() -> None:
    """An event without its empty line is there, and is not whole."""
    assert list(events(b"data: 1\n\ndata: {")) == [Event("", b"1", True), Event("", b"{", False)]


@quick
@given(st.binary(max_size=300))
def test_any_bytes_are_events_or_nothing(raw: bytes) -> None:
    """Reading never raises."""
    assert all(event.whole for event in list(events(raw))[:-1])


@pytest.mark.parametrize(("route", "body", "end"), STREAMS)
def test_the_terminal_event_is_found_where_it_starts(route: str, body: bytes, end: bytes) -> None:
    """Its offset is exact, and text that merely quotes it is not taken for it."""
    wire = WIRES[route]  # type: ignore[index]
    assert wire.terminal(body) == -1
    assert wire.terminal(body + end) == len(body)
    crlf = body.replace(b"\n", b"\r\n")
    assert wire.terminal(crlf + end.replace(b"\n", b"\r\n")) == len(crlf)
    assert wire.terminal(b"") == -1


@pytest.mark.parametrize(("route", "body", "end"), STREAMS)
@quick
@given(cuts=st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_case_29_the_gate_holds_the_end_however_it_is_cut(
    route: str, body: bytes, end: bytes, cuts: list[int]
) -> None:
    """All before the terminal event passes, none of it does, and together they are the stream."""
    gate, rest, passed, turn = Gate(WIRES[route].terminal), body + end, b"", 0  # type: ignore[index]
    while rest:
        size = cuts[turn % len(cuts)]
        passed += gate.feed(rest[:size])
        rest, turn = rest[size:], turn + 1
    assert passed == body
    assert gate.held == end
    assert gate.closed
    assert gate.complete


@pytest.mark.parametrize(("route", "body", "end"), STREAMS)
def test_case_29_whole_events_are_not_delayed(route: str, body: bytes, end: bytes) -> None:
    """A chunk of whole events passes in the call that brings it."""
    gate = Gate(WIRES[route].terminal)  # type: ignore[index]
    for event in body.split(b"\n\n")[:-1]:
        assert gate.feed(event + b"\n\n") == event + b"\n\n"
    assert gate.feed(end) == b""


def test_a_long_unfinished_event_passes() -> None:
    """An event that has shown what it is passes in pieces, so nothing is held without bound."""
    gate = Gate(WIRES["chat"].terminal)
    start = b'data: {"choices": [{"delta": {"content": "' + b"x" * 1000
    assert gate.feed(start) == start
    assert gate.feed(b'y"}}]}\n\n') == b'y"}}]}\n\n'
    assert gate.feed(b"data: [DO") == b""
    assert gate.feed(b"NE]\n\n") == b""
    assert gate.held == b"data: [DONE]\n\n"


def test_case_25_chunks_do_not_matter_to_the_reader() -> None:
    """The reader sees the whole body, so an emoji or an event cut between chunks is whole again."""
    body = 'data: {"choices": [{"delta": {"content": "🚀"}}]}\n\ndata: [DONE]\n\n'.encode()
    assert WIRES["chat"].read_reply(body, status=200, stream=True).text == "🚀"
    cut = json.dumps({"choices": [{"delta": {"content": "x"}}]})[:-3].encode()
    assert WIRES["chat"].read_reply(b"data: " + cut, status=200, stream=True).outcome == "partial"
