"""The scripted provider, as the official SDKs and a raw socket see it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import anthropic
import httpx
import openai
import pytest

from hearth.memory.types import Usage
from hearth.testing.cache import CacheDouble
from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Reply, Request, ToolCall

http = httpx.Client(verify=False, timeout=5)
GPT, CLAUDE = "gpt-4o", "claude-sonnet-5"
HELLO = [{"role": "user", "content": "hello"}]
COCKTAIL = "a \N{COCKTAIL GLASS} for Zoë"


@pytest.fixture(name="up")
def _up() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as up:
        yield up


@pytest.fixture(name="gpt")
def _gpt(up: ScriptedProvider) -> Iterator[openai.OpenAI]:
    plain = openai.DefaultHttpxClient(verify=False)  # no certificates to load, a third of a second each
    with openai.OpenAI(
        base_url=up.openai_url, api_key="k", max_retries=0, timeout=5, http_client=plain
    ) as gpt:
        yield gpt


@pytest.fixture(name="claude")
def _claude(up: ScriptedProvider) -> Iterator[anthropic.Anthropic]:
    plain = anthropic.DefaultHttpxClient(verify=False)
    with anthropic.Anthropic(
        base_url=up.url, api_key="k", max_retries=0, timeout=5, http_client=plain
    ) as claude:
        yield claude


def raw(up: ScriptedProvider, path: str, body: dict[str, Any]) -> httpx.Response:
    return http.post(up.url + path, json=body)


def chat_body(**more: Any) -> dict[str, Any]:
    return {"model": GPT, "messages": HELLO, **more}


def claude_body(**more: Any) -> dict[str, Any]:
    return {"model": CLAUDE, "max_tokens": 10, "messages": HELLO, **more}


def streamed_text(chunks: Any) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


# -- the SDKs


def test_chat(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """A scripted chat reply reaches the SDK with its usage, and the request is recorded."""
    up.reply("Hello Ana", usage=Usage(input=11, output=7, cached_input=3))
    reply = gpt.chat.completions.create(model=GPT, messages=HELLO)
    assert reply.choices[0].message.content == "Hello Ana"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (11, 7)
    assert reply.usage.prompt_tokens_details.cached_tokens == 3
    assert up.last.body == {"model": GPT, "messages": HELLO}
    assert (up.last.route, up.last.path, up.last.user_text) == ("chat", "/v1/chat/completions", "hello")
    assert up.last.headers["authorization"] == "Bearer k"
    assert json.loads(up.last.raw) == up.last.body


def test_chat_stream_with_reasoning_tools_and_usage(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """A chat stream carries reasoning, text, parallel calls, finish reason and usage, in this order."""
    up.reply(
        "I will look.", thinking="hm", tools=[("find", {"q": "Zoë"}), ToolCall(name="list", arguments="{}")]
    )
    options = {"include_usage": True}
    chunks = list(gpt.chat.completions.create(model=GPT, messages=HELLO, stream=True, stream_options=options))
    assert streamed_text(chunks) == "I will look."
    calls = [call for chunk in chunks if chunk.choices for call in chunk.choices[0].delta.tool_calls or ()]
    arguments = ["".join(call.function.arguments for call in calls if call.index == at) for at in (0, 1)]
    assert [json.loads(text) for text in arguments] == [{"q": "Zoë"}, {}]
    assert len({call.id for call in calls if call.id}) == 2
    assert chunks[-2].choices[0].finish_reason == "tool_calls"
    assert (chunks[-1].choices, chunks[-1].usage.completion_tokens) == ([], 5)


def test_chat_with_two_choices_interleaves_them(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """With n=2 the chunks of both choices alternate and each choice has its own text."""
    up.reply("one two", choices=("eins zwei",))
    chunks = list(gpt.chat.completions.create(model=GPT, messages=HELLO, stream=True, n=2))
    texts = {0: "", 1: ""}
    for chunk in chunks:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == {0: "one two", 1: "eins zwei"}
    assert [chunk.choices[0].index for chunk in chunks[:4]] == [0, 1, 0, 1]


def test_messages_with_every_kind_of_block(up: ScriptedProvider, claude: anthropic.Anthropic) -> None:
    """A messages reply carries thinking, text and calls, the same as JSON and as a stream."""
    script = {"thinking": " hm…\n", "redacted": True, "tools": [("find", {"q": "é"})]}
    up.reply(COCKTAIL, **script)
    up.reply(COCKTAIL, **script)
    plain = claude.messages.create(model=CLAUDE, max_tokens=9, messages=HELLO)
    with claude.messages.stream(model=CLAUDE, max_tokens=9, messages=HELLO) as stream:
        streamed = stream.get_final_message()
    kinds = [block.type for block in plain.content]
    assert kinds == ["redacted_thinking", "thinking", "text", "tool_use"]
    assert [block.to_dict() | {"id": ""} for block in plain.content[1:]] == [
        {name: value for name, value in block.to_dict().items() if name != "parsed_output"} | {"id": ""}
        for block in streamed.content[1:]
    ]
    assert streamed.content[2].text == COCKTAIL
    assert streamed.stop_reason == "tool_use"


def test_messages_stream_events_in_the_documented_order(up: ScriptedProvider) -> None:
    """The event names are those of the documentation, each line framed as `event:` and `data:`."""
    up.reply("Hello Ana")
    response = raw(up, "/v1/messages", claude_body(stream=True))
    names = [line.removeprefix("event: ") for line in response.text.split("\n") if line.startswith("event")]
    assert names == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.text.endswith('event: message_stop\ndata: {"type":"message_stop"}\n\n')


def test_responses_stream(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """A responses stream is numbered without gaps and ends in the whole response."""
    up.reply(COCKTAIL, thinking="hm", tools=[("find", {"q": 1})])
    events = list(gpt.responses.create(model=GPT, input="hello", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    assert events[-1].response.output_text == COCKTAIL
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == COCKTAIL


def test_completions(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """The old completions route answers each prompt of a list, plain and streamed."""
    up.reply("one two", times=2)
    plain = gpt.completions.create(model=GPT, prompt=["a", "b"])
    assert [choice.text for choice in plain.choices] == ["one two", "one two [1]"]
    streamed = gpt.completions.create(model=GPT, prompt="a", stream=True)
    assert "".join(chunk.choices[0].text for chunk in streamed) == "one two"


def test_routes_beside_the_model(
    up: ScriptedProvider, gpt: openai.OpenAI, claude: anthropic.Anthropic
) -> None:
    """Embeddings, model lists and token counts answer, and don't mix with the recorded model requests."""
    vectors = gpt.embeddings.create(model="text-embedding-3-small", input=["a", "b", "a"], dimensions=8).data
    assert vectors[0].embedding == vectors[2].embedding != vectors[1].embedding
    assert len(vectors[0].embedding) == 8
    assert GPT in [model.id for model in gpt.models.list()]
    assert {model.type for model in claude.models.list()} == {"model"}
    assert claude.messages.count_tokens(model=CLAUDE, messages=HELLO).input_tokens > 0
    assert (up.requests, len(up.side)) == ([], 4)


async def test_async_sdks(up: ScriptedProvider) -> None:
    """The asynchronous SDKs read both providers' streams."""
    up.reply("Hello Ana", times=2, split_bytes=True)
    async with openai.AsyncOpenAI(base_url=up.openai_url, api_key="k", max_retries=0) as gpt:
        stream = await gpt.chat.completions.create(model=GPT, messages=HELLO, stream=True)
        chunks = [chunk async for chunk in stream]
    async with (
        anthropic.AsyncAnthropic(base_url=up.url, api_key="k", max_retries=0) as claude,
        claude.messages.stream(model=CLAUDE, max_tokens=9, messages=HELLO) as messages,
    ):
        text = await messages.get_final_text()
    assert streamed_text(chunks) == text == "Hello Ana"


def test_vectors_can_be_scripted(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """`embed` decides about the vectors, in either encoding."""
    up.embed = lambda text: [float(len(text)), 0.5]
    for encoding in ("float", "base64"):
        reply = gpt.embeddings.create(model="e", input=["abc"], encoding_format=encoding)
        assert gpt_vector(reply.data[0].embedding) == [3.0, 0.5]


def gpt_vector(embedding: Any) -> list[float]:
    """An embedding as the SDK gives it: numbers, or base64 where that was asked for by name."""
    if isinstance(embedding, str):
        return list(struct.unpack("<2f", base64.b64decode(embedding)))
    return list(embedding)


# -- scripting


def test_replies_come_in_order_and_then_from_the_function(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """Scripted replies are used once and in order, then `answer` is asked, which sees the request."""
    up.answer = lambda request: f"you said {request.user_text}"
    up.reply("first")
    up.reply("for messages", route="messages")
    texts = [
        gpt.chat.completions.create(model=GPT, messages=HELLO).choices[0].message.content for _ in range(2)
    ]
    assert texts == ["first", "you said hello"]


async def test_replies_can_be_scripted_while_requests_are_in_flight(up: ScriptedProvider) -> None:
    """Each of many concurrent requests gets one scripted reply or the default, and all are recorded."""
    limits = httpx.Limits(max_connections=8)
    async with httpx.AsyncClient(base_url=up.openai_url, verify=False, limits=limits) as client:

        async def ask() -> str:
            up.reply("scripted")
            response = await client.post("/chat/completions", json=chat_body())
            return str(response.json()["choices"][0]["message"]["content"])

        texts = await asyncio.gather(*(ask() for _ in range(50)))
    assert texts == ["scripted"] * 50
    assert len(up.requests) == 50
    up.clear()
    assert (up.requests, up.side) == ([], [])


def test_a_failing_answer_function_is_a_500(up: ScriptedProvider) -> None:
    """What `answer` raises shows as a 500 and does not stop the provider."""

    def broken(request: Request) -> Reply:
        raise KeyError(request.model)

    up.answer = broken
    assert raw(up, "/v1/chat/completions", chat_body()).status_code == 500
    up.answer = None
    assert raw(up, "/v1/chat/completions", chat_body()).status_code == 200


@pytest.mark.parametrize(
    ("kind", "gpt_error", "claude_error"),
    [
        ("rate_limit", openai.RateLimitError, anthropic.RateLimitError),
        ("server", openai.InternalServerError, anthropic.InternalServerError),
        ("overloaded", openai.InternalServerError, anthropic.InternalServerError),
        ("context_length", openai.BadRequestError, anthropic.BadRequestError),
        ("content_filter", openai.BadRequestError, anthropic.BadRequestError),
        ("authentication", openai.AuthenticationError, anthropic.AuthenticationError),
        ("not_found", openai.NotFoundError, anthropic.NotFoundError),
    ],
)
def test_errors_are_the_ones_the_sdks_know(
    up: ScriptedProvider,
    gpt: openai.OpenAI,
    claude: anthropic.Anthropic,
    kind: Any,
    gpt_error: type[Exception],
    claude_error: type[Exception],
) -> None:
    """Each kind of error raises the SDK's own exception, also where a stream was asked for."""
    up.reply(error=kind, times=2, headers={"retry-after": "7"})
    with pytest.raises(gpt_error) as of_gpt:
        gpt.chat.completions.create(model=GPT, messages=HELLO, stream=True)
    with pytest.raises(claude_error) as of_claude:
        claude.messages.create(model=CLAUDE, max_tokens=9, messages=HELLO)
    assert [one.value.response.headers["retry-after"] for one in (of_gpt, of_claude)] == ["7", "7"]


def test_error_bodies_have_the_providers_codes(up: ScriptedProvider) -> None:
    """A context-length refusal has OpenAI's code, an overload has Anthropic's status 529 and type."""
    up.reply(error="context_length")
    up.reply(status=529)
    long = raw(up, "/v1/chat/completions", chat_body())
    busy = raw(up, "/v1/messages", claude_body())
    assert (long.status_code, long.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert (busy.status_code, busy.json()["error"]["type"]) == (529, "overloaded_error")


def test_one_failure_then_success(up: ScriptedProvider) -> None:
    """A single scripted 500 is followed by a good reply, which the SDK's retry gets."""
    up.reply(status=500, headers={"retry-after-ms": "1"})
    with openai.OpenAI(base_url=up.openai_url, api_key="k", max_retries=1) as client:
        assert client.chat.completions.create(model=GPT, messages=HELLO).choices[0].message.content == "ok"
    assert [request.headers["x-stainless-retry-count"] for request in up.requests] == ["0", "1"]


# -- streams with faults


def test_failure_in_the_middle_of_a_stream(
    up: ScriptedProvider, gpt: openai.OpenAI, claude: anthropic.Anthropic
) -> None:
    """After some events comes the provider's error event, in the form that its SDK knows."""
    up.reply("one two three", fail_after=3, times=3)
    with pytest.raises(openai.APIError, match="server had an error"):
        list(gpt.chat.completions.create(model=GPT, messages=HELLO, stream=True))
    events = list(gpt.responses.create(model=GPT, input="hello", stream=True))
    assert [event.type for event in events[3:]] == ["error", "response.failed"]
    assert [event.sequence_number for event in events] == [0, 1, 2, 3, 4]
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        list(claude.messages.create(model=CLAUDE, max_tokens=9, messages=HELLO, stream=True))


def test_a_cut_stream_has_no_end(up: ScriptedProvider) -> None:
    """A cut stream gives the events before the cut, then breaks off without the end of the body."""
    up.reply("one two three", cut_after=2)
    got: list[bytes] = []
    with (
        pytest.raises(httpx.RemoteProtocolError),
        http.stream("POST", up.openai_url + "/chat/completions", json=chat_body(stream=True)) as response,
    ):
        got.extend(response.iter_raw())
    assert b"".join(got).count(b"data: ") == 2
    assert not up.last.answered


def test_a_plain_body_can_be_cut(up: ScriptedProvider) -> None:
    """A cut plain reply ends in the middle of its body."""
    up.reply("one two three", cut_after=0)
    with pytest.raises(httpx.RemoteProtocolError):
        raw(up, "/v1/chat/completions", chat_body())


def test_a_missing_terminal_event_ends_the_body_properly(up: ScriptedProvider) -> None:
    """Without its terminal event a stream still ends as HTTP, on each route."""
    up.reply("one", done=False, times=3)
    chat = raw(up, "/v1/chat/completions", chat_body(stream=True)).text
    messages = raw(up, "/v1/messages", claude_body(stream=True)).text
    responses = raw(up, "/v1/responses", {"model": GPT, "input": "a", "stream": True}).text
    assert "[DONE]" not in chat
    assert '"finish_reason":"stop"' in chat
    assert "message_delta" in messages
    assert "message_stop" not in messages
    assert "response.output_item.done" in responses
    assert "response.completed" not in responses


def test_a_hanging_stream_ends_with_the_client(up: ScriptedProvider) -> None:
    """A hanging stream stays open until the client gives up, which the provider notices."""
    up.reply("one two", hang_after=2)
    with pytest.raises(httpx.ReadTimeout):
        http.post(up.openai_url + "/chat/completions", json=chat_body(stream=True), timeout=0.2)
    request = up.wait(1)[0]
    for _ in range(200):
        if request.disconnected:
            break
        http.get(up.openai_url + "/models")
    assert (request.disconnected, request.answered) == (True, False)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
@pytest.mark.parametrize("shaping", [{"split_bytes": True}, {"split_bytes": 1}, {"batch": 3}, {"gap": 0.001}])
def test_shaping_never_changes_the_bytes(path: str, shaping: dict[str, Any]) -> None:
    """However a stream is cut into writes, its bytes are the same."""
    body = {"model": CLAUDE, "max_tokens": 9, "messages": HELLO, "stream": True}
    if path == "/v1/responses":
        body = {"model": GPT, "input": "hello", "stream": True}
    streams = []
    for script in ({}, shaping):
        with ScriptedProvider() as up:
            up.reply("\N{COCKTAIL GLASS}", **script)
            streams.append(
                re.sub(rb'"(created|created_at|completed_at)":\d+', b"", raw(up, path, body).content)
            )
    assert streams[0] == streams[1]
    assert streams[0].count(b"data: ") > 3


def test_a_split_stream_is_cut_inside_characters(up: ScriptedProvider) -> None:
    """The four bytes of an emoji arrive in four pieces, and the SDK puts them together again."""
    up.reply("\N{COCKTAIL GLASS}", split_bytes=1000, times=2)
    parts = []
    with http.stream("POST", up.openai_url + "/chat/completions", json=chat_body(stream=True)) as response:
        parts = [part for part in response.iter_raw() if part]
    starts = {part[0] for part in parts}
    assert {0x9F, 0x8D, 0xB8} <= starts
    with openai.OpenAI(base_url=up.openai_url, api_key="k") as client:
        chunks = list(client.chat.completions.create(model=GPT, messages=HELLO, stream=True))
    assert streamed_text(chunks) == "\N{COCKTAIL GLASS}"


def test_crlf_line_ends(up: ScriptedProvider, claude: anthropic.Anthropic) -> None:
    """With CRLF every line of the stream ends so, and the SDK reads the same text."""
    up.reply("Hello Ana", crlf=True, times=2)
    response = raw(up, "/v1/messages", claude_body(stream=True)).content
    assert response.count(b"\n") == response.count(b"\r\n") > 10
    with claude.messages.stream(model=CLAUDE, max_tokens=9, messages=HELLO) as stream:
        assert stream.get_final_text() == "Hello Ana"


def test_last_text_and_finish_reason_in_one_chunk(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """The finish reason can come with the last text instead of after it."""
    up.reply("one two", finish_with_text=True)
    last = list(gpt.chat.completions.create(model=GPT, messages=HELLO, stream=True))[-1].choices[0]
    assert (last.delta.content, last.finish_reason) == (" two", "stop")


def test_reasoning_without_text(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """A reply of reasoning alone has no text delta at all."""
    up.reply("", thinking="hm hm")
    chunks = list(gpt.chat.completions.create(model=GPT, messages=HELLO, stream=True))
    assert streamed_text(chunks) == ""
    assert "".join(getattr(chunk.choices[0].delta, "reasoning_content", "") for chunk in chunks) == "hm hm"


def test_each_event_is_sent_when_it_is_due(up: ScriptedProvider) -> None:
    """With a gap the first event arrives while the last one has not been written yet."""
    up.reply("one two three four", gap=0.05)
    with http.stream("POST", up.openai_url + "/chat/completions", json=chat_body(stream=True)) as response:
        parts = response.iter_raw()
        assert b'"role":"assistant"' in next(parts)
        assert not up.last.answered
        assert b"".join(parts).endswith(b"data: [DONE]\n\n")


# -- what a real provider refuses


def test_case_36_a_changed_thinking_block_is_refused(
    up: ScriptedProvider, claude: anthropic.Anthropic
) -> None:
    """Signed thinking comes back only byte for byte; one changed space or a missing signature is a 400."""
    up.reply("x", thinking="  odd   spaces, Zoë ", redacted=True, tools=[("f", {})])
    first = claude.messages.create(model=CLAUDE, max_tokens=9, messages=HELLO)
    content = [block.to_dict() for block in first.content]
    result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "42"}
    history = [*HELLO, {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    assert claude.messages.create(model=CLAUDE, max_tokens=9, messages=history).content[0].text == "ok"
    for at, changed in ((1, {"thinking": "odd spaces, Zoë"}), (1, {"signature": ""}), (0, {"data": "AAAA"})):
        broken = [*content]
        broken[at] = {**broken[at], **changed}
        bad = [HELLO[0], {"role": "assistant", "content": broken}, history[2]]
        with pytest.raises(anthropic.BadRequestError, match=f"content.{at}: Invalid"):
            claude.messages.create(model=CLAUDE, max_tokens=9, messages=bad)


USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "42"}
TEXT = {"type": "text", "text": "and now?"}
MARKED = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "user", "content": ""}]}, "must have non-empty content"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "must be non-empty"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]}, "non-whitespace"),
        ({"messages": [*HELLO, USE, *HELLO]}, "without `tool_result` blocks immediately after: t1"),
        ({"messages": [*HELLO, USE, {"role": "user", "content": [TEXT, RESULT]}]}, "immediately after"),
        ({"messages": [{"role": "user", "content": [RESULT]}]}, "unexpected `tool_use_id`"),
        ({"messages": [{"role": "user", "content": [MARKED] * 5}]}, "maximum of 4 blocks"),
        (
            {"messages": [{"role": "user", "content": [MARKED] * 4}], "cache_control": {"type": "ephemeral"}},
            "Found 5",
        ),
        ({"max_tokens": None, "messages": None}, "valid list"),
    ],
)
def test_messages_that_anthropic_refuses(up: ScriptedProvider, more: dict[str, Any], complaint: str) -> None:
    """What the real provider refuses is refused in its words, and the script is not used up."""
    up.reply("still there")
    response = raw(up, "/v1/messages", claude_body(**more))
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")
    assert complaint in response.json()["error"]["message"]
    assert raw(up, "/v1/messages", claude_body()).json()["content"][0]["text"] == "still there"


def test_results_before_text_pass(up: ScriptedProvider) -> None:
    """Tool results that come first in the next message are taken, with text after them."""
    messages = [*HELLO, USE, {"role": "user", "content": [RESULT, TEXT]}]
    assert raw(up, "/v1/messages", claude_body(messages=messages)).status_code == 200


CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function"}]}
ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "42"}


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([], "empty array"),
        ([{"role": "user", "content": None}], "got null"),
        ([*HELLO, CALL, *HELLO], "did not have response messages: c1"),
        ([*HELLO, ANSWER], "must be a response to a preceding message"),
    ],
)
def test_chats_that_openai_refuses(up: ScriptedProvider, messages: list[Any], complaint: str) -> None:
    """A chat request that the real provider refuses is refused in its words."""
    response = raw(up, "/v1/chat/completions", chat_body(messages=messages))
    assert response.status_code == 400
    assert complaint in response.json()["error"]["message"]


def test_an_answered_call_passes(up: ScriptedProvider) -> None:
    """A chat with a call and its answer is taken."""
    assert raw(up, "/v1/chat/completions", chat_body(messages=[*HELLO, CALL, ANSWER])).status_code == 200


def test_responses_refuses_messages(up: ScriptedProvider) -> None:
    """The responses route does not take `messages`, nor a request without any input."""
    for body, code in (({"messages": HELLO}, "unsupported_parameter"), ({}, "missing_required_parameter")):
        response = raw(up, "/v1/responses", {"model": GPT, **body})
        assert (response.status_code, response.json()["error"]["code"]) == (400, code)


def test_lone_surrogates_reach_the_record(up: ScriptedProvider) -> None:
    """A body with half of a surrogate pair is parsed as the real providers do, and recorded byte for byte."""
    sent = b'{"model":"gpt-4o","messages":[{"role":"user","content":"a \\ud83d b \\ud83d\\ude80"}]}'
    response = http.post(up.openai_url + "/chat/completions", content=sent)
    assert response.status_code == 200
    assert (up.last.raw, up.last.user_text) == (sent, "a \ud83d b \N{ROCKET}")


def test_a_body_that_is_no_json_is_refused(up: ScriptedProvider) -> None:
    """Broken JSON is a 400 and still recorded."""
    assert http.post(up.openai_url + "/chat/completions", content=b"{").status_code == 400
    assert up.last.raw == b"{"


# -- server-held state


def test_previous_response_id_continues_what_the_provider_holds(
    up: ScriptedProvider, gpt: openai.OpenAI
) -> None:
    """The model sees the whole chain, though the request carries only the new item."""
    up.reply("one")
    first = gpt.responses.create(model=GPT, input="first")
    second = gpt.responses.create(model=GPT, input="second", previous_response_id=first.id)
    texts = [item["content"][0]["text"] for item in up.last.context]
    assert texts == ["first", "one", "second"]
    assert gpt.responses.retrieve(second.id).previous_response_id == first.id
    assert [item.content[0].text for item in gpt.responses.input_items.list(second.id)] == ["second"]


def test_unknown_deleted_and_unstored_responses_are_not_found(
    up: ScriptedProvider, gpt: openai.OpenAI
) -> None:
    """An unknown id, a deleted response and one with `store: false` can't be continued."""
    unstored = gpt.responses.create(model=GPT, input="a", store=False).id
    deleted = gpt.responses.create(model=GPT, input="a").id
    gpt.responses.delete(deleted)
    for name in ("resp_unknown", unstored, deleted):
        with pytest.raises(openai.BadRequestError) as refused:
            gpt.responses.create(model=GPT, input="b", previous_response_id=name)
        assert refused.value.code == "previous_response_not_found"
        with pytest.raises(openai.NotFoundError):
            gpt.responses.retrieve(name)


def test_function_calls_of_a_chain_need_their_outputs(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """A held call is answered by its output alone; an output for no call is refused."""
    up.reply(tools=[ToolCall(name="f", id="call_1")])
    first = gpt.responses.create(model=GPT, input="a")
    with pytest.raises(openai.BadRequestError, match="No tool output found"):
        gpt.responses.create(model=GPT, input="b", previous_response_id=first.id)
    output = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
    assert gpt.responses.create(model=GPT, input=[output], previous_response_id=first.id).output_text == "ok"
    with pytest.raises(openai.BadRequestError, match="No tool call found"):
        gpt.responses.create(model=GPT, input=[output])


def test_conversations_hold_their_items(up: ScriptedProvider, gpt: openai.OpenAI) -> None:
    """A conversation grows by each response, until it is deleted."""
    name = gpt.conversations.create().id
    gpt.responses.create(model=GPT, input="first", conversation=name)
    gpt.responses.create(model=GPT, input="second", conversation=name)
    assert [item["content"][0]["text"] for item in up.last.context] == ["first", "ok", "second"]
    gpt.conversations.delete(name)
    with pytest.raises(openai.NotFoundError):
        gpt.responses.create(model=GPT, input="third", conversation=name)


# -- the prompt cache


def test_the_prompt_cache_shows_in_usage(
    claude: anthropic.Anthropic, up: ScriptedProvider, gpt: openai.OpenAI
) -> None:
    """With a cache double, usage has what was written and read, in each provider's own fields."""
    up.cache = CacheDouble(count=len)
    system = [{"type": "text", "text": "s" * 2000, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    first, second = (
        claude.messages.create(model=CLAUDE, max_tokens=9, system=system, messages=HELLO).usage
        for _ in range(2)
    )
    assert (first.input_tokens, first.cache_creation_input_tokens, first.cache_read_input_tokens) == (
        5,
        2000,
        0,
    )
    assert first.cache_creation.ephemeral_1h_input_tokens == 2000
    assert (second.input_tokens, second.cache_creation_input_tokens, second.cache_read_input_tokens) == (
        5,
        0,
        2000,
    )
    long = [{"role": "user", "content": "x" * 1300}]
    details = [
        gpt.chat.completions.create(model=GPT, messages=long).usage.prompt_tokens_details.cached_tokens
        for _ in range(2)
    ]
    assert details == [0, 1280]


def test_the_prompt_cache_goes_by_the_providers_clock() -> None:
    """The cache's entries age by the clock that the provider was given."""
    times = iter([datetime(2026, 1, 1, 0, 0, tzinfo=UTC), datetime(2026, 1, 1, 0, 6, tzinfo=UTC)])
    body = claude_body(system=[{**MARKED, "text": "s" * 2000}])
    with ScriptedProvider(cache=CacheDouble(count=len), clock=lambda: next(times)) as up:
        usages = [raw(up, "/v1/messages", body).json()["usage"] for _ in range(2)]
    assert [usage["cache_creation_input_tokens"] for usage in usages] == [2000, 2000]


# -- HTTP


async def _talk(port: int, *pieces: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.005)
    got = await reader.read()
    writer.close()
    await writer.wait_closed()
    return got


async def test_a_request_in_pieces_and_in_chunks(up: ScriptedProvider) -> None:
    """A request may come in any pieces, with a chunked body, and after another one on the same connection."""
    body = json.dumps(chat_body()).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
    plain = head + b"content-length: %d\r\n\r\n" % len(body) + body
    chunked = head + b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    chunked += b"5\r\n" + body[:5] + b"\r\n%x\r\n" % (len(body) - 5) + body[5:] + b"\r\n0\r\n\r\n"
    whole = plain + chunked
    got = await _talk(up.port, whole[:20], whole[20:75], whole[75:-9], whole[-9:])
    assert got.count(b"HTTP/1.1 200 OK") == 2
    assert [request.body for request in up.requests] == [chat_body(), chat_body()]


async def test_what_is_no_http_is_cut_off(up: ScriptedProvider) -> None:
    """A line that is no request closes the connection without an answer."""
    assert await _talk(up.port, b"hello\r\n\r\n") == b""


def test_an_unknown_path_is_a_404(up: ScriptedProvider) -> None:
    """A path that no provider has is a 404 with its error body."""
    response = raw(up, "/v1/nothing", {})
    assert (response.status_code, response.json()["error"]["type"]) == (404, "invalid_request_error")


def test_it_runs_as_a_process() -> None:
    """`python -m hearth.testing.provider` serves until it is terminated."""
    with ScriptedProvider() as free:
        port = free.port
    command = [sys.executable, "-m", "hearth.testing.provider", "--port", str(port), "--tokens", "5"]
    process = subprocess.Popen(command, env={**os.environ})
    try:
        transport = httpx.HTTPTransport(retries=8, verify=False)
        with httpx.Client(transport=transport, timeout=5) as client:
            reply = client.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=chat_body()).json()
    finally:
        process.terminate()
        process.wait(5)
    assert reply["choices"][0]["message"]["content"] == "ok ok ok ok ok"
    assert reply["usage"]["completion_tokens"] == 5
