"""What every event log knows of values that were set while a gateway ran: the port `PolicySettings`."""

from __future__ import annotations

import pytest

from hearth.memory.events.kinds import PolicyChanged
from hearth.memory.events.sql_log import SqlLog
from hearth.memory.tiers.layers import Part, Value
from hearth.memory.types import EVERYBODY
from tests.events import START, erase, event


@pytest.fixture(name="log", params=["sqlite_log", "postgres_log"])
def _log(request: pytest.FixtureRequest) -> SqlLog:
    found: SqlLog = request.getfixturevalue(request.param)
    return found


async def put(log: SqlLog, tenant: str, level: Part, whose: str = "", **values: Value | None) -> None:
    named = {name.replace("__", "."): value for name, value in values.items()}
    payload = PolicyChanged(level=level, whose=whose, values=named, by="ops")
    await log.append([event(payload, tenant=tenant, user=EVERYBODY)])


async def test_the_last_value_counts_until_it_is_lifted(log: SqlLog) -> None:
    """By level, whose and name, of the very tenant; each change moves the tenant's position."""
    assert (await log.policy_settings("acme"), await log.policy_changes()) == ([], {})
    await put(log, "acme", "tenant", heat__visit=2.0, facts="off")
    await put(log, "acme", "agent", "quiz", facts="rules")
    await put(log, "rivals", "key", "app", recall__budget_tokens=7)
    before = await log.policy_changes()
    assert before.keys() == {"acme", "rivals"}
    found = await log.policy_settings("acme")
    assert [(one.level, one.whose, one.name, one.value) for one in found] == [
        ("agent", "quiz", "facts", "rules"),
        ("tenant", "", "facts", "off"),
        ("tenant", "", "heat.visit", 2.0),
    ]
    assert {(one.set_by, one.set_at, one.source) for one in found} == {
        ("ops", START, "tenant"),
        ("ops", START, "agent"),
    }
    await put(log, "acme", "tenant", heat__visit=None, facts="rules")
    after = await log.policy_changes()
    assert after["acme"] > before["acme"]
    assert after["rivals"] == before["rivals"]
    assert [(one.level, one.value) for one in await log.policy_settings("acme")] == [
        ("agent", "rules"),
        ("tenant", "rules"),
    ]
    kept = await log.policy_settings("acme")
    await log.rebuild_views()
    assert await log.policy_settings("acme") == kept
    assert await log.policy_changes() == after


async def test_an_erasure_takes_them(log: SqlLog) -> None:
    """Of all that is a tenant's own, and of no user of it."""
    await put(log, "acme", "tenant", facts="off")
    await log.append([erase(2)])
    assert len(await log.policy_settings("acme")) == 1
    await log.append([erase(2, user=EVERYBODY)])
    assert (await log.policy_settings("acme"), await log.policy_changes()) == ([], {})
