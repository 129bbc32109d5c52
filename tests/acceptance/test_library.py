"""The engine as a library: one import, one context manager, no gateway."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from hearth.memory import (
    BadInput,
    Engine,
    LogUnavailable,
    MemoryFilter,
    NotFound,
    Page,
    Scope,
    attach,
    open_memory,
)
from hearth.memory.recall.block import contains_block
from hearth.testing.provider import ScriptedProvider

EXAMPLES = Path(__file__).parents[2] / "examples"
ALICE = Scope(tenant="acme", user="alice")


@pytest_asyncio.fixture(name="memory", scope="module", loop_scope="module")
async def _memory(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Engine]:
    async with open_memory(tmp_path_factory.mktemp("library") / "memory") as memory:
        yield memory


@pytest.fixture(name="scope")
def _scope(request: pytest.FixtureRequest) -> Scope:
    """A user whom no other test has."""
    return Scope(tenant="acme", user=request.node.name)


@pytest.fixture(name="provider")
def _provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_next_conversation_knows_what_was_captured_in_this_one(
    memory: Engine, scope: Scope
) -> None:
    """What one session said is recalled in another at once, and only for the user who said it."""
    await memory.capture(scope, "My sister Ludmila lives in Valparaíso.", "Noted.")
    found = await memory.recall(scope, "Where does my sister live?")
    assert "Valparaíso" in found.block.text
    assert found.status == "ok"
    stranger = await memory.recall(Scope(tenant="acme", user="bob"), "Where does my sister live?")
    assert stranger.block.text == ""


async def test_a_fact_is_found_by_what_it_is_about_in_words_that_it_lacks(
    memory: Engine, scope: Scope
) -> None:
    """Nothing of `I'm a hydrologist` is in `What is my job?`, and other facts stand behind it."""
    for said in (
        "I'm a hydrologist.",
        "My daughter Lena turned six in March.",
        "I'm allergic to penicillin.",
    ):
        await memory.capture(scope, said, "Noted.")
    await memory.drain()
    for question in ("What is my job?", "Which occupation do I have?", "Was bin ich von Beruf?"):
        found = await memory.recall(scope, question)
        first = found.scored[0]
        assert (getattr(first.record, "text", ""), first.verdict) == ("I'm a hydrologist.", "in")
        assert first.signals["coverage"] > 0 or question.startswith("Was")


async def test_nothing_of_the_history_is_recalled_again(memory: Engine, scope: Scope) -> None:
    """What the prompt already holds stays out of the block."""
    said, reply = "My sister Ludmila lives in Valparaíso.", "Noted."
    await memory.capture(scope, said, reply)
    found = await memory.recall(scope, "Where does my sister live?", history=[said, reply])
    assert found.block.text == ""


async def test_remember_search_and_forget(memory: Engine, scope: Scope) -> None:
    """A memory added by hand is found with its metadata, and is gone once it is forgotten."""
    made = await memory.remember(scope, "Allergic to kiwi.", tags=["health"], metadata={"by": "doctor"})
    await memory.drain()
    (hit,) = await memory.search(scope, "kiwi", where=MemoryFilter(tags=("health",)))
    assert hit.record == made
    assert (await memory.forget(scope, made.id)).done
    assert await memory.search(scope, "kiwi") == []
    assert (await memory.recall(scope, "What am I allergic to?")).block.text == ""
    with pytest.raises(NotFound):
        await memory.forget(scope, made.id)


async def test_exchanges_of_a_session_follow_one_another(memory: Engine, scope: Scope) -> None:
    """Two captures with one session are two exchanges of it; without a session each has its own."""
    chat = Scope(tenant="acme", user=scope.user, session="chat-1")
    first = await memory.capture(chat, "I keep bees.", "Lovely.")
    second = await memory.capture(chat, "They are black ones.", "Rare.")
    alone = await memory.capture(scope, "I keep bees.", "Lovely.")
    assert (first.scope.session, second.parent) == ("chat-1", first.exchange)
    assert alone.scope.session not in ("", "chat-1")
    assert alone.parent is None
    kept = await memory.exchanges("acme", scope.user, session="chat-1")
    assert [exchange.user_text for exchange in kept] == ["They are black ones.", "I keep bees."]


async def test_a_block_is_never_captured(memory: Engine, scope: Scope) -> None:
    """Of a whole prompt and a reply with visible reasoning the words alone are stored."""
    await memory.capture(scope, "My dog is called Zebedee.", "Noted.")
    found = await memory.recall(scope, "What is my dog called?")
    assert found.block.items
    prompt = attach("What is my dog called?", found.block.text)
    opened = await memory.capture(scope, prompt, "<think>the block says it</think>\nZebedee.", recall=found)
    kept = await memory.exchange("acme", scope.user, opened.exchange)
    assert (kept.user_text, kept.reply_text) == ("What is my dog called?", "Zebedee.")
    assert kept.injected == found.block.items
    assert not any(contains_block(page.user_text) for page in await _pages(memory, scope))


async def test_secrets_are_masked(memory: Engine, scope: Scope) -> None:
    """A key in a captured text or in a memory reaches no store."""
    secret = "sk-test-FAKE0123456789abcdef"
    await memory.capture(scope, f"My key is {secret} and I use Postgres.", "Careful.")
    await memory.remember(scope, f"The key is {secret}.")
    await memory.drain()
    hits = await memory.search(scope, "key Postgres")
    assert {type(hit.record).__name__ for hit in hits} == {"Page", "Memory"}
    assert secret not in repr(hits)


async def test_an_empty_exchange_is_refused(memory: Engine, scope: Scope) -> None:
    """No words, nothing to remember, nothing written."""
    with pytest.raises(BadInput):
        await memory.capture(scope, " \n", "Hello?")
    assert await memory.exchanges("acme", scope.user) == []


async def test_forgetting_an_exchange_takes_its_page_away(memory: Engine, scope: Scope) -> None:
    """A page that a search shows can be forgotten by its id."""
    await memory.capture(scope, "My sister Ludmila lives in Valparaíso.", "Noted.")
    await memory.drain()
    where = MemoryFilter(types=("page",))
    (hit,) = await memory.search(scope, "Where does my sister live?", where=where)
    assert isinstance(hit.record, Page)
    await memory.forget_exchange(scope, hit.record.id)
    assert (await memory.recall(scope, "Where does my sister live?")).block.text == ""


async def test_memory_survives_and_belongs_to_one_program_at_a_time(tmp_path: Path) -> None:
    """Opened again, the folder holds what was captured; a second opening at the same time is refused."""
    async with open_memory(tmp_path) as memory:
        await memory.capture(ALICE, "My dog is called Zebedee.", "Noted.")
        with pytest.raises(LogUnavailable):
            async with open_memory(tmp_path):
                pass
    async with open_memory(tmp_path) as memory:
        assert "Zebedee" in (await memory.recall(ALICE, "What is my dog called?")).block.text


async def test_example_with_openai(memory: Engine, scope: Scope, provider: ScriptedProvider) -> None:
    """The second conversation's prompt holds what the first one said, once; history stays as it was."""
    example = _example("with_openai")
    async with AsyncOpenAI(base_url=provider.openai_url, api_key="k", max_retries=0) as client:
        await _two_conversations(example, memory, scope, client, provider)


async def test_example_with_anthropic(memory: Engine, scope: Scope, provider: ScriptedProvider) -> None:
    """The second conversation's prompt holds what the first one said, once; history stays as it was."""
    example = _example("with_anthropic")
    async with AsyncAnthropic(base_url=provider.url, api_key="k", max_retries=0) as client:
        await _two_conversations(example, memory, scope, client, provider)


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("with_openai", ("OPENAI_BASE_URL", "OPENAI_API_KEY")),
        ("with_anthropic", ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")),
    ],
)
async def test_example_as_a_program(
    provider: ScriptedProvider, tmp_path: Path, name: str, variables: tuple[str, str]
) -> None:
    """Run twice on one terminal, it remembers in the second run what was typed in the first."""
    url = provider.openai_url if name == "with_openai" else provider.url
    environment = {**os.environ, variables[0]: url, variables[1]: "k"}
    for number, line in enumerate(("My dog is called Zebedee.", "What is my dog called?")):
        provider.reply(f"reply {number}")
        said = await asyncio.to_thread(_run_example, name, f"{line}\n\n", tmp_path, environment)
        assert f"model: reply {number}" in said
    assert "Zebedee" in str(provider.last.body["messages"][-1]["content"])


async def _two_conversations(
    example: ModuleType, memory: Engine, scope: Scope, client: object, provider: ScriptedProvider
) -> None:
    first = Scope(tenant="acme", user=scope.user, session="monday")
    history: list[dict[str, str]] = []
    provider.reply("What a name!")
    assert await example.turn(memory, first, client, history, "My dog is called Zebedee.") == "What a name!"
    await example.turn(memory, first, client, history, "What is my dog called?")
    assert str(provider.last.body).count("Zebedee") == 1, "it stands in the history already"
    second = Scope(tenant="acme", user=scope.user, session="tuesday")
    later: list[dict[str, str]] = []
    await example.turn(memory, second, client, later, "What is my dog called?")
    (sent,) = provider.last.body["messages"]
    assert sent["content"].startswith("What is my dog called?")
    assert contains_block(sent["content"])
    assert sent["content"].count("Zebedee") == 1
    assert later[0] == {"role": "user", "content": "What is my dog called?"}


async def _pages(memory: Engine, scope: Scope) -> list[Page]:
    return list((await memory.view(scope)).pages)


def _run_example(name: str, typed: str, folder: Path, environment: dict[str, str]) -> str:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), "alice"]
    ran = subprocess.run(
        command, input=typed, capture_output=True, text=True, cwd=folder, env=environment, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
