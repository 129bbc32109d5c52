"""Whose memory a model call reaches: users, keys and ids on the model routes, and owners on the REST API."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

import httpx
import pytest

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import ALICE, APP, BOB, GatewayProcess
from tests.acceptance.talk import BLOCK, PATHS, RouteName, ask, body, exchanges, remember, sent_text

MAIN: tuple[RouteName, ...] = ("chat", "messages", "responses")
QUESTION = "Where do I live?"


def personal(gateway: GatewayProcess, key: str, path: str, **params: Any) -> dict[str, Any]:
    """What a person's key reads."""
    with gateway.client(key) as client:
        found: dict[str, Any] = client.get(f"/memory/v1/{path}", params=params).json()
    return found


# -- one user's memory is not another's ---------------------------------------------------------------------


@pytest.mark.parametrize("route", MAIN)
def test_case_01_ids_are_not_matched_by_their_beginning(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """`u1` and `u10` know their own town only; `u`, `u2` and `u1 ` with another ending know none."""
    base = user[:100]
    remember(gateway, f"{base}1", "I live in Oslo, that is my home.")
    remember(gateway, f"{base}10", "I live in Lima, that is my home.")
    for who, town in ((f"{base}1", "Oslo"), (f"{base}10", "Lima"), (base, ""), (f"{base}2", "")):
        ask(gateway, who, QUESTION, route=route)
        sent = sent_text(provider.last.body)
        assert {name for name in ("Oslo", "Lima") if name in sent} == ({town} if town else set())
        assert (BLOCK in sent) is bool(town)


@pytest.mark.parametrize(
    "wrong", [{"usr_id": "u1"}, {"filters": {"usr_id": "u1"}}, {"filters": {"user": "u1"}}]
)
def test_case_01_a_field_that_does_not_exist_is_refused(
    gateway: GatewayProcess, user: str, wrong: dict[str, Any]
) -> None:
    """The search refuses a misspelt or unknown filter instead of searching without it."""
    with gateway.client(APP, **{"x-hearth-user": user}) as client:
        assert client.post("/memory/v1/memories/search", json={"query": "town", **wrong}).status_code == 422
        assert client.get("/memory/v1/memories", params={"usr_id": user}).status_code == 422


# -- a person's key -----------------------------------------------------------------------------------------

CLAIMS: dict[str, dict[str, Any]] = {
    "user": {"user": "alice"},
    "safety_identifier": {"safety_identifier": "alice"},
    "metadata": {"metadata": {"user_id": "alice"}},
}


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("route", MAIN)
def test_case_02_a_name_in_the_body_does_not_count_on_a_persons_key(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName, claim: str
) -> None:
    """Bob's call that says it is alice reaches nothing of hers and is written down as his."""
    secret, said = f"My passphrase is quokka {user}.", f"What is my passphrase? {user}"
    ask(gateway, "", secret, key=ALICE)
    answer = ask(gateway, "", said, key=BOB, route=route, **CLAIMS[claim])
    assert answer.status == 200
    assert secret not in sent_text(provider.last.body)
    assert said in str(personal(gateway, BOB, "exchanges", limit=200))
    assert said not in str(personal(gateway, ALICE, "exchanges", limit=200))


@pytest.mark.parametrize("route", MAIN)
def test_case_02_another_name_in_the_header_is_refused(
    gateway: GatewayProcess, provider: ScriptedProvider, route: RouteName
) -> None:
    """`x-hearth-user: alice` on bob's key is a 403 before the provider is asked, given twice it is a 400."""
    assert ask(gateway, "alice", QUESTION, key=BOB, route=route).status == 403
    with gateway.client(BOB) as client:
        twice = httpx.Headers([("x-hearth-user", "bob"), ("x-hearth-user", "alice")])
        message = [{"role": "user", "content": QUESTION}]
        reply = client.post(PATHS[route], json=body(route, message, stream=False), headers=twice)
    assert reply.status_code == 400
    assert ask(gateway, "bob", QUESTION, key=BOB, route=route).status == 200
    assert len(provider.requests) == 1


# -- an app's key -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", MAIN)
def test_an_app_that_names_nobody_has_no_memory(
    gateway: GatewayProcess, provider: ScriptedProvider, route: RouteName
) -> None:
    """The call goes through as it is, says why, and nothing is shared between the nameless."""
    answer = ask(gateway, "", "I live in Oslo.", route=route)
    assert (answer.headers["x-hearth-status"], answer.headers["x-hearth-reason"]) == ("off", "no user")
    ask(gateway, "", QUESTION, route=route)
    assert "Oslo" not in sent_text(provider.last.body)


@pytest.mark.parametrize("route", MAIN)
def test_two_names_in_one_request_are_refused(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName
) -> None:
    """Header and body that name two users are a 400; the same name in both is one user."""
    field = "metadata" if route == "messages" else "user"
    named = [{"user_id": name} if field == "metadata" else name for name in (user, "somebody else")]
    assert ask(gateway, user, QUESTION, route=route, **{field: named[1]}).status == 400
    assert ask(gateway, user, QUESTION, route=route, **{field: named[0]}).status == 200
    assert len(provider.requests) == 1


# -- ids with separators and special characters -------------------------------------------------------------

STRANGE = (
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
)


def test_case_06_every_id_reaches_its_own_memory(gateway: GatewayProcess, provider: ScriptedProvider) -> None:
    """On the model routes each strange id recalls just what it said; erasing `a` erases no other."""
    for number, who in enumerate(STRANGE):
        _named(gateway, who, f"My lucky number is {7000 + number}, remember it.", MAIN[number % 3])
    for number, who in enumerate(STRANGE):
        _named(gateway, who, "What is my lucky number?", MAIN[(number + 1) % 3])
        assert _numbers(provider) == {7000 + number}, who
    with gateway.client(APP) as client:
        assert client.delete("/memory/v1/users/a").status_code == 200
    for number, who in enumerate(STRANGE):
        _named(gateway, who, "Do tell me: what is my lucky number?", MAIN[number % 3])
        assert _numbers(provider) == (set() if who == "a" else {7000 + number}), who


def _named(gateway: GatewayProcess, who: str, text: str, route: RouteName) -> None:
    """Say something as a user whom the body names."""
    claim = {"metadata": {"user_id": who}} if route == "messages" else {"user": who}
    answer = ask(gateway, "", text, route=route, **claim)
    assert (answer.status, answer.headers["x-hearth-status"]) == (200, "ok"), answer.raw


def _numbers(provider: ScriptedProvider) -> set[int]:
    sent = sent_text(provider.last.body)
    return {7000 + number for number in range(len(STRANGE)) if str(7000 + number) in sent}


def test_case_06_user_and_session_do_not_run_together(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """User `a:b` in session `c` and user `a` in session `b:c` are two users with a session each."""
    base = user[:80]
    for who, session, town in ((f"{base}:b", "c", "Oslo"), (base, "b:c", "Lima")):
        ask(gateway, who, f"I live in {town}.", headers={"x-hearth-session": session})
    for who, town in ((f"{base}:b", "Oslo"), (base, "Lima")):
        assert [e["user_text"] for e in exchanges(gateway, who)] == [f"I live in {town}."]
        ask(gateway, who, QUESTION)
        assert {name for name in ("Oslo", "Lima") if name in sent_text(provider.last.body)} == {town}


@pytest.mark.parametrize("header", ["x-hearth-user", "x-hearth-session", "x-hearth-agent"])
@pytest.mark.parametrize("route", MAIN)
def test_case_06_an_id_that_is_too_long_is_refused(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName, header: str
) -> None:
    """Three hundred characters in a header are a 400 on every route."""
    named = "" if header == "x-hearth-user" else user
    assert ask(gateway, named, QUESTION, route=route, headers={header: "u" * 300}).status == 400
    assert provider.requests == []


@pytest.mark.parametrize("who", ["u" * 300, "a\nb", '{"device_id": "d"}', "null"])
@pytest.mark.parametrize("route", MAIN)
def test_case_06_what_can_be_no_user_is_none(
    gateway: GatewayProcess, provider: ScriptedProvider, route: RouteName, who: str
) -> None:
    """In a body, which programs fill by themselves, such an id is nobody: the call has no memory."""
    claim = {"metadata": {"user_id": who}} if route == "messages" else {"user": who}
    answer = ask(gateway, "", QUESTION, route=route, **claim)
    assert (answer.status, answer.headers["x-hearth-reason"]) == (200, "no user")


# -- what belongs to another --------------------------------------------------------------------------------


def test_case_04_a_foreign_id_is_an_unknown_id(gateway: GatewayProcess, user: str) -> None:
    """Memory, exchange and recall of alice answer bob as random ids do, and stay as they were."""
    text = f"My locker code is 4711 {user}."
    answer = ask(gateway, "", text, key=ALICE)
    gateway.drain()
    with gateway.client(ALICE) as alice:
        memory = alice.post("/memory/v1/memories", json={"text": text}).json()["id"]
        exchange = alice.get("/memory/v1/exchanges", params={"limit": 1}).json()["items"][0]["id"]
    recalled = answer.headers["x-hearth-trace"]
    asked = [(method, f"memories/{memory}") for method in ("GET", "PATCH", "DELETE")]
    asked += [
        ("GET", f"exchanges/{exchange}"),
        ("DELETE", f"exchanges/{exchange}"),
        ("GET", f"recalls/{recalled}"),
    ]
    with gateway.client(BOB) as bob:
        for method, path in asked:
            json = {"text": "mine now"} if method == "PATCH" else None
            random = f"{path.partition('/')[0]}/{uuid4().hex}"
            foreign, unknown = (bob.request(method, f"/memory/v1/{at}", json=json) for at in (path, random))
            assert foreign.status_code == unknown.status_code == 404
            assert foreign.text.replace(path, "") == unknown.text.replace(random, "")
        assert text not in bob.get("/memory/v1/exchanges", params={"limit": 200}).text
    with gateway.client(ALICE) as alice:
        assert alice.get(f"/memory/v1/memories/{memory}").json()["text"] == text
        assert alice.get(f"/memory/v1/exchanges/{exchange}").json()["user_text"] == text


# -- what a provider keeps ----------------------------------------------------------------------------------


def test_case_04_a_kept_response_is_its_owners_alone(
    gateway: GatewayProcess, provider: ScriptedProvider
) -> None:
    """case_04: another person's key and an app's get 403 for a response's id, and the provider hears nothing
    of it; the owner's chain goes on.
    """
    with gateway.client(ALICE) as alice:
        first = alice.post("/v1/responses", json={"model": "gpt", "input": "Hello"}).json()["id"]
    provider.clear()
    follow = {"model": "gpt", "input": "And?", "previous_response_id": first}
    for key, headers in ((BOB, {}), (APP, {"x-hearth-user": "alice"})):
        with gateway.client(key, **headers) as other:
            assert other.post("/v1/responses", json=follow).status_code == 403
            assert other.get(f"/v1/responses/{first}").status_code == 403
            assert other.delete(f"/v1/responses/{first}").status_code == 403
    assert provider.requests == []
    with gateway.client(ALICE) as alice:
        assert alice.post("/v1/responses", json=follow).status_code == 200


def test_an_erasure_deletes_what_the_provider_keeps(
    gateway: GatewayProcess, provider: ScriptedProvider
) -> None:
    """By the real wire, with the key of the model that made it, streamed or not; the receipt ends with that.
    A refusal is told in it, tried again, and held against no model.
    """
    ask = {"model": "gpt", "input": "I keep bees."}
    with gateway.client(APP, **{"x-hearth-user": "leaver"}) as leaver:
        whole = leaver.post("/v1/responses", json=ask)
        streamed = leaver.post("/v1/responses", json={**ask, "stream": True})
        assert (whole.status_code, streamed.status_code) == (200, 200)
        gateway.drain()
        provider.clear()
        provider.reply(status=500, route="stored")
        erased = leaver.delete("/memory/v1/users/leaver").json()
        shown: dict[str, Any] = {}
        for _ in range(300):
            shown = leaver.get(f"/memory/v1/erasures/{erased['receipt']}").json()
            if shown["state"] == "purged":
                break
            time.sleep(0.1)
        assert shown["state"] == "purged", shown
        assert [bool(one["gone_at"]) for one in shown["provider_held"]] == [True, True]
        deleted = [one.path for one in provider.side if one.method == "DELETE"]
        assert (len(deleted), len(set(deleted))) == (3, 2), "one was refused at first"
        assert leaver.post("/v1/responses", json=ask).status_code == 200


def test_what_all_tenants_share_at_the_provider_is_for_the_master_key(gateway: GatewayProcess) -> None:
    """Files and batches of the provider's account, and LiteLLM's tables, answer a person's key with 403."""
    with gateway.client(ALICE) as alice:
        for path in ("/v1/files", "/v1/batches", "/v1/vector_stores", "/model/info", "/key/list"):
            assert alice.get(path).status_code == 403, path
        assert alice.get("/v1/models").status_code == 200
