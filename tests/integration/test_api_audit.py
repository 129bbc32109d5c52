"""Who did what: each act of an operator, and each way out and in, is an event with the key's name."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.errors import LogUnavailable
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.types import Scope
from tests.api import Api, document, open_api
from tests.events import ManualClock


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock, extractor=RuleExtractor()) as api:
        yield api


TURN = {"role": "user", "content": "Hello", "at": "2026-01-01T00:00:00Z"}
OF_ALICE: dict[str, Any] = {"params": {"user": "alice"}}
ACTS: list[tuple[str, str, dict[str, Any], str]] = [
    ("GET", "/export", OF_ALICE, "act.done"),
    ("POST", "/import", {"json": {"turns": [TURN]}, **OF_ALICE}, "act.done"),
    ("POST", "/memories", {"json": {"text": "Tea.", "user": "alice"}}, "act.done"),
    ("PATCH", "/memories/{memory}", {"json": {"text": "Green tea."}, **OF_ALICE}, "act.done"),
    ("PUT", "/sessions/{session}/memory", {"json": {"memory": "read"}, **OF_ALICE}, "act.done"),
    ("POST", "/recalls/{recall}/feedback", {"json": {"judgement": "useful", "user": "alice"}}, "act.done"),
    ("POST", "/forgettings/{request}/undo", OF_ALICE, "act.done"),
    ("PUT", "/segments/{segment}/pin", OF_ALICE, "act.done"),
    ("DELETE", "/segments/{segment}/pin", OF_ALICE, "act.done"),
    (
        "PUT",
        "/knowledge/{name}",
        {"content": "# A", "headers": {"content-type": "text/markdown"}},
        "act.done",
    ),
    ("DELETE", "/knowledge/{name}", {}, "act.done"),
    ("PUT", "/switches", {"json": {"mode": "read", "key": "bob"}}, "act.done"),
    ("POST", "/verifications", {"json": {"repair": True}}, "act.done"),
    ("PUT", "/policy", {"json": {"values": {"heat.promotion": 4.0}}}, "policy.changed"),
    ("DELETE", "/policy", {"params": {"name": "heat.promotion"}}, "policy.changed"),
    ("POST", "/system-memory", {"json": {"text": "We close at six."}}, "knowledge.loaded"),
    (
        "POST",
        "/system-memory/approve",
        {"json": {"topic": "speaks=german", "text": "Ja."}},
        "knowledge.loaded",
    ),
    ("POST", "/system-memory/refuse", {"json": {"topic": "speaks=french"}}, "system.refused"),
    ("DELETE", "/system-memory/{text}", {}, "knowledge.removed"),
    ("DELETE", "/memories/{memory}", OF_ALICE, "erasure.changed"),
    ("DELETE", "/exchanges/{exchange}", OF_ALICE, "erasure.changed"),
    ("DELETE", "/sessions/{session}", OF_ALICE, "erasure.changed"),
    ("DELETE", "/users/{bob}", {}, "erasure.changed"),
    ("PUT", "/holds/{alice}", {"json": {"reason": "case 7"}}, "hold.placed"),
    ("DELETE", "/holds/{alice}", {"params": {"reason": "over"}}, "hold.lifted"),
    ("DELETE", "/tenant", {"params": {"confirm": "acme"}}, "erasure.changed"),
]
"""Each route that changes something or hands memory out, as an operator calls it, and the event of it."""
READ = {("POST", "/compare"), ("POST", "/recall"), ("POST", "/memories/search")}
"""Routes that change nothing, though they are no GET."""


def test_each_route_that_changes_something_is_an_act() -> None:
    """A new one has to join those that the next test calls, or be one that reads."""
    changing = {
        (method.upper(), re.sub("{.*?}", "{}", path.removeprefix("/v1")))
        for path, methods in document()["paths"].items()
        for method in methods
        if method != "get" or path.endswith("/export")
    }
    acts = {(method, re.sub("{.*?}", "{}", path)) for method, path, _, _ in ACTS}
    assert acts == changing - READ


async def test_every_act_of_an_operator_tells_who_and_when(api: Api, clock: ManualClock) -> None:
    """Each is written in the log that `GET /events` reads, with the key's name and its time."""
    ids = await _told(api)
    async with api.client("admin") as admin:
        for method, path, sent, kind in ACTS:
            clock.advance(seconds=1)
            answer = await admin.request(method, path.format(**ids), **sent)
            assert answer.is_success or "segments" in path, (path, answer.text)
            listed = await admin.get("/events", params={"kinds": [kind], "before": 2**62, "limit": 1})
            (event,) = listed.json()["items"]
            assert _by(event["payload"]) == "admin", (path, event)
            assert event["occurred_at"] == clock.now().isoformat().replace("+00:00", "Z"), (path, event)
        listed = await admin.get("/events", params={"kinds": ["act.done"]})
        acts = [(one["payload"]["act"], one["payload"]["user"]) for one in listed.json()["items"]]
    alice = [("export", "alice"), ("import", "alice"), *[("write", "alice")] * 7]
    assert acts == [*alice, ("load", ""), ("remove", ""), ("switch", ""), ("repair", "")]


def _by(payload: dict[str, Any]) -> str:
    """Who did it: some say so in the record that they hold."""
    records = [payload, *(one for one in payload.values() if isinstance(one, dict))]
    (by,) = [record["by"] for record in records if "by" in record]
    return str(by)


async def _told(api: Api) -> dict[str, str]:
    """What the acts are about; the log knows no segment of that id, and the act is written all the same."""
    scope = Scope(tenant="acme", user="alice", session="s")
    for number, speaks in itertools.product(range(5), ("German", "French")):
        owner = Scope(tenant="acme", user=f"u{number}")
        await api.engine.remember(owner, f"{speaks}.", attribute="speaks", value=speaks)
    said = [await api.engine.capture(scope, text, "Yes.") for text in ("I live in Bern.", "Hello.")]
    await api.engine.drain()
    asked = await api.engine.capture(scope, "Forget that I live in Bern.", "Done.")
    memory = await api.engine.remember(scope, "Coffee.")
    text = await api.engine.system.add("acme", "We open at nine.", by="admin")
    await api.engine.drain()
    recall = await api.engine.recall(scope, "Where do I live?")
    named = {"request": asked.exchange, "exchange": said[1].exchange, "memory": memory.id, "text": text.id}
    return named | {
        "session": "s",
        "recall": recall.trace,
        "segment": "5e2f",
        "name": "a.md",
        "alice": "alice",
        "bob": "bob",
    }


async def test_one_s_own_memory_is_no_operator_s(api: Api) -> None:
    """What a person, an app for its users, or an operator of their own writes, its own event tells alone."""
    for key, user in (("alice", None), ("app", "alice"), ("admin", None), ("admin", "root")):
        async with api.client(key) as client:
            assert (await client.post("/memories", json={"text": "Tea.", "user": user})).status_code == 201
    async with api.client("admin") as admin:
        assert (await admin.get("/events", params={"kinds": ["act.done"]})).json()["items"] == []


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
