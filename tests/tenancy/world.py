"""A gateway with two tenants whose every text has a mark that says whose it is, and what is known of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from starlette.types import Receive, Scope, Send

from hearth.gateway.keys import Key, key_table
from hearth.memory.events.kinds import Event
from hearth.memory.ports import MemoryFilter
from tests.api import Api, document, open_api, secret
from tests.tenancy.provider import Models

USERS = ("alice", "bob", "carol", "a", "a*", "acme/alice", "rivals/alice", "crm:alice", "用户")
KEYS = {"acme": "app", "rivals": "rival"}
OFFICES = {"acme": "admin", "rivals": "rival-admin"}
QUESTION = "What do I keep with the bees in the old vault?"
MOST = 40
"""Memories of a user beyond which it is erased and begins anew, so that no attempt gets slower."""


LATELY = 300
"""Ids of a sort that are kept from the beginning, and as many of the latest."""


class Owner(NamedTuple):
    """Whose a text is; `user` is empty for what all of a tenant may read, `agent` for no isolated one."""

    tenant: str
    user: str
    agent: str = ""

    @property
    def mark(self) -> str:
        """What stands in every text of theirs, and in nothing else."""
        return "mk" + hashlib.sha256("\n".join(self).encode()).hexdigest()[:14]


class World:
    """The gateway in this process. Everything but `send` is for building and looking, past its keys."""

    def __init__(self, home: Path) -> None:
        self.runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self.api: Api = self.runner.run(self._stack.enter_async_context(open_api(home)))
        self.models = Models(self.api.gateway)
        self.keys: dict[str, Key] = {key.name: key for key in key_table(self.api.gateway.settings.hearth)}
        self.owners: dict[str, Owner] = {}
        self.ids: dict[str, list[str]] = {"recalls": [], "responses": [], "events": [], "segments": []}
        self.sessions: set[str] = set()
        self.files: dict[str, bytes] = {}
        self._seen = 0
        self.runner.run(self._fill())
        self.runner.run(self.happened())

    @property
    def document(self) -> Mapping[str, Any]:
        """The API's OpenAPI document."""
        return document()

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """All routes of the gateway."""
        app = self.api.app if scope["path"].startswith("/memory/") else self.models
        await app(scope, receive, send)

    async def send(self, method: str, path: str, **sent: Any) -> httpx.Response:
        """One request, as it comes over the network."""
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
            return await client.request(method, path, **sent)

    async def ask(self, key: str, method: str, path: str, **sent: Any) -> httpx.Response:
        """A request by the key of that name that must succeed."""
        headers = {"authorization": f"Bearer {secret(key)}", **sent.pop("headers", {})}
        answer = await self.send(method, path, headers=headers, **sent)
        assert answer.is_success, (method, path, answer.text)
        return answer

    async def happened(self) -> list[Event]:
        """The events since this was asked last."""
        new: list[Event] = []
        while found := await self.api.engine.log.read(after=self._seen, limit=500):
            new += found
            self._seen = found[-1].seq
        return new

    async def renew(self) -> None:
        """Give users that have lost everything, or have too much, what they had in the beginning."""
        for user in USERS:
            owner, engine = Owner("acme", user), self.api.engine
            many = await engine.count_memories("acme", user) > MOST
            if many:
                await engine.erase("acme", user)
            if many or not await engine.count_memories("acme", user, where=MemoryFilter(words=owner.mark)):
                await self._told(owner, "app")
                await self.api.engine.drain()
                await self._known("app", user)
        for pool in self.ids.values():
            del pool[LATELY:-LATELY]
        await self.api.engine.drain()
        await self.happened()

    async def kept(self) -> dict[str, bytes]:
        """Everything that is kept of the other tenant, by user, without the moment of looking."""
        found: dict[str, bytes] = {}
        for user in USERS:
            answer = await self.ask("rival", "GET", "/memory/v1/export", params={"user": user})
            found[user] = b"\n".join(line for line in answer.content.splitlines()[1:-1])
        for path in ("policy", "switches", "holds", "erasures", "knowledge/handbook.md"):
            found[path] = (await self.ask("rival-admin", "GET", f"/memory/v1/{path}")).content
        return found

    async def _fill(self) -> None:
        for tenant, key in KEYS.items():
            await self._document(Owner(tenant, ""))
            for user in USERS:
                await self._told(Owner(tenant, user), key)
        await self._told(Owner("acme", "alice", "hermit"), "hermit")
        await self.api.engine.drain()
        for tenant, key in KEYS.items():
            for user in USERS:
                await self._known(key, user)
            for event in await self.api.engine.log.read(limit=2_000, tenant=tenant):
                self.ids["events"].append(event.id)
        self.files = await self.kept()

    async def _document(self, owner: Owner) -> None:
        self.owners[owner.mark] = owner
        await self.ask(
            OFFICES[owner.tenant],
            "PUT",
            "/memory/v1/knowledge/handbook.md",
            content=f"# Bees\n\nWhat everybody keeps with the bees in the old vault is {owner.mark}.\n",
            headers={"content-type": "text/markdown"},
        )

    async def _told(self, owner: Owner, key: str) -> None:
        self.owners[owner.mark] = owner
        named = {} if self.keys[key].personal else {"user": owner.user}
        text = f"I keep {owner.mark} with the bees in the old vault."
        new = {"text": text, "tags": ["bees"], "metadata": {"n": 1}, "session": "s", **named}
        await self.ask(key, "POST", "/memory/v1/memories", json=new)
        said = [
            {"role": "user", "content": text, "at": "2026-01-01T00:00:00Z", "session": "s"},
            {"role": "assistant", "content": "Noted.", "at": "2026-01-01T00:00:01Z", "session": "s"},
        ]
        await self.ask(key, "POST", "/memory/v1/import", json={"turns": said}, params=named)
        answered = await self.ask(key, "POST", "/v1/responses", json={"model": "m", "input": text, **named})
        self.ids["responses"].append(answered.json()["id"])
        self.sessions.add(answered.headers.get("x-hearth-session", "s"))

    async def _known(self, key: str, user: str) -> None:
        found = await self.ask(key, "POST", "/memory/v1/recall", json={"query": QUESTION, "user": user})
        self.ids["recalls"].append(found.json()["id"])
        for what in ("memories", "exchanges"):
            listed = await self.ask(key, "GET", f"/memory/v1/{what}", params={"user": user})
            self.ids.setdefault(what, []).extend(item["id"] for item in listed.json()["items"])

    def close(self) -> None:
        """Stop everything."""
        self.runner.run(self._stack.aclose())
        self.runner.close()

    def marks(self, text: bytes) -> Iterator[Owner]:
        """Whose texts stand in these bytes."""
        if b"mk" in text:
            for mark, owner in self.owners.items():
                if mark.encode() in text:
                    yield owner
