"""Health, metrics, switches and the log over REST."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, Request
from prometheus_client.parser import text_string_to_metric_families

from hearth.gateway.api import create_api
from hearth.gateway.api.door import Door
from hearth.gateway.runtime import Runtime
from hearth.memory import metrics
from tests.api import Api, open_api


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    async with open_api(tmp_path) as api:
        yield api


async def test_health_tells_every_part(api: Api) -> None:
    """A gateway that is well says so to a probe without a key, and part by part to a key."""
    async with api.client("alice") as alice, api.client(None) as probe:
        await alice.post("/memories", json={"text": "likes tea"})
        await api.engine.drain()
        health = (await alice.get("/health")).json()
        assert (await probe.get("/health/live")).json() == {"status": "ok"}
        assert (await probe.get("/health/ready")).json() == {"status": "ok", "reasons": []}
        assert (await probe.get("/health")).status_code == 401
    assert (health["status"], health["reasons"]) == ("ok", [])
    assert set(health["parts"]) == {"log", "spool", "short_term", "long_term", "worker", "recall"}
    assert health["parts"]["log"]["numbers"]["events"] == 1
    assert health["parts"]["worker"]["numbers"]["parked"] == 0


async def test_health_says_what_memory_is_switched_off_for(api: Api) -> None:
    """A switch is no fault, but whoever looks for a reason finds it; of the caller's own tenant alone."""
    async with api.client("admin") as admin:
        assert (await admin.get("/health")).json()["switched"] == {}
        board = api.gateway.switchboard
        await board.set("off", key="rival")
        await board.set("read", tenant="rivals")
        await board.set("off", key="alice")
        await board.set("shadow", tenant="acme")
        await board.set("write")
        found = (await admin.get("/health")).json()
        assert (found["status"], found["reasons"]) == ("ok", [])
        assert found["switched"] == {"everyone": "write", "tenant": "shadow", "key alice": "off"}
    async with api.client("rival") as rival:
        found = (await rival.get("/health")).json()
        assert found["switched"] == {"everyone": "write", "tenant": "read", "key rival": "off"}


async def test_a_worker_that_stands_makes_health_degraded(api: Api) -> None:
    """Health names the part and the reason; the gateway stays ready, for calls go through."""
    await api.engine.worker.stop()
    async with api.client("alice") as alice:
        health = await alice.get("/health")
        ready = await alice.get("/health/ready")
    assert (health.status_code, ready.status_code) == (200, 200)
    assert ready.json() == {"status": "degraded", "reasons": ["worker: does not run"]}


async def test_without_its_log_memory_is_down_and_calls_still_go_through(api: Api) -> None:
    """Health is 503 and says that captures go to the spool; readiness stays 200."""
    await api.engine.worker.stop()
    await api.engine.log.close()  # type: ignore[attr-defined]
    async with api.client("alice") as alice:
        health = await alice.get("/health")
        ready = await alice.get("/health/ready")
    assert (health.status_code, health.json()["status"]) == (503, "down")
    assert health.json()["parts"]["log"]["reasons"] == ["can't be written; captures go to the spool"]
    assert (ready.status_code, ready.json()["status"]) == (200, "down")


async def test_a_gateway_that_is_not_running_is_alive_and_not_ready() -> None:
    """Before start and after shutdown the process answers, and every other route is a 503."""

    async def nobody(request: Request) -> None:
        return None

    door = Door(authenticate=nobody, is_local=lambda request: True)
    app = FastAPI()
    app.mount("/memory", create_api(Runtime().running, door=door))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway/memory") as client:
        assert (await client.get("/v1/health/live")).status_code == 200
        for path in ("/v1/health/ready", "/v1/health"):
            answer = await client.get(path)
            assert (answer.status_code, answer.json()["type"]) == (503, "urn:hearth:problem:unavailable")


def _tenants(text: str) -> set[str]:
    families = text_string_to_metric_families(text)
    return {s.labels["tenant"] for f in families for s in f.samples if "tenant" in s.labels}


async def test_metrics_show_an_admin_no_other_tenant_and_a_user_nothing(api: Api, tmp_path: Path) -> None:
    """This machine sees all metrics, an admin key its own tenant's, another key none."""
    for tenant in ("acme", "rivals"):
        metrics.BLOCK_TOKENS.labels(tenant).inc()
    url = "http://gateway/memory/metrics"
    async with api.client("admin") as admin, api.client("alice") as alice, api.client(None) as nobody:
        seen = (await admin.get(url)).text
        assert _tenants(seen) == {"acme"}
        assert 'hearth_part_state{part="log",state="ok"} 1.0' in seen
        assert (await alice.get(url)).status_code == 403
        assert (await nobody.get(url)).status_code == 401
    async with open_api(tmp_path / "local", local=True) as here, here.client(None) as local:
        shown = await local.get(url)
        assert _tenants(shown.text) >= {"acme", "rivals"}
        assert "hearth_recall_seconds_bucket" in shown.text
        assert (await local.get("/health")).status_code == 200


async def test_a_switch_reaches_the_admin_s_own_tenant_alone(api: Api) -> None:
    """Tenant and key are switched and lifted again; another tenant's key can be neither seen nor switched."""
    board = api.gateway.switchboard
    await board.set("off", key="rival")
    async with api.client("admin") as admin:
        assert (await admin.get("/switches")).json() == {"everyone": "on", "tenant": "on", "keys": {}}
        await admin.put("/switches", json={"mode": "read", "key": "alice"})
        changed = (await admin.put("/switches", json={"mode": "off"})).json()
        assert changed == {"everyone": "on", "tenant": "off", "keys": {"alice": "read"}}
        assert dict(board.current().tenants) == {"acme": "off"}
        refused = await admin.put("/switches", json={"mode": "on", "key": "rival"})
        misspelt = await admin.put("/switches", json={"mode": "on", "key": "alise"})
        await admin.put("/switches", json={"mode": "on"})
        lifted = (await admin.put("/switches", json={"mode": "on", "key": "alice"})).json()
    assert lifted == {"everyone": "on", "tenant": "on", "keys": {}}
    assert refused.status_code == 422
    assert "rival-admin" not in refused.text
    assert "did you mean `alice`?" in misspelt.json()["detail"]
    assert dict(board.current().keys) == {"rival": "off"}


async def test_the_log_is_read_in_order_and_followed(api: Api) -> None:
    """Events come by position, by kind and user; the end's `next` goes on with what is written later."""
    async with api.client("app") as app, api.client("admin") as admin:
        added = [
            (await app.post("/memories", json={"text": f"fact {n}", "user": f"u{n % 2}"})).json()["id"]
            for n in range(5)
        ]
        seen, after = [], 0
        while page := (await admin.get("/events", params={"after": after, "limit": 2})).json():
            if not page["items"]:
                break
            seen += page["items"]
            after = page["next"]
        assert [event["payload"]["memory"]["id"] for event in seen] == added
        await app.delete(f"/memories/{added[0]}", params={"user": "u0"})
        rest = (await admin.get("/events", params={"after": after})).json()["items"]
        (forgotten,) = (one for one in rest if not one["kind"].startswith("erasure."))
        assert forgotten["kind"] == "memory.forgotten"
        assert forgotten["payload"] == {"memory": added[0], "reason": "requested", "own_agent": ""}
        params = {"kinds": "memory.added", "user": "u1"}
        mine = (await admin.get("/events", params=params)).json()["items"]
        assert [event["payload"]["memory"]["id"] for event in mine] == [added[1], added[3]]
        unknown = await admin.get("/events", params={"kinds": "memory.add"})
    assert "did you mean `memory.added`?" in unknown.json()["detail"]


async def test_a_user_s_key_reads_that_user_s_events_alone(api: Api) -> None:
    """A person's and an app's key see one user's log, whatever is asked; another tenant sees none of it."""
    async with api.client("alice") as alice, api.client("bob") as bob, api.client("app") as app:
        await alice.post("/memories", json={"text": "alice likes tea", "tags": ["drink"]})
        await bob.post("/memories", json={"text": "bob likes tea", "tags": ["drink"]})
        for wanted in ({}, {"words": "tea"}, {"tags": "drink"}, {"kinds": "memory.added"}):
            for client, who in ((alice, {}), (app, {"user": "alice"})):
                page = (await client.get("/events", params={**wanted, **who})).json()
                assert [e["payload"]["memory"]["text"] for e in page["items"]] == ["alice likes tea"]
        assert (await alice.get("/events", params={"user": "bob"})).status_code == 403
        assert (await app.get("/events")).status_code == 400
        counts = (await alice.get("/events/counts")).json()["items"]
        assert [(one["kind"], one["events"]) for one in counts] == [("memory.added", 1)]
    async with api.client("rival-admin") as boss:
        page = (await boss.get("/events", params={"words": "tea"})).json()
        assert (page["items"], page["ended"]) == ([], True)
        assert (await boss.get("/events/counts")).json() == {"items": []}


async def test_forgotten_text_is_gone_from_the_log(api: Api) -> None:
    """After a deletion no event shows the text."""
    async with api.client("alice") as alice, api.client("admin") as admin:
        memory = (await alice.post("/memories", json={"text": "keeps bees"})).json()
        await alice.delete(f"/memories/{memory['id']}")
        assert "bees" not in (await admin.get("/events")).text
