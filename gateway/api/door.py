"""What every request passes before its route: key, size and parameters, and the last boundary for errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from hearth.gateway.api.problems import FieldError, Problem, internal_problem, invalid, shown, unknown_name
from hearth.gateway.identity import Off
from hearth.gateway.keys import Key
from hearth.memory import metrics
from hearth.memory.errors import HearthError
from hearth.memory.extract.clean import well_formed

logger = logging.getLogger(__name__)

MEGABYTE = 1_000_000
MAX_DEPTH = 64
"""Lists and objects within each other in a JSON body; what the API takes has five."""
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


@dataclass(frozen=True, kw_only=True)
class Door:
    """How callers are told apart."""

    authenticate: Callable[[Request], Awaitable[Key | Off | None]]
    """The key of a request; Off for one that has no memory, None if there is no valid one."""
    is_local: Callable[[Request], bool]
    """True for a caller on this machine that is no foreign web page."""


class BoundedRequest(Request):
    """A request whose body ends at a limit, and whose JSON holds valid Unicode and finite numbers alone."""

    def __init__(self, request: Request, limit: int) -> None:
        super().__init__(request.scope, _bounded(request.receive, limit))

    async def json(self) -> Any:
        """The body as JSON; lone halves of surrogate pairs become U+FFFD. Raises JSONDecodeError."""
        return loads(await self.body())


def loads(raw: bytes) -> Any:
    """Parse JSON; NaN and infinities are refused, lone halves of surrogate pairs become U+FFFD.

    Raises json.JSONDecodeError, also for bytes that are no UTF-8 and for nesting without end.
    """
    try:
        document = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_number)
        _check_depth(document)
        return _clean(document) if b"\\u" in raw else document
    except json.JSONDecodeError:
        raise
    except UnicodeDecodeError as error:
        raise json.JSONDecodeError("no valid UTF-8", "", error.start) from error
    except RecursionError as error:
        raise json.JSONDecodeError(_TOO_DEEP, "", 0) from error
    except ValueError as error:
        raise json.JSONDecodeError("a number that can't be used", "", 0) from error


_TOO_DEEP = f"nested more than {MAX_DEPTH} deep"


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(MAX_DEPTH + 1):
        held = [one for one in level if isinstance(one, dict | list)]
        if not held:
            return
        level = [inner for one in held for inner in (one.values() if isinstance(one, dict) else one)]
    raise json.JSONDecodeError(_TOO_DEEP, "", 0)


def _no_number(name: str) -> float:
    raise json.JSONDecodeError(f"{name} is no JSON number", "", 0)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {well_formed(name): _clean(item) for name, item in value.items()}
    return value


def _bounded(receive: Receive, limit: int) -> Receive:
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise too_large(limit)
        return message

    return bounded


def too_large(limit: int) -> HTTPException:
    """The error for a body of more than `limit` bytes; FastAPI lets no other kind pass while it reads one."""
    detail = f"Send at most {limit // MEGABYTE} MB at once, in several requests where there is more."
    return HTTPException(413, detail, {"connection": "close"})


class OpenRoute(APIRoute):
    """A route that needs no key."""

    body_limit: ClassVar[int] = 10 * MEGABYTE
    keyed: ClassVar[bool] = False

    def get_route_handler(self) -> Handler:
        """The route's handler behind the door."""
        handle = super().get_route_handler()
        known = _parameters(self)

        async def behind_door(request: Request) -> Response:
            request.state.key = await _admitted(request, required=self.keyed)
            _check_parameters(request, known)
            _check_length(request, self.body_limit)
            if self.body_field is not None:
                _check_media_type(request)
            return await _bounded_failure(handle, BoundedRequest(request, self.body_limit))

        return behind_door


class KeyedRoute(OpenRoute):
    """A route that needs a valid key, which is checked before anything of the request is read."""

    keyed: ClassVar[bool] = True


async def _bounded_failure(handle: Handler, request: Request) -> Response:
    """The API's boundary: an error that nobody expected is logged, counted and answered without its text."""
    try:
        return await handle(request)
    except (HearthError, Problem, HTTPException, RequestValidationError):
        raise
    except Exception as error:
        logger.exception("%s %s failed", request.method, request.scope.get("path"))
        metrics.FAILURES.labels("api").inc()
        raise internal_problem() from error


async def _admitted(request: Request, *, required: bool) -> Key | None:
    key: Key | Off | None = await request.app.state.door.authenticate(request)
    if isinstance(key, Off):
        if required:
            raise Problem(403, "forbidden", f"This key reaches no memory: {key.reason}")
        return None
    if key is None and required:
        detail = (
            "Send a key of this gateway as `Authorization: Bearer …` or `x-api-key`. "
            "A gateway without keys serves callers on its own machine alone."
        )
        raise Problem(401, "no-key", detail, headers={"www-authenticate": "Bearer"})
    return key


def _parameters(route: APIRoute) -> dict[str, bool]:
    """The route's query parameters, and whether each may be repeated."""
    found: dict[str, bool] = {}
    waiting = [route.dependant]
    while waiting:
        dependant = waiting.pop()
        waiting.extend(dependant.dependencies)
        for field in dependant.query_params:
            found[field.alias] = "list" in str(field.field_info.annotation)
    return found


def _check_parameters(request: Request, known: dict[str, bool]) -> None:
    query = request.query_params
    unknown = [unknown_name(n, query[n], known, "parameter") for n in query if n not in known]
    if unknown:
        raise invalid(unknown)
    for name, repeatable in known.items():
        values = query.getlist(name)
        if not repeatable and len(values) > 1:
            raise invalid([FieldError(field=name, value=", ".join(values), expected="it once")], status=400)


def _check_media_type(request: Request) -> None:
    """FastAPI would take any other body for a text, and miss its fields."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        error = FieldError(field="content-type", value=shown(kind), expected="application/json")
        raise invalid([error], status=415, kind="media-type")


def _check_length(request: Request, limit: int) -> None:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
