"""What memory knew at a moment: lists, searches, recalls and differences, and what was recalled long ago."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.traces import TraceRing
from hearth.memory.types import Scope
from tests.api import Api, open_api
from tests.events import ManualClock

ALICE = Scope(tenant="acme", user="alice")
WORK: dict[str, Any] = {"subject": "user", "attribute": "employer"}


@pytest.fixture(name="clock")
def _clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock) as api:
        api.engine.policy = RecallPolicy(floor=0.0)
        yield api


async def listed(api: Api, at: datetime) -> list[str]:
    async with api.client("alice") as alice:
        asked = {"as_of": at.isoformat(), "known": "then", "limit": 2}
        found, page = [], (await alice.get("/memories", params=asked)).json()
        found += page["items"]
        while page["next"]:
            page = (await alice.get("/memories", params=asked | {"cursor": page["next"]})).json()
            found += page["items"]
        assert page["total"] == len(found)
        return [one["text"] for one in found]


async def test_lists_and_searches_show_what_was_known_then(api: Api, clock: ManualClock) -> None:
    """What was told, corrected or changed later is as it was; what was forgotten since is not shown."""
    engine = api.engine
    await engine.remember(ALICE, "Works at Acme.", value="Acme", **WORK)
    tea = await engine.remember(ALICE, "Likes green tea.")
    gone = await engine.remember(ALICE, "A secret of hers.")
    then = clock.advance(hours=1)
    clock.advance(hours=1)
    await engine.remember(ALICE, "Works at Borealis.", value="Borealis", valid_from=then, **WORK)
    await engine.amend("acme", "alice", tea.id, text="Likes black tea.")
    await engine.forget(ALICE, gone.id)
    await engine.drain()
    assert set(await listed(api, then)) == {"Works at Acme.", "Likes green tea."}
    assert set(await listed(api, clock.now())) == {"Works at Borealis.", "Likes black tea."}
    async with api.client("alice") as alice:
        body = {"query": "green tea Acme secret", "as_of": then.isoformat(), "known": "then"}
        found = (await alice.post("/memories/search", json=body)).json()["items"]
        assert {one["record"]["text"] for one in found} == {"Works at Acme.", "Likes green tea."}
        missing = await alice.get("/memories", params={"known": "then"})
        assert (missing.status_code, "as_of" in missing.text) == (422, True)
        ahead = await alice.post("/recall", json={"query": "tea", "as_of": "2999-01-01T00:00:00Z"})
        assert (ahead.status_code, "future" in ahead.text) == (422, True)


async def test_a_recall_as_of_a_moment_knows_no_more_than_it_knew_then(api: Api, clock: ManualClock) -> None:
    """What was said later is no candidate, and a fact that was closed later stands as it stood."""
    engine = api.engine
    await engine.capture(ALICE, "My employer is Acme.", "Noted.")
    await engine.remember(ALICE, "Works at Acme.", value="Acme", **WORK)
    await engine.drain()
    then = clock.advance(hours=1)
    clock.advance(hours=1)
    await engine.remember(ALICE, "Works at Borealis.", value="Borealis", **WORK)
    await engine.drain()
    async with api.client("alice") as alice:
        asked = {"query": "Where do I work, at Acme or Borealis?"}
        past = (await alice.post("/recall", json=asked | {"as_of": then.isoformat()})).json()
        now = (await alice.post("/recall", json=asked)).json()
    texts = {one["record"].get("text") or one["record"]["user_text"]: one["verdict"] for one in past["items"]}
    assert texts == {"Works at Acme.": "in", "My employer is Acme.": "in"}
    assert {one["record"].get("text"): one["verdict"] for one in now["items"]}["Works at Acme."] == "stale"


async def test_a_diff_tells_what_became_of_a_memory(api: Api, clock: ManualClock) -> None:
    """Learned, changed, ended and filed between two moments; of what was forgotten, the number alone."""
    engine = api.engine
    await engine.remember(ALICE, "Works at Acme.", value="Acme", **WORK)
    tea = await engine.remember(ALICE, "Likes green tea.")
    gone = await engine.remember(ALICE, "A secret of hers.")
    since = clock.advance(hours=1)
    clock.advance(hours=1)
    await engine.remember(ALICE, "Works at Borealis.", value="Borealis", **WORK)
    await engine.amend("acme", "alice", tea.id, text="Likes black tea.")
    await engine.forget(ALICE, gone.id)
    clock.advance(minutes=1)
    await engine.remember(ALICE, "Works at Cirrus.", value="Cirrus", **WORK)
    await engine.capture(ALICE, "Fine weather today.", "So it is.")
    await engine.drain()
    clock.advance(hours=1)
    async with api.client("alice") as alice:
        answer = await alice.get("/diff", params={"since": since.isoformat()})
        found = answer.json()
        none = (await alice.get("/diff", params={"since": clock.now().isoformat()})).json()
    assert [one["text"] for one in found["learned"]] == ["Works at Borealis.", "Works at Cirrus."]
    assert [(one["before"]["text"], one["after"]["text"]) for one in found["changed"]] == [
        ("Likes green tea.", "Likes black tea.")
    ]
    assert [one["text"] for one in found["ended"]] == ["Works at Acme.", "Works at Borealis."]
    assert (found["exchanges"], found["forgotten_memories"], found["forgotten_exchanges"]) == (1, 1, 0)
    assert "secret" not in answer.text
    assert (none["learned"], none["ended"], none["exchanges"]) == ([], [], 0)


async def test_a_recall_of_long_ago_is_told_by_the_log(api: Api, clock: ManualClock) -> None:
    """Its trace is gone: what was shown is recorded, with its signals; texts are those of then."""
    engine = api.engine
    tea = await engine.remember(ALICE, "Likes green tea best.")
    await engine.drain()
    recall = await engine.recall(ALICE, "Which green tea do I like best?")
    opened = await engine.capture(ALICE, "Which green tea do I like best?", "Sencha.", recall=recall)
    clock.advance(days=40)
    await engine.amend("acme", "alice", tea.id, text="Likes black tea best.")
    await engine.remember(ALICE, "Green tea is out of the house.")
    await engine.drain()
    engine.traces = TraceRing()
    async with api.client("alice") as alice, api.client("bob") as bob:
        found = (await alice.get(f"/recalls/{recall.trace}")).json()
        assert (await bob.get(f"/recalls/{recall.trace}")).status_code == 404
        assert (await alice.get(f"/exchanges/{opened.exchange}")).json()["trace"] == recall.trace
    assert (found["source"], found["analysis"]["text"]) == ("log", "Which green tea do I like best?")
    (item,) = found["items"]
    assert (item["verdict"], item["recorded"], item["record"]["text"]) == (
        "in",
        True,
        "Likes green tea best.",
    )
    assert item["signals"] == pytest.approx(recall.scored[0].signals, abs=0.001)
    await engine.forget(ALICE, tea.id)
    async with api.client("alice") as alice:
        after = await alice.get(f"/recalls/{recall.trace}")
    assert "green tea best." not in after.text
    assert [(one["id"], one["forgotten"]) for one in after.json()["items"]] == [(tea.id, True)]
