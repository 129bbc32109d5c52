"""Tenancy as a property: whatever a key sends, nothing of another tenant or user is shown or changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api import secret
from tests.tenancy.attempts import Attempt
from tests.tenancy.judge import attack, faults
from tests.tenancy.world import QUESTION, Owner, World

ATTEMPTS = 400
"""`benchmarks/tenancy.py` makes as many as one likes."""


@pytest.fixture(scope="module", name="world")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("tenancy"))
    yield world
    world.close()


def test_no_request_reaches_another_tenant_or_user(world: World) -> None:
    """Random requests to every route of the API and of models, imports and commands: no reply and no prompt
    has a mark of another, no event is another's, and the other tenant is byte for byte what it was.
    """
    before = world.runner.run(world.kept())
    tally = attack(world, 8, ATTEMPTS)
    assert not tally.faults
    assert world.runner.run(world.kept()) == before
    assert tally.showed > ATTEMPTS / 20, "what nobody is shown proves nothing"
    assert tally.wrote > ATTEMPTS / 20


def test_no_route_shows_an_isolated_agent_what_the_user_has_with_others(world: World) -> None:
    """Every route of the API that takes a question or none, with every id of the user's, and a model's; in
    sessions that both have, and whatever was said by other keys to an agent of its name.
    """
    own, others = Owner("acme", "alice", "hermit"), Owner("acme", "alice")
    named = {"x-hearth-agent": "hermit"}
    text = f"I keep {others.mark} with the bees in the old vault, and hermits know."
    said = [{"role": "user", "content": text, "at": "2026-01-02T00:00:00Z", "session": "s"}]

    async def seen() -> tuple[list[str], bytes]:
        await world.ask("alice", "POST", "/memory/v1/memories", json={"text": text}, headers=named)
        await world.ask("alice", "POST", "/memory/v1/import", json={"turns": said}, headers=named)
        await world.api.engine.drain()
        ids = await _ids(world)
        shown = b""
        faults = []
        for method, path, sent in _questions(world, ids):
            answer = await world.send(
                method, path, headers={"authorization": f"Bearer {secret('hermit')}"}, **sent
            )
            assert answer.status_code < 500, (path, answer.text)
            shown += answer.content
            faults += [path] if others in world.marks(answer.content) else []
        return faults, shown

    world.models.prompts.clear()
    faults, shown = world.runner.run(seen())
    assert not faults
    assert own in world.marks(shown), "what is shown nothing proves nothing"
    prompts = b"".join(world.models.prompts)
    assert own in world.marks(prompts)
    assert others not in world.marks(prompts)


async def _ids(world: World) -> list[str]:
    """Of what the user has with all agents."""
    found: list[str] = []
    for path in ("memories", "exchanges", "events"):
        listed = await world.ask("alice", "GET", f"/memory/v1/{path}", params={"limit": 200})
        found += [item["id"] for item in listed.json()["items"]]
    tiers = await world.ask("alice", "GET", "/memory/v1/tiers")
    found += [item["id"] for item in tiers.json()["mid_term"]["items"]]
    recalled = await world.ask("alice", "POST", "/memory/v1/recall", json={"query": QUESTION})
    return [*found, recalled.json()["id"]]


def _questions(world: World, ids: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    asked = {"query": QUESTION, "session": "s"}
    for path, methods in world.document["paths"].items():
        if "get" not in methods:
            continue
        of = ["s"] if "/sessions/" in path else ids
        places = [path.replace("{id}", id) for id in of] if "{id}" in path else [path]
        needed = {"since": "2025-01-01T00:00:00Z"} if path.endswith("/diff") else {}
        for place in places:
            yield "GET", f"/memory{place}", {"params": needed}
    for path in ("memories/search", "recall"):
        yield "POST", f"/memory/v1/{path}", {"json": asked}
        yield "POST", f"/memory/v1/{path}", {"json": {**asked, "as_of": "2026-11-01T00:00:00Z"}}
    messages = [{"role": "user", "content": QUESTION}]
    yield "POST", "/v1/chat/completions", {"json": {"model": "m", "messages": messages}}


def test_a_gateway_that_mixes_users_up_would_be_seen(world: World) -> None:
    """Another tenant's list, another user's prompt and another user's event are each told as a fault."""
    key = world.keys["app"]
    other = Owner("rivals", "alice")
    assert other.mark in world.files["alice"].decode()
    answer = world.runner.run(world.ask("rival", "GET", "/memory/v1/memories", params={"user": "alice"}))
    attempt = Attempt(key.name, "GET", "/memory/v1/memories", ("alice",), {})
    assert list(world.marks(answer.content)) == [other]
    assert list(faults(world, attempt, answer, [other], [])) == [f"it was shown what is of {other}"]
    asked = {"json": {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "user": "bob"}}
    world.models.prompts.clear()
    world.runner.run(world.ask("app", "POST", "/v1/chat/completions", **asked))
    assert Owner("acme", "bob") in world.marks(world.models.prompts[0])
    events = world.runner.run(world.happened())
    assert "it wrote step.captured for bob of acme" in faults(world, attempt, answer, [], events)
