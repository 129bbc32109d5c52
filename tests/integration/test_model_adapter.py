"""The model that memory asks, through LiteLLM, over a provider that speaks the real wire format."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
import os
import runpy
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from benchmarks.labelled import read
from hearth.config.environment import prepare_environment
from hearth.config.load import parse_settings
from hearth.gateway.model import LiteLLMModel, extraction_model
from hearth.memory.errors import BadAnswer, ModelUnavailable
from hearth.memory.extract.question import SCHEMA
from hearth.memory.ports import ModelRequest
from hearth.memory.types import Usage
from hearth.testing.provider import ScriptedProvider
from hearth.testing.reply import Reply, Request

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pydantic")
"""Of forms that LiteLLM makes when it is first used."""

ASKED = ModelRequest(
    model="small",
    system="Write facts down.",
    prompt='[{"said": "I play chess."}]',
    max_tokens=750,
    seconds=20,
)
HELD_TO = msgspec.structs.replace(ASKED, schema=SCHEMA)
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ANSWER = '{"facts": []}'


@pytest.fixture(scope="module", name="litellm")
def _litellm() -> ModuleType:
    """LiteLLM as the adapter has it; what its own modules warn of when first loaded is not of interest."""
    prepare_environment(os.environ)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("litellm")


@pytest.fixture(name="provider")
def _provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


@pytest.fixture(name="model")
def _model(litellm: ModuleType, provider: ScriptedProvider) -> LiteLLMModel:
    openai = f"api_base: {provider.openai_url}, api_key: none"
    models = "".join(
        f"  - {{model_name: {name}, litellm_params: {{model: {model}, {access}}}}}\n"
        for name, model, access in (
            ("small", "openai/gpt-4o-mini", openai),
            ("mixed", "openai/gpt-4o-mini", openai),
            ("mixed", "openai/gpt-3.5-turbo", openai),
            ("old", "openai/gpt-4", openai),
            ("claude", "anthropic/claude-sonnet-4-5", f"api_base: {provider.url}, api_key: none"),
        )
    )
    policy = "hearth: {life: {facts: model, extraction: {model: small}}}\n"
    model = extraction_model(parse_settings(f"model_list:\n{models}{policy}", {}))
    assert isinstance(model, LiteLLMModel)
    return model


async def test_case_56_an_answer_comes_with_its_own_usage_and_cost(
    model: LiteLLMModel, provider: ScriptedProvider
) -> None:
    """As the provider counted it, cached tokens apart, in either wire format, by one request."""
    provider.reply(ANSWER, usage=Usage(input=30, output=5, cached_input=10), times=2)
    reply = await model.complete(ASKED)
    assert (reply.text, reply.usage) == (ANSWER, Usage(input=30, output=5, cached_input=10))
    assert reply.model.endswith("gpt-4o-mini")
    # 0.15 dollars for a million tokens, 0.075 for cached ones, and 0.60 for those of the answer.
    assert reply.cost == pytest.approx((20 * 0.15 + 10 * 0.075 + 5 * 0.60) / 1e6)
    claude = await model.complete(msgspec.structs.replace(ASKED, model="claude"))
    assert (claude.text, claude.usage.input, claude.usage.output) == (ANSWER, 30, 5)
    assert claude.cost is not None
    assert claude.cost > reply.cost
    assert [one.route for one in provider.requests] == ["chat", "messages"]


async def test_what_goes_out_is_the_request_and_nothing_else(
    model: LiteLLMModel, provider: ScriptedProvider
) -> None:
    """Instruction and pages, the answer's length, and no word of who asks."""
    await model.complete(ASKED)
    assert provider.last.body == {
        "model": "gpt-4o-mini",
        "messages": [
            {"role": "system", "content": ASKED.system},
            {"role": "user", "content": ASKED.prompt},
        ],
        "max_tokens": 750,
        "temperature": 0,
    }


@pytest.mark.parametrize(
    ("name", "form"), [("small", "json_schema"), ("mixed", "json_object"), ("old", None)]
)
async def test_a_model_is_held_to_the_strictest_form_that_all_its_deployments_know(
    model: LiteLLMModel, provider: ScriptedProvider, name: str, form: str | None
) -> None:
    """The schema, else JSON, else any text."""
    provider.reply(ANSWER)
    assert (await model.complete(msgspec.structs.replace(HELD_TO, model=name))).text == ANSWER
    asked: dict[str, Any] = provider.last.body.get("response_format") or {}
    assert asked.get("type") == form
    if form == "json_schema":
        assert (asked["json_schema"]["strict"], asked["json_schema"]["schema"]) == (True, SCHEMA)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, BadAnswer),
        (401, ModelUnavailable),
        (404, ModelUnavailable),
        (429, ModelUnavailable),
        (500, ModelUnavailable),
    ],
)
async def test_case_44_a_refusal_is_of_the_request_or_of_the_model(
    model: LiteLLMModel, provider: ScriptedProvider, status: int, error: type[Exception]
) -> None:
    """It is asked once, none of what it says is repeated, and the next call is not kept from it."""
    said = {"error": {"message": "You sent: I play chess.", "type": "any", "code": None, "param": None}}
    provider.reply(status=status, error=said)
    with pytest.raises(error, match=rf"small: \w+ \({status}\)$") as caught:
        await model.complete(ASKED)
    assert caught.value.__cause__ is None
    assert len(provider.requests) == 1
    provider.reply(ANSWER)
    assert (await model.complete(ASKED)).text == ANSWER


async def test_case_44_a_model_that_is_silent_or_gone_is_unavailable(
    model: LiteLLMModel, provider: ScriptedProvider
) -> None:
    """After its time, when the connection ends, and where nobody knows the name."""
    provider.reply(delay=math.inf)
    with pytest.raises(ModelUnavailable, match="Timeout"):
        await model.complete(msgspec.structs.replace(ASKED, seconds=0.2))
    provider.reply(ANSWER, cut_after=0)
    with pytest.raises(ModelUnavailable, match="small: "):
        await model.complete(ASKED)
    with pytest.raises(ModelUnavailable, match="neither `model_list` nor LiteLLM knows a model 'nobody'"):
        await model.complete(msgspec.structs.replace(ASKED, model="nobody"))
    assert len(provider.requests) == 2


async def test_nothing_of_it_is_logged_or_cached_by_litellm(
    litellm: ModuleType, model: LiteLLMModel, provider: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a cache and callbacks of the operator's, which see a client's call beside it."""
    told: list[str] = []

    class Told(litellm.integrations.custom_logger.CustomLogger):  # type: ignore[name-defined,misc]
        async def async_log_success_event(self, **call: Any) -> None:
            told.append(str(call["kwargs"]["messages"]))

    monkeypatch.setattr(litellm, "cache", litellm.Cache(type="local"))
    monkeypatch.setattr(litellm, "callbacks", [Told()])
    for _ in range(2):
        await model.complete(ASKED)
    assert len(provider.requests) == 2
    assert not litellm.cache.cache.cache_dict
    access = {"model": "openai/gpt-4o-mini", "api_base": provider.openai_url, "api_key": "none"}
    await litellm.acompletion(**access, messages=[{"role": "user", "content": "Asked by a client."}])
    async with asyncio.timeout(20):
        while not (told and litellm.cache.cache.cache_dict):  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0.01)
    assert "Asked by a client." in str(told)
    assert "chess" not in str(told) + str(litellm.cache.cache.cache_dict)


def test_the_measure_of_extraction_reads_through_a_model_and_tells_what_it_took(
    provider: ScriptedProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name and the usual variables; an answer that is unusable and a claim without words count."""
    known = {one.user: one for one in read("dev")}

    def answer(request: Request) -> Reply:
        (page,) = json.loads(request.user_text)
        facts = [{**msgspec.structs.asdict(one), "statement": one.quote} for one in known[page["said"]].facts]
        invented = {"statement": "I own a boat.", "quote": "I own a boat"}
        told = json.dumps({"facts": [*facts, invented]}) if facts else "Sorry."
        return Reply(text=told, usage=Usage(input=30, output=5))

    provider.answer = answer
    monkeypatch.setenv("OPENAI_API_BASE", provider.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    found = tmp_path / "found.json"
    given = ["extraction.py", "--model", "openai/gpt-4o-mini", "--most", "20", "--json", str(found)]
    monkeypatch.setattr(sys, "argv", given)
    runpy.run_path(str(BENCHMARKS / "extraction.py"), run_name="__main__")
    tables = json.loads(found.read_text())["tables"]
    (whole,) = tables["openai/gpt-4o-mini"]
    assert (whole["exchanges"], whole["missed"], whole["wrong"]) == (20, 0, 0)
    with_facts = sum(bool(one.facts) for one in list(known.values())[:20])
    assert tables["spent"] == [
        {
            "": "openai/gpt-4o-mini",
            "calls": 20,
            "input tokens": 600,
            "output tokens": 100,
            "dollars": "0.000150",
            "unusable answers": 20 - with_facts,
            "refused claims": with_facts,
        }
    ]
