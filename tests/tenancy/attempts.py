"""Random requests by keys of one tenant, made of whatever could reach another tenant or user."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from hearth.gateway.api.cursor import write_cursor
from hearth.memory.events.kinds import VERSIONS
from hearth.memory.portable.form import FORMAT, VERSION, Header, Writer
from tests.api import secret
from tests.tenancy.world import QUESTION, USERS, World

ATTACKERS = ("alice", "bob", "reader", "app", "crm", "hermit", "admin")
"""Keys of the tenant that the attempts come from."""
LISTS = ("memories", "exchanges", "sessions", "users", "knowledge")
MODEL_ROUTES = ("chat/completions", "messages", "responses", "completions")
ODD = ("", "*", "%", "..", "' OR 1=1 --", "null", "rivals", "rivals\nalice", "a\x00b", "İ", "x" * 200)
MARK = re.compile(rb"mk[0-9a-f]{14}")
SINCE = datetime(2025, 1, 1, tzinfo=UTC)


class Attempt(NamedTuple):
    """One request, by the key of that name."""

    key: str
    method: str
    path: str
    named: tuple[str, ...]
    """Every user that it names in any place."""
    sent: dict[str, Any]
    """Further arguments of httpx."""


class Dice:
    """Makes attempts against a world; the same seed makes the same ones of the same world."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._dice = random.Random(seed)
        document = world.document
        self._schemas: Mapping[str, Any] = document["components"]["schemas"]
        self._operations = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]
        self._named: list[str] = []
        self._personal = False
        self._pools: dict[str, Callable[[], Any]] = self._make_pools()

    def attempt(self) -> Attempt:
        """The next one."""
        self._named = []
        key = self._dice.choice(ATTACKERS)
        self._personal = self._world.keys[key].personal
        roll = self._dice.random()
        if roll < 0.25:
            return self._model_call(key)
        if roll < 0.3:
            return self._import(key)
        if roll < 0.33:
            return self._command(key)
        return self._api_call(key, *self._dice.choice(self._operations))

    def user(self) -> str:
        """A name, noted as named."""
        chosen = self._dice.choice((*USERS, *USERS, "root", "boss", "ALICE", " alice ", *ODD))
        self._named.append(chosen.strip())
        return chosen

    def id(self) -> str:
        """The id of anything of anybody, or of nothing."""
        pool = self._world.ids[self._dice.choice(sorted(self._world.ids))]
        if not pool or self._dice.random() < 0.1:
            return self._dice.choice((UUID(int=self._dice.getrandbits(128)).hex, *ODD))
        return self._dice.choice(pool)

    def headers(self, key: str) -> dict[str, str]:
        """The key's, and some that name somebody."""
        found = {"authorization": f"Bearer {secret(key)}"}
        given: dict[str, Callable[[], str]] = {
            "x-hearth-user": self.user,
            "x-app-user": self.user,
            "x-hearth-agent": self._agent,
            "x-hearth-session": self._session,
            "x-hearth-tenant": lambda: "rivals",
            "x-forwarded-user": lambda: "alice",
            "x-hearth-memory": lambda: self._dice.choice(("on", "read", "write")),
            "x-litellm-api-key-alias": lambda: "rival",
        }
        for name, value in given.items():
            if self._dice.random() < 0.07:
                found[name] = quote(value(), safe="/:*@ ")
        self._named = [quote(name, safe="/:*@ ") for name in self._named]
        return found

    def _make_pools(self) -> dict[str, Callable[[], Any]]:
        """How a parameter or field of that name is filled."""
        dice = self._dice
        when = lambda: dice.choice(("2025-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-11-28T09:00:00Z"))  # noqa: E731
        return {
            **dict.fromkeys(("user", "user_id"), self.user),
            **dict.fromkeys(("id", "trace"), self.id),
            **dict.fromkeys(("session", "session_id"), self._session),
            **dict.fromkeys(("as_of", "since", "until", "at", "occurred_at", "valid_from"), when),
            "agent": self._agent,
            "name": lambda: dice.choice(("handbook.md", "../rivals/handbook.md", "heat.promotion", *ODD)),
            "cursor": self._cursor,
            **dict.fromkeys(("query", "words", "text", "content", "before"), lambda: QUESTION),
            "known": lambda: dice.choice(("now", "then")),
            "kinds": lambda: [dice.choice(sorted(VERSIONS))],
            "tags": lambda: ["bees"],
            "metadata": lambda: '{"n": 1}',
            "key": lambda: dice.choice((*self._world.keys, *ODD)),
            "confirm": lambda: dice.choice(("rivals", "*", "")),
            "limit": lambda: dice.choice((1, 2, 200)),
            "mode": lambda: "on",
            "values": lambda: {"heat.promotion": 4.0},
            "types": lambda: [dice.choice(("fact", "page", "episode", "knowledge"))],
            "reason": lambda: "because",
            "after": lambda: dice.choice((0, 5, 50)),
        }

    def _agent(self) -> str:
        return self._dice.choice(("default", "rivals", "hermit"))

    def _session(self) -> str:
        return self._dice.choice((*sorted(self._world.sessions), "s", "s", *ODD))

    def _cursor(self) -> str:
        of: Any = self._dice.choice(LISTS)
        return write_cursor(of, self.id(), SINCE if self._dice.random() < 0.7 else None)

    def _api_call(self, key: str, method: str, path: str, operation: Mapping[str, Any]) -> Attempt:
        headers = self.headers(key)
        params: dict[str, Any] = {}
        for parameter in operation.get("parameters", ()):
            name, where = parameter["name"], parameter["in"]
            if where == "path":
                value = self.id() if name == "id" else self._value(name, parameter["schema"])
                path = path.replace("{" + name + "}", quote(str(value), safe="") or "%20")
            elif where == "query" and (parameter.get("required") or self._dice.random() < self._share(name)):
                params[name] = self._value(name, parameter["schema"])
        sent: dict[str, Any] = {"headers": headers, "params": params}
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            sent["json"] = self._object(content["application/json"]["schema"])
        elif content:
            headers["content-type"] = "text/markdown"
            sent["content"] = b"# Nothing\n\nNothing is written here.\n"
        return Attempt(key, method, f"/memory{path}", tuple(self._named), sent)

    def _share(self, name: str) -> float:
        return 0.6 if name == "user" and not self._personal else 0.2

    def _value(self, name: str, schema: Mapping[str, Any]) -> Any:
        if name in self._pools:
            return self._pools[name]()
        return self._of(schema)

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        schema = self._resolved(schema)
        required = schema.get("required", ())
        found = {}
        for name, one in schema.get("properties", {}).items():
            if name in required or self._dice.random() < self._share(name):
                found[name] = {"n": 1} if name == "metadata" else self._value(name, one)
        return found

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" in schema:
            found: Mapping[str, Any] = self._schemas[schema["$ref"].rpartition("/")[2]]
            return found
        return schema

    def _of(self, schema: Mapping[str, Any]) -> Any:
        schema = self._resolved(schema)
        if "anyOf" in schema:
            return self._of(self._dice.choice(schema["anyOf"]))
        if "enum" in schema:
            return self._dice.choice(schema["enum"])
        simple: dict[str, Callable[[], Any]] = {
            "object": lambda: self._object(schema),
            "array": lambda: [self._of(schema.get("items", {}))],
            "integer": lambda: self._dice.choice((1, 2, 7)),
            "number": lambda: 0.5,
            "boolean": lambda: self._dice.random() < 0.5,
            "null": lambda: None,
        }
        return simple.get(schema.get("type", ""), lambda: self._dice.choice(("default", "alice", "s")))()

    def _model_call(self, key: str) -> Attempt:
        route = self._dice.choice(MODEL_ROUTES)
        headers = self.headers(key)
        body: dict[str, Any] = {"model": "m"}
        if route == "responses":
            body["input"] = QUESTION
            if self._dice.random() < 0.4:
                body["previous_response_id"] = self._dice.choice(self._world.ids["responses"])
        elif route == "completions":
            body["prompt"] = QUESTION
        else:
            body["messages"] = [{"role": "user", "content": QUESTION}]
        for name in ("user", "safety_identifier"):
            if self._dice.random() < 0.2:
                body[name] = self.user()
        if self._dice.random() < 0.2:
            body["metadata"] = {"user_id": self.user(), "tenant": "rivals"}
        return Attempt(key, "POST", f"/v1/{route}", tuple(self._named), {"headers": headers, "json": body})

    def _command(self, key: str) -> Attempt:
        """A line of the command line."""
        user, id = self.user().replace("\x00", ""), self.id() or "x"
        of_users = (
            *(("list", "--json"), ("search", QUESTION), ("recall", QUESTION), ("diff", "2025-01-01")),
            *(("why", id), ("timeline", id), ("explain", id), ("forget", id), ("feedback", id, "useful")),
            *(("exchanges",), ("sessions",), ("events", "--json"), ("tiers",), ("pin", id)),
        )
        others = (
            *(("export", user), ("users",), ("policy",), ("knowledge", "show", "handbook.md")),
            *(("hold", "place", user, "--reason", "because"), ("hold", "lift", user, "--reason", "because")),
        )
        line = self._dice.choice((*of_users, *others))
        named = ["--user", user] if line in of_users and self._dice.random() < 0.7 else []
        arguments = [*line, *named, "--key", secret(key)]
        return Attempt(key, "hearth", line[0], (user.strip(),), {"arguments": arguments})

    def _import(self, key: str) -> Attempt:
        """A file of the other tenant's ids, with its own event ids or those of others."""
        headers = {**self.headers(key), "content-type": "application/octet-stream"}
        params = {"user": self.user()} if self._dice.random() < 0.5 else {}
        sent = {"headers": headers, "params": params, "content": self._forged(self._dice.choice(USERS))}
        return Attempt(key, "POST", "/memory/v1/import", tuple(self._named), sent)

    def _forged(self, owner: str) -> bytes:
        writer, lines = Writer(), self._world.files[self._dice.choice(USERS)].splitlines()
        header = Header(format=FORMAT, version=VERSION, tenant="rivals", user=owner, exported_at=SINCE)
        parts = [writer.header(header)]
        ids = self._dice.sample(self._world.ids["events"], len(lines))
        for line, id in zip(lines, ids, strict=True):
            event = json.loads(MARK.sub(b"nothing", line))
            if self._dice.random() < 0.5:
                event["event"]["id"] = id
            parts.append(writer.event(event["event"]["payload"]["kind"], json.dumps(event).encode() + b"\n"))
        return b"".join([*parts, writer.footer()])
