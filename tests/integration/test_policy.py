"""The policy over REST: set for a tenant, an agent or a key without a restart, for the key's tenant alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hearth.config.load import load_settings
from hearth.gateway.budgets import budget_of
from hearth.gateway.file_policy import FilePolicy
from hearth.gateway.keys import key_table
from hearth.gateway.life import settled_by
from hearth.memory.errors import LogUnavailable
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.policies import FileAccount, Policies
from hearth.memory.tiers.life import LifePolicy
from hearth.memory.types import Scope
from tests.api import Api, open_api
from tests.events import ManualClock

SETTINGS = {"tenants": {"acme": {"life": {"heat": {"visit": 3.0}}, "budget_tokens": 800}}}


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=ManualClock(), settings=SETTINGS, extractor=RuleExtractor()) as api:
        yield api


async def call(api: Api, method: str, key: str = "admin", status: int = 200, **sent: Any) -> Any:
    async with api.client(key) as client:
        answer = await client.request(method, "/policy", **sent)
    assert answer.status_code == status, answer.text
    return answer.json()


async def put(api: Api, values: dict[str, Any], status: int = 200, **whose: str) -> Any:
    return await call(api, "PUT", status=status, json={"values": values, **whose})


def value(found: Any, name: str) -> tuple[Any, str, str | None]:
    one = next(one for one in found["items"] if one["name"] == name)
    return one["value"], one["source"], one["set_by"]


async def test_a_value_is_set_and_lifted_again(api: Api) -> None:
    """What is set goes before the file at the same level; once it is lifted the file counts again."""
    assert value(await call(api, "GET"), "heat.visit") == (3.0, "tenant", None)
    found = await put(api, {"heat.visit": 2})
    assert value(found, "heat.visit") == (2.0, "tenant", "admin")
    assert found["items"][0]["set_at"] is None
    assert [(one["name"], one["level"], one["set_by"]) for one in found["set"]] == [
        ("heat.visit", "tenant", "admin")
    ]
    events = await api.engine.log.read(kinds=("policy.changed",))
    await put(api, {"heat.visit": 2.0})
    assert await api.engine.log.read(kinds=("policy.changed",)) == events, "nothing changed"
    assert value(await call(api, "GET", key="rival"), "heat.visit") == (1.0, "Hearth", None)
    found = await call(api, "DELETE", params={"name": "heat.visit"})
    assert value(found, "heat.visit") == (3.0, "tenant", None)
    assert found["set"] == []


async def test_each_process_sees_what_another_one_set(api: Api) -> None:
    """Over the same log, at its next look; and decides nothing before its first."""
    hearth = api.gateway.settings.hearth
    other = Policies(log=api.engine.log, clock=api.engine.clock, own=LifePolicy(), settled=settled_by(hearth))
    with pytest.raises(LogUnavailable):
        other.sure("acme")
    await put(api, {"limits.segments": 7})
    await other.look()
    assert other.sure("acme").limits.segments == 7
    assert other.sure("rivals").limits.segments == 2000
    await call(api, "DELETE", params={"name": ["limits.segments", "facts"]})
    assert other.of("acme").limits.segments == 7
    await other.look()
    assert other.of("acme").limits.segments == 2000


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not met():  # noqa: ASYNC110 - what it waits for tells nobody
            await asyncio.sleep(0.05)


async def test_a_changed_file_counts_in_a_running_process(api: Api, tmp_path: Path) -> None:
    """At the next look at it; what was set while the gateway ran still goes before it."""
    file = tmp_path / "hearth.yaml"
    file.write_text("hearth: {keyless: true, life: {limits: {segments: 9, days: 8}}}")
    told = FilePolicy(load_settings(file, {}))
    policies = Policies(log=api.engine.log, clock=api.engine.clock, own=LifePolicy(), settled=told)
    await put(api, {"limits.days": 5})
    following = asyncio.create_task(policies.follow())
    try:
        await until(lambda: (policies.of("acme").limits.segments, policies.of("acme").limits.days) == (9, 5))
        file.write_text("hearth: {keyless: true, life: {limits: {segments: 11, days: 7}}}")
        await until(lambda: policies.of("acme").limits.segments == 11)
        assert (policies.of("acme").limits.days, policies.of("rivals").limits.days) == (5, 7)
        file.write_text("hearth: {life: broken}")
        await until(lambda: policies.file() == FileAccount(unusable=True))
        assert policies.of("acme").limits.segments == 11
    finally:
        following.cancel()


async def test_facts_are_off_for_an_agent_or_a_key(api: Api) -> None:
    """From the next exchange on, and for no other one."""

    async def read_from(text: str, agent: str) -> int:
        scope = Scope(tenant="acme", user="alice", agent=agent)
        await api.engine.capture(scope, text, "I see.")
        await api.engine.drain()
        return await api.engine.count_memories("acme", "alice")

    assert await read_from("I live in Bern.", "quiz") == 1
    await put(api, {"facts": "off"}, agent="quiz")
    assert await read_from("My dog is called Rex.", "quiz") == 1
    assert await read_from("I work at Acme.", "default") == 2
    await put(api, {"facts": "off"}, key="app")
    assert api.engine.policies.of("acme", "quiz", "bob").facts == "off"
    assert api.engine.policies.of("acme", "", "app").facts == "off"
    assert api.engine.policies.of("acme", "", "bob").facts == "rules"


async def test_a_budget_holds_for_the_calls_of_whom_it_is_set_for(api: Api) -> None:
    """It is also the most that a call can ask for; the key's goes before the agent's and the tenant's."""
    keys = {key.name: key for key in key_table(api.gateway.settings.hearth)}
    gateway, app = api.gateway, keys["app"]
    assert (budget_of(gateway, app, "default").tokens, budget_of(gateway, app, "default").most) == (800, 800)
    assert budget_of(gateway, keys["rival"], "default").most == 8192
    await put(api, {"recall.budget_tokens": 500}, agent="quiz")
    await put(api, {"recall.budget_tokens": 0, "recall.daily_memory_tokens": 9}, key="app")
    assert budget_of(gateway, app, "quiz").tokens == 0
    assert budget_of(gateway, app, "quiz").daily == 9
    assert (budget_of(gateway, keys["bob"], "quiz").tokens, budget_of(gateway, keys["bob"], "quiz").by) == (
        500,
        "agent",
    )
    async with api.client("bob", **{"x-hearth-agent": "quiz"}) as client:
        answer = await client.post("/recall", json={"query": "Where?", "budget": 501})
    assert (answer.status_code, "at most 500" in answer.text) == (422, True)


async def test_what_can_not_be_set_names_field_and_value(api: Api) -> None:
    """And nothing of the request is set."""
    told = await put(api, {"facts": "off", "limits.segments": 3}, status=422, agent="quiz")
    assert told["errors"][0]["field"] == "limits.segments"
    assert "for the tenant, not for one agent" in told["detail"]
    told = await put(api, {"heat.visit": -1}, status=422)
    assert "heat.visit: got -1, expected" in told["detail"]
    await put(api, {"facts": "off"}, status=422, key="rival")
    await put(api, {"facts": "off"}, status=422, key="app", agent="quiz")
    await put(api, {}, status=422)
    told = await call(api, "DELETE", status=422, params={"name": "heat.vist"})
    assert "did you mean `heat.visit`?" in told["detail"]
    assert (await call(api, "GET"))["set"] == []


async def test_a_key_reads_its_own_policy_and_an_admin_sets_it(api: Api) -> None:
    """Of its tenant alone, its own key's or no key's; the whole tenant's is an administrator's to see."""
    await put(api, {"recall.budget_tokens": 1}, key="crm")
    await put(api, {"recall.budget_tokens": 2}, key="app")
    found = await call(api, "GET", key="app", params={"key": "app"})
    assert value(found, "recall.budget_tokens") == (2, "key", "admin")
    assert [one["whose"] for one in found["set"]] == ["app"]
    assert (await call(api, "GET", key="app"))["set"] == []
    await call(api, "GET", key="app", status=403, params={"key": "crm"})
    assert value(await call(api, "GET", params={"key": "crm"}), "recall.budget_tokens")[0] == 1
    assert (await call(api, "GET", key="rival-admin"))["set"] == []
    await call(api, "GET", key="rival-admin", status=422, params={"key": "app"})
    for method, sent in (
        ("PUT", {"json": {"values": {"facts": "off"}}}),
        ("DELETE", {"params": {"name": "facts"}}),
    ):
        await call(api, method, key="app", status=403, **sent)
