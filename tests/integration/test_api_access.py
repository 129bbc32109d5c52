"""Who may reach whose memory over REST: keys, named users, agents and tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api import Api, open_api


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    async with open_api(tmp_path) as api:
        yield api


KEYED = [
    ("POST", "/memories"),
    ("GET", "/memories"),
    ("POST", "/memories/search"),
    ("GET", "/memories/x"),
    ("PATCH", "/memories/x"),
    ("DELETE", "/memories/x"),
    ("GET", "/exchanges"),
    ("GET", "/exchanges/x"),
    ("DELETE", "/exchanges/x"),
    ("GET", "/sessions"),
    ("POST", "/recall"),
    ("GET", "/recalls/x"),
    ("POST", "/recalls/x/feedback"),
    ("POST", "/import"),
    ("GET", "/scopes"),
    ("GET", "/users"),
    ("DELETE", "/users/alice"),
    ("GET", "/switches"),
    ("PUT", "/switches"),
    ("GET", "/events"),
    ("GET", "/events/counts"),
    ("POST", "/verifications"),
    ("GET", "/health"),
]


@pytest.mark.parametrize("call", KEYED, ids=lambda call: " ".join(call))
async def test_every_route_refuses_a_caller_without_a_valid_key(api: Api, call: tuple[str, str]) -> None:
    """No key, an unknown key and a key's name are 401 before a body is read, however bad it is."""
    method, path = call
    for headers in ({}, {"authorization": "Bearer sk-nope"}, {"x-api-key": "alice"}):
        async with api.client(None, **headers) as nobody:
            answer = await nobody.request(method, path, content=b"{not json")
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"] == "urn:hearth:problem:no-key"


async def test_a_key_is_taken_from_either_header(api: Api) -> None:
    """A bearer token and x-api-key mean the same."""
    async with api.client(None, **{"x-api-key": "sk-hearth-test-alice"}) as client:
        assert (await client.get("/scopes")).json()["user"] == "alice"


async def test_a_key_does_no_more_than_its_scopes_say(api: Api) -> None:
    """A read key writes and deletes nothing; a key without admin sees neither users nor switches."""
    async with api.client("alice") as alice, api.client("reader") as reader:
        memory = (await alice.post("/memories", json={"text": "likes tea"})).json()
        assert (await reader.get(f"/memories/{memory['id']}")).status_code == 200
        for answer in (
            await reader.post("/memories", json={"text": "x"}),
            await reader.patch(f"/memories/{memory['id']}", json={"text": "x"}),
            await reader.delete(f"/memories/{memory['id']}"),
            await reader.delete("/users/alice"),
            await reader.post("/recalls/x/feedback", json={"judgement": "useful"}),
            await reader.post("/import", content=b"", headers={"content-type": "application/x-ndjson"}),
            await alice.get("/users"),
            await alice.get("/switches"),
            await alice.put("/switches", json={"mode": "off"}),
        ):
            assert answer.status_code == 403, answer.request.url
            assert answer.json()["type"] == "urn:hearth:problem:forbidden"
        assert (await alice.get("/memories")).json()["items"] == [memory]


async def test_case_02_a_person_s_key_reaches_that_person_however_another_is_named(api: Api) -> None:
    """With bob's key alice's name in header, parameter, body or path is 403, and nothing is written."""
    async with api.client("alice") as alice, api.client("bob") as bob:
        await alice.post("/memories", json={"text": "alice's secret"})
        named = {"x-hearth-user": "alice"}
        for answer in (
            await bob.get("/memories", headers=named),
            await bob.get("/memories", params={"user": "alice"}),
            await bob.get("/exchanges", params={"user": "alice"}),
            await bob.get("/sessions", headers=named),
            await bob.post("/memories", json={"text": "x", "user": "alice"}),
            await bob.post("/memories/search", json={"query": "secret", "user": "alice"}),
            await bob.post("/recall", json={"query": "secret", "user": "alice"}),
            await bob.delete("/users/alice"),
        ):
            assert answer.status_code == 403, answer.request.url
            assert "alice's secret" not in answer.text
        assert (await bob.get("/memories")).json()["total"] == 0
        assert (await bob.get("/memories", headers={"x-hearth-user": "bob"})).status_code == 200
        assert (await alice.get("/memories")).json()["total"] == 1


async def test_case_02_a_user_header_given_twice_is_refused(api: Api) -> None:
    """Two values of one header are a 400, for an app and for a person."""
    for key in ("app", "bob"):
        async with api.client(key) as client:
            twice = [("x-hearth-user", "bob"), ("x-hearth-user", "alice")]
            assert (await client.get("/memories", headers=twice)).status_code == 400


async def test_an_app_must_name_one_user(api: Api) -> None:
    """An app that names nobody or two users is refused; every place counts."""
    async with api.client("app") as app:
        nobody = await app.get("/memories")
        two = await app.get("/memories", params={"user": "u1"}, headers={"x-hearth-user": "u2"})
        body = await app.post("/memories", json={"text": "x", "user": "u1"}, headers={"x-hearth-user": "u2"})
        repeated = await app.get("/memories", params=[("user", "u1"), ("user", "u2")])
        for answer in (nobody, two, body, repeated):
            assert answer.status_code == 400, answer.text
            assert answer.json()["errors"][0]["field"] == "user"
        await app.post("/memories", json={"text": "x"}, headers={"x-app-user": "u1"})
        same = await app.get("/memories", params={"user": "u1"}, headers={"x-hearth-user": "u1"})
        assert same.json()["total"] == 1


async def test_a_namespace_keeps_two_apps_users_apart(api: Api) -> None:
    """The user 7 of an app with a namespace is not the user 7 of another app."""
    async with api.client("crm") as crm, api.client("app") as app, api.client("admin") as admin:
        added = (await crm.post("/memories", json={"text": "x", "user": "7"})).json()
        assert added["user"] == "crm:7"
        assert (await app.get("/memories", params={"user": "7"})).json()["total"] == 0
        assert (await admin.get("/memories", params={"user": "crm:7"})).json()["total"] == 1


STRANGE = [
    "a",
    "a-b",
    "550e8400-e29b-41d4-a716-446655440000",
    "x@y.example",
    "team/a:b",
    "a:b",
    "a_b",
    "a b",
    "*",
    "a*",
    "a{b}",
    "a|b",
    "用户1",
    "%2e%2e",
    "..",
]


async def test_case_06_strange_user_ids_keep_their_own_memories(api: Api) -> None:
    """Every id finds exactly its own memory by list, search and recall; erasing one erases no other."""
    async with api.client("app") as app:
        for number, user in enumerate(STRANGE):
            text = f"my number is {number}"
            answer = await app.post("/memories", json={"text": text}, params={"user": user})
            assert answer.json()["user"] == user
        await api.engine.drain()
        for number, user in enumerate(STRANGE):
            listed = (await app.get("/memories", params={"user": user})).json()
            found = (await app.post("/memories/search", json={"query": "number", "user": user})).json()
            assert [m["text"] for m in listed["items"]] == [f"my number is {number}"]
            assert [f["record"]["text"] for f in found["items"]] == [f"my number is {number}"]
        assert (await app.delete("/users/a")).json()["done"]
        assert (await app.delete("/users/team%2Fa%3Ab")).json()["user"] == "team/a:b"
        for user in STRANGE:
            total = (await app.get("/memories", params={"user": user})).json()["total"]
            assert total == (0 if user in ("a", "team/a:b") else 1), user


@pytest.mark.parametrize("user", ["u" * 300, "a\nb", "a\x00b", '{"a": 1}', "null", "  "])
async def test_case_06_an_unusable_user_id_is_refused(api: Api, user: str) -> None:
    """Over-long ids, control characters, JSON and empty values' names are a 400 that says what an id is."""
    async with api.client("app") as app:
        answer = await app.get("/memories", params={"user": user})
    assert answer.status_code == 400
    assert answer.json()["type"] == "urn:hearth:problem:identity"


async def test_an_isolated_agent_sees_and_changes_its_own_memories_alone(api: Api) -> None:
    """An isolated agent's key reads none of the shared memories, and search by others none of its own."""
    async with api.client("alice") as alice, api.client("hermit") as hermit:
        shared = (await alice.post("/memories", json={"text": "likes tea"})).json()
        own = (await hermit.post("/memories", json={"text": "likes tea alone"})).json()
        assert own["agent"] == "hermit"
        assert (await hermit.get(f"/memories/{shared['id']}")).status_code == 404
        assert [m["id"] for m in (await hermit.get("/memories")).json()["items"]] == [own["id"]]
        other = await hermit.get("/memories", params={"agent": "default"})
        assert other.status_code == 422
        await api.engine.drain()
        body = {"query": "likes tea"}
        for client, expected in ((alice, shared), (hermit, own)):
            found = (await client.post("/memories/search", json=body)).json()["items"]
            assert [f["record"]["id"] for f in found] == [expected["id"]]


async def test_numbers_of_an_isolated_agent_are_by_the_owner(api: Api) -> None:
    """What others told an agent of its name, and forgot of that, is in neither of its counts."""
    since = api.engine.clock.now().isoformat()
    api.engine.clock.advance(seconds=60)  # type: ignore[attr-defined]
    async with api.client("alice", **{"x-hearth-agent": "hermit"}) as alice, api.client("hermit") as hermit:
        for client, count in ((alice, 3), (hermit, 2)):
            made = [
                (await client.post("/memories", json={"text": f"Fact {n}."})).json() for n in range(count)
            ]
            await client.delete(f"/memories/{made[0]['id']}")
        api.engine.clock.advance(seconds=60)  # type: ignore[attr-defined]
        for client, forgotten, added in ((alice, 2, 3), (hermit, 1, 1)):
            found = (await client.get("/diff", params={"since": since})).json()
            assert (found["forgotten_memories"], len(found["learned"])) == (forgotten, added)
        flow = (await hermit.get("/tiers")).json()["flow"]
        told = (await hermit.get("/events", params={"kinds": ["memory.forgotten"]})).json()["items"]
    assert flow["memories_added"] == 1  # of those that there still are
    assert len(told) == 1


async def test_scopes_say_what_a_key_may_reach(api: Api) -> None:
    """A person's, an app's and an admin's key each learn their tenant, user, agent and access."""
    wanted = {
        "alice": ("acme", "alice", False, "", "default", ["read", "write"]),
        "crm": ("acme", None, True, "crm", "default", ["read", "write"]),
        "admin": ("acme", "root", True, "", "default", ["admin", "read", "write"]),
        "hermit": ("acme", "alice", False, "", "hermit", ["read", "write"]),
    }
    for name, expected in wanted.items():
        async with api.client(name) as client:
            said = (await client.get("/scopes")).json()
        names = ("tenant", "user", "names_users", "namespace", "agent", "access")
        assert (said["key"], *(said[n] for n in names)) == (name, *expected)
        assert said["isolated"] is (name == "hermit")


async def test_an_admin_reaches_every_user_of_the_tenant_and_none_of_another(api: Api) -> None:
    """Users, events and memories of the tenant are the admin's to see; another tenant's are nowhere."""
    async with (
        api.client("alice") as alice,
        api.client("rival") as rival,
        api.client("admin") as admin,
        api.client("rival-admin") as boss,
    ):
        await alice.post("/memories", json={"text": "acme's alice"})
        await rival.post("/memories", json={"text": "the rivals' alice", "user": "alice"})
        for client, text in ((admin, "acme's alice"), (boss, "the rivals' alice")):
            page = (await client.get("/memories", params={"user": "alice"})).json()
            assert [m["text"] for m in page["items"]] == [text]
            assert (await client.get("/users")).json() == {"items": [{"id": "alice"}], "next": None}
            events = (await client.get("/events")).json()["items"]
            assert [e["payload"]["memory"]["text"] for e in events] == [text]
        assert (await boss.delete("/users/alice")).json()["done"]
        assert (await alice.get("/memories")).json()["total"] == 1


async def test_users_are_walked_in_order_of_name(api: Api) -> None:
    """Every user of the tenant with anything stored comes once over the pages."""
    async with api.client("app") as app, api.client("admin") as admin:
        names = sorted(f"user {n:02}" for n in range(23))
        for name in names:
            await app.post("/memories", json={"text": "x", "user": name})
        seen, cursor = [], None
        while True:
            params = {"limit": 10, **({"cursor": cursor} if cursor else {})}
            page = (await admin.get("/users", params=params)).json()
            seen += [user["id"] for user in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
    assert seen == names
