"""The model that memory asks, by LiteLLM: any of the file's `model_list`, or any name that LiteLLM knows."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hearth.config.environment import prepare_environment
from hearth.config.settings import Settings
from hearth.gateway.wire.reply import openai_usage
from hearth.memory.errors import BadAnswer, HearthError, ModelUnavailable
from hearth.memory.ports import ChatModel, ModelReply, ModelRequest
from hearth.memory.types import Usage

logger = logging.getLogger(__name__)

_REFUSED: Final = frozenset({400, 413, 422})
"""Statuses that say something of this request, and nothing of the next one."""
_QUIET: Final[dict[str, Any]] = {
    "no-log": True,
    "cache": {"no-cache": True, "no-store": True},
    "drop_params": True,
}
"""What one user said is for no other callback and no cache; a parameter that a model does not know is left
out.
"""


def extraction_model(settings: Settings) -> ChatModel | None:
    """The model behind LiteLLM where the file names one for reading facts, for whomever, else None."""
    lives = [settings.hearth.life, *(tenant.life for tenant in settings.hearth.tenants.values())]
    return LiteLLMModel(settings) if any(life.extraction.model for life in lives) else None


class LiteLLMModel:
    """Asks through a router of its own, so that its failures cool down no deployment of the clients."""

    def __init__(self, settings: Settings) -> None:
        """LiteLLM, which takes seconds to load, is loaded when it is first asked."""
        self._settings = settings
        self._router: Any = None

    async def complete(self, request: ModelRequest) -> ModelReply:
        """See `ChatModel.complete`."""
        await asyncio.to_thread(self._load)
        try:
            reply = await self._asked(request)
        except Exception as error:  # LiteLLM's errors have no base of their own
            if getattr(error, "status_code", None) is None:
                logger.exception("a call of %s failed in a way that is not known", request.model)
            raise _failure(request, error) from None
        return _reply(request, reply)

    def _load(self) -> None:
        prepare_environment(os.environ, self._settings)
        import litellm  # noqa: F401

    async def _asked(self, request: ModelRequest) -> Any:
        import litellm

        given: dict[str, Any] = {
            "model": request.model,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.prompt},
            ],
            "max_tokens": request.max_tokens,
            "temperature": 0,
            "timeout": request.seconds,
            **_QUIET,
        }
        deployments = self._deployments(request.model)
        models = [str(one["model"]) for one in deployments] or [_known(request.model)]
        if request.schema is not None:
            given |= _form(request.schema, models)
        if not deployments:
            return await litellm.acompletion(**given, num_retries=0)
        return await self._routed().acompletion(**given)

    def _deployments(self, model: str) -> list[Mapping[str, Any]]:
        return [
            entry.get("litellm_params") or {}
            for entry in self._models()
            if entry.get("model_name") == model and (entry.get("litellm_params") or {}).get("model")
        ]

    def _models(self) -> list[dict[str, Any]]:
        listed = self._settings.litellm.get("model_list")
        return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []

    def _routed(self) -> Any:
        if self._router is None:
            from litellm import Router

            self._router = Router(
                model_list=copy.deepcopy(self._models()), num_retries=0, disable_cooldowns=True
            )
        return self._router


def _known(model: str) -> str:
    """The name as it is. Raises ModelUnavailable where LiteLLM does not know whose it is."""
    import litellm

    try:
        litellm.get_llm_provider(model)
    except litellm.exceptions.BadRequestError:
        raise ModelUnavailable(f"neither `model_list` nor LiteLLM knows a model {model!r}") from None
    return model


def _form(schema: Mapping[str, Any], models: Sequence[str]) -> dict[str, Any]:
    """The strictest form of answer that all deployments can be held to; nothing where that is any text."""
    import litellm

    if all(litellm.supports_response_schema(model) for model in models):
        held = {"name": "facts", "strict": True, "schema": dict(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": held}}
    if all("response_format" in (litellm.get_supported_openai_params(model) or ()) for model in models):
        return {"response_format": {"type": "json_object"}}
    return {}


def _reply(request: ModelRequest, reply: Any) -> ModelReply:
    choice = reply.choices[0] if reply.choices else None
    text = (choice.message.content if choice is not None else "") or ""
    counted = openai_usage(reply.usage.model_dump()) if getattr(reply, "usage", None) is not None else None
    cost = (getattr(reply, "_hidden_params", None) or {}).get("response_cost")
    return ModelReply(
        text=text,
        model=str(reply.model or request.model),
        usage=counted or Usage(),
        cost=cost if isinstance(cost, int | float) else None,
    )


def _failure(request: ModelRequest, error: Exception) -> HearthError:
    """By status and kind alone: what a provider says may hold what it was asked."""
    if isinstance(error, ModelUnavailable):
        return error
    status = getattr(error, "status_code", None)
    said = f"{request.model}: {type(error).__name__}" + (f" ({status})" if status else "")
    if status in _REFUSED:
        return BadAnswer(f"the request was refused by {said}")
    return ModelUnavailable(f"no answer by {said}")
