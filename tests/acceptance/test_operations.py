"""What an operator does while calls go on: switches, shadow mode, other callbacks, caches, windows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml

from hearth.gateway.switchboard import FileSwitchboard
from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import ADMIN, ALICE, BOB, GatewayProcess, document, start, stop, wait_until
from tests.acceptance.talk import ask, remember, sent_text

DOG = "My dog is called Zebedee."
QUESTION = "What is the name of my dog?"

SPY = """
import json, pathlib
from litellm.integrations.custom_logger import CustomLogger

class Spy(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        seen = [kwargs.get("messages"), kwargs.get("input"), kwargs.get("standard_logging_object"),
                kwargs.get("additional_args")]
        with pathlib.Path(__file__).with_name("spy.jsonl").open("a") as log:
            log.write(json.dumps(seen, default=str) + "\\n")

instance = Spy()
"""


@pytest.fixture(scope="module")
def gateway(
    _provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    """A gateway with another callback, LiteLLM's response cache and a model with a tiny window."""
    folder = tmp_path_factory.mktemp("operations")
    (folder / "spy.py").write_text(SPY)
    config: dict[str, Any] = document(_provider, folder / "data")
    config["litellm_settings"] = {
        "callbacks": ["spy.instance"],
        "cache": True,
        "cache_params": {"type": "local"},
    }
    params = {**config["model_list"][0]["litellm_params"], "model": "openai/gpt-4.1-nano"}
    window = {"max_input_tokens": 300}  # LiteLLM holds this of the provider's model, whatever its name here
    config["model_list"].append({"model_name": "small", "litellm_params": params, "model_info": window})
    running = start(config, folder / "data")
    yield running
    assert stop(running) == 0


def switch(gateway: GatewayProcess, **state: Any) -> None:
    """Set the runtime switches by REST."""
    with gateway.client(ADMIN) as client:
        reply = client.put("/memory/v1/switches", json=state)
        assert reply.status_code == 200, reply.text


def status(gateway: GatewayProcess, key: str) -> str:
    """The status of a call with that key."""
    return ask(gateway, "", QUESTION, key=key).headers["x-hearth-status"]


def test_memory_is_switched_off_for_a_key_and_for_all_without_a_restart(
    gateway: GatewayProcess, provider: ScriptedProvider
) -> None:
    """A switch takes effect on the next call, for one key or for everybody, and is lifted again."""
    assert status(gateway, ALICE) == "ok"
    switch(gateway, mode="off", key="alice")
    assert [status(gateway, ALICE), status(gateway, BOB)] == ["off", "ok"]
    switch(gateway, mode="on", key="alice")
    switch(gateway, mode="off")  # the admin's whole tenant
    assert [status(gateway, ALICE), status(gateway, BOB)] == ["off", "off"]
    switch(gateway, mode="on")
    everyone = FileSwitchboard(gateway.home / "switches.json")
    asyncio.run(everyone.set("off"))
    assert [status(gateway, ALICE), status(gateway, BOB)] == ["off", "off"]
    asyncio.run(everyone.set("on"))
    assert [status(gateway, ALICE), status(gateway, BOB)] == ["ok", "ok"]


def test_the_file_is_followed_without_a_restart(gateway: GatewayProcess) -> None:
    """Its policy counts soon; a broken file counts for nothing, and health says so until it is mended."""
    file = gateway.home.with_suffix(".yaml")
    before, config = file.read_text(), yaml.safe_load(file.read_text())

    def followed(segments: int, state: str) -> bool:
        with gateway.client(ADMIN) as client:
            values = client.get("/memory/v1/policy").raise_for_status().json()["items"]
            part = client.get("/memory/v1/health").json()["parts"]["configuration"]
        return {one["name"]: one["value"] for one in values}["limits.segments"] == segments and (
            part["status"] == state
        )

    config["hearth"]["life"] = {"limits": {"segments": 77}}
    file.write_text(yaml.safe_dump(config))
    wait_until(lambda: followed(77, "ok"))
    file.write_text("hearth: {life: broken}")
    wait_until(lambda: followed(77, "degraded"))
    file.write_text(before)
    wait_until(lambda: followed(2000, "ok"))


def test_a_shadowed_tenant_is_recalled_for_and_captured_but_gets_no_block(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """In shadow mode the count of recalled memories shows what would have come, and the prompt is as sent."""
    remember(gateway, user, DOG)
    switch(gateway, mode="shadow")
    question = f"{QUESTION} I forgot it."
    answer = ask(gateway, user, question)
    switch(gateway, mode="on")
    assert answer.headers["x-hearth-reason"] == "shadow"
    assert answer.recalled >= 1
    assert answer.headers["x-hearth-tokens"] == "0"
    assert provider.last.body["messages"] == [{"role": "user", "content": question}]


def test_other_callbacks_do_not_see_the_block(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """What another LiteLLM callback is given holds the user's words and not what was recalled for them."""
    remember(gateway, user, DOG)
    spied = gateway.home.parent / "spy.jsonl"
    for route in ("chat", "messages", "responses"):
        question = f"{QUESTION} (asked on {route})"
        before = spied.read_text().count("\n") if spied.exists() else 0
        ask(gateway, user, question, route=route)
        assert "Zebedee" in sent_text(provider.last.body)
        wait_until(lambda: spied.exists() and spied.read_text().count("\n") > before)  # noqa: B023
        seen = spied.read_text().splitlines()[-1]
        assert QUESTION in seen
        assert "Zebedee" not in seen


def test_a_response_cache_never_serves_a_remembered_answer(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """A call with a block goes to the provider each time; without one LiteLLM's cache works as before."""
    remember(gateway, user, DOG)
    for _ in range(2):
        ask(gateway, user, QUESTION, temperature=0.111)
    assert len(provider.requests) == 2
    provider.clear()
    for stranger in ("one", "two"):
        ask(gateway, f"{user} {stranger}", "What is seven times eight?", temperature=0.222)
    assert len(provider.requests) == 1


def test_the_block_must_fit_the_smallest_window(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """A model whose window has no room for a block gets the call without one."""
    remember(gateway, user, DOG)
    ask(gateway, user, QUESTION, model="small", max_tokens=280)
    assert "Zebedee" not in sent_text(provider.last.body)


def test_a_connection_stays_open_between_calls(gateway: GatewayProcess) -> None:
    """For longer than SDKs keep theirs (five seconds), or a call meets a connection that is just closed."""
    with closing(HTTPConnection(gateway.url.removeprefix("http://"))) as connection:
        for pause in (6, 0):
            connection.request("GET", "/memory/v1/health/live")
            assert connection.getresponse().read()
            time.sleep(pause)
            connection.auto_open = 0


def test_a_log_of_the_gateway_has_no_content(gateway: GatewayProcess, provider: ScriptedProvider) -> None:
    """By default nothing that users say stands in the gateway's own output."""
    log = Path(f"{gateway.home}.log").read_text()
    assert "Zebedee" not in log
