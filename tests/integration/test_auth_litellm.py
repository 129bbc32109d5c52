"""A real LiteLLM proxy over Hearth's key table: who gets in, to which models, and how often."""

from __future__ import annotations

import asyncio
import importlib
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
import yaml
from fastapi import HTTPException, Request

from hearth.config.environment import prepare_environment
from hearth.config.litellm_document import litellm_document, write_document
from hearth.config.load import load_settings, parse_settings
from hearth.config.settings import digest_of
from hearth.gateway.call import CALL, Call
from hearth.gateway.identity import Off
from hearth.gateway.keys import presented_key
from hearth.testing.provider import ScriptedProvider

APP, ALICE, LIMITED, TOKENS, ONE_AT_A_TIME = (f"sk-{name}-0123456789abcdef" for name in "abcde")
MASTER = "sk-master-0123456789abcdef"
KEY = f"{{name: app, key: {APP}, tenant: acme, users: named"


def serve(config: Path, port: int) -> None:
    """Run LiteLLM with Hearth's document in this process; the entry point of the child."""
    settings = load_settings(config, {})
    prepare_environment(os.environ, settings)
    document = litellm_document(settings)
    del document["litellm_settings"]["callbacks"]  # authentication alone is tried here
    os.environ["CONFIG_FILE_PATH"] = str(write_document(document, config.parent))
    import uvicorn

    from hearth.gateway.auth import install

    install(settings)
    uvicorn.run("litellm.proxy.proxy_server:app", host="127.0.0.1", port=port, log_level="warning")


def configuration(upstream: str, hearth: dict[str, object]) -> str:
    models = [
        {
            "model_name": name,
            "litellm_params": {"model": f"openai/{name}", "api_base": upstream, "api_key": "none"},
        }
        for name in ("small", "large")
    ]
    claude = {"model": "anthropic/claude", "api_base": upstream.removesuffix("/v1"), "api_key": "none"}
    return yaml.safe_dump(
        {
            "model_list": [*models, {"model_name": "claude", "litellm_params": claude}],
            "general_settings": {"master_key": MASTER},
            "hearth": hearth,
        }
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(folder: Path, text: str) -> Iterator[httpx.Client]:
    """A proxy process that answers, and a client for it."""
    config, port = folder / "conf.yaml", free_port()
    config.write_text(text, encoding="utf-8")
    log = (folder / "proxy.log").open("w")
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("HEARTH_", "LITELLM_"))
    }
    process = subprocess.Popen(
        [sys.executable, __file__, str(config), str(port)], stdout=log, stderr=subprocess.STDOUT, env=environ
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            wait_until_ready(client, process, folder / "proxy.log")
            yield client
    finally:
        process.terminate()
        process.wait(30)
        log.close()


def wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise AssertionError(log.read_text()[-3000:])
        try:
            if client.get("/health/liveliness").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(log.read_text()[-3000:])


@pytest.fixture(name="upstream", scope="module")
def _upstream() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


@pytest.fixture(name="proxy", scope="module")
def _proxy(tmp_path_factory: pytest.TempPathFactory, upstream: ScriptedProvider) -> Iterator[httpx.Client]:
    keys = [
        {"name": "app", "hash": f"sha256:{digest_of(APP)}", "tenant": "acme", "users": "named"},
        {"name": "alice", "key": ALICE, "tenant": "acme", "user": "alice", "models": ["small"]},
        {"name": "limited", "key": LIMITED, "tenant": "acme", "user": "bob", "rpm": 2},
        {"name": "tokens", "key": TOKENS, "tenant": "acme", "user": "bob", "tpm": 60},
        {"name": "one", "key": ONE_AT_A_TIME, "tenant": "acme", "user": "bob", "max_parallel": 1},
    ]
    yield from start(tmp_path_factory.mktemp("proxy"), configuration(upstream.openai_url, {"keys": keys}))


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def chat(proxy: httpx.Client, headers: dict[str, str], model: str = "small") -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8}
    return proxy.post("/v1/chat/completions", json=body, headers=headers)


def messages(proxy: httpx.Client, headers: dict[str, str]) -> httpx.Response:
    body = {"model": "claude", "max_tokens": 8, "messages": [{"role": "user", "content": "hello"}]}
    return proxy.post("/v1/messages", json=body, headers=headers)


@pytest.mark.parametrize("key", [APP, ALICE])
@pytest.mark.parametrize("header", ["Authorization", "x-api-key", "api-key", "x-litellm-api-key"])
def test_a_known_key_is_let_in_wherever_the_client_puts_it(
    proxy: httpx.Client, key: str, header: str
) -> None:
    """Bearer tokens and x-api-key both work."""
    value = f"Bearer {key}" if header == "Authorization" else key
    assert chat(proxy, {header: value}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": APP},
        {"Authorization": f"BEARER {APP}"},
        {"Authorization": f"bearer {APP}"},
        {"Authorization": f"Basic {APP}"},
        {"Authorization": APP, "x-api-key": APP},
        {"Authorization": "", "x-api-key": APP},
        {"x-api-key": f"Bearer {APP}"},
        {"x-litellm-api-key": f"Bearer {APP}", "Authorization": "Bearer sk-other"},
        {"x-goog-api-key": APP},
        {"Ocp-Apim-Subscription-Key": APP},
        {"api-key": "sk-other", "x-api-key": APP},
    ],
)
def test_the_memory_api_finds_keys_by_litellms_rules(proxy: httpx.Client, headers: dict[str, str]) -> None:
    """A request whose key the model routes do not find has none for the memory API either."""
    found = presented_key(list(headers.items())) == APP
    assert chat(proxy, headers).status_code == (200 if found else 401)


def test_an_anthropic_client_is_let_in(proxy: httpx.Client) -> None:
    """/v1/messages with x-api-key, as Anthropic's SDK sends it."""
    reply = messages(proxy, {"x-api-key": APP, "anthropic-version": "2023-06-01"})
    assert reply.status_code == 200, reply.text
    assert reply.json()["type"] == "message"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("sk-unknown-0123456789"),
        bearer(APP + "x"),
        {"x-api-key": ""},
        bearer(digest_of(APP)),
        bearer(f"sha256:{digest_of(APP)}"),
    ],
)
def test_an_unknown_key_is_refused(
    proxy: httpx.Client, upstream: ScriptedProvider, headers: dict[str, str]
) -> None:
    """No key, a wrong one or a key's hash is 401, and nothing reaches the provider."""
    before = len(upstream.requests)
    assert chat(proxy, headers).status_code == 401
    assert messages(proxy, headers).status_code == 401
    assert len(upstream.requests) == before


def test_a_keys_list_of_models_holds(proxy: httpx.Client, upstream: ScriptedProvider) -> None:
    """A model that is not on the key's list is refused before the provider; others pass."""
    before = len(upstream.requests)
    assert chat(proxy, bearer(ALICE), "large").status_code in (401, 403)
    assert messages(proxy, {"x-api-key": ALICE}).status_code in (401, 403)
    assert len(upstream.requests) == before
    assert chat(proxy, bearer(ALICE), "small").status_code == 200
    assert chat(proxy, bearer(APP), "large").status_code == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/anthropic/v1/messages", {"model": "claude", "max_tokens": 8, "messages": []}),
        ("/openai/deployments/large/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
        ("/engines/large/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
        ("/gemini/v1beta/models/gemini-pro:generateContent", {"contents": []}),
        ("/v1/responses", {"model": "large", "input": "x"}),
        ("/v1/completions", {"model": "large", "prompt": "x"}),
        ("/v1/embeddings", {"model": "large", "input": "x"}),
        ("/v1/chat/completions", {"model": "small", "fallbacks": ["large"], "messages": []}),
    ],
)
def test_no_other_way_leads_to_a_model_off_the_list(
    proxy: httpx.Client, upstream: ScriptedProvider, path: str, body: dict[str, object]
) -> None:
    """Deployment paths, pass-through routes, the other formats and client-side fallbacks hold to the list."""
    before = len(upstream.requests)
    reply = proxy.post(path, json=body, headers=bearer(ALICE))
    assert reply.status_code in (401, 403), reply.text
    assert len(upstream.requests) == before


def test_requests_per_minute_hold(proxy: httpx.Client) -> None:
    """`rpm: 2` lets two of five immediate requests through, and slows nobody else."""
    codes = [chat(proxy, bearer(LIMITED)).status_code for _ in range(5)]
    assert codes == [200, 200, 429, 429, 429]
    assert chat(proxy, bearer(APP)).status_code == 200


def test_tokens_per_minute_hold(proxy: httpx.Client) -> None:
    """`tpm: 60` ends in 429 within a few calls of some twenty tokens each."""
    codes = [chat(proxy, bearer(TOKENS)).status_code for _ in range(12)]
    assert codes[0] == 200
    assert codes[-1] == 429


async def test_requests_at_once_hold(proxy: httpx.Client, upstream: ScriptedProvider) -> None:
    """`max_parallel: 1` refuses a second call while the first runs."""
    upstream.reply(delay=3.0, route="chat")
    body = {"model": "small", "messages": [{"role": "user", "content": "hello"}]}
    async with httpx.AsyncClient(base_url=proxy.base_url, timeout=30) as client:

        async def call() -> int:
            reply = await client.post("/v1/chat/completions", json=body, headers=bearer(ONE_AT_A_TIME))
            return reply.status_code

        before = len(upstream.requests)
        first = asyncio.create_task(call())
        await asyncio.to_thread(upstream.wait, before + 1, timeout=20)
        assert await call() == 429
        assert await first == 200
    assert chat(proxy, bearer(ONE_AT_A_TIME)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/model/new"),
        ("POST", "/key/generate"),
        ("POST", "/config/update"),
        ("GET", "/get/config/callbacks"),
        ("GET", "/spend/logs"),
        ("POST", "/user/new"),
    ],
)
def test_a_tenants_key_does_not_administer_the_proxy(proxy: httpx.Client, method: str, path: str) -> None:
    """Keys of the table call models; LiteLLM's administration is for its master key."""
    reply = proxy.request(method, path, json={} if method == "POST" else None, headers=bearer(APP))
    assert reply.status_code in (401, 403), reply.text


def test_the_master_key_stays_the_administrators(proxy: httpx.Client) -> None:
    """LiteLLM's own master key still opens its administration."""
    assert proxy.get("/model/info", headers=bearer(MASTER)).status_code == 200
    assert proxy.get("/get/config/callbacks", headers=bearer(MASTER)).status_code not in (401, 403)


def test_models_are_listed_as_the_key_may_see_them(proxy: httpx.Client) -> None:
    """/v1/models shows a key its own models."""
    listed = proxy.get("/v1/models", headers=bearer(ALICE)).json()["data"]
    assert [model["id"] for model in listed] == ["small"]


@pytest.fixture(name="auth", scope="module")
def _auth() -> Iterator[ModuleType]:
    """The module in this process, with its keys installed by each test."""
    environ: dict[str, str] = {}
    prepare_environment(environ)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what LiteLLM's import warns about is not ours
        for name, value in environ.items():
            patch.setenv(name, value)
        yield importlib.import_module("hearth.gateway.auth")


def known(**fields: Any) -> Any:
    """LiteLLM's caller, as its hooks get it."""
    from litellm.proxy._types import UserAPIKeyAuth

    return UserAPIKeyAuth(**fields)


def test_a_hook_finds_the_key_behind_its_caller(auth: ModuleType) -> None:
    """The caller that LiteLLM was given leads back to the key, and carries its limits."""
    table = auth.install(parse_settings(f"hearth: {{keys: [{KEY}, rpm: 3, models: [small]}}]}}", {}))
    key = table.find(APP)
    caller = auth.caller(key)
    assert auth.key_of(caller) is key
    assert (caller.key_alias, caller.rpm_limit, caller.models) == ("app", 3, ["small"])
    assert APP not in repr(caller)


async def test_the_try_without_a_block_is_not_counted_again(auth: ModuleType) -> None:
    """One call of a client takes one of its requests a minute, also where the provider refused the block."""
    auth.install(parse_settings(f"hearth: {{keys: [{KEY}, rpm: 3}}]}}", {}))
    asked = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": [],
        "query_string": b"",
    }
    call = Call(route="chat", headers=(), started_at=datetime.now(UTC))
    token = CALL.set(call)
    try:
        assert (await auth.user_api_key_auth(Request(asked), APP)).rpm_limit == 3
        call.without_block = True
        assert (await auth.user_api_key_auth(Request(asked), APP)).rpm_limit is None
    finally:
        CALL.reset(token)


def test_no_metadata_makes_a_caller_somebody_else(auth: ModuleType) -> None:
    """A caller of another key is unknown, whatever name, tenant or metadata it carries."""
    auth.install(parse_settings(f"hearth: {{keys: [{KEY}}}]}}", {}))
    claims = {"hearth_key": "app", "tenant": "acme", "users": "named"}
    forged = known(api_key="sk-other", key_alias="app", team_id="acme", metadata=claims)
    assert auth.key_of(forged) == Off(reason="unknown key")
    assert auth.key_of(known()) == Off(reason="unknown key")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"team_id": "team-1", "metadata": {"user": "alice"}}, ("team-1", "alice")),
        ({"team_id": "team-1", "metadata": {"users": "named"}}, ("team-1", "")),
        ({"metadata": {"users": "named", "tenant": "acme"}}, ("acme", "")),
        ({"team_id": "team-1", "metadata": {"users": "named", "tenant": "acme"}}, ("team-1", "")),
        ({"metadata": {"user": "alice"}}, "no tenant"),
        ({"metadata": {"user": "alice", "tenant": 7}}, "no tenant"),
        ({"team_id": "team-1"}, "no user"),
        ({"team_id": "team-1", "metadata": {"user": "a", "users": "named"}}, "no user"),
        ({"team_id": "team-1", "user_id": "owner", "metadata": {}}, "no user"),
        ({"team_id": "team-1", "user_id": "owner", "metadata": {"user": "owner"}}, ("team-1", "owner")),
        ({"team_id": "team-1", "user_id": "owner", "metadata": {"user": "alice"}}, "no user"),
        ({"team_id": "team-1", "user_id": "owner", "metadata": {"users": "named"}}, "no user"),
        ({"user_id": "owner", "metadata": {"user": "owner", "tenant": "acme"}}, "no tenant"),
    ],
)
def test_litellms_own_keys_have_memory_only_with_tenant_and_user(
    auth: ModuleType, fields: dict[str, Any], expected: tuple[str, str] | str
) -> None:
    """The team is the tenant, and metadata says whose memory it is: the owner's alone where there is one."""
    auth.install(parse_settings("hearth: {virtual_keys: true}", {}))
    found = auth.key_of(known(api_key="sk-virtual", key_alias="v", **fields))
    if isinstance(expected, str):
        assert isinstance(found, Off)
        assert found.reason.startswith(expected)
    else:
        assert (found.tenant, found.user, found.name) == (*expected, "v")


def test_litellms_own_keys_have_no_memory_unless_the_operator_says_so(auth: ModuleType) -> None:
    """Whoever may create keys there would decide whose memory they reach."""
    auth.install(parse_settings(f"hearth: {{keys: [{KEY}}}]}}", {}))
    virtual = known(api_key="sk-virtual", team_id="acme", metadata={"user": "alice"})
    assert auth.key_of(virtual) == Off(reason="unknown key")


async def test_the_api_says_so_where_litellm_can_check_no_key(
    auth: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its database LiteLLM knows no key; that is the gateway's fault, not the caller's."""
    monkeypatch.setattr("litellm.proxy.proxy_server.master_key", MASTER)
    auth.install(parse_settings("hearth: {virtual_keys: true}", {}))
    assert await auth.authenticate(incoming({})) is None
    with pytest.raises(HTTPException) as caught:
        await auth.authenticate(incoming(bearer("sk-virtual")))
    assert caught.value.status_code == 503


def incoming(headers: dict[str, str], client: str = "127.0.0.1", host: str = "localhost:4000") -> Request:
    """A request as LiteLLM hands it to its authentication."""
    pairs = {"host": host, **headers}.items()
    raw = [(name.lower().encode(), value.encode()) for name, value in pairs]
    path = "/v1/chat/completions"
    return Request({"type": "http", "method": "POST", "path": path, "headers": raw, "client": (client, 5)})


@pytest.mark.parametrize(
    "request_",
    [
        incoming({}),
        incoming(bearer("anything")),
        incoming({"x-api-key": "sk-ant-whatever"}, client="::1", host="[::1]:4000"),
        incoming({"Origin": "http://localhost:3000"}, host="127.0.0.1"),
    ],
)
async def test_keyless_lets_this_machine_in(auth: ModuleType, request_: Request) -> None:
    """In the quickstart any key or none will do, and the caller is the one local key."""
    auth.install(parse_settings("hearth: {keyless: true}", {}))
    key = auth.key_of(await auth.user_api_key_auth(request_, ""))
    assert (key.tenant, key.default_user) == ("default", "me")


@pytest.mark.parametrize(
    "request_",
    [
        incoming({}, client="192.168.1.7"),
        incoming({"Origin": "https://evil.example"}),
        incoming({"Origin": "null"}),
        incoming({}, host="evil.example"),
        incoming({}, host="127.0.0.1.evil.example:4000"),
        incoming({}, host=""),
        incoming({"Origin": "http://[broken"}),
    ],
)
async def test_keyless_refuses_other_machines_and_foreign_web_pages(
    auth: ModuleType, request_: Request
) -> None:
    """A page in the user's browser reaches loopback, but neither by its origin nor by a rebound name."""
    auth.install(parse_settings("hearth: {keyless: true}", {}))
    with pytest.raises(HTTPException) as caught:
        await auth.user_api_key_auth(request_, "")
    assert caught.value.status_code == 401


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
