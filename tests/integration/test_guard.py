"""The boundary between a call and the stores that it asks: late, broken, or no longer waited for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hearth.memory.engine import Engine
from hearth.memory.errors import StoreUnavailable
from hearth.memory.ports import SearchRequest
from hearth.memory.types import Candidate, Page, Query, Scope, SearchResult, ShortTermView
from hearth.testing.embedder import ScriptedEmbedder
from tests.api import open_engine
from tests.events import ManualClock

ALICE = Scope(tenant="acme", user="alice")


@pytest.fixture(name="engine")
async def _engine(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Engine]:
    async with open_engine(tmp_path, clock, ScriptedEmbedder()) as engine:
        yield engine


@pytest.mark.parametrize("steps", range(4))
async def test_a_cancelled_look_up_ends_whenever_the_store_answers(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """A cancellation is never taken for an answer, in whichever step of the loop it meets one."""
    answer: asyncio.Future[ShortTermView] = asyncio.get_running_loop().create_future()

    async def latest(scope: Scope, *, limit: int) -> ShortTermView:
        return await answer

    monkeypatch.setattr(engine.short_term, "latest", latest)
    asked = asyncio.create_task(engine.view(ALICE))
    for _ in range(10):
        await asyncio.sleep(0)
    answer.set_result(ShortTermView())
    for _ in range(steps):
        await asyncio.sleep(0)
    if asked.cancel():
        with pytest.raises(asyncio.CancelledError):
            await asked
    else:
        assert await asked == ShortTermView()


@pytest.mark.parametrize("trouble", [StoreUnavailable("short_term", "gone"), RuntimeError("a mistake"), None])
async def test_a_store_that_fails_or_is_late_is_named_and_done_without(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, trouble: Exception | None
) -> None:
    """Recall goes on with the other memory, and says which one is missing."""

    async def latest(scope: Scope, *, limit: int) -> Any:
        if trouble is not None:
            raise trouble
        await asyncio.Event().wait()

    monkeypatch.setattr(engine.short_term, "latest", latest)
    recall = await engine.recall(ALICE, "What is the name of my dog?", deadline=0.05)
    assert (recall.status, recall.reasons) == ("partial", ("short_term",))


@pytest.mark.parametrize("trouble", [StoreUnavailable("long_term", "gone"), None])
async def test_a_search_within_the_asked_time_adds_candidates_and_costs_none(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, trouble: Exception | None
) -> None:
    """A question that names a time is searched twice; if the second fails, the first one's answer stands."""
    now = engine.clock.now()
    said = [
        Page(id=name, scope=ALICE, generation=1, user_text=name, reply_text="", occurred_at=now)
        for name in ("soup", "stew")
    ]
    asked: list[SearchRequest] = []

    async def search(request: SearchRequest) -> SearchResult:
        asked.append(request)
        if len(asked) == 2 and trouble is not None:
            raise trouble
        return SearchResult(candidates=(Candidate(record=said[len(asked) - 1], text_score=0.9),))

    monkeypatch.setattr(engine.long_term, "search", search)
    found = await engine.look_up(ALICE, Query(text="What did I cook yesterday?", at=now))
    assert [request.where.since is not None for request in asked] == [False, True]
    assert len(found.candidates) == (1 if trouble else 2)
    assert not found.missing
    await engine.look_up(ALICE, Query(text="What do I cook?", at=now))
    assert len(asked) == 3


async def test_a_view_has_what_is_left_of_the_calls_time(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that hangs holds a call up until it is due, not for a policy's time from then on."""

    async def latest(scope: Scope, *, limit: int) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(engine.short_term, "latest", latest)
    engine.policy = msgspec.structs.replace(engine.policy, deadline_seconds=3_600)
    async with asyncio.timeout(30):
        assert not (await engine.view(ALICE, by=time.monotonic())).reachable
