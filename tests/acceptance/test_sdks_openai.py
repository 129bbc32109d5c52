"""OpenAI's own SDK, sync and async, against every route that it knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from hearth.memory.types import Usage
from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import ToolCall
from tests.acceptance.conftest import APP, GatewayProcess, wait_until
from tests.acceptance.talk import BLOCK, exchanges, remember, sent_text

QUESTION = "What is the name of my dog?"
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
FLAT_WEATHER = {"type": "function", "strict": False, **WEATHER["function"]}  # type: ignore[dict-item]


@dataclass(frozen=True)
class Sdk:
    """One way of calling: through the sync or the async client."""

    kind: str
    options: dict[str, Any]

    def __call__(self, ask: Callable[[Any], Any]) -> Any:
        """What `ask(client)` gives; the events of a stream as a list."""
        if self.kind == "sync":
            with openai.OpenAI(**self.options) as client:
                answer = ask(client)
                return list(answer) if isinstance(answer, openai.Stream) else answer
        return asyncio.run(self._awaited(ask))

    async def _awaited(self, ask: Callable[[Any], Any]) -> Any:
        async with openai.AsyncOpenAI(**self.options) as client:
            answer = await ask(client)
            return [event async for event in answer] if isinstance(answer, openai.AsyncStream) else answer


@pytest.fixture(params=["sync", "async"])
def sdk(request: pytest.FixtureRequest, gateway: GatewayProcess, user: str) -> Sdk:
    """Both clients, each as a user of its own."""
    return Sdk(kind=request.param, options=options(gateway, user))


def options(gateway: GatewayProcess, user: str, *, version: str = "/v1") -> dict[str, Any]:
    """How a program that uses the SDK sets it up for the gateway."""
    return {
        "base_url": f"{gateway.url}{version}",
        "api_key": APP,
        "default_headers": {"x-hearth-user": user},
        "max_retries": 0,
        "timeout": 30,
    }


def said(chunks: list[Any], index: int = 0) -> str:
    """The text of one choice of a chat stream."""
    found = (choice for chunk in chunks for choice in chunk.choices if choice.index == index)
    return "".join(choice.delta.content or "" for choice in found)


def asked(text: str) -> list[dict[str, Any]]:
    """A conversation of one message."""
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("version", ["/v1", ""])
def test_chat_with_memory(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, version: str, stream: bool
) -> None:
    """A chat completion comes back as the provider gave it, with memory in its prompt; it is kept."""
    remember(gateway, user, "My dog is called Zebedee.")
    provider.reply("He is called Zebedee, of course.")
    sdk.options["base_url"] = f"{gateway.url}{version}"
    answer = sdk(lambda c: c.chat.completions.create(model="gpt", messages=asked(QUESTION), stream=stream))
    text = said(answer) if stream else answer.choices[0].message.content
    assert text == "He is called Zebedee, of course."
    assert sent_text(provider.last.body).count(BLOCK) == 1
    assert [(e["user_text"], e["reply_text"], e["outcome"]) for e in exchanges(gateway, user)] == [
        (QUESTION, "He is called Zebedee, of course.", "complete")
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_parallel_tool_calls_of_chat(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, stream: bool
) -> None:
    """Two calls in one reply reach the client whole; their results and the answer are one exchange."""
    remember(gateway, user, "I plan my trips to Oslo and Lima with care.")
    calls = (
        ToolCall(name="weather", arguments={"city": "Oslo"}, id="call_a"),
        ToolCall(name="weather", arguments={"city": "Lima"}, id="call_b"),
    )
    provider.reply(tools=calls)
    provider.reply("Cold in Oslo, mild in Lima.")
    messages = asked("What is the weather on my trips to Oslo and Lima?")
    common = {"model": "gpt", "tools": [WEATHER], "parallel_tool_calls": True}
    first = sdk(lambda c: c.chat.completions.create(messages=messages, stream=stream, **common))
    wanted = _streamed_calls(first) if stream else _calls(first.choices[0].message)
    assert wanted == [("call_a", "weather", {"city": "Oslo"}), ("call_b", "weather", {"city": "Lima"})]
    messages += _called_and_answered(wanted)
    second = sdk(lambda c: c.chat.completions.create(messages=messages, stream=stream, **common))
    assert (said(second) if stream else second.choices[0].message.content) == "Cold in Oslo, mild in Lima."
    first_sent, second_sent = (request.body["messages"] for request in provider.requests)
    assert BLOCK in first_sent[0]["content"]
    assert second_sent[0] == first_sent[0]
    assert provider.last.body["parallel_tool_calls"] is True
    assert [(e["steps"], e["state"], e["reply_text"]) for e in exchanges(gateway, user)] == [
        (2, "closed", "Cold in Oslo, mild in Lima.")
    ]


def _calls(message: Any) -> list[tuple[str, str, Any]]:
    return [(c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls]


def _streamed_calls(chunks: list[Any]) -> list[tuple[str, str, Any]]:
    made: dict[int, list[str]] = {}
    for chunk in chunks:
        for call in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
            held = made.setdefault(call.index, ["", "", ""])
            held[0] += call.id or ""
            held[1] += call.function.name or ""
            held[2] += call.function.arguments or ""
    return [(name, called, json.loads(arguments)) for name, called, arguments in made.values()]


def _called_and_answered(calls: list[tuple[str, str, Any]]) -> list[dict[str, Any]]:
    made = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id, name, arguments in calls
    ]
    results = [{"role": "tool", "tool_call_id": id, "content": "12 degrees"} for id, _, _ in calls]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *results]


def test_images_of_chat(gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str) -> None:
    """An image goes on as it was; the block is one more text part behind it, and no image is remembered."""
    remember(gateway, user, "My dog is called Zebedee.")
    parts = [
        {"type": "text", "text": "Is this my dog Zebedee? What is his name?"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
    ]
    sdk(lambda c: c.chat.completions.create(model="gpt", messages=[{"role": "user", "content": parts}]))
    sent = provider.last.body["messages"][-1]["content"]
    assert sent[:2] == parts
    assert [part["type"] for part in sent[2:]] == ["text"]
    assert sent[2]["text"].startswith(BLOCK)
    assert [e["user_text"] for e in exchanges(gateway, user)] == [parts[0]["text"]]


@pytest.mark.parametrize("stream", [False, True])
def test_several_choices(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, stream: bool
) -> None:
    """With n=2 the client gets both texts apart from one another; the exchange's reply is the first."""
    provider.reply("Rex is a fine name.", choices=("Call her Luna.",))
    answer = sdk(
        lambda c: c.chat.completions.create(
            model="gpt", messages=asked("Suggest a name for a puppy."), n=2, stream=stream
        )
    )
    texts = [said(answer, 0), said(answer, 1)] if stream else [c.message.content for c in answer.choices]
    assert texts == ["Rex is a fine name.", "Call her Luna."]
    assert [e["reply_text"] for e in exchanges(gateway, user)] == ["Rex is a fine name."]


def test_stream_options(gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str) -> None:
    """Asked for, the usage comes as the stream's last chunk, which has no words; the exchange has it as well.

    LiteLLM puts an empty choice into that chunk, where the provider's has none.
    """
    provider.reply("Three short words.", usage=Usage(input=11, output=7))
    chunks = sdk(
        lambda c: c.chat.completions.create(
            model="gpt",
            messages=asked("Say three short words."),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert [chunk.usage is not None for chunk in chunks[:-1]] == [False] * (len(chunks) - 1)
    assert not said(chunks[-1:])
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (11, 7)
    assert said(chunks) == "Three short words."
    (kept,) = exchanges(gateway, user)
    assert (kept["usage"]["input"], kept["usage"]["output"]) == (11, 7)


class Dog(BaseModel):
    """What a structured reply holds."""

    name: str


def test_json_mode(gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str) -> None:
    """JSON mode and a schema go on as they were, and the SDK parses the reply into its model."""
    remember(gateway, user, "My dog is called Zebedee.")
    provider.reply('{"name": "Zebedee"}', times=2)
    messages = asked(f"{QUESTION} Answer in JSON.")
    plain = sdk(
        lambda c: c.chat.completions.create(
            model="gpt", messages=messages, response_format={"type": "json_object"}
        )
    )
    assert json.loads(plain.choices[0].message.content) == {"name": "Zebedee"}
    assert provider.last.body["response_format"] == {"type": "json_object"}
    parsed = sdk(lambda c: c.chat.completions.parse(model="gpt", messages=messages, response_format=Dog))
    assert parsed.choices[0].message.parsed == Dog(name="Zebedee")
    assert provider.last.body["response_format"]["json_schema"]["name"] == "Dog"
    assert all(BLOCK in request.user_text for request in provider.requests)


def test_several_system_messages(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str
) -> None:
    """System and developer messages, first or between, keep their text, their place and their number."""
    remember(gateway, user, "My dog is called Zebedee.")
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are brief."},
        {"role": "system", "content": "You like  odd   spaces. "},
        {"role": "user", "content": "Hello there, my friend."},
        {"role": "assistant", "content": "Hello."},
        {"role": "system", "content": "Answer in one word."},
        {"role": "user", "content": QUESTION},
    ]
    sdk(lambda c: c.chat.completions.create(model="gpt", messages=messages))
    sent = provider.last.body["messages"]
    assert sent[:-1] == messages[:-1]
    assert sent[-1]["content"].startswith(QUESTION)
    assert BLOCK in sent[-1]["content"]


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_of_chat(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, stream: bool
) -> None:
    """A reasoning model's thoughts reach the client and never memory."""
    provider.reply("Forty-two.", thinking="The user likes a certain novel.")
    answer = sdk(
        lambda c: c.chat.completions.create(
            model="gpt", messages=asked("What is the answer to everything?"), stream=stream
        )
    )
    if stream:
        deltas = [choice.delta for chunk in answer for choice in chunk.choices]
        thoughts = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    else:
        thoughts = answer.choices[0].message.reasoning_content
    assert thoughts == "The user likes a certain novel."
    assert [e["reply_text"] for e in exchanges(gateway, user)] == ["Forty-two."]


@pytest.mark.parametrize("stream", [False, True])
def test_responses_with_memory(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, stream: bool
) -> None:
    """A response comes back as the provider gave it; instructions are untouched, the memory is in `input`."""
    remember(gateway, user, "My dog is called Zebedee.")
    provider.reply("He is called Zebedee.", thinking="I remember that.")
    answer = sdk(
        lambda c: c.responses.create(model="gpt", input=QUESTION, instructions="Be brief.", stream=stream)
    )
    response = answer[-1].response if stream else answer
    assert response.output_text == "He is called Zebedee."
    if stream:
        deltas = "".join(e.delta for e in answer if e.type == "response.output_text.delta")
        assert deltas == "He is called Zebedee."
        assert answer[0].response.id == response.id
    assert provider.last.body["instructions"] == "Be brief."
    assert "messages" not in provider.last.body
    assert sent_text(provider.last.body["input"]).count(BLOCK) == 1
    assert [e["reply_text"] for e in exchanges(gateway, user)] == ["He is called Zebedee."]


def test_structured_response(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str
) -> None:
    """The SDK's own parsing of a structured response works through the gateway."""
    provider.reply('{"name": "Zebedee"}')
    parsed = sdk(lambda c: c.responses.parse(model="gpt", input=QUESTION, text_format=Dog))
    assert parsed.output_parsed == Dog(name="Zebedee")
    assert provider.last.body["text"]["format"]["name"] == "Dog"


@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_of_responses_with_a_chain_that_the_provider_holds(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, stream: bool
) -> None:
    """A tool loop over `previous_response_id` is one exchange; the provider sees the block once."""
    remember(gateway, user, "I plan my trips to Oslo and Lima with care.")
    provider.reply(
        tools=[
            ToolCall(name="weather", arguments={"city": "Oslo"}, id="call_a"),
            ToolCall(name="weather", arguments={"city": "Lima"}, id="call_b"),
        ]
    )
    provider.reply("Cold in Oslo, mild in Lima.")
    common: dict[str, Any] = {"model": "gpt", "tools": [FLAT_WEATHER], "stream": stream}
    question = "What is the weather on my trips to Oslo and Lima?"
    first = sdk(lambda c: c.responses.create(input=question, **common))
    first = first[-1].response if stream else first
    calls = [item for item in first.output if item.type == "function_call"]
    assert [(c.call_id, json.loads(c.arguments)) for c in calls] == [
        ("call_a", {"city": "Oslo"}),
        ("call_b", {"city": "Lima"}),
    ]
    results = [{"type": "function_call_output", "call_id": c.call_id, "output": "12 degrees"} for c in calls]
    second = sdk(lambda c: c.responses.create(input=results, previous_response_id=first.id, **common))
    second = second[-1].response if stream else second
    assert second.output_text == "Cold in Oslo, mild in Lima."
    assert provider.last.body["input"] == results
    assert sent_text(provider.last.context).count(BLOCK) == 1  # type: ignore[arg-type]
    assert [(e["steps"], e["state"], e["user_text"]) for e in exchanges(gateway, user)] == [
        (2, "closed", question)
    ]


def test_a_chain_that_the_provider_holds_is_never_sent_a_memory_twice(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str
) -> None:
    """With `previous_response_id` the session goes on, and what its chain holds already is not sent again."""
    remember(gateway, user, "My dog is called Zebedee.")
    first = sdk(lambda c: c.responses.create(model="gpt", input=QUESTION))
    assert "Zebedee" in sent_text(provider.last.body)
    second = sdk(
        lambda c: c.responses.create(
            model="gpt", input="Tell me my dog's name again, please.", previous_response_id=first.id
        )
    )
    assert "Zebedee" not in sent_text(provider.last.body)
    assert sent_text(provider.last.context).count("Zebedee") == 1  # type: ignore[arg-type]
    remember(gateway, user, "My dog's favourite food is herring.")
    sdk(
        lambda c: c.responses.create(
            model="gpt", input="What is my dog's favourite food?", previous_response_id=second.id
        )
    )
    assert "herring" in sent_text(provider.last.body)
    assert "Zebedee" not in sent_text(provider.last.body)
    assert len({e["session"] for e in exchanges(gateway, user)}) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_completions(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str, stream: bool
) -> None:
    """/v1/completions has no memory unless it is asked for; then the block stands in front of the prompt."""
    remember(gateway, user, "My dog is called Zebedee.")
    provider.reply("Zebedee", times=2)

    def create(**fields: Any) -> Any:
        answer = sdk(
            lambda c: c.completions.create(model="instruct", prompt=QUESTION, stream=stream, **fields)
        )
        return "".join(c.choices[0].text or "" for c in answer) if stream else answer.choices[0].text

    assert create() == "Zebedee"
    assert provider.last.user_text == QUESTION
    assert create(extra_headers={"x-hearth-memory": "on"}) == "Zebedee"
    assert provider.last.user_text.startswith(BLOCK)
    assert provider.last.user_text.endswith(QUESTION)
    assert len(exchanges(gateway, user)) == 1


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"status": 429}, openai.RateLimitError),
        ({"status": 401}, openai.AuthenticationError),
        ({"error": "invalid_request"}, openai.BadRequestError),
        ({"status": 500}, openai.InternalServerError),
    ],
)
def test_a_provider_that_fails_before_the_stream(
    gateway: GatewayProcess,
    provider: ScriptedProvider,
    sdk: Sdk,
    user: str,
    reply: dict[str, Any],
    error: type[openai.APIError],
) -> None:
    """A refusal reaches a program as the SDK's own exception; the exchange is kept as failed."""
    for ask in (
        lambda c: c.chat.completions.create(model="gpt", messages=asked("I keep bees."), stream=True),
        lambda c: c.responses.create(model="gpt", input="I keep bees.", stream=True),
    ):
        provider.reply(**reply, times=3)
        with pytest.raises(error):
            sdk(ask)
        provider.clear()
    assert {e["state"] for e in exchanges(gateway, user)} == {"failed"}


def test_a_provider_that_fails_during_the_stream(
    gateway: GatewayProcess, provider: ScriptedProvider, sdk: Sdk, user: str
) -> None:
    """An error amid a stream is the SDK's exception after the words before it; they are kept as partial."""
    provider.reply("One two three four five six.", fail_after=4)
    with pytest.raises(openai.APIError):
        sdk(lambda c: c.chat.completions.create(model="gpt", messages=asked("Count to six."), stream=True))
    (kept,) = exchanges(gateway, user)
    assert kept["outcome"] == "partial"
    assert kept["reply_text"].startswith("One two")


def test_a_program_that_leaves_amid_a_stream(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """Closing the SDK's stream early leaves a partial exchange, and the provider's stream is given up."""
    provider.reply(chunks=("Once ", "upon ") + ("a time ",) * 100, gap=0.05)
    with openai.OpenAI(**options(gateway, user)) as client:
        stream = client.chat.completions.create(
            model="gpt", messages=asked("Tell a very long story."), stream=True
        )
        for chunk in stream:
            if "upon" in (chunk.choices[0].delta.content or ""):
                break
        stream.close()
    wait_until(lambda: exchanges(gateway, user))
    (kept,) = exchanges(gateway, user)
    assert kept["outcome"] == "partial"
    assert kept["reply_text"].startswith("Once upon")
    wait_until(lambda: provider.last.disconnected)


async def test_many_async_calls_at_once_keep_apart(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """Twelve users who ask at the same time through one client each get their own memory, and only that."""
    names = [f"{user}-{number}" for number in range(12)]
    async with openai.AsyncOpenAI(**options(gateway, user)) as client:

        async def tell(name: str, number: int) -> None:
            await client.chat.completions.create(
                model="gpt",
                messages=[{"role": "user", "content": f"My locker number is {number}{number}7."}],
                extra_headers={"x-hearth-user": name},
            )

        await asyncio.gather(*(tell(name, number) for number, name in enumerate(names, 10)))
        provider.clear()
        provider.answer = lambda request: request.user_text

        async def ask(name: str) -> str:
            reply = await client.chat.completions.create(
                model="gpt",
                messages=[{"role": "user", "content": "What is my locker number?"}],
                extra_headers={"x-hearth-user": name},
            )
            return reply.choices[0].message.content or ""

        heard = await asyncio.gather(*map(ask, names))
    for number, text in enumerate(heard, 10):
        assert f"{number}{number}7" in text
        assert sum(f"{other}{other}7" in text for other in range(10, 22)) == 1
