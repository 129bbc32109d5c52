"""Who did what: each act of an operator, and each way out and in, is an event with the key's name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.errors import LogUnavailable
from tests.api import Api, open_api
from tests.events import ManualClock


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock) as api:
        yield api


ACTS: list[tuple[str, str, dict[str, Any], str]] = [
    ("GET", "/export", {"params": {"user": "alice"}}, "act.done"),
    (
        "POST",
        "/import?user=alice",
        {"json": {"turns": [{"role": "user", "content": "Hello", "at": "2026-01-01T00:00:00Z"}]}},
        "act.done",
    ),
    ("PUT", "/knowledge/a.md", {"content": "# A", "headers": {"content-type": "text/markdown"}}, "act.done"),
    ("DELETE", "/knowledge/a.md", {}, "act.done"),
    ("PUT", "/switches", {"json": {"mode": "read", "key": "bob"}}, "act.done"),
    ("POST", "/verifications", {"json": {"repair": True}}, "act.done"),
    ("PUT", "/policy", {"json": {"values": {"heat.promotion": 4.0}}}, "policy.changed"),
    ("DELETE", "/policy", {"params": {"name": "heat.promotion"}}, "policy.changed"),
    ("DELETE", "/users/bob", {}, "erasure.changed"),
    ("PUT", "/holds/alice", {"json": {"reason": "case 7"}}, "hold.placed"),
    ("DELETE", "/holds/alice", {"params": {"reason": "over"}}, "hold.lifted"),
    ("DELETE", "/tenant", {"params": {"confirm": "acme"}}, "erasure.changed"),
]


async def test_every_act_of_an_operator_tells_who_and_when(api: Api, clock: ManualClock) -> None:
    """Each is answered, and stands in the log that `GET /events` reads with the key's name and its time."""
    async with api.client("admin") as admin:
        for method, path, sent, kind in ACTS:
            clock.advance(seconds=1)
            answer = await admin.request(method, path, **sent)
            assert answer.is_success, (path, answer.text)
            listed = await admin.get("/events", params={"kinds": [kind], "before": 2**62, "limit": 1})
            (event,) = listed.json()["items"]
            payload = event["payload"]
            assert payload.get("by", payload.get("receipt", {}).get("by")) == "admin", (path, event)
            assert event["occurred_at"] == clock.now().isoformat().replace("+00:00", "Z")
        listed = await admin.get("/events", params={"kinds": ["act.done"]})
        acts = [(one["payload"]["act"], one["payload"]["user"]) for one in listed.json()["items"]]
    alice = [("export", "alice"), ("import", "alice")]
    assert acts == [*alice, ("load", ""), ("remove", ""), ("switch", ""), ("repair", "")]


async def test_a_person_s_own_export_is_told_too(api: Api) -> None:
    """By that person's key; another tenant's operators are told nothing."""
    async with api.client("alice") as alice, api.client("rival-admin") as rival:
        await alice.get("/export")
        assert (await rival.get("/events")).json()["items"] == []
        assert (await alice.get("/events")).json()["items"] == []
    async with api.client("admin") as admin:
        (event,) = (await admin.get("/events")).json()["items"]
    assert (event["payload"]["act"], event["payload"]["by"]) == ("export", "alice")


async def test_memory_can_be_switched_off_while_the_log_is_away(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What the event log can't tell then, the process's own log tells."""

    async def away(*args: object, **kwargs: object) -> None:
        raise LogUnavailable("gone")

    monkeypatch.setattr(api.engine, "note", away)
    async with api.client("admin") as admin:
        assert (await admin.put("/switches", json={"mode": "off"})).json()["tenant"] == "off"
    assert "the key admin of tenant acme switched: tenant off" in caplog.text


async def test_an_isolated_agent_s_key_can_not_take_out_what_is_of_other_agents(api: Api) -> None:
    """An export is of the whole user."""
    async with api.client("hermit") as hermit:
        answer = await hermit.get("/export")
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:hearth:problem:forbidden")
