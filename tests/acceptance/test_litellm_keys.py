"""LiteLLM's own keys, from its database on a real PostgreSQL: whose memory they reach, and who gets in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import GatewayProcess, document, start, stop, wait_until
from tests.acceptance.litellm_database import client_environment, postgres
from tests.acceptance.talk import PATHS, RouteName, ask, sent_text

MASTER = "sk-master-0123456789abcdef"
TEAM = "acme"
QUESTION = "What is the name of my dog?"
STATEMENT = "My dog is called Zebedee."


@dataclass(frozen=True)
class Proxy:
    """A gateway whose keys are LiteLLM's."""

    gateway: GatewayProcess

    def post(self, path: str, body: dict[str, Any], key: str = MASTER, **headers: str) -> httpx.Response:
        """POST as the holder of `key`."""
        with self.gateway.client(key, **headers) as client:
            return client.post(path, json=body)

    def key(self, maker: str = MASTER, **fields: Any) -> str:
        """A new key with these fields, made by the holder of `maker`."""
        made = self.post("/key/generate", fields, maker)
        assert made.status_code == 200, made.text
        return str(made.json()["key"])

    def person(self, user: str) -> str:
        """A LiteLLM user of that id in the team, and the key that an administrator makes for it."""
        self.administer(
            "/user/new", {"user_id": user, "user_role": "internal_user", "auto_create_key": False}
        )
        self.administer("/team/member_add", {"team_id": TEAM, "member": {"role": "user", "user_id": user}})
        return self.key(team_id=TEAM, user_id=user, metadata={"user": user})

    def administer(self, path: str, body: dict[str, Any]) -> None:
        """POST as LiteLLM's administrator."""
        answer = self.post(path, body)
        assert answer.status_code == 200, answer.text

    def recalled(self, key: str, **headers: str) -> str:
        """The block that the memory API gives the key for the question."""
        answer = self.post("/memory/v1/recall", {"query": QUESTION}, key, **headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["block"])


@pytest.fixture(scope="module")
def proxy(_provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A gateway on LiteLLM's database, with one team."""
    folder = tmp_path_factory.mktemp("litellm-keys")
    with postgres() as url:
        config = document(_provider, folder / "data")
        config["general_settings"] = {"master_key": MASTER, "database_url": url}
        config["hearth"] = {"data_dir": str(folder / "data"), "virtual_keys": True}
        running = start(config, folder / "data", anew=True, **client_environment(folder))
        proxy = Proxy(running)
        proxy.administer("/team/new", {"team_id": TEAM, "team_alias": TEAM})
        yield proxy
        assert stop(running) == 0


def test_a_key_reaches_its_owners_memory_on_every_route_and_nobody_elses(
    proxy: Proxy, provider: ScriptedProvider
) -> None:
    """What Alice's key said on one route is recalled on another and by the API, and for no other key."""
    alice, bob = proxy.person("alice"), proxy.person("bob")
    assert ask(proxy.gateway, "", STATEMENT, key=alice, route="chat").status == 200
    for key, times in ((alice, 1), (bob, 0)):
        provider.clear()
        answer = ask(proxy.gateway, "", QUESTION, key=key, route="messages")
        assert (answer.status, answer.headers["x-hearth-status"]) == (200, "ok")
        assert sent_text(provider.last.body).count("Zebedee") == times
    assert "Zebedee" in proxy.recalled(alice)
    assert "Zebedee" not in proxy.recalled(bob)


def test_a_token_count_has_room_for_memory_where_the_key_has_any(
    proxy: Proxy, provider: ScriptedProvider
) -> None:
    """The count follows the key's metadata as the calls do."""
    body = {"model": "claude", "messages": [{"role": "user", "content": QUESTION}]}
    keys = [proxy.key(team_id=TEAM, metadata=metadata) for metadata in ({}, {"user": "grace"})]
    answers = [proxy.post("/v1/messages/count_tokens", body, key) for key in keys]
    assert [answer.headers["x-hearth-status"] for answer in answers] == ["off", "ok"]
    without, room = (answer.json()["input_tokens"] for answer in answers)
    assert room == without + int(answers[1].headers["x-hearth-tokens"]) > without


def test_an_apps_key_names_its_users_within_its_team(proxy: Proxy) -> None:
    """A key without an owner, of `users: named`, reaches whom it names, which in another team is another."""
    proxy.administer("/team/new", {"team_id": "other", "team_alias": "other"})
    keys = [proxy.key(team_id=team, metadata={"users": "named"}) for team in (TEAM, "other")]
    ask(proxy.gateway, "carol", STATEMENT, key=keys[0])
    assert "Zebedee" in proxy.recalled(keys[0], **{"x-hearth-user": "carol"})
    assert "Zebedee" not in proxy.recalled(keys[1], **{"x-hearth-user": "carol"})
    assert "Zebedee" not in proxy.recalled(keys[0], **{"x-hearth-user": "dora"})
    nobody = proxy.post("/memory/v1/recall", {"query": QUESTION}, keys[0])
    assert nobody.status_code == 400


@pytest.mark.parametrize(
    "metadata",
    [
        {"tenant": TEAM, "user": "victim"},
        {"tenant": TEAM, "users": "named"},
        {"tenant": TEAM, "user": "mallory"},
    ],
)
def test_an_ordinary_users_own_key_reaches_no_other_memory(
    proxy: Proxy, provider: ScriptedProvider, metadata: dict[str, str]
) -> None:
    """LiteLLM lets its users make keys with any metadata; such a key calls models, without memory."""
    victim = proxy.key(team_id=TEAM, metadata={"user": "victim"})
    ask(proxy.gateway, "", STATEMENT, key=victim)
    proxy.post("/user/new", {"user_id": "mallory", "user_role": "internal_user", "auto_create_key": False})
    made = proxy.key(proxy.key(user_id="mallory"), metadata=metadata)
    provider.clear()
    answer = ask(proxy.gateway, "victim", QUESTION, key=made)
    assert (answer.status, answer.headers["x-hearth-status"]) == (200, "off")
    assert "Zebedee" not in sent_text(provider.last.body)
    refused = proxy.post("/memory/v1/recall", {"query": QUESTION}, made, **{"x-hearth-user": "victim"})
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:hearth:problem:forbidden")
    assert "no tenant" in refused.json()["detail"]


def test_a_members_key_in_a_team_that_allows_it_reaches_its_owner_alone(proxy: Proxy) -> None:
    """Where members may make keys in their team, they still can't name another member."""
    may = {"team_member_permissions": ["/key/generate"]}
    proxy.administer("/team/new", {"team_id": "open", "team_alias": "open", **may})
    proxy.administer("/user/new", {"user_id": "eve", "user_role": "internal_user", "auto_create_key": False})
    proxy.administer("/team/member_add", {"team_id": "open", "member": {"role": "user", "user_id": "eve"}})
    own = proxy.key(user_id="eve")
    for claimed in ({"user": "frank"}, {"users": "named"}):
        key = proxy.key(own, team_id="open", metadata=claimed)
        assert proxy.post("/memory/v1/recall", {"query": QUESTION}, key).status_code == 403
    assert proxy.recalled(proxy.key(own, team_id="open", metadata={"user": "eve"})) == ""


@pytest.mark.parametrize("route", ["chat", "messages"])
def test_litellm_says_who_gets_in(proxy: Proxy, route: RouteName) -> None:
    """A blocked key, an expired one and an unknown one are refused on model routes and by the API alike."""
    blocked = proxy.key(team_id=TEAM, metadata={"user": "gone"})
    assert ask(proxy.gateway, "", "hello", key=blocked, route=route).status == 200
    proxy.administer("/key/block", {"key": blocked})
    expired = proxy.key(team_id=TEAM, metadata={"user": "gone"}, duration="1s")
    wait_until(lambda: ask(proxy.gateway, "", "hello", key=expired, route=route).status == 401)
    for key in (blocked, expired, "sk-unknown"):
        assert ask(proxy.gateway, "", "hello", key=key, route=route).status == 401
        assert proxy.post("/memory/v1/recall", {"query": QUESTION}, key).status_code == 401


def test_what_a_key_may_call_and_spend_is_litellms(proxy: Proxy) -> None:
    """A key's model list holds with memory, and one beyond its budget gets no memory either."""
    narrow = proxy.key(team_id=TEAM, models=["gpt"], metadata={"user": "narrow"})
    assert ask(proxy.gateway, "", "hello", key=narrow, route="chat").status == 200
    assert ask(proxy.gateway, "", "hello", key=narrow, route="messages").status == 403
    spent = proxy.key(team_id=TEAM, max_budget=0.0, metadata={"user": "narrow"})
    assert ask(proxy.gateway, "", "hello", key=spent).status == 422
    refused = proxy.post("/memory/v1/recall", {"query": QUESTION}, spent)
    assert refused.status_code == 403
    assert "Budget" in refused.json()["detail"]


def test_the_master_key_administers_and_has_no_memory(proxy: Proxy) -> None:
    """LiteLLM's administrator calls models, without memory, and reads nobody's."""
    answer = proxy.post(PATHS["chat"], {"model": "gpt", "messages": [{"role": "user", "content": "hello"}]})
    assert (answer.status_code, answer.headers["x-hearth-status"]) == (200, "off")
    assert proxy.post("/memory/v1/recall", {"query": QUESTION}).status_code == 403
