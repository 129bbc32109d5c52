"""Exchanges, sessions, import, recall and erasure over REST."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from hearth.memory.types import ImportedTurn, Query, Scope
from hearth.testing.embedder import ScriptedEmbedder
from tests.api import Api, open_api
from tests.events import ManualClock

LINES = {"content-type": "application/x-ndjson"}


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=clock) as api:
        yield api


def _turns(count: int, session: str = "s1", day: int = 1) -> list[dict[str, Any]]:
    turns = []
    for n in range(count):
        at = f"2026-02-{day:02}T10:{n:02}:00Z"
        turns.append({"role": "user", "content": f"question {n} of {session}", "at": at, "session": session})
        at = f"2026-02-{day:02}T10:{n:02}:30Z"
        turns.append({"role": "assistant", "content": f"answer {n}", "at": at, "session": session})
    return turns


def _ndjson(turns: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(turn) for turn in turns).encode() + b"\n"


async def _walk(client: httpx.AsyncClient, path: str, **params: object) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor: dict[str, object] = {}
    while True:
        page = (await client.get(path, params={**params, **cursor})).json()
        items += page["items"]
        if page["next"] is None:
            return items
        cursor = {"cursor": page["next"]}


async def test_imported_turns_become_exchanges_in_their_sessions(api: Api) -> None:
    """JSON lines come in once, whole, in order, and a second import changes nothing."""
    raw = _ndjson(_turns(7)) + b"\n\r\n" + _ndjson(_turns(3, "s2", day=2))
    async with api.client("alice") as alice:
        for _ in range(2):
            answer = (await alice.post("/import", content=raw, headers=LINES)).json()
            assert (answer["user"], answer["exchanges"], answer["turns"]) == ("alice", 10, 20)
        exchanges = await _walk(alice, "/exchanges", limit=3)
        sessions = await _walk(alice, "/sessions", limit=1)
        only = await _walk(alice, "/exchanges", session="s2")
    asked = [e["user_text"] for e in exchanges]
    assert asked[:3] == ["question 2 of s2", "question 1 of s2", "question 0 of s2"]
    assert asked[3:] == [f"question {n} of s1" for n in range(6, -1, -1)]
    assert [(s["id"], s["exchanges"]) for s in sessions] == [("s2", 3), ("s1", 7)]
    assert [e["session"] for e in only] == ["s2"] * 3


async def test_a_turn_is_found_by_what_was_shown_with_it(api: Api) -> None:
    """The picture's description finds the turn, and the block has the turn's own words alone."""
    turn = {"role": "user", "content": "Look at this!", "at": "2026-02-01T10:00:00Z", "shown": "a red canoe"}
    async with api.client("alice") as alice:
        await alice.post("/import", content=_ndjson([turn]), headers=LINES)
        await api.engine.drain()
        recall = (await alice.post("/recall", json={"query": "red canoe"})).json()
    assert "Look at this!" in recall["block"]
    assert "canoe" not in recall["block"]


async def test_one_document_imports_the_same_as_lines(api: Api) -> None:
    """The JSON form gives the same exchanges, so that mixing both forms doubles nothing."""
    async with api.client("alice") as alice:
        await alice.post("/import", content=_ndjson(_turns(2)), headers=LINES)
        answer = await alice.post("/import", json={"turns": _turns(2)})
        assert answer.json()["exchanges"] == 2
        assert len(await _walk(alice, "/exchanges")) == 2


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (b"{oops", ["line 2"]),
        (b"[]", ["line 2: body"]),
        (b'{"role": "user", "content": "x"}', ["line 2: at"]),
        (b'{"role": "system", "content": "x", "at": "2026-02-01T00:00:00Z"}', ["line 2: role"]),
        (b'{"role": "user", "content": " ", "at": "2026-02-01T00:00:00"}', ["line 2: content", "line 2: at"]),
        (b'{"role": "user", "content": "x", "at": "2999-01-01T00:00:00Z"}', ["line 2: at"]),
        (b'{"role": "user", "content": "x", "at": "2026-02-01T00:00:00Z", "user": "bob"}', ["line 2: user"]),
    ],
)
async def test_a_bad_line_is_named_and_nothing_comes_in(api: Api, line: bytes, fields: list[str]) -> None:
    """Number and fields of the bad line are in the problem, and the good lines before it are not kept."""
    good = _ndjson(_turns(1)[:1])
    async with api.client("alice") as alice:
        answer = await alice.post("/import", content=good + line + b"\n" + good, headers=LINES)
        assert answer.status_code == 422, answer.text
        assert [error["field"] for error in answer.json()["errors"]] == fields
        assert await _walk(alice, "/exchanges") == []


async def test_an_import_without_turns_or_as_another_document_is_refused(api: Api) -> None:
    """Nothing to import is a 422, not a success of zero."""
    async with api.client("alice") as alice:
        for content in (b"", b"\n\n"):
            assert (await alice.post("/import", content=content, headers=LINES)).status_code == 422
        for document in ({}, {"turns": []}, {"turns": 1}, [], {"turns": [], "user": "bob"}):
            assert (await alice.post("/import", json=document)).status_code == 422
        broken = await alice.post("/import", content=b"{", headers={"content-type": "application/json"})
        assert broken.status_code == 400


async def test_case_04_a_foreign_exchange_answers_like_an_unknown_one(api: Api) -> None:
    """GET and DELETE of another user's exchange are 404 with the body of a random id's."""
    async with api.client("alice") as alice, api.client("bob") as bob:
        await alice.post("/import", content=_ndjson(_turns(1)), headers=LINES)
        await api.engine.drain()
        (exchange,) = await _walk(alice, "/exchanges")
        for method in ("GET", "DELETE"):
            foreign = await bob.request(method, f"/exchanges/{exchange['id']}")
            unknown = await bob.request(method, f"/exchanges/{uuid4().hex}")
            assert (foreign.status_code, foreign.content) == (404, unknown.content)
        assert (await alice.get(f"/exchanges/{exchange['id']}")).json() == exchange


async def test_case_19_a_forgotten_exchange_is_gone_from_lists_search_and_recall(api: Api) -> None:
    """After DELETE the exchange is found nowhere, though it was found everywhere before."""
    async with api.client("alice") as alice:
        turns = [
            {"role": "user", "content": "I keep bees in Oslo", "at": "2026-02-01T10:00:00Z"},
            {"role": "assistant", "content": "Lovely.", "at": "2026-02-01T10:00:05Z"},
        ]
        await alice.post("/import", content=_ndjson(turns), headers=LINES)
        await api.engine.drain()
        (exchange,) = await _walk(alice, "/exchanges")
        body = {"query": "I keep bees in Oslo"}
        found = (await alice.post("/memories/search", json=body)).json()["items"]
        assert [f["record"]["reply"] for f in found] == ["Lovely."]
        answer = await alice.delete(f"/exchanges/{exchange['id']}")
        assert (answer.status_code, answer.json()["done"]) == (200, True)
        assert await _walk(alice, "/exchanges") == []
        assert (await alice.post("/memories/search", json=body)).json()["items"] == []
        assert (await alice.post("/recall", json=body)).json()["items"] == []
        assert (await alice.delete(f"/exchanges/{exchange['id']}")).status_code == 404


async def test_case_21_nothing_of_an_erased_user_comes_back(api: Api) -> None:
    """After an erasure lists, search and recall are empty, at once and when all work is done."""
    async with api.client("alice") as alice:
        await alice.post("/memories", json={"text": "I keep bees"})
        await alice.post("/import", content=_ndjson(_turns(3)), headers=LINES)
        erased = (await alice.delete("/users/alice")).json()
        assert (erased["user"], erased["done"], erased["pending"]) == ("alice", True, [])
        for _ in range(2):
            assert (await alice.get("/memories")).json()["total"] == 0
            assert await _walk(alice, "/exchanges") == []
            assert await _walk(alice, "/sessions") == []
            assert (await alice.post("/memories/search", json={"query": "bees"})).json()["items"] == []
            assert (await alice.post("/recall", json={"query": "bees"})).json()["block"] == ""
            await api.engine.drain()
        new = (await alice.post("/memories", json={"text": "I keep goats"})).json()
        assert [m["id"] for m in (await alice.get("/memories")).json()["items"]] == [new["id"]]


async def test_case_15_recall_leaves_out_what_does_not_help(tmp_path: Path) -> None:
    """A far memory gives an empty block, a near one is in it, and each candidate says why."""
    text = "customer number 12345"
    near, far = "What is my customer number?", "What is 17 % of 900?"
    embedder = ScriptedEmbedder({near: {text: 0.9}, far: {text: 0.12}})
    async with open_api(tmp_path, embedder=embedder) as api, api.client("alice") as alice:
        memory = (await alice.post("/memories", json={"text": text})).json()
        await api.engine.drain()
        missed = (await alice.post("/recall", json={"query": far})).json()
        helped = (await alice.post("/recall", json={"query": near})).json()
        empty = (await alice.post("/recall", json={"query": near, "budget": 0})).json()
    assert (missed["block"], missed["tokens"]) == ("", 0)
    assert "in" not in {item["verdict"] for item in missed["items"]}
    assert text in helped["block"]
    assert [(i["id"], i["verdict"]) for i in helped["items"]] == [(memory["id"], "in")]
    assert helped["items"][0]["record"]["text"] == text
    assert empty["block"] == ""


async def test_a_recall_over_the_key_s_budget_is_refused(api: Api) -> None:
    """The key's most tokens are named; a blank question is no question."""
    async with api.client("alice") as alice:
        over = await alice.post("/recall", json={"query": "bees", "budget": 1_000_000})
        blank = await alice.post("/recall", json={"query": " "})
        zone = await alice.post("/recall", json={"query": "bees", "timezone": "Mars/Base"})
    assert over.json()["errors"][0] == {
        "field": "budget",
        "value": 1_000_000,
        "expected": "at most 8192 tokens",
    }
    assert blank.json()["errors"][0]["field"] == "query"
    assert zone.json()["errors"][0]["field"] == "timezone"


async def test_a_trace_explains_a_recall_and_shows_what_is_forgotten_without_text(api: Api) -> None:
    """Texts are joined when a trace is read: a record that is gone has none, and no other key the trace."""
    async with api.client("alice") as alice, api.client("bob") as bob:
        kept = (await alice.post("/memories", json={"text": "likes green tea"})).json()
        gone = (await alice.post("/memories", json={"text": "likes black tea"})).json()
        await api.engine.drain()
        recall = (await alice.post("/recall", json={"query": "likes green tea"})).json()
        assert {item["id"] for item in recall["items"]} == {kept["id"], gone["id"]}
        await alice.delete(f"/memories/{gone['id']}")
        trace = (await alice.get(f"/recalls/{recall['id']}")).json()
        foreign = await bob.get(f"/recalls/{recall['id']}")
        unknown = await bob.get(f"/recalls/{uuid4().hex}")
    items = {item["id"]: item for item in trace["items"]}
    assert items[kept["id"]]["record"]["text"] == "likes green tea"
    assert (items[gone["id"]]["forgotten"], items[gone["id"]]["record"]) == (True, None)
    assert [i["score"] for i in trace["items"]] == [i["score"] for i in recall["items"]]
    assert (foreign.status_code, foreign.content) == (404, unknown.content)


async def test_a_trace_shows_an_exchange_that_is_not_yet_a_page(api: Api) -> None:
    """What recall took from short-term memory before the worker saw it has its text in the trace."""
    await api.engine.worker.stop()
    scope = Scope(tenant="acme", user="alice", session="s1")
    opened = await api.engine.capture(scope, "I keep bees in Oslo", "Lovely.")
    async with api.client("alice") as alice:
        recall = (await alice.post("/recall", json={"query": "I keep bees in Oslo"})).json()
        assert [item["id"] for item in recall["items"]] == [opened.exchange]
        trace = (await alice.get(f"/recalls/{recall['id']}")).json()
    assert trace["items"][0]["record"]["text"] == "I keep bees in Oslo"
    assert not trace["items"][0]["forgotten"]


async def test_an_isolated_agent_walks_its_own_exchanges_alone(api: Api) -> None:
    """Lists of an isolated agent leave out others' exchanges, and pages stay full."""
    shared = Scope(tenant="acme", user="alice", session="s1")
    own = Scope(tenant="acme", user="alice", agent="hermit", session="s2", isolated=True)
    turns = [ImportedTurn(**{**turn, "at": _at(turn["at"])}) for turn in _turns(5, "")]
    await api.engine.import_turns(shared, turns)
    await api.engine.import_turns(own, turns)
    async with api.client("hermit") as hermit, api.client("alice") as alice:
        page = (await hermit.get("/exchanges", params={"limit": 3})).json()
        everything = await _walk(hermit, "/exchanges", limit=2)
        sessions = await _walk(hermit, "/sessions", limit=1)
        foreign = next(e for e in await _walk(alice, "/exchanges") if e["session"] == "s1")
        assert (await hermit.get(f"/exchanges/{foreign['id']}")).status_code == 404
    assert len(page["items"]) == 3
    assert [e["session"] for e in everything] == ["s2"] * 5
    assert [s["id"] for s in sessions] == ["s2"]


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_a_recall_says_how_its_question_was_read(api: Api) -> None:
    """Text, words, time, budget and floor come with the recall, and with its origin each."""
    question = {"query": "What did I do in May?", "before": "Tell me of my year.", "timezone": "Asia/Tokyo"}
    async with api.client("alice") as alice:
        plain = (await alice.post("/recall", json=question)).json()["analysis"]
        asked = {**question, "query": "And in May?", "budget": 99, "model": "gpt-4o-mini"}
        short = (await alice.post("/recall", json=asked)).json()["analysis"]
    assert (plain["text"], plain["before"]) == (question["query"], False)
    assert all(re.fullmatch(r"\d{4}-05-01 to \d{4}-05-31", one) for one in plain["time"])
    assert plain["time"]
    assert "may" in plain["words"]
    assert (plain["budget"], plain["budget_from"], plain["timezone"]) == (1024, "settings", "Asia/Tokyo")
    assert (plain["floor"], plain["floor_from"]) == (0.5, "embedder")
    assert (short["text"], short["before"]) == ("Tell me of my year.\nAnd in May?", True)
    assert (short["budget"], short["budget_from"], short["model"]) == (99, "request", "gpt-4o-mini")


async def test_an_earlier_recall_shows_its_question_from_the_log(api: Api, clock: ManualClock) -> None:
    """The trace holds no text: its question is the captured exchange's, and goes when that is forgotten."""
    scope = Scope(tenant="acme", user="alice", session="s1")
    first = await api.engine.capture(scope, "Tell me of my dog.", "Zebedee is well.")
    clock.advance(seconds=1)
    query = Query(text="And now?", before="Zebedee is well.", at=clock.now())
    recall = await api.engine.recall(first.scope, query)
    opened = await api.engine.capture(first.scope, "And now?", "Still well.", recall=recall)
    clock.advance(seconds=1)
    await api.engine.capture(first.scope, "Good.", "Yes.")
    async with api.client("alice") as alice:
        shown = (await alice.get(f"/recalls/{recall.trace}")).json()["analysis"]
        await alice.delete(f"/exchanges/{opened.exchange}")
        gone = (await alice.get(f"/recalls/{recall.trace}")).json()["analysis"]
    assert shown["text"] == "Zebedee is well.\nAnd now?"
    assert (gone["text"], gone["words"], gone["time"], gone["before"]) == (None, None, None, True)


async def test_nobody_else_sees_a_recall(api: Api) -> None:
    """An isolated agent's key sees its own alone, and after an erasure nobody sees it, in any process."""
    async with api.client("alice") as alice, api.client("hermit") as hermit:
        recall = (await alice.post("/recall", json={"query": "bees"})).json()["id"]
        assert (await alice.get(f"/recalls/{recall}")).status_code == 200
        assert (await hermit.get(f"/recalls/{recall}")).status_code == 404
        kept = await api.engine.trace("acme", "alice", recall)
        await alice.delete("/users/alice")
        api.engine.traces.add(kept)  # as the ring of another gateway still has it
        assert (await alice.get(f"/recalls/{recall}")).status_code == 404


async def test_the_zone_in_the_header_counts_as_in_the_body(api: Api) -> None:
    """Whose clock a named time is read by; a name that is none is refused."""
    async with api.client("alice") as alice:
        named = {"x-hearth-timezone": "Pacific/Auckland"}
        by_header = await alice.post("/recall", json={"query": "What did I do last week?"}, headers=named)
        wrong = await alice.post("/recall", json={"query": "bees"}, headers={"x-hearth-timezone": "No/Zone"})
    assert by_header.json()["analysis"]["timezone"] == "Pacific/Auckland"
    assert wrong.status_code == 422
    assert wrong.json()["errors"][0]["field"] == "x-hearth-timezone"
