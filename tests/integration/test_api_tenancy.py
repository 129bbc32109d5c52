"""Tenancy as a property: whatever a key sends, nothing of another tenant or user comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api import Api, open_api

USERS = ("alice", "bob", "a", "a*", "acme/alice", "rivals/alice", "用户")
TENANTS = {"app": "acme", "rival": "rivals"}


class World:
    """Two tenants with the same users, whose every text names its tenant and user."""

    def __init__(self, home: Path) -> None:
        self.runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self.api: Api = self.runner.run(self._stack.enter_async_context(open_api(home)))
        self.ids: dict[str, list[str]] = {"memories": [], "exchanges": [], "recalls": []}
        self.runner.run(self._fill())

    async def _fill(self) -> None:
        for key, tenant in TENANTS.items():
            async with self.api.client(key) as client:
                for user in USERS:
                    text = f"<{tenant}|{user}> keeps bees"
                    new = {"text": text, "user": user, "tags": ["bees"], "metadata": {"n": 1}}
                    self.ids["memories"].append((await client.post("/memories", json=new)).json()["id"])
                    turns = [{"role": "user", "content": text, "at": "2026-01-01T00:00:00Z", "session": "s"}]
                    await client.post("/import", json={"turns": turns}, params={"user": user})
                    await self.api.engine.drain()
                    found = (await client.post("/recall", json={"query": "bees", "user": user})).json()
                    self.ids["recalls"].append(found["id"])
                    listed = (await client.get("/exchanges", params={"user": user})).json()["items"]
                    self.ids["exchanges"] += [exchange["id"] for exchange in listed]

    def close(self) -> None:
        """Stop everything."""
        self.runner.run(self._stack.aclose())
        self.runner.close()


@pytest.fixture(scope="module", name="world")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("tenancy"))
    yield world
    world.close()


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "words": st.sampled_from(["bees", "rivals", "acme", "%", "' OR 1=1 --"]),
        "tags": st.sampled_from([["bees"], ["bees", "bees"], ["%"]]),
        "types": st.sampled_from([["fact"], ["fact", "persona"]]),
        "agent": st.sampled_from(["default", "rivals"]),
        "session": st.sampled_from(["s", ""]),
    },
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str, dict[str, Any], dict[str, Any] | None]:
    """(method, path with an index into the known ids, parameters, body) of a call that only reads."""
    user = draw(st.one_of(st.sampled_from(USERS), st.text(min_size=1, max_size=5)))
    filters = draw(FILTERS)
    kinds = ("memories", "exchanges", "sessions", "search", "recall", "id", "tiers", "stories")
    kind = draw(st.sampled_from(kinds))
    if kind == "memories":
        return "GET", "/memories", {**filters, "user": user, "metadata": '{"n": 1}'}, None
    if kind in ("exchanges", "sessions", "tiers"):
        return "GET", f"/{kind}", {"user": user}, None
    if kind == "search":
        return "POST", "/memories/search", {}, {**filters, "query": "rivals acme bees", "user": user}
    if kind == "recall":
        return "POST", "/recall", {}, {"query": "rivals acme bees", "user": user}
    of = draw(st.sampled_from(["memories", "exchanges", *(["recalls"] if kind == "id" else [])]))
    if kind == "stories":
        return "GET", f"/{of}/{draw(st.integers(0, len(USERS) * 2 - 1))}/story", {"user": user}, None
    return "GET", f"/{of}/{draw(st.integers(0, len(USERS) * 2 - 1))}", {"user": user}, None


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(key=st.sampled_from(sorted(TENANTS)), call=calls())
def test_no_call_shows_anything_of_another_tenant_or_user(
    world: World, key: str, call: tuple[str, str, dict[str, Any], dict[str, Any] | None]
) -> None:
    """Lists, search, recall, and what any id gives, are the named user's texts in the key's tenant alone."""
    method, path, params, body = call
    folder, index, story = (*path[1:].split("/"), "", "")[:3]
    if index.isdigit():
        path = f"/{'stories' if story else folder}/{world.ids[folder][int(index)]}"

    async def send() -> Any:
        async with world.api.client(key) as client:
            return await client.request(method, path, params=params, json=body)

    answer = world.runner.run(send())
    user = (params.get("user") or (body or {}).get("user") or "").strip()
    assert answer.status_code in (200, 400, 404, 422), answer.text
    if answer.status_code == 200:
        if path == "/exchanges" and user in USERS:
            assert f"<{TENANTS[key]}|{user}>" in answer.text
        shown = answer.text.replace(f"<{TENANTS[key]}|{user}>", "")
        assert "<acme|" not in shown
        assert "<rivals|" not in shown
