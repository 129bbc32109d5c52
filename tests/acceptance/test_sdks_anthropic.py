"""Anthropic's own SDK, sync and async, against /v1/messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import pytest

from hearth.memory.types import Usage
from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import ToolCall
from tests.acceptance.conftest import APP, GatewayProcess, wait_until
from tests.acceptance.talk import BLOCK, exchanges, remember, sent_text

QUESTION = "What is the name of my dog?"
GIF = "R0lGODlhAQABAAAAACwAAAAAAQABAAA="
WEATHER = {
    "name": "weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
MODELS = ["claude", "compat"]
"""A model that speaks Anthropic's format itself, and one for which LiteLLM translates to chat."""


@dataclass(frozen=True)
class Sdk:
    """One way of calling: through the sync or the async client."""

    kind: str
    options: dict[str, Any]

    def __call__(self, ask: Callable[[Any], Any]) -> Any:
        """What `ask(client)` gives; the events of a raw stream as a list."""
        if self.kind == "sync":
            with anthropic.Anthropic(**self.options) as client:
                answer = ask(client)
                return list(answer) if isinstance(answer, anthropic.Stream) else answer
        return asyncio.run(self._awaited(ask))

    async def _awaited(self, ask: Callable[[Any], Any]) -> Any:
        async with anthropic.AsyncAnthropic(**self.options) as client:
            answer = await ask(client)
            return [event async for event in answer] if isinstance(answer, anthropic.AsyncStream) else answer

    def final(self, **fields: Any) -> Any:
        """The message that the SDK assembles from a stream."""
        if self.kind == "sync":
            with anthropic.Anthropic(**self.options) as client, client.messages.stream(**fields) as stream:
                return stream.get_final_message()
        return asyncio.run(self._final(fields))

    async def _final(self, fields: dict[str, Any]) -> Any:
        async with (
            anthropic.AsyncAnthropic(**self.options) as client,
            client.messages.stream(**fields) as stream,
        ):
            return await stream.get_final_message()

    def message(self, *, stream: bool, **fields: Any) -> Any:
        """A whole message, asked for at once or as a stream."""
        fields = {"model": "claude", "max_tokens": 100, **fields}
        return self.final(**fields) if stream else self(lambda c: c.messages.create(**fields))


@pytest.fixture(params=["sync", "async"])
def sdk(request: pytest.FixtureRequest, gateway: GatewayProcess, user: str) -> Sdk:
    """Both clients, each as a user of its own."""
    return Sdk(kind=request.param, options=options(gateway, user))


def options(gateway: GatewayProcess, user: str) -> dict[str, Any]:
    """How a program that uses the SDK sets it up for the gateway."""
    return {
        "base_url": gateway.url,
        "api_key": APP,
        "default_headers": {"x-hearth-user": user},
        "max_retries": 0,
        "timeout": 30,
    }


def asked(text: str) -> list[dict[str, Any]]:
    """A conversation of one message."""
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_messages_with_memory(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, model: str, stream: bool
) -> None:
    """A message comes back as the provider gave it, its prompt has the memory, and one exchange is kept."""
    remember(gateway, user, "My dog is called Zebedee.")
    provider.reply("He is called Zebedee, of course.", usage=Usage(input=11, output=7))
    message = sdk.message(stream=stream, model=model, system="Be brief.", messages=asked(QUESTION))
    assert [block.text for block in message.content] == ["He is called Zebedee, of course."]
    assert (message.usage.input_tokens, message.usage.output_tokens) == (11, 7)
    assert sent_text(provider.last.body).count(BLOCK) == 1
    (kept,) = exchanges(gateway, user)
    assert (kept["user_text"], kept["reply_text"]) == (QUESTION, "He is called Zebedee, of course.")
    assert (kept["usage"]["input"], kept["usage"]["output"]) == (11, 7)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_parallel_tool_calls_of_messages(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, model: str, stream: bool
) -> None:
    """Two calls in one reply reach the client whole; their results and the answer are one exchange."""
    remember(gateway, user, "I plan my trips to Oslo and Lima with care.")
    provider.reply(
        tools=[
            ToolCall(name="weather", arguments={"city": "Oslo"}, id="toolu_a"),
            ToolCall(name="weather", arguments={"city": "Lima"}, id="toolu_b"),
        ]
    )
    provider.reply("Cold in Oslo, mild in Lima.")
    messages = asked("What is the weather on my trips to Oslo and Lima?")
    common: dict[str, Any] = {"stream": stream, "model": model, "tools": [WEATHER]}
    first = sdk.message(messages=messages, **common)
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [(c.id, c.input) for c in calls] == [("toolu_a", {"city": "Oslo"}), ("toolu_b", {"city": "Lima"})]
    results = [{"type": "tool_result", "tool_use_id": c.id, "content": "12 degrees"} for c in calls]
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    second = sdk.message(messages=messages, **common)
    assert second.content[-1].text == "Cold in Oslo, mild in Lima."
    first_sent, second_sent = (request.body["messages"] for request in provider.requests)
    assert BLOCK in sent_text(first_sent[0])
    assert second_sent[0] == first_sent[0]
    assert BLOCK not in sent_text(second_sent[1:])
    assert [(e["steps"], e["state"]) for e in exchanges(gateway, user)] == [(2, "closed")]


@pytest.mark.parametrize("stream", [False, True])
def test_case_36_signed_thinking_goes_back_as_it_came(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, stream: bool
) -> None:
    """Thinking blocks, redacted and with odd spaces, come back under their signature; none enters memory."""
    remember(gateway, user, "My dog is called Zebedee.")
    thinking = "  The user’s  dog …\n\tZebedee?  名前 "
    provider.reply(
        "Let me look it up.",
        thinking=thinking,
        redacted=True,
        tools=[ToolCall(name="weather", arguments={"city": "Oslo"})],
    )
    provider.reply("Zebedee.")
    fields: dict[str, Any] = {
        "max_tokens": 3000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "tools": [WEATHER],
        "stream": stream,
    }
    messages = asked(QUESTION)
    first = sdk.message(messages=messages, **fields)
    kinds = [block.type for block in first.content]
    assert kinds == ["redacted_thinking", "thinking", "text", "tool_use"]
    assert first.content[1].thinking == thinking
    history = [block.model_dump(exclude_none=True) for block in first.content]
    result = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "12 degrees"}
    messages += [{"role": "assistant", "content": history}, {"role": "user", "content": [result]}]
    second = sdk.message(messages=messages, **fields)
    assert second.content[-1].text == "Zebedee."
    sent = provider.last.body["messages"]
    assert sent[1]["content"][:3] == [
        {"type": "redacted_thinking", "data": provider.redact(thinking)},
        {"type": "thinking", "thinking": thinking, "signature": provider.sign(thinking)},
        {"type": "text", "text": "Let me look it up."},
    ]
    assert BLOCK in sent_text(sent[0])
    (kept,) = exchanges(gateway, user)
    assert kept["reply_text"] == "Let me look it up.\n\nZebedee."


def test_images_of_messages(gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str) -> None:
    """Images and documents go on as they were; the block is one more text part behind them."""
    remember(gateway, user, "My dog is called Zebedee.")
    parts = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": GIF}},
        {"type": "text", "text": "Is this my dog Zebedee? What is his name?"},
    ]
    sdk.message(stream=False, messages=[{"role": "user", "content": parts}])
    sent = provider.last.body["messages"][0]["content"]
    assert sent[:2] == parts
    assert [part["type"] for part in sent[2:]] == ["text"]
    assert sent[2]["text"].startswith(BLOCK)
    assert [e["user_text"] for e in exchanges(gateway, user)] == [parts[1]["text"]]


def test_case_33_tools_unknown_fields_and_beta_headers_pass(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str
) -> None:
    """Server tools, a cached tool, unknown keys and a beta header reach the provider as they were sent.

    What LiteLLM itself adds or leaves out is in the same call with memory off, to which this one is compared.
    """
    remember(gateway, user, "My dog is called Zebedee.")
    fields: dict[str, Any] = {
        "messages": asked(QUESTION),
        "tools": [
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
            {**WEATHER, "cache_control": {"type": "ephemeral"}},
        ],
        "extra_body": {"service_tier": "auto", "x_unknown": {"deep": [1, None, "é"]}},
    }
    beta = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
    sdk.message(stream=False, extra_headers={**beta, "x-hearth-memory": "off"}, **fields)
    plain = dict(provider.last.body)
    plain_beta = provider.last.headers.get("anthropic-beta")
    sdk.message(stream=False, extra_headers=beta, **fields)
    with_block = dict(provider.last.body)
    (sent,) = with_block.pop("messages")
    (unchanged,) = plain.pop("messages")
    assert with_block == plain
    assert with_block["tools"] == fields["tools"]
    assert sent["content"].startswith(unchanged["content"])
    assert BLOCK in sent["content"]
    assert provider.last.headers.get("anthropic-beta") == plain_beta
    assert "interleaved-thinking-2025-05-14" in str(plain_beta)


def test_token_counts_pass(gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str) -> None:
    """A token count is answered, and remembers nothing."""
    counted = sdk(lambda c: c.messages.count_tokens(model="claude", messages=asked(QUESTION)))
    assert counted.input_tokens > 0
    assert exchanges(gateway, user) == []


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"status": 429}, anthropic.RateLimitError),
        ({"status": 401}, anthropic.AuthenticationError),
        ({"error": "invalid_request"}, anthropic.BadRequestError),
        ({"status": 500}, anthropic.InternalServerError),
        ({"status": 529}, anthropic.APIStatusError),
    ],
)
def test_a_provider_that_fails_before_the_stream(
    gateway: GatewayProcess,
    provider: ScriptedProvider,
    sdk: Sdk,
    user: str,
    reply: dict[str, Any],
    error: type[anthropic.APIError],
) -> None:
    """A refusal reaches a program as the SDK's own exception; the exchange is kept as failed."""
    provider.reply(**reply, times=3)
    with pytest.raises(error):
        sdk.message(stream=True, messages=asked("I keep bees."))
    assert [e["state"] for e in exchanges(gateway, user)] == ["failed"]


def test_a_provider_that_fails_during_the_stream(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str
) -> None:
    """An error amid a stream is the SDK's exception after the words before it; they are kept as partial."""
    provider.reply("One two three four five six.", fail_after=6)
    with pytest.raises(anthropic.APIStatusError):
        sdk.message(stream=True, messages=asked("Count to six."))
    (kept,) = exchanges(gateway, user)
    assert kept["outcome"] == "partial"
    assert kept["reply_text"].startswith("One two")


def test_a_program_that_leaves_amid_a_stream(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """Leaving the SDK's stream early leaves a partial exchange, and the provider's stream is given up."""
    provider.reply(chunks=("Once ", "upon ") + ("a time ",) * 100, gap=0.05)
    with (
        anthropic.Anthropic(**options(gateway, user)) as client,
        client.messages.stream(
            model="claude", max_tokens=100, messages=[{"role": "user", "content": "Tell a long story."}]
        ) as stream,
    ):
        next(text for text in stream.text_stream if "upon" in text)
    wait_until(lambda: exchanges(gateway, user))
    (kept,) = exchanges(gateway, user)
    assert kept["outcome"] == "partial"
    assert kept["reply_text"].startswith("Once upon")
    wait_until(lambda: provider.last.disconnected)
