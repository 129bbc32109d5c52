"""Reading replies, JSON and streams, on the four routes."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.gateway.wire import WIRES
from hearth.gateway.wire.types import WireReply
from hearth.memory.types import Usage

quick = settings(max_examples=50)


def data(*values: object, done: bool = True) -> bytes:
    """Events as LiteLLM sends them on chat, completions and responses: `data:` lines alone."""
    lines = [f"data: {json.dumps(value)}\n\n" for value in values]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def named(*values: dict[str, object], end: str = "\n") -> bytes:
    """Events as Anthropic and OpenAI's responses send them: an `event:` line before the data."""
    return "".join(
        f"event: {value['type']}{end}data: {json.dumps(value)}{end}{end}" for value in values
    ).encode()


def delta(index: int = 0, finish: str | None = None, **fields: object) -> dict[str, object]:
    return {"id": "c1", "model": "m", "choices": [{"index": index, "delta": fields, "finish_reason": finish}]}


def chat(raw: bytes, *, status: int = 200, stream: bool = True) -> WireReply:
    return WIRES["chat"].read_reply(raw, status=status, stream=stream)


USAGE = {"id": "c1", "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}


def test_case_27_a_usage_only_last_chunk() -> None:
    """A last chunk without choices adds usage and no text."""
    reply = chat(data(delta(content="Hel"), delta(content="lo"), delta(finish="stop"), USAGE))
    assert (reply.text, reply.outcome, reply.usage) == ("Hello", "complete", Usage(input=11, output=7))
    assert (reply.response_id, reply.model, reply.unparsed) == ("c1", "m", 0)


def test_case_27_reasoning_alone_is_no_text() -> None:
    """Reasoning deltas, in a field or in the text, give a complete reply without words."""
    reply = chat(
        data(
            delta(reasoning_content="hm"),
            delta(content="<think>hm"),
            delta(content="</think>"),
            delta(finish="stop"),
        )
    )
    assert (reply.text, reply.outcome) == ("", "complete")


def test_case_27_tool_calls_are_no_text() -> None:
    """The pieces of a call become its name, argument names and size."""
    pieces = [
        {"index": 0, "id": "t", "function": {"name": "get_weather", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"city": "Os'}},
        {"index": 0, "function": {"arguments": 'lo", "days": 2}'}},
        {"index": 1, "id": "u", "function": {"name": "now", "arguments": "{}"}},
    ]
    reply = chat(data(*(delta(tool_calls=[piece]) for piece in pieces), delta(finish="tool_calls")))
    assert (reply.text, reply.outcome) == ("", "complete")
    assert [(tool.name, tool.argument_keys, tool.argument_bytes) for tool in reply.tools] == [
        ("get_weather", ("city", "days"), 27),
        ("now", (), 2),
    ]
    assert reply.tools[0].arguments == '{"city": "Oslo", "days": 2}'


def test_case_27_a_closed_connection_is_partial() -> None:
    """Without `[DONE]` the text is kept and marked, also where the last event is cut."""
    whole = data(delta(content="Hello"), done=False)
    for raw in (whole, whole + b'data: {"choices": [{"ind', whole + b"data: [DO"):
        reply = chat(raw)
        assert (reply.text, reply.outcome, reply.unparsed) == ("Hello", "partial", 0)


def test_case_27_text_beside_the_finish_reason() -> None:
    """The last words may come in the chunk that says stop."""
    assert chat(data(delta(content="Hel"), delta(content="lo", finish="stop"))).text == "Hello"


def test_case_27_choices_do_not_interleave() -> None:
    """Two choices in one stream are two texts."""
    reply = chat(
        data(delta(0, content="a"), delta(1, content="x"), delta(0, content="b"), delta(1, content="y"))
    )
    assert (reply.text, reply.alternatives) == ("ab", ("xy",))


def test_case_29_an_error_in_the_stream() -> None:
    """An error event fails a reply without words and makes one with words partial."""
    error = {"error": {"message": "overloaded", "type": "server_error", "code": "503"}}
    assert chat(data(error)).outcome == "failed"
    reply = chat(data(delta(content="Hel"), error))
    assert (reply.text, reply.outcome, reply.error) == ("Hel", "partial", "server_error: overloaded")


@pytest.mark.parametrize("route", WIRES)
@pytest.mark.parametrize(
    ("status", "raw", "error"),
    [
        (
            429,
            b'{"error": {"message": "slow down", "type": "rate_limit_error"}}',
            "429 rate_limit_error: slow down",
        ),
        (
            529,
            b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
            "529 overloaded_error: Overloaded",
        ),
        (400, b'{"detail": "bad"}', "400 bad"),
        (502, b"<html>Bad gateway</html>", "502 <html>Bad gateway</html>"),
        (500, b"", "500 "),
    ],
)
def test_case_29_a_refused_call_failed(route: str, status: int, raw: bytes, error: str) -> None:
    """An HTTP error is a failed reply with the provider's words, on a stream too."""
    reply = WIRES[route].read_reply(raw, status=status, stream=True)  # type: ignore[index]
    assert (reply.outcome, reply.text, reply.error) == ("failed", "", error)


def test_an_error_is_shortened() -> None:
    """A provider's essay becomes 300 characters."""
    assert (
        len(chat(json.dumps({"error": {"message": "x" * 5000}}).encode(), status=400, stream=False).error)
        == 300
    )


def test_a_chat_body() -> None:
    """A JSON reply gives its texts, calls, usage with cached tokens, id and model."""
    body = {
        "id": "c1",
        "model": "m",
        "choices": [
            {"index": 1, "message": {"role": "assistant", "content": "B"}},
            {
                "index": 0,
                "message": {
                    "content": "<think>hm</think>\nA",
                    "reasoning_content": "hm",
                    "tool_calls": [
                        {"id": "t", "type": "function", "function": {"name": "ls", "arguments": '{"p":1}'}}
                    ],
                },
            },
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}},
    }
    reply = chat(json.dumps(body).encode(), stream=False)
    assert (reply.text, reply.alternatives, reply.outcome) == ("A", ("B",), "complete")
    assert (reply.tools[0].name, reply.tools[0].argument_keys) == ("ls", ("p",))
    assert reply.usage == Usage(input=5, output=2, cached_input=3)


def test_a_stream_request_answered_with_json() -> None:
    """A body that is one JSON object is read as that, whatever the request asked for."""
    assert chat(b'{"choices": [{"message": {"content": "Hi"}}]}', stream=True).text == "Hi"


def test_a_body_that_is_cut_or_no_json() -> None:
    """What can't be read is partial and counted."""
    for raw in (b'{"choices": [{"mess', b"", b"[1]"):
        reply = chat(raw, stream=False)
        assert (reply.text, reply.outcome, reply.unparsed) == ("", "partial", 1)


def test_case_25_an_unparsed_event_is_counted() -> None:
    """A whole event that is no JSON object is counted; the rest is read."""
    reply = chat(b"data: {oops}\n\n" + data(delta(content="Hello")))
    assert (reply.text, reply.unparsed) == ("Hello", 1)


def anthropic(values: Iterable[dict[str, object]], **how: str) -> WireReply:
    return WIRES["messages"].read_reply(named(*values, **how), status=200, stream=True)


def _block(index: int, **block: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, **fields: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


ANA = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "model": "claude",
            "usage": {
                "input_tokens": 11,
                "cache_read_input_tokens": 30,
                "cache_creation_input_tokens": 5,
                "output_tokens": 1,
            },
        },
    },
    _block(0, type="thinking", thinking=""),
    _delta(0, type="thinking_delta", thinking="hmm"),
    _delta(0, type="signature_delta", signature="c2ln"),
    _block(1, type="text", text=""),
    {"type": "ping"},
    *(_delta(1, type="text_delta", text=piece) for piece in ("Hel", "lo ", "Ana")),
    {"type": "content_block_stop", "index": 1},
    _block(2, type="tool_use", id="t1", name="ls", input={}),
    _delta(2, type="input_json_delta", partial_json='{"path":'),
    _delta(2, type="input_json_delta", partial_json=' "/"}'),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_case_25_an_anthropic_stream(end: str) -> None:
    """The words are the text deltas alone, whatever the line ends."""
    reply = anthropic(ANA, end=end)
    assert (reply.text, reply.outcome, reply.unparsed) == ("Hello Ana", "complete", 0)
    assert [(tool.name, tool.argument_keys, tool.argument_bytes) for tool in reply.tools] == [
        ("ls", ("path",), 13)
    ]
    assert (reply.response_id, reply.model) == ("msg_1", "claude")
    assert reply.usage == Usage(input=46, output=7, cached_input=30, cache_write=5)


def test_case_25_an_anthropic_stream_that_breaks() -> None:
    """Without `message_stop` it is partial; an error event says why."""
    assert anthropic(ANA[:-1]).outcome == "partial"
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    reply = anthropic([*ANA[:7], error])
    assert (reply.text, reply.outcome, reply.error) == ("Hel", "partial", "overloaded_error: Overloaded")
    assert anthropic([error]).outcome == "failed"


def test_case_36_an_anthropic_body() -> None:
    """Neighbouring text blocks are one text, others part them, thinking is no text."""
    content = [
        {"type": "thinking", "thinking": "hmm", "signature": "c2ln"},
        {"type": "text", "text": "Oslo is "},
        {"type": "text", "text": "cold."},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "text", "text": "It snows."},
        {"type": "tool_use", "id": "t", "name": "ls", "input": {"path": "/", "all": True}},
    ]
    body = {
        "id": "msg_1",
        "model": "claude",
        "content": content,
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    reply = WIRES["messages"].read_reply(json.dumps(body).encode(), status=200, stream=False)
    assert (reply.text, reply.outcome) == ("Oslo is cold.\n\nIt snows.", "complete")
    assert [(tool.name, tool.argument_keys) for tool in reply.tools] == [("ls", ("path", "all"))]


def test_stream_body_and_history_give_one_text() -> None:
    """The same blocks have the same words as a stream, as a body and in the next request's history."""
    content = [
        {"type": "text", "text": "One "},
        {"type": "text", "text": "two"},
        {"type": "tool_use", "id": "t", "name": "ls", "input": {}},
        {"type": "text", "text": "Three"},
    ]
    events = [_block(index, **block) for index, block in enumerate(content)]
    streamed = anthropic([*events, {"type": "message_stop"}]).text
    body = (
        WIRES["messages"].read_reply(json.dumps({"content": content}).encode(), status=200, stream=False).text
    )
    request = WIRES["messages"].read_request({"messages": [{"role": "assistant", "content": content}]})
    assert streamed == body == request.turns[0].text == "One two\n\nThree"


OUTPUT = [
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello Ana"}]},
    {"type": "function_call", "name": "ls", "call_id": "c", "arguments": '{"path": "/"}'},
]
RESPONSE = {
    "id": "resp_1",
    "model": "gpt",
    "output": OUTPUT,
    "usage": {"input_tokens": 11, "output_tokens": 7},
}


def _events(last: dict[str, object]) -> list[dict[str, object]]:
    return [
        {"type": "response.created", "response": {"id": "resp_1", "model": "gpt"}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Hello "},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Ana"},
        {"type": "response.output_item.added", "output_index": 2, "item": {**OUTPUT[2], "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"path": "/"}'},
        {"type": "response.output_item.done", "output_index": 2, "item": OUTPUT[2]},
        last,
    ]


@pytest.mark.parametrize("response", [RESPONSE, {**RESPONSE, "output": []}], ids=["with output", "without"])
@pytest.mark.parametrize("form", [named, data], ids=["named", "data lines"])
def test_case_30_a_responses_stream(response: dict[str, object], form: object) -> None:
    """The words come from the terminal event's output, or from the deltas where that is empty."""
    raw = form(*_events({"type": "response.completed", "response": response}))  # type: ignore[operator]
    reply = WIRES["responses"].read_reply(raw, status=200, stream=True)
    assert (reply.text, reply.outcome, reply.response_id) == ("Hello Ana", "complete", "resp_1")
    assert [(tool.name, tool.argument_keys, tool.argument_bytes) for tool in reply.tools] == [
        ("ls", ("path",), 13)
    ]
    assert reply.usage == Usage(input=11, output=7)


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        ({"type": "response.incomplete", "response": {**RESPONSE, "status": "incomplete"}}, "complete"),
        (
            {
                "type": "response.failed",
                "response": {"id": "resp_1", "error": {"message": "no"}, "output": []},
            },
            "partial",
        ),
        ({"type": "response.output_text.done", "text": "Hello Ana"}, "partial"),
        ({"type": "error", "message": "no"}, "partial"),
    ],
)
def test_case_30_how_a_responses_stream_may_end(last: dict[str, object], outcome: str) -> None:
    """A reply cut by its token limit is whole; a failed or broken one keeps its words as partial."""
    reply = WIRES["responses"].read_reply(named(*_events(last)), status=200, stream=True)
    assert (reply.text, reply.outcome) == ("Hello Ana", outcome)


def test_case_30_a_responses_body() -> None:
    """A JSON reply gives the text of its messages and its calls."""
    reply = WIRES["responses"].read_reply(json.dumps(RESPONSE).encode(), status=200, stream=False)
    assert (reply.text, reply.outcome, reply.tools[0].name) == ("Hello Ana", "complete", "ls")
    waiting = json.dumps({"id": "resp_1", "status": "queued", "output": []}).encode()
    assert WIRES["responses"].read_reply(waiting, status=200, stream=False).outcome == "partial"


def test_completions_body_and_stream() -> None:
    """Text completions have their words in `text`."""
    wire = WIRES["completions"]
    body = {"id": "c", "choices": [{"index": 0, "text": " there"}, {"index": 1, "text": " you"}]}
    reply = wire.read_reply(json.dumps(body).encode(), status=200, stream=False)
    assert (reply.text, reply.alternatives) == ("there", ("you",))
    chunks = [{"choices": [{"index": 0, "text": text}]} for text in ("Hel", "lo")]
    assert wire.read_reply(data(*chunks), status=200, stream=True).text == "Hello"


def test_case_23_surrogates() -> None:
    """A pair, even one split over two deltas, is one character; a lone half is U+FFFD."""
    raw = b'data: {"choices": [{"delta": {"content": "a \\ud83d\\ude80 b \\ud83d"}}]}\n\ndata: [DONE]\n\n'
    assert chat(raw).text == "a \U0001f680 b \ufffd"
    halves = [
        rb'data: {"choices": [{"delta": {"content": "\ud83d"}}]}',
        rb'data: {"choices": [{"delta": {"content": "\ude80"}}]}',
    ]
    assert chat(b"\n\n".join([*halves, b"data: [DONE]", b""])).text == "\U0001f680"
    assert chat(b'data: {"choices": [{"delta": {"content": "\xf0\x9f"}}]}\n\n').text == "\ufffd"


@pytest.mark.parametrize("route", WIRES)
@quick
@given(raw=st.binary(max_size=200), stream=st.booleans(), status=st.sampled_from([200, 400]))
def test_any_bytes_are_read(route: str, raw: bytes, stream: bool, status: int) -> None:
    """No reply makes a reader raise."""
    WIRES[route].read_reply(raw, status=status, stream=stream).text.encode()  # type: ignore[index]
    WIRES[route].terminal(raw)  # type: ignore[index]


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_NAMES = ["type", "id", "model", "choices", "message", "delta", "content", "text", "index", "tool_calls"]
_MORE_NAMES = [
    "function",
    "name",
    "arguments",
    "usage",
    "error",
    "output",
    "item",
    "response",
    "content_block",
]
_KEYS = st.sampled_from([*_NAMES, *_MORE_NAMES, "input", "code"])
_TYPES = st.sampled_from(
    ["text", "tool_use", "message", "function_call", "response.completed", "message_start"]
)
_JSON = st.recursive(
    _LEAVES | _TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("route", WIRES)
@quick
@given(value=st.dictionaries(_KEYS, _JSON, max_size=5))
def test_any_json_is_read(route: str, value: dict[str, object]) -> None:
    """Fields of the wrong kind are as good as absent, in a body and in a stream."""
    wire = WIRES[route]  # type: ignore[index]
    wire.read_reply(json.dumps(value).encode(), status=200, stream=False)
    wire.read_reply(data(value), status=200, stream=True)
    wire.read_reply(json.dumps(value).encode(), status=500, stream=True)


@pytest.mark.parametrize("route", WIRES)
def test_deep_json_is_read(route: str) -> None:
    """Nesting beyond any parser's limit is unreadable, not fatal."""
    raw = b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert WIRES[route].read_reply(raw, status=200, stream=False).text == ""  # type: ignore[index]
    assert WIRES[route].read_reply(b"data: " + raw + b"\n\n", status=200, stream=True).unparsed == 1  # type: ignore[index]
