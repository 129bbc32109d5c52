"""What is logged: ids, numbers and names of parts, and nothing that anybody said."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tenancy.world import World

SAID = "zebrafish-4711-quartz"
ANSWER = "Very well."


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


def test_nothing_that_is_said_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """At the level DEBUG of all of Hearth's loggers, over every kind of request, refused ones among them."""
    caplog.set_level(logging.DEBUG, logger="hearth")
    caplog.clear()
    named = {"authorization": "Bearer sk-hearth-test-alice"}
    message = [{"role": "user", "content": f"My fish is a {SAID}."}]

    async def converse() -> None:
        api = "/memory/v1"
        for _ in range(2):
            await world.ask("alice", "POST", "/v1/chat/completions", json={"model": "m", "messages": message})
            await world.ask("alice", "POST", "/v1/messages", json={"model": "m", "messages": message})
        await world.ask("alice", "POST", "/v1/responses", json={"model": "m", "input": f"A {SAID}?"})
        made = await world.ask("alice", "POST", f"{api}/memories", json={"text": f"A {SAID}."})
        await world.ask("alice", "POST", f"{api}/memories/search", json={"query": SAID})
        await world.ask("alice", "POST", f"{api}/recall", json={"query": SAID})
        await world.api.engine.drain()
        for body in (f'{{"text": "{SAID}"', f'{{"txt": "{SAID}"}}', f'{{"text": ["{SAID}"]}}', SAID):
            sent = {"content": body.encode(), "headers": {**named, "content-type": "application/json"}}
            refused = await world.send("POST", f"{api}/memories", **sent)
            assert refused.status_code in (400, 422)
        sent = {"content": SAID.encode(), "headers": {**named, "content-type": "application/json"}}
        assert (await world.send("POST", "/v1/chat/completions", **sent)).status_code == 400
        await world.ask("alice", "DELETE", f"{api}/memories/{made.json()['id']}")
        await world.api.engine.drain()

    world.runner.run(converse())
    assert any(SAID.encode() in prompt for prompt in world.models.prompts)
    ours = [record for record in caplog.records if record.name.startswith("hearth")]
    told = [logging.Formatter("%(message)s").format(record) for record in ours]
    assert not [line for line in told if SAID in line or ANSWER in line]


def test_an_error_that_nobody_expected_is_logged_without_the_words_of_the_request(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its traceback names the place; the answer has no part of it."""

    async def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a part of Hearth broke")

    monkeypatch.setattr(world.api.engine, "remember", broken)
    headers = {"authorization": "Bearer sk-hearth-test-alice"}
    sent = world.send("POST", "/memory/v1/memories", json={"text": SAID}, headers=headers)
    answer = world.runner.run(sent)
    assert (answer.status_code, answer.json()["type"]) == (500, "urn:hearth:problem:internal")
    assert "a part of Hearth broke" in caplog.text
    assert SAID not in caplog.text
    assert "broke" not in answer.text
