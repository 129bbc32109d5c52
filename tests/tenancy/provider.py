"""The model routes behind the gateway's own edge, with keys, identity, recall, capture and chains as they
are, and in place of LiteLLM and a provider what answers and keeps each prompt that it was sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from hearth.gateway.call import CALL, Call
from hearth.gateway.chains import BrokenChainError, ChainLink, ChainOwner, continued, items_of
from hearth.gateway.edge import Edge
from hearth.gateway.identity import IdentityError, Off
from hearth.gateway.keys import Key, key_table, presented_key
from hearth.gateway.runtime import Gateway
from hearth.gateway.whose import identity_of
from hearth.gateway.wire import WIRES
from hearth.gateway.wire.types import Body, Route


async def _no_headroom(request: Request, call: Call) -> int:
    return 0


class Models:
    """An ASGI app of the model routes, to stand beside the API's."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._keys = key_table(gateway.settings.hearth)
        self._edge = Edge(self._answer, lambda: gateway, _no_headroom)
        self.prompts: list[bytes] = []
        """What the provider was sent, in order; whoever reads it empties it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call."""
        await self._edge(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._served(request)
        await response(scope, receive, send)

    async def _served(self, request: Request) -> Response:
        call = CALL.get()
        key = self._keys.find(presented_key(request.headers.items()))
        if key is None or call is None or call.route is None:
            return JSONResponse({"error": "no key"}, 401)
        try:
            body = await self._before(call, call.route, key, json.loads(await request.body()))
        except ValueError:
            return JSONResponse({"error": "no JSON"}, 400)
        except IdentityError as error:
            return JSONResponse({"error": str(error)}, error.status)
        except BrokenChainError as error:
            return JSONResponse({"error": str(error)}, 400)
        self.prompts.append(json.dumps(body).encode())
        return JSONResponse(_reply(call.route))

    async def _before(self, call: Call, route: Route, key: Key, body: Body) -> Body:
        call.request = WIRES[route].read_request(body)
        who = identity_of(self._gateway, call.headers, call.request, key)
        if isinstance(who, Off):
            call.off(who.reason)
        else:
            body = await self._gateway.flow.before(call, call.request, who, body, window=0)
        return await self._chained(call, key, body) if route == "responses" else body

    async def _chained(self, call: Call, key: Key, body: Body) -> Body:
        owner = ChainOwner(key=key.name)
        if call.opened is not None:
            scope = call.opened.scope
            owner = ChainOwner(
                key=key.name, tenant=scope.tenant, user=scope.user, generation=call.opened.generation
            )
        previous = str(body.get("previous_response_id") or "")
        call.link = ChainLink(owner=owner, previous=previous, items=items_of(body.get("input")))
        earlier = await self._gateway.flow.chains.before(owner, previous)
        return continued(body, earlier) if earlier else body


def _reply(route: Route) -> Mapping[str, Any]:
    said = "Very well."
    if route == "messages":
        return {
            "id": f"msg_{uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": said}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    if route == "responses":
        message = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": said, "annotations": []}],
        }
        return {"id": f"resp_{uuid4().hex}", "object": "response", "status": "completed", "output": [message]}
    choice = {"message": {"role": "assistant", "content": said}, "text": said, "finish_reason": "stop"}
    return {"id": f"chatcmpl-{uuid4().hex}", "choices": [{"index": 0, **choice}]}
