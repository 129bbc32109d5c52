"""LiteLLM's hooks: the only file that knows LiteLLM's own dictionaries. Everything else is the flow's."""

from __future__ import annotations

import copy
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import litellm
import msgspec
from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger

from hearth.gateway.auth import key_of
from hearth.gateway.caching import with_caching
from hearth.gateway.call import CALL, Call, response_headers
from hearth.gateway.chains import (
    BrokenChainError,
    ChainLink,
    ChainOwner,
    continued,
    items_of,
    translated,
)
from hearth.gateway.identity import MEMORY_HEADER, IdentityError, Off
from hearth.gateway.retry_after import retry_after
from hearth.gateway.runtime import RUNTIME
from hearth.gateway.whose import identity_of
from hearth.gateway.wire import WIRES
from hearth.gateway.wire.reply import openai_usage
from hearth.gateway.wire.types import Body, Route, WireReply, WireRequest
from hearth.memory import metrics
from hearth.memory.types import Usage

logger = logging.getLogger(__name__)

ROUTES: dict[str, Route] = {
    "completion": "chat",
    "acompletion": "chat",
    "anthropic_messages": "messages",
    "aresponses": "responses",
    "responses": "responses",
    "atext_completion": "completions",
    "text_completion": "completions",
}
"""LiteLLM's call types that are remembered."""

PROMPT_FIELDS: dict[Route, str] = {
    "chat": "messages",
    "messages": "messages",
    "responses": "input",
    "completions": "prompt",
}
"""The body field that a block may change, by route."""

STOCK_CALLS = 10_000
"""Calls remembered between hooks inside a stock proxy."""


class HearthPlugin(CustomLogger):
    """Memory as a LiteLLM callback."""

    def __init__(self) -> None:
        super().__init__()
        self._stock_calls: OrderedDict[str, Call] = OrderedDict()

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """Recall, and put the block into the prompt.

        Refuses with 400 or 403 for a wrong identity, with 400 for a chain of responses that nobody holds.
        """
        route = ROUTES.get(call_type)
        if route is None:
            return data
        call = CALL.get() or self._stock_call(data, route)
        data = await self._remembered(call, route, user_api_key_dict, data)
        if route == "responses" and call.at_edge:
            return await self._continued(call, user_api_key_dict, data)
        return data

    async def async_post_call_response_headers_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: Any,
        response: Any,
        request_headers: dict[str, str] | None = None,
        litellm_call_info: dict[str, Any] | None = None,
    ) -> dict[str, str] | None:
        """The `x-hearth-*` headers inside a stock proxy; in `hearth serve` the edge writes them."""
        call = self._stock_calls.get(str(data.get("litellm_call_id")))
        return response_headers(call) if call is not None else None

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> None:
        """Keep the provider's `retry-after`, which LiteLLM drops, for the edge to pass on."""
        call = CALL.get()
        if call is not None:
            call.retry_after = retry_after(original_exception)

    async def async_logging_hook(
        self, kwargs: dict[str, Any], result: Any, call_type: str
    ) -> tuple[dict[str, Any], Any]:
        """Take the block out of what other callbacks are given."""
        route = ROUTES.get(call_type)
        if route is not None:
            try:
                _strip_logged(kwargs, route)
            except Exception:
                logger.exception("a block could not be taken out of what other callbacks get")
                metrics.FAILURES.labels("logging_hook").inc()
        return kwargs, result

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """In `hearth serve`: add model and cost. Inside a stock proxy: capture, as well as it can be done."""
        await self._logged(kwargs, response_obj, failed=False)

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Inside a stock proxy: write the failed call down."""
        await self._logged(kwargs, response_obj, failed=True)

    # -- before ----------------------------------------------------------------------------------------

    async def _remembered(self, call: Call, route: Route, auth: Any, data: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._remember(call, route, auth, data)
        except IdentityError as error:
            call.off("identity")
            raise HTTPException(status_code=error.status, detail={"error": str(error)}) from error
        except Exception:
            logger.exception("memory failed before the call; it goes on without")
            metrics.FAILURES.labels("pre_call").inc()
            call.status, call.reason = "failed", "error"
            return data

    async def _continued(self, call: Call, auth: Any, data: dict[str, Any]) -> dict[str, Any]:
        """The turns before `previous_response_id` in front, where neither backend nor database holds them."""
        gateway = await RUNTIME.gateway()
        if gateway is None or not _translated(str(data.get("model"))):
            return data
        owner = _chain_owner(call, auth)
        previous = data.get("previous_response_id") or ""
        own = copy.deepcopy(items_of(data.get("input")))
        call.link = ChainLink(owner=owner, previous=previous, items=own)
        try:
            earlier = await gateway.flow.chains.before(owner, previous)
        except BrokenChainError as error:
            raise HTTPException(status_code=400, detail={"error": str(error)}) from error
        return continued(data, earlier) if earlier else data

    async def _remember(self, call: Call, route: Route, auth: Any, data: dict[str, Any]) -> dict[str, Any]:
        gateway = await RUNTIME.gateway()
        if gateway is None:
            call.off("not started")
            return data
        if route == "completions" and not any(name.lower() == MEMORY_HEADER for name, _ in call.headers):
            call.off("not asked for")
            return data
        request = WIRES[route].read_request(data)
        call.request = request
        key = key_of(auth)
        identity = key if isinstance(key, Off) else identity_of(gateway, call.headers, request, key)
        if isinstance(identity, Off):
            call.off(identity.reason)
            return data
        call.request, window = as_served(request)
        body = await gateway.flow.before(call, call.request, identity, data, window=window)
        if body is data:
            return data
        field = PROMPT_FIELDS[route]
        data[field] = body[field]
        data["cache"] = {**(data.get("cache") or {}), "no-cache": True, "no-store": True}
        return data

    def _stock_call(self, data: dict[str, Any], route: Route) -> Call:
        sent = (data.get("proxy_server_request") or {}).get("headers") or {}
        call = Call(route=route, headers=list(sent.items()), started_at=datetime.now(UTC))
        self._stock_calls[str(data.get("litellm_call_id"))] = call
        while len(self._stock_calls) > STOCK_CALLS:
            self._stock_calls.popitem(last=False)
        return call

    # -- after -----------------------------------------------------------------------------------------

    async def _logged(self, kwargs: dict[str, Any], response: Any, *, failed: bool) -> None:
        try:
            call = self._stock_calls.get(str(kwargs.get("litellm_call_id")))
            if call is not None:
                await self._capture_stock(call, kwargs, response, failed=failed)
            elif not failed:  # a try that failed may be followed by one that the router makes elsewhere
                await self._enrich(CALL.get(), kwargs)
        except Exception:
            logger.exception("a log event could not be used")
            metrics.FAILURES.labels("log_event").inc()

    async def _capture_stock(
        self, call: Call, kwargs: dict[str, Any], response: Any, *, failed: bool
    ) -> None:
        gateway = await RUNTIME.gateway()
        if gateway is None or call.captured:
            return
        call.captured = True
        logged = kwargs.get("standard_logging_object") or {}
        hung_up = (logged.get("error_information") or {}).get("error_class") == "ClientDisconnected"
        reply = _reply(response, error=str(kwargs.get("exception") or "") if failed else "")
        if hung_up and reply.outcome == "complete":
            reply = msgspec.structs.replace(reply, outcome="partial")
        await gateway.flow.after(call, reply)

    async def _enrich(self, call: Call | None, kwargs: dict[str, Any]) -> None:
        gateway = await RUNTIME.gateway()
        if gateway is None or call is None or call.opened is None or call.draft is None:
            return
        logged = kwargs.get("standard_logging_object") or {}
        usage = _logged_usage(logged, memory=call.block.tokens if call.block and call.placed else 0)
        await gateway.flow.engine.enrich(
            call.opened,
            event_id=call.id,
            model=str(logged.get("model") or ""),
            usage=usage,
            cost=logged.get("response_cost"),
        )


def _logged_usage(logged: Mapping[str, Any], *, memory: int) -> Usage:
    """The provider's counts, or LiteLLM's own where it gave none."""
    counted = openai_usage((logged.get("metadata") or {}).get("usage_object"))
    if counted is None or not counted.input:
        counted = Usage(input=logged.get("prompt_tokens") or 0, output=logged.get("completion_tokens") or 0)
    return msgspec.structs.replace(counted, memory=memory)


def as_served(request: WireRequest) -> tuple[WireRequest, int]:
    """The request with what its deployments' caches do, and their smallest window (see `Flow.before`)."""
    deployments = deployments_of(request.model)
    return with_caching(request, map(_model_of, deployments)), _smallest_window(deployments)


def _translated(model: str) -> bool:
    """Whether the gateway holds this model's chains; no, logged and counted, if LiteLLM can't tell."""
    try:
        return translated(served_by(model))
    except Exception:
        logger.exception("it could not be told whether a backend keeps chains of responses")
        metrics.FAILURES.labels("chains").inc()
        return False


def _chain_owner(call: Call, auth: Any) -> ChainOwner:
    key = key_of(auth)
    name = auth.api_key or "" if isinstance(key, Off) else key.name
    if call.opened is None:
        return ChainOwner(key=name)
    scope = call.opened.scope
    return ChainOwner(key=name, tenant=scope.tenant, user=scope.user, generation=call.opened.generation)


def served_by(model: str) -> list[dict[str, Any]]:
    """LiteLLM's deployments of a model name, without those of its fallbacks."""
    from litellm.proxy.proxy_server import llm_router

    return list(llm_router.get_model_list(model) or []) if llm_router is not None else []


def deployments_of(model: str) -> list[dict[str, Any]]:
    """LiteLLM's deployments that may serve a model name, those of its fallbacks included."""
    from litellm.proxy.proxy_server import llm_router

    if llm_router is None:
        return []
    names = [model, *_fallbacks(llm_router, model)]
    return [deployment for name in names for deployment in llm_router.get_model_list(name) or []]


def _smallest_window(deployments: Iterable[dict[str, Any]]) -> int:
    """Smallest input window in tokens; 0 where none is known."""
    return min(filter(None, map(_window, deployments)), default=0)


def _model_of(deployment: dict[str, Any]) -> str:
    return str((deployment.get("litellm_params") or {}).get("model", ""))


def _fallbacks(router: Any, model: str) -> list[str]:
    tables = [*(router.fallbacks or []), *(router.context_window_fallbacks or [])]
    return [name for table in tables for name in table.get(model, []) if isinstance(name, str)]


def _window(deployment: dict[str, Any]) -> int:
    own = (deployment.get("model_info") or {}).get("max_input_tokens")
    if own:
        return int(own)
    name = _model_of(deployment)
    known = litellm.model_cost.get(name) or litellm.model_cost.get(name.partition("/")[2]) or {}
    return int(known.get("max_input_tokens") or 0)


def _reply(response: Any, *, error: str) -> WireReply:
    """The assembled reply of a log event, whatever format LiteLLM gives it in."""
    if error:
        return WireReply(outcome="failed", error=error)
    body: Body = response if isinstance(response, dict) else response.model_dump(mode="json")
    route: Route = "chat" if "choices" in body else "responses" if "output" in body else "messages"
    return WIRES[route].read_reply(msgspec.json.encode(body), status=200, stream=False)


def _strip_logged(kwargs: dict[str, Any], route: Route) -> None:
    field, wire = PROMPT_FIELDS[route], WIRES[route]
    logged = kwargs.get("standard_logging_object") or {}
    extra = (kwargs.get("additional_args") or {}).get("complete_input_dict")
    for holder, name in (
        (kwargs, "messages"),
        (kwargs, "input"),
        (kwargs, field),
        (logged, "messages"),
        (extra, field),
    ):
        if isinstance(holder, dict) and isinstance(holder.get(name), (list, str)):
            holder[name] = wire.strip({field: holder[name]})[field]


instance = HearthPlugin()
