"""Hearth as a plugin of a proxy that LiteLLM's own command starts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import GatewayProcess, await_answer, document, start_litellm
from tests.acceptance.talk import ROUTES, RouteName, ask, sent_text

MASTER = "sk-master-0123456789abcdef0123456789abcdef"


def stock_document(provider: ScriptedProvider, home: Path) -> dict[str, Any]:
    """What an operator writes: LiteLLM's sections, our callback and our keys."""
    made: dict[str, Any] = document(provider, home)
    made["litellm_settings"] = {
        "callbacks": ["hearth.gateway.stock.instance"],
        "enable_post_custom_auth_checks": True,
    }
    made["general_settings"] = {
        "master_key": MASTER,
        "custom_auth": "hearth.gateway.auth.user_api_key_auth",
        "custom_auth_run_common_checks": True,
    }
    return made


@pytest.fixture(scope="module")
def stock(_provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A stock LiteLLM proxy with Hearth as a callback."""
    folder = tmp_path_factory.mktemp("stock")
    process, url, log = start_litellm(stock_document(_provider, folder / "data"), folder, anew=True)

    await_answer(process, f"{url}/health/liveliness", log, 90)
    yield GatewayProcess(url=url, process=process, home=folder / "data")
    process.terminate()
    process.wait(60)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_the_plugin_remembers_on_every_route(
    stock: GatewayProcess, provider: ScriptedProvider, user: str, route: RouteName, stream: bool
) -> None:
    """What is said through a stock proxy is recalled in the next conversation."""
    said = ask(stock, user, "My sister Ludmila lives in Valparaíso.", route=route, stream=stream)
    assert said.status == 200, said.raw
    deadline = time.monotonic() + 15
    while "Valparaíso" not in sent_text(provider.last.body) or len(provider.requests) == 1:
        assert time.monotonic() < deadline
        answer = ask(stock, user, "Where does my sister Ludmila live?", route=route, stream=stream)
    assert answer.headers["x-hearth-status"] == "ok"
    assert answer.recalled >= 1


def test_redacted_logs_stop_the_start(provider: ScriptedProvider, tmp_path: Path) -> None:
    """`turn_off_message_logging` would store redacted texts, so the proxy does not start, and says why."""
    config = stock_document(provider, tmp_path / "data")
    config["litellm_settings"]["turn_off_message_logging"] = True
    process, _, log = start_litellm(config, tmp_path)
    assert process.wait(90) != 0
    assert "turn_off_message_logging" in log.read_text()
    assert "hearth serve" in log.read_text()
