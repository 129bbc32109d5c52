"""Files of other programs over REST: samples come in whole and once, hostile ones not at all."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hearth.memory.ports import MemoryFilter
from tests.api import Api, open_api
from tests.events import ManualClock

SAMPLES = Path(__file__).parents[1] / "fixtures" / "imports"
FILE = {"content-type": "application/octet-stream"}


@pytest.fixture(name="api")
async def _api(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Api]:
    limits = {"max_mb": 4, "max_record_mb": 1, "max_ratio": 20, "max_records": 1_000}
    async with open_api(tmp_path, clock=clock, settings={"imports": limits}) as api:
        yield api


def _zipped(name: str, raw: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr(name, raw)
    return made.getvalue()


def _sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


async def _send(api: Api, raw: bytes, key: str = "alice", **params: Any) -> dict[str, Any]:
    async with api.client(key) as client:
        answer = await client.post("/import", content=raw, headers=FILE, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


WHAT = {
    "openai.jsonl": ("openai", {"turns": 4, "exchanges": 2, "memories": 0}, {"not said": 3}),
    "chatgpt.json": ("chatgpt", {"turns": 2, "exchanges": 1, "memories": 0}, {"not said": 4}),
    "claude.json": ("claude", {"turns": 2, "exchanges": 1, "memories": 0}, {"empty": 1}),
    "mem0.json": ("mem0", {"turns": 0, "memories": 1}, {"assistant's words": 1, "other user": 1}),
    "zep.json": ("zep", {"turns": 2, "exchanges": 1, "memories": 2}, {"not said": 1}),
    "litellm.jsonl": ("litellm", {"turns": 4, "exchanges": 2}, {"other user": 1, "no text kept": 1}),
}


@pytest.mark.parametrize("name", WHAT)
async def test_a_sample_comes_in_once(api: Api, name: str) -> None:
    """Its format is found, what was said and known is counted, and a second time nothing is new."""
    format, counts, skipped = WHAT[name]
    first = await _send(api, _sample(name))
    assert first["format"] == format
    assert counts.items() <= first.items()
    assert first["skipped"] == skipped
    assert first["added"] == first["exchanges"] + first["memories"]
    again = await _send(api, _sample(name), **{"from": format})
    assert again["added"] == 0
    assert again["skipped"] == skipped | {"known": first["added"]}


async def test_a_sample_keeps_times_sessions_and_speakers(api: Api) -> None:
    """A zip of conversations gives the branch that was seen; secrets are masked, and the reply is no fact."""
    done = await _send(api, _zipped("export/conversations.json", _sample("chatgpt.json")))
    assert done["format"] == "chatgpt"
    await _send(api, _zipped("conversations.json", _sample("claude.json")))
    await api.engine.drain()
    claude, chatgpt = await api.engine.exchanges("acme", "alice")
    assert chatgpt.scope.session == "6650b2aa-0000-4000-8000-000000000001"
    assert chatgpt.started_at.isoformat() == "2024-05-24T10:00:00.500000+00:00"
    assert chatgpt.user_text.startswith("I moved to Utrecht. My key is [secret:")
    assert chatgpt.reply_text == "You live in Berlin, I believe. Utrecht is lovely."
    assert claude.reply_text == "How many hives?"
    facts = await api.engine.memories("acme", "alice")
    assert {fact.value for fact in facts if fact.attribute == "residence"} == {"Utrecht"}
    assert "FAKE0123" not in json.dumps([fact.text for fact in facts])


async def test_memories_of_others_keep_their_times(api: Api) -> None:
    """Created, updated, valid and ended as the source says; its ids are told apart by user."""
    await _send(api, _sample("mem0.json"))
    await _send(api, _sample("zep.json"))
    where = MemoryFilter(include_superseded=True)
    found = {m.text: m for m in await api.engine.memories("acme", "alice", where=where)}
    kiwi, adidas = found["Is allergic to kiwi"], found["Alice loves Adidas shoes"]
    assert kiwi.created_at.isoformat() == "2024-08-26T23:24:15+00:00"
    assert (kiwi.tags, kiwi.metadata) == (("health",), {"source": "mem0", "form": 7})
    assert adidas.valid_to is not None
    assert adidas.valid_to.isoformat() == "2024-09-01T00:00:00+00:00"
    current = await api.engine.memories("acme", "alice")
    assert "Alice loves Adidas shoes" not in {m.text for m in current}
    everybody = await _send(api, _sample("mem0.json"), "bob", source_user="*")
    assert everybody["memories"] == 2


def _deep(levels: int) -> bytes:
    return b'[{"chat_messages": ' + b"[" * levels + b"]" * levels + b"}]"


HOSTILE = {
    "cut off": (_sample("claude.json")[:400], "record 1"),
    "deep": (_deep(100_000), "record 1"),
    "wrong types": (b'[{"chat_messages": [{"sender": 7}]}]', "record 1"),
    "second record": (_sample("openai.jsonl") + b'{"messages": 1}\n', "record 3"),
    "no time": (b'{"messages": [{"role": "user", "content": "hi"}]}', "record 1"),
    "future": (b'{"messages": [{"role": "user", "content": "hi"}], "created": 4000000000}', "record 1"),
    "large record": (b'{"messages": [], "id": "' + b"x" * 2_000_000 + b'"}', "record 1"),
    "many records": (b'{"messages": []}\n' * 1_001, "record 1001"),
    "empty": (b" \n", "file"),
    "unknown": (b'{"hello": "world"}', "format"),
    "no archive": (b"PK\x03\x04 no zip at all", "archive"),
    "no conversations": (_zipped("other.json", b"[]"), "archive"),
    "zip bomb": (_zipped("conversations.json", b"[" + b" " * 3_000_000 + b"]"), "conversations.json"),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_broken_or_hostile_file_leaves_nothing(api: Api, case: str) -> None:
    """The answer names the record, and nothing of the file is kept."""
    raw, place = HOSTILE[case]
    async with api.client("alice") as alice:
        answer = await alice.post("/import", content=raw, headers=FILE)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"] == place
        large = await alice.post("/import", content=b"x" * 4_100_000, headers=FILE)
        assert large.status_code == 413
    assert await api.engine.exchanges("acme", "alice") == []
