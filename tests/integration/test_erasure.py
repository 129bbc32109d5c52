"""Erasures: unreachable at once, purged place by place, with receipts, holds and a ledger outside the log."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.alone import PURGING, alone
from hearth.memory.erasure.errands import Errands
from hearth.memory.erasure.files import Files
from hearth.memory.erasure.provider_held import PLACE as PROVIDER
from hearth.memory.erasure.purger import RECORDS_WAIT
from hearth.memory.errors import StaleGeneration, StoreUnavailable
from hearth.memory.events.archiving import Archiving
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.types import ImportedTurn, Scope
from hearth.testing.embedder import ScriptedEmbedder
from tests.api import Api, open_api
from tests.events import START, ManualClock, step

ALICE, BOB = Scope(tenant="acme", user="alice"), Scope(tenant="acme", user="bob")
SECRET = "the honey of my bees is sold at the market of Lugano"


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock) as api:
        yield api


async def tell(api: Api, scope: Scope, text: str, *, session: str = "s1", minute: int = 0) -> str:
    """Import one exchange; its id."""
    at = START - timedelta(days=1) + timedelta(minutes=minute)
    turns = [("user", text), ("assistant", "Noted.")]
    await api.engine.import_turns(
        scope, [ImportedTurn(role=role, content=said, at=at, session=session) for role, said in turns]
    )
    found = await api.engine.exchanges(scope.tenant, scope.user)
    return found[0].id


async def purged(api: Api) -> None:
    """Let the worker come to the end of what it can do."""
    await api.engine.drain()
    await api.engine.worker.purge()  # type: ignore[attr-defined]


async def receipt(api: Api, id: str, key: str = "admin") -> dict[str, Any]:
    async with api.client(key) as client:
        answer = await client.get(f"/erasures/{id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def bytes_left(home: Path, api: Api, fragments: Any) -> int:
    places = Files(home, {"log.db": "log"}, spool=home / "spool").scan({"x": fragments})
    return sum(one.found for one in places["x"])


def _bytes(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.glob("log.db*")}


class Kept:
    """A provider that keeps responses, and does not always answer."""

    def __init__(self) -> None:
        self.held = {f"resp_{n}" for n in range(12)} | {"resp_old"}
        self.failing = {"resp_11"}
        self.asked: list[str] = []

    async def delete(self, response: str) -> None:
        """See `Providers.delete`."""
        self.asked.append(response)
        if response in self.failing:
            raise StoreUnavailable("the provider", "Timeout on a deletion")
        self.held.discard(response)


async def test_what_a_provider_keeps_is_deleted_there(tmp_path: Path, clock: ManualClock) -> None:
    """Some at a time, the rest though one fails; that one again after a while, each time a longer one, and
    until then the receipt is open and says why. What is older than a provider keeps it is left alone.
    """
    provider = Kept()
    async with open_api(tmp_path, clock=clock, providers=provider) as api:
        said = [(f"resp_{n}", timedelta(seconds=n)) for n in range(12)] + [("resp_old", -timedelta(days=31))]
        steps = [
            step(f"x{id}", user_text=SECRET, response_id=id, route="responses", at=START + later)
            for id, later in said
        ]
        await api.engine.log.append([*steps, step("chat", response_id="chatcmpl-1")])
        clock.advance(seconds=60)
        erased = await api.engine.erase("acme", "alice")
        await purged(api)
        clock.advance(seconds=1)
        for _ in range(3):
            await purged(api)
        assert provider.held == {"resp_11", "resp_old"}
        assert provider.asked.count("resp_11") == 2, "it is to wait"
        shown = await receipt(api, erased.receipt)
        (open_,) = [one for one in shown["steps"] if not one["done_at"]]
        assert (open_["place"], shown["state"]) == ("provider", "pending")
        assert "Timeout on a deletion" in open_["trouble"]
        for times in (2, 3, 3, 3, 3, 4):
            clock.advance(seconds=1)
            await purged(api)
            assert provider.asked.count("resp_11") == times
        provider.failing.clear()
        clock.advance(seconds=60)
        await purged(api)
        shown = await receipt(api, erased.receipt)
        assert shown["state"] == "purged"
        assert {one["response"] for one in shown["provider_held"] if not one["gone_at"]} == {"resp_old"}
        assert provider.held == {"resp_old"}
        await tell(api, BOB, "Hello.")
        none = await api.engine.erase("acme", "bob")
        assert "provider" not in {one["place"] for one in (await receipt(api, none.receipt))["steps"]}


async def test_gateways_have_it_deleted_where_workers_are_elsewhere(
    tmp_path: Path, clock: ManualClock
) -> None:
    """In turns with one another and with the workers, which end the receipt."""
    provider = Kept()
    provider.failing.clear()
    async with open_api(tmp_path, clock=clock, elsewhere=(PROVIDER,)) as api:
        log = api.engine.log
        said = [step(f"x{n}", response_id=f"resp_{n}", route="responses", at=START) for n in range(12)]
        await log.append(said)
        erased = await api.engine.erase("acme", "alice")
        await purged(api)
        gateways = [
            Errands(provider, eraser=api.engine.eraser, office=log, consumers=log, clock=clock)
            for _ in range(2)
        ]
        async with alone(log, PURGING, owner="worker", seconds=60) as mine:
            await gateways[0].tick()
            assert (mine, provider.asked) == (True, [])
        await gateways[0].tick()
        assert len(provider.held) == 13 - 8
        await purged(api)
        shown = await receipt(api, erased.receipt)
        assert [one["place"] for one in shown["steps"] if not one["done_at"]] == ["provider"]
        await gateways[1].tick()
        await purged(api)
        shown = await receipt(api, erased.receipt)
        assert (shown["state"], provider.held) == ("purged", {"resp_old"})
        assert all(one["gone_at"] for one in shown["provider_held"])


async def test_an_erasure_reaches_archives(api: Api, tmp_path: Path, clock: ManualClock) -> None:
    """What went to an archive before is in no file afterwards, and the receipt says so."""
    await tell(api, ALICE, SECRET)
    await api.engine.drain()
    archiving = Archiving(api.engine.log, owner="test")  # type: ignore[arg-type]
    await archiving.archive("acme", clock.now() + timedelta(days=1))
    await archiving.release()
    assert list((tmp_path / "archive").iterdir())
    made = await api.engine.eraser.begin("user", "acme", "alice")
    await purged(api)
    shown = await receipt(api, made.receipt.id)
    assert (shown["state"], list((tmp_path / "archive").iterdir())) == ("purged", [])
    assert "archives" in {one["place"] for one in shown["steps"] if one["done_at"]}


async def test_a_receipt_counts_what_went_and_a_scan_finds_nothing_of_it(api: Api, tmp_path: Path) -> None:
    """The bytes by which it is looked for are in the files before, and in no file after; bob's stay."""
    await tell(api, ALICE, SECRET)
    await tell(api, BOB, "cats are better than bees by far, I think")
    async with api.client("alice") as alice:
        await alice.post("/memories", json={"text": f"sells {SECRET}"})
    await api.engine.drain()
    made = await api.engine.eraser.begin("user", "acme", "nobody")  # one that finds nothing
    assert (made.receipt.found, made.receipt.fragments) == ({}, ())
    there = await api.engine.office.inventory("acme", "alice")
    assert there.sample.texts
    assert len(there.sample.stored) >= 3

    async with api.client("alice") as alice:
        before = _bytes(tmp_path)
        answer = await alice.delete("/users/alice", params={"reason": "asked by mail"})
    assert answer.status_code == 200
    begun = (await api.engine.office.erasure("acme", answer.json()["receipt"])) or pytest.fail("no receipt")
    old = tmp_path / "old"
    old.mkdir()
    for name, raw in before.items():
        (old / name).write_bytes(raw)
    assert bytes_left(old, api, (begun.salt, begun.fragments)) > 10
    shutil.rmtree(old)

    shown = await receipt(api, begun.id)
    assert (shown["state"], shown["by"], shown["reason"]) == ("pending", "alice", "asked by mail")
    await purged(api)
    shown = await receipt(api, begun.id)
    assert shown["state"] == "purged"
    assert (shown["found"]["exchanges"], shown["found"]["memories"]) == (1, 1)
    assert {one["place"] for one in shown["steps"] if one["done_at"]} == {
        *("log", "archives", "short_term", "long_term", "spool", "ledger")
    }
    assert {(one["place"], one["how"]) for one in shown["scan"]} >= {("log", "raw bytes"), ("log", "content")}
    assert not [one for one in shown["scan"] if one["found"]]
    kept = await api.engine.office.erasure("acme", begun.id)
    assert kept is not None
    assert (kept.salt, kept.fragments, kept.records) == (b"", (), ())
    assert bytes_left(tmp_path, api, (begun.salt, begun.fragments)) == 0
    assert len(await api.engine.exchanges("acme", "bob")) == 1


async def test_a_scan_leaves_the_log_its_locks(api: Api, tmp_path: Path) -> None:
    """Another program that opens and closes the log afterwards does not take its write-ahead log away."""
    await tell(api, ALICE, SECRET)
    await api.engine.eraser.begin("user", "acme", "alice")
    await purged(api)
    await tell(api, BOB, "cats are better than bees by far, I think")
    look = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); print(*db.execute(sys.argv[2]).fetchone())"
    )
    asked = [sys.executable, "-c", look, str(tmp_path / "log.db"), "SELECT count(*) FROM events"]
    before = await asyncio.to_thread(subprocess.check_output, asked)
    assert (tmp_path / "log.db-wal").exists()
    await tell(api, BOB, "dogs are better than cats", minute=1)
    assert int(await asyncio.to_thread(subprocess.check_output, asked)) > int(before)


async def test_an_erasure_of_nobody_and_a_second_one_have_empty_receipts(api: Api) -> None:
    """Both are promises kept: nothing was there, and work in flight for the name is refused."""
    late = step("x", user="nobody")
    async with api.client("admin") as admin:
        for _ in range(2):
            answer = await admin.delete("/users/nobody")
            assert answer.status_code == 200
            await purged(api)
            shown = await receipt(api, answer.json()["receipt"])
            assert (shown["state"], shown["found"]) == ("purged", {})
    with pytest.raises(StaleGeneration):
        await api.engine.log.append([late])


async def test_receipts_are_for_their_user_and_for_admins(api: Api) -> None:
    """Another user's, or another tenant's, is not there."""
    async with api.client("alice") as alice:
        id = (await alice.delete("/users/alice")).json()["receipt"]
        assert (await alice.get(f"/erasures/{id}")).status_code == 200
    for other in ("bob", "rival-admin"):
        async with api.client(other) as client:
            assert (await client.get(f"/erasures/{id}")).status_code == 404
    async with api.client("admin") as admin:
        assert [one["id"] for one in (await admin.get("/erasures")).json()["items"]] == [id]
        assert (await admin.get("/events")).json()["items"][-1]["user"] == ""


async def test_a_session_goes_with_what_rests_on_it(api: Api) -> None:
    """Its exchanges and memories are gone, others stay, and a step begun in it before is refused."""
    await tell(api, ALICE, "I keep bees", session="s1")
    await tell(api, ALICE, "I keep goats", session="s2", minute=5)
    async with api.client("alice") as alice:
        await alice.post("/memories", json={"text": "Bees are bought in May", "session": "s1"})
        await api.engine.drain()
        answer = await alice.delete("/sessions/s1")
        assert (answer.status_code, answer.json()["done"]) == (200, True)
        assert [one["id"] for one in (await alice.get("/sessions")).json()["items"]] == ["s2"]
        assert (await alice.get("/memories")).json()["items"] == []
        assert (await alice.post("/memories/search", json={"query": "bees"})).json()["items"] != []
        assert (await alice.delete("/sessions/s1")).status_code == 404
        await api.engine.log.append([step("late", at=START - timedelta(seconds=5), session="s1")])
        await api.engine.log.append([step("new", at=START + timedelta(seconds=1), session="s2")])
        await purged(api)
        assert {one["session"] for one in (await alice.get("/exchanges")).json()["items"]} == {"s2"}
    shown = await receipt(api, answer.json()["receipt"])
    assert (shown["state"], shown["found"]) == ("purged", {"exchanges": 1, "memories": 1})


async def test_a_tenant_is_unreachable_at_once_and_its_users_go_one_by_one(api: Api) -> None:
    """Until the worker has come to them nothing of them is read, and what they say is refused; afterwards
    they begin anew. Another tenant is untouched, and a folded log says the same.
    """
    rival = Scope(tenant="rivals", user="alice")
    await tell(api, ALICE, "I keep bees")
    await tell(api, BOB, "I keep cats")
    await tell(api, rival, "I keep quiet")
    async with api.client("admin") as admin:
        handbook = b"# Lamps\n\nLamps can be returned within thirty days."
        await admin.put("/knowledge/a.md", content=handbook, headers={"content-type": "text/markdown"})
        await api.engine.drain()
        assert (await admin.delete("/tenant", params={"confirm": "acne"})).status_code == 422
        answer = await admin.delete("/tenant", params={"confirm": "acme"})
        assert answer.status_code == 202
        assert (await admin.get("/users")).json()["items"] == []
        assert (await admin.get("/knowledge")).json()["items"] == []
        assert await api.engine.exchanges("acme", "alice") == []
        assert (await admin.post("/memories", json={"text": "too early", "user": "bob"})).status_code == 409
        with pytest.raises(StaleGeneration):  # a first call of somebody new that was under way
            await api.engine.log.append([step("x", user="carol")])
        await purged(api)
        await purged(api)
        shown = await receipt(api, answer.json()["receipt"])
        assert (shown["state"], shown["found"]["users"]) == ("purged", 3)
        await admin.post("/memories", json={"text": "a fresh start", "user": "bob"})
        await admin.post("/memories", json={"text": "a first one", "user": "carol"})
    for _ in range(2):
        assert [len(await api.engine.memories("acme", user)) for user in ("bob", "carol")] == [1, 1]
        assert len(await api.engine.exchanges("rivals", "alice")) == 1
        await api.engine.log.rebuild_views()  # type: ignore[attr-defined]


async def test_a_hold_keeps_a_user_and_queues_the_erasure(api: Api) -> None:
    """409 while it stands, once in the queue, retention passes by; lifted, the erasure follows by itself."""
    gone = await tell(api, ALICE, "I keep bees")
    async with api.client("admin") as admin:
        assert (await admin.put("/holds/alice", json={"reason": "case 7"})).status_code == 200
        refused = [await admin.delete("/users/alice") for _ in range(2)]
        refused.append(await admin.delete(f"/exchanges/{gone}", params={"user": "alice"}))
        refused.append(await admin.delete("/tenant", params={"confirm": "acme"}))
        assert [one.status_code for one in refused] == [409] * 4
        assert {one.json()["type"] for one in refused} == {"urn:hearth:problem:held"}
        items = (await admin.get("/erasures")).json()["items"]
        assert [(one["what"], one["state"]) for one in items] == [
            *(("tenant", "held"), ("exchange", "held"), ("user", "held"))
        ]
        await purged(api)
        assert len(await api.engine.exchanges("acme", "alice")) == 1
        assert [one["user"] for one in (await admin.get("/holds")).json()["items"]] == ["alice"]
        lifted = await admin.delete("/holds/alice", params={"reason": "settled"})
        assert lifted.status_code == 200
        assert (await admin.delete("/holds/alice", params={"reason": "x"})).status_code == 404
        await purged(api)
        await purged(api)
        assert await api.engine.exchanges("acme", "alice") == []
        said = (await admin.get("/events", params={"kinds": ["hold.placed", "hold.lifted"]})).json()["items"]
        assert [one["payload"] for one in said] == [
            {"user": "alice", "reason": "case 7", "by": "admin"},
            {"user": "alice", "reason": "settled", "by": "admin"},
        ]


class Outage(MemoryLongTerm):
    """Long-term memory that can be down."""

    down = False

    async def clear(self, tenant: str, user: str) -> None:
        if self.down:
            raise StoreUnavailable("long-term memory", "down for the test")
        await super().clear(tenant, user)

    async def purge(self) -> None:
        if self.down:
            raise StoreUnavailable("long-term memory", "down for the test")

    async def upsert(self, records: Any) -> None:
        if self.down:
            raise StoreUnavailable("long-term memory", "down for the test")
        await super().upsert(records)


async def test_case_19_a_store_that_is_down_keeps_an_erasure_pending_over_a_restart(
    tmp_path: Path, clock: ManualClock
) -> None:
    """It says where it is not gone yet and why, and is over once the store is back, in another process."""
    store = Outage(ScriptedEmbedder())
    async with open_api(tmp_path, clock=clock, long_term=store) as api:
        await tell(api, ALICE, "I keep bees")
        await api.engine.drain()
        store.down = True
        async with api.client("alice") as alice:
            answer = await alice.delete("/users/alice")
            assert (answer.status_code, answer.json()["pending"]) == (202, ["long_term"])
            await api.engine.worker.purge()  # type: ignore[attr-defined]
            shown = await receipt(api, answer.json()["receipt"])
            assert shown["state"] == "pending"
            assert {one["place"]: one["trouble"] for one in shown["steps"] if not one["done_at"]}.keys() == {
                *("short_term", "long_term")
            }
    store.down = False
    assert await store.count(ALICE.owner) == 1
    async with open_api(tmp_path, clock=clock, long_term=store) as api:
        await purged(api)
        assert (await receipt(api, answer.json()["receipt"]))["state"] == "purged"
        assert await store.count(ALICE.owner) == 0


async def test_single_records_share_one_rewriting_of_files(api: Api, clock: ManualClock) -> None:
    """A forgotten memory's files are written anew within the hour, with whatever else went by then."""
    async with api.client("alice") as alice:
        id = (await alice.post("/memories", json={"text": "I keep bees"})).json()["id"]
        gone = (await alice.delete(f"/memories/{id}")).json()["receipt"]
    await purged(api)
    waiting = await receipt(api, gone)
    assert [one["place"] for one in waiting["steps"] if not one["done_at"]] == ["long_term"]
    clock.time += RECORDS_WAIT
    await purged(api)
    assert (await receipt(api, gone))["state"] == "purged"


async def test_case_21_erasures_reach_a_log_that_is_restored_from_a_backup(
    tmp_path: Path, clock: ManualClock
) -> None:
    """What was erased since the copy was made stays gone: a person, a memory, a session, and nothing more."""
    home, copy = tmp_path / "live", tmp_path / "copy.db"
    async with open_api(home, clock=clock) as api:
        await tell(api, ALICE, "I keep bees")
        await tell(api, BOB, "I keep cats", session="cats")
        await tell(api, BOB, "I keep dogs", session="dogs", minute=5)
        kept = await api.engine.remember(BOB, "Bob likes tea")
        gone = await api.engine.remember(BOB, "Bob likes rum")
        await api.engine.drain()
    shutil.copy(home / "log.db", copy)
    async with open_api(home, clock=clock) as api:
        await api.engine.erase("acme", "alice")
        await api.engine.forget(BOB, gone.id)
        await api.engine.forget_session(BOB, "cats")
        await purged(api)
    ledger = (home / "erasures.ledger").read_bytes()
    assert not [word for word in (b"alice", b"bob", b"cats", b"acme") if word in ledger]
    for path in home.glob("log.db*"):
        path.unlink()
    shutil.copy(copy, home / "log.db")
    for _ in range(2):  # the second start has nothing left to do
        async with open_api(home, clock=clock) as api:
            assert await api.engine.exchanges("acme", "alice") == []
            assert [one.user_text for one in await api.engine.exchanges("acme", "bob")] == ["I keep dogs"]
            assert [one.id for one in await api.engine.memories("acme", "bob")] == [kept.id]
            await purged(api)
