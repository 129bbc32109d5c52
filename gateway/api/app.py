"""The API as one app, to be mounted at /memory before LiteLLM's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, FastAPI

from hearth.gateway.api import (
    compare,
    erasures,
    events,
    exchanges,
    exports,
    forgettings,
    health,
    imports,
    knowledge,
    memories,
    past,
    people,
    persona,
    policy,
    recall,
    spending,
    stories,
    switches,
    system,
    tiers,
    verify,
)
from hearth.gateway.api.door import Door
from hearth.gateway.api.problems import MEDIA_TYPE, ProblemDetails, install_handlers
from hearth.gateway.runtime import Gateway

PREFIX = "/v1"
OPEN = ("/v1/health/live", "/v1/health/ready")
"""Paths that need no key."""

RESOURCES: tuple[APIRouter, ...] = (
    memories.router,
    past.router,
    persona.router,
    exchanges.router,
    forgettings.router,
    recall.router,
    compare.router,
    tiers.router,
    stories.router,
    policy.router,
    imports.router,
    exports.router,
    knowledge.router,
    system.router,
    people.router,
    erasures.router,
    spending.router,
    switches.router,
    events.router,
    verify.router,
)

DESCRIPTION = """Memory for every LLM app, at the gateway.

A key belongs to a person, whose memory it reaches, or to an app, which names its user in each request
(header `x-hearth-user` or parameter `user`). Every error is a problem detail (RFC 9457) that says what to do.
"""


def create_api(
    gateway_of: Callable[[], Gateway],
    *,
    door: Door | None = None,
) -> FastAPI:
    """The app with every route under `/v1`, and `/metrics`; mount it at `/memory`.

    `gateway_of` gives the running gateway and raises RuntimeError where there is none. The door is that of
    the model routes unless another is given: the same keys, told apart in the same way.
    """
    door = door or _door_of_model_routes()
    app = FastAPI(
        title="Hearth",
        description=DESCRIPTION,
        version="1",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.gateway_of = gateway_of
    app.state.door = door
    install_handlers(app)
    for router in RESOURCES:
        app.include_router(router, prefix=PREFIX)
    app.include_router(health.router)
    _document_problems(app)
    return app


def _door_of_model_routes() -> Door:
    """Imported here because LiteLLM, which it belongs to, takes seconds and must find its environment set."""
    from hearth.gateway import auth

    return Door(authenticate=auth.authenticate, is_local=auth.is_local)


def _document_problems(app: FastAPI) -> None:
    """Put keys and problem details into the OpenAPI document, in place of FastAPI's own error schema."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _amend(generate())
        return generate()

    app.openapi = openapi  # type: ignore[method-assign]


def _amend(document: dict[str, Any]) -> None:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas.update(_problem_schemas())
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    for path, methods in document["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
            operation["security"] = [] if path in OPEN else [{"bearer": []}, {"x-api-key": []}]


_PROBLEM = {
    "description": "A problem, and what to do",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
}


def _problem_schemas() -> dict[str, Any]:
    schema = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs", {}), "ProblemDetails": schema}
