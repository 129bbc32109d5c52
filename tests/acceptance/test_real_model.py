"""A real small model behind the gateway, on each main route, plain and streamed: recalled for and captured.

No test here asserts what the model says.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from hearth.gateway.demo_model import MODEL, LlamaServer
from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import APP, GatewayProcess, document, start, stop, wait_until
from tests.acceptance.talk import PATHS, Answer, RouteName, ask, exchanges, remember, sessions

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="the extra `demo` is not installed"
)

ROUTES: tuple[RouteName, ...] = ("chat", "messages", "responses")
QUESTION = "What is the name of my dog?"
MOST = 12
"""Tokens of a reply; enough to be cut off, which no test minds."""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, _provider: ScriptedProvider) -> Iterator[GatewayProcess]:
    """A gateway in front of the demo model, which speaks chat alone as far as LiteLLM is told."""
    with LlamaServer(threads=1, context=4096, slots=1) as model:
        home = tmp_path_factory.mktemp("real") / "data"
        served = {
            "model": f"openai/{MODEL}",
            "api_base": f"{model.url}/v1",
            "api_key": "none",
            "use_chat_completions_api": True,
        }
        config: dict[str, Any] = document(_provider, home)
        config["model_list"] = [{"model_name": MODEL, "litellm_params": served}]
        # the model takes the processor that recall would need within its usual deadline
        config["hearth"]["recall"] = {"deadline_ms": 5000}
        gateway = start(config, home)
        yield gateway
        assert stop(gateway) == 0


def say(gateway: GatewayProcess, user: str, text: str, *, route: RouteName, stream: bool = False) -> Answer:
    """One question to the model, which answers the same each time."""
    most = {"max_output_tokens" if route == "responses" else "max_tokens": MOST}
    answer = ask(gateway, user, text, route=route, stream=stream, model=MODEL, temperature=0, **most)
    assert answer.status == 200, answer.raw
    return answer


def sdk_options(user: str) -> dict[str, Any]:
    """What both SDKs are set up with beside their address."""
    return {"api_key": APP, "default_headers": {"x-hearth-user": user}, "timeout": 60}


def counted(gateway: GatewayProcess, user: str) -> list[dict[str, Any]]:
    """The user's exchanges once the tokens of each are known: for a stream of chat a moment after it."""
    wait_until(lambda: all(exchange["usage"] for exchange in exchanges(gateway, user)))
    return exchanges(gateway, user)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_a_real_model_answers_with_memory_and_is_captured(
    real: GatewayProcess, user: str, route: RouteName, stream: bool
) -> None:
    """A reply is kept, with the memory named as used and the model's own counts."""
    memory = remember(real, user, "My dog is called Zebedee.")
    answer = say(real, user, QUESTION, route=route, stream=stream)
    assert (answer.recalled, answer.headers["x-hearth-status"]) == (1, "ok")
    (kept,) = counted(real, user)
    assert kept["user_text"] == QUESTION
    assert kept["reply_text"]
    assert (kept["outcome"], kept["injected"]) == ("complete", [memory])
    assert kept["usage"]["input"] > kept["usage"]["memory"] > kept["usage"]["output"] > 0


def test_what_was_said_to_a_real_model_is_known_in_the_next_conversation(
    real: GatewayProcess, user: str
) -> None:
    """A statement streamed on one route is recalled on another, in a session of its own."""
    say(real, user, "My sister Ludmila lives in Valparaíso.", route="responses", stream=True)
    answer = say(real, user, "Where does my sister Ludmila live?", route="chat")
    assert answer.recalled == 1
    assert len(sessions(real, user)) == 2


def test_the_sdks_read_a_real_models_streams(real: GatewayProcess, user: str) -> None:
    """Both SDKs assemble, from a real model's stream, the text that memory keeps."""
    options = sdk_options(user)
    said: dict[str, str] = {}
    with openai.OpenAI(base_url=f"{real.url}/v1", **options) as client:
        chunks = client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Name a colour."}],
            stream=True,
            max_tokens=MOST,
        )
        said["Name a colour."] = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        events = client.responses.create(
            model=MODEL, input="Name a river.", stream=True, max_output_tokens=MOST
        )
        said["Name a river."] = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    with (
        anthropic.Anthropic(base_url=real.url, **options) as other,
        other.messages.stream(
            model=MODEL,
            max_tokens=MOST,
            messages=[{"role": "user", "content": "Name a mountain."}],
        ) as stream,
    ):
        said["Name a mountain."] = stream.get_final_text()
    kept = {exchange["user_text"]: exchange["reply_text"] for exchange in exchanges(real, user)}
    assert kept == {question: text.strip() for question, text in said.items()}


def test_a_real_model_goes_on_with_a_chain_of_responses(real: GatewayProcess, user: str) -> None:
    """The next turn of a chain has the earlier ones in its prompt: its tokens grow, its session stays."""
    most: dict[str, Any] = {"model": MODEL, "max_output_tokens": MOST, "temperature": 0}
    with openai.OpenAI(base_url=f"{real.url}/v1", **sdk_options(user)) as client:
        one = client.responses.create(input="My boat is called Ondine. " * 8, **most)
        two = client.responses.create(input="And now?", previous_response_id=one.id, **most)
    assert one.usage
    assert two.usage
    assert two.usage.input_tokens > one.usage.input_tokens
    assert len(sessions(real, user)) == 1


def test_a_client_that_leaves_a_real_models_stream_leaves_a_partial_exchange(
    real: GatewayProcess, user: str
) -> None:
    """What the model had said is kept, marked as partial."""
    messages = [{"role": "user", "content": "Tell a very long story about the sea."}]
    sent = {"model": MODEL, "messages": messages, "stream": True, "max_tokens": 1000, "temperature": 0}
    with (
        real.client(APP, **{"x-hearth-user": user}) as client,
        client.stream("POST", PATHS["chat"], json=sent) as reply,
    ):
        heard = b""
        for chunk in reply.iter_bytes():
            heard += chunk
            if heard.count(b"data:") > 10:
                break
    wait_until(lambda: exchanges(real, user))
    (kept,) = exchanges(real, user)
    assert kept["outcome"] == "partial"
    assert kept["reply_text"]
