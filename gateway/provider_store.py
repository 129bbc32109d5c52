"""Responses that a provider keeps, deleted by LiteLLM with the deployment that made each."""

from __future__ import annotations

import asyncio
from typing import Any

from hearth.memory.errors import StoreUnavailable

SECONDS = 10.0
"""For one deletion."""
_PART = "the provider"


class LiteLLMResponses:
    """See `Providers`, in a process that has LiteLLM's proxy: it sealed the ids, and it alone opens them."""

    async def delete(self, response: str) -> None:
        """See `Providers.delete`. The router is passed by: it would hold a failure against the model."""
        import litellm
        from litellm.responses.utils import ResponsesAPIRequestUtils

        opened = _opened(response)
        named = ResponsesAPIRequestUtils.decode_responses_api_response_id(opened)
        made_by = _deployment(named.get("model_id") or "")
        if not _keeps(named.get("custom_llm_provider") or ""):
            return
        try:
            async with asyncio.timeout(SECONDS):
                await litellm.adelete_responses(response_id=opened, **made_by)
        except litellm.NotFoundError:
            return
        except Exception as error:  # LiteLLM and clients of providers raise what they like
            raise StoreUnavailable(_PART, f"{type(error).__name__} on a deletion") from error


def _deployment(model_id: str) -> dict[str, Any]:
    """Where and with which key the response was made."""
    from litellm.proxy.proxy_server import llm_router

    if llm_router is None:
        raise StoreUnavailable(_PART, "LiteLLM has not started yet")
    if not model_id:
        raise StoreUnavailable(_PART, "an id does not tell which model made it: was the salt key changed?")
    found = llm_router.get_deployment(model_id=model_id)
    if found is None:
        raise StoreUnavailable(_PART, "the model that made a response is not configured as it was")
    given: dict[str, Any] = found.litellm_params.model_dump(exclude_none=True)
    return {name: value for name, value in given.items() if name != "model"}


def _opened(response: str) -> str:
    """The id as LiteLLM's router knows it."""
    from litellm.proxy._types import LitellmUserRoles, UserAPIKeyAuth
    from litellm.proxy.hooks.responses_id_security import ResponsesIDSecurity

    admin = UserAPIKeyAuth(user_role=LitellmUserRoles.PROXY_ADMIN)
    return ResponsesIDSecurity().authorize_response_id(response, admin)


def _keeps(provider: str) -> bool:
    """Whether the provider has an API of responses: others are asked for chat, and keep none."""
    from litellm.types.utils import LlmProviders
    from litellm.utils import ProviderConfigManager

    try:
        kind = LlmProviders(provider)
    except ValueError:
        return True
    return ProviderConfigManager.get_provider_responses_api_config(model=None, provider=kind) is not None
