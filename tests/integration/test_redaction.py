"""Personal data by choice: the provider gets it, and nothing that is stored has it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from hearth.memory.embed.use import UseEmbedder
from hearth.memory.errors import LogUnavailable
from hearth.memory.types import ImportedTurn, Scope, Vector
from tests.api import Api, open_api
from tests.events import ManualClock
from tests.flow import Talker, exchanges

MAIL = "anna.keller@example.com"
PHONE = "+41 44 668 18 00"
TEXT = f"I live in Oslo, my mail is {MAIL} and my phone is {PHONE}"
KEPT = "I live in Oslo, my mail is [personal:email] and my phone is [personal:phone]"
ALICE = Scope(tenant="acme", user="alice")
SETTINGS = {"capture": {"redact": ["email"]}, "tenants": {"acme": {"redact": ["email", "phone"]}}}


class Noting(UseEmbedder):
    """Notes the texts that it embeds to be stored."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[str] = []

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """As the fast one, unnoted: nothing of a question is stored."""
        return super().embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """As the fast one."""
        self.stored += texts
        return super().embed_documents(texts)


@pytest.fixture(name="embedder", scope="module")
def _embedder() -> Noting:
    return Noting()


@pytest.fixture(name="api")
async def _api(tmp_path: Path, embedder: Noting) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=ManualClock(), embedder=embedder, settings=SETTINGS) as api:
        yield api


async def test_case_50_personal_data_reaches_the_provider_and_no_store(api: Api, embedder: Noting) -> None:
    """Neither log, short-term nor long-term memory, what is embedded for them, nor an export has it."""
    talker = Talker(api.gateway.flow, api.engine.clock)  # type: ignore[arg-type]
    await talker.say(TEXT, f"Noted: {MAIL}, {PHONE}.")
    assert TEXT in talker.prompt()
    assert (await exchanges(api.gateway.flow))[0][:2] == (KEPT, "Noted: [personal:email], [personal:phone].")
    async with api.client("alice") as alice:
        added = await alice.post("/memories", json={"text": TEXT, "attribute": "contact", "value": MAIL})
        await alice.patch(f"/memories/{added.json()['id']}", json={"value": PHONE})
    await api.engine.import_turns(ALICE, [ImportedTurn(role="user", content=TEXT, at=api.engine.clock.now())])
    async with api.client("admin") as admin:
        kind = {"content-type": "text/markdown"}
        loaded = await admin.put("/knowledge/people", content=f"# People\n\n{TEXT}", headers=kind)
        assert loaded.status_code < 300
        assert (await admin.post("/system-memory", json={"text": f"Ask {MAIL}."})).status_code < 300
    await api.engine.drain()
    places = {
        "log": str(await api.engine.log.read(tenant="acme")),
        "short-term": str(await api.engine.view(ALICE)),
        "long-term": str(await api.engine.search(ALICE, "mail and phone")),
        "recall": (await api.engine.recall(ALICE, "What is my mail?")).block.text,
        "embedded": "\n".join(embedder.stored),
        "export": b"".join([part async for part in api.engine.porter.export(ALICE)]).decode(),
        "readable": b"".join([part async for part in api.engine.porter.markdown(ALICE)]).decode(),
    }
    assert {name for name, text in places.items() if MAIL in text or PHONE in text} == set()
    assert {name for name, text in places.items() if "[personal:email]" in text} >= {
        "log",
        "short-term",
        "export",
    }


async def test_the_spool_has_the_marker_alone(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for the log is masked already."""

    async def away(events: object) -> None:
        raise LogUnavailable("away")

    monkeypatch.setattr(api.engine.log, "append", away)
    await Talker(api.gateway.flow, api.engine.clock).say(TEXT)  # type: ignore[arg-type]
    waiting = b"".join(path.read_bytes() for path in (tmp_path / "spool").rglob("*") if path.is_file())
    assert b"[personal:email]" in waiting
    assert MAIL.encode() not in waiting
    monkeypatch.undo()


async def test_a_key_says_otherwise_and_other_tenants_have_the_installations(api: Api) -> None:
    """Set for a key while the gateway runs, in place of the tenant's; a wrong kind is refused by its name."""
    async with api.client("admin") as admin:
        refused = await admin.put("/policy", json={"values": {"capture.redact": "names"}, "key": "alice"})
        assert refused.status_code == 422
        assert "national-id" in refused.text
        done = await admin.put("/policy", json={"values": {"capture.redact": ""}, "key": "alice"})
        assert done.status_code == 200, done.text
    texts = {}
    for key, user in (("alice", None), ("bob", None), ("rival", "eve")):
        async with api.client(key) as client:
            added = await client.post("/memories", json={"text": TEXT, **({"user": user} if user else {})})
            texts[key] = added.json()["text"]
    assert texts == {"alice": TEXT, "bob": KEPT, "rival": KEPT.replace("[personal:phone]", PHONE)}
