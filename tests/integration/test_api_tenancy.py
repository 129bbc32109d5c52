"""Tenancy as a property: whatever a key sends, nothing of another tenant or user is shown or changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
