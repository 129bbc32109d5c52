"""Health for probes and people, and the counters for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from pydantic import BaseModel, Field

from hearth.config.switches import ModeName, Switches
from hearth.gateway.api.access import TheEngine, TheGateway
from hearth.gateway.api.door import OpenRoute
from hearth.gateway.api.problems import Problem
from hearth.gateway.api.shapes import example
from hearth.gateway.api.switches import switches_of
from hearth.gateway.keys import Key
from hearth.gateway.runtime import RUNTIME, Gateway
from hearth.memory import metrics
from hearth.memory.errors import LogUnavailable
from hearth.memory.gauges import exposed
from hearth.memory.health import Health, engine_health

router = APIRouter(tags=["operations"], route_class=OpenRoute)


class AliveOut(BaseModel):
    """The process answers."""

    model_config = example(status="ok")

    status: Literal["ok"] = "ok"


class ReadyOut(BaseModel):
    """Whether model calls can be served; they are, with less memory, where a part is not well."""

    model_config = example(status="degraded", reasons=["worker: 1204 events behind"])

    status: Literal["ok", "degraded", "down"]
    reasons: list[str] = Field(description="Why the status is not `ok`.")


class PartOut(BaseModel):
    """One part of memory."""

    status: Literal["ok", "degraded", "down"]
    reasons: list[str]
    numbers: dict[str, Any] = Field(description="What the part says of itself.")


class HealthOut(ReadyOut):
    """How memory is, part by part."""

    model_config = example(
        status="ok",
        reasons=[],
        switched={"everyone": "off"},
        parts={"log": {"status": "ok", "reasons": [], "numbers": {"events": 1204, "sync_p50_ms": 1.1}}},
    )

    switched: dict[str, ModeName] = Field(
        description="What is not on: by `settings` (their default), by a switch for `everyone`, by switches "
        "that could not be read yet (`unread`), and of the key's own tenant `tenant` and `key NAME`."
    )
    parts: dict[str, PartOut] = Field(
        description="log, spool, short_term, long_term, worker, recall; extraction where a model reads "
        "facts; configuration where a file is followed."
    )


@router.get("/v1/health/live")
async def live() -> AliveOut:
    """Say that the process answers. Needs no key."""
    return AliveOut()


@router.get("/v1/health/ready")
async def ready(engine: TheEngine) -> ReadyOut:
    """Say whether model calls can be served: 503 only while the gateway starts or stops. Needs no key."""
    if RUNTIME.ending:
        raise Problem(503, "unavailable", "Send new calls to another gateway; this one ends.")
    health = await engine_health(engine)
    return ReadyOut(status=health.state, reasons=list(health.reasons))


@router.get("/v1/health", responses={503: {"model": HealthOut, "description": "Without its log"}})
async def health(request: Request, gateway: TheGateway, response: Response) -> HealthOut:
    """Say how memory is, part by part, to any key and to this machine; 503 where the log is down."""
    key: Key | None = request.state.key
    if key is None and not request.app.state.door.is_local(request):
        raise Problem(401, "no-key", "Send a key, or ask GET /memory/v1/health/ready, which needs none.")
    found = await engine_health(gateway.flow.engine)
    response.status_code = 503 if found.state == "down" else 200
    parts = parts_of(found)
    if key is not None and "extraction" in parts:
        parts["extraction"].numbers |= await _left(key, gateway)
    return HealthOut(
        status=found.state,
        reasons=list(found.reasons),
        switched=_switched(gateway.switchboard.current(), key, gateway),
        parts=parts,
    )


async def _left(key: Key, gateway: Gateway) -> dict[str, int]:
    """What the key's tenant may still spend on the model today; nothing where the log can't say."""
    engine = gateway.flow.engine
    try:
        spent = await engine.log.spending(key.tenant, since=engine.clock.now().date())
    except LogUnavailable:
        return {}
    most = engine.policies.of(key.tenant).extraction.daily_tokens
    return {"tokens_left_today": max(most - sum(one.tokens for one in spent), 0)}


def parts_of(found: Health) -> dict[str, PartOut]:
    """Each part as an answer shows it."""
    return {
        name: PartOut(status=part.state, reasons=list(part.reasons), numbers=part.numbers)
        for name, part in found.parts.items()
    }


def _switched(switches: Switches, key: Key | None, gateway: Gateway) -> dict[str, ModeName]:
    """What is not on; other tenants' switches are not the caller's to see."""
    everyone = "unread" if switches.unread else "everyone"
    modes: dict[str, ModeName] = {"settings": gateway.settings.hearth.memory, everyone: switches.everyone}
    if key is not None:
        own = switches_of(switches, key, gateway)
        modes |= {"tenant": own.tenant, **{f"key {name}": mode for name, mode in own.keys.items()}}
    return {what: mode for what, mode in modes.items() if mode != "on"}


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def prometheus(request: Request, gateway: TheGateway) -> Response:
    """Counters, timings and health for Prometheus, to this machine; an admin key sees its own tenant's."""
    key: Key | None = request.state.key
    if request.app.state.door.is_local(request):
        return await _metrics(_counted(), gateway)
    if key is None or "admin" not in key.scopes:
        raise Problem(403 if key else 401, "forbidden" if key else "no-key", "Metrics need an admin key.")
    own = CollectorRegistry(auto_describe=False)
    own.register(_OwnTenant(key.tenant))
    return await _metrics(own, gateway)


async def _metrics(counted: CollectorRegistry, gateway: Gateway) -> Response:
    health = await engine_health(gateway.flow.engine)
    return Response(generate_latest(counted) + exposed(health), media_type=CONTENT_TYPE_LATEST)


def _counted() -> CollectorRegistry:
    """What is counted in this process or, where several count together, in all of them."""
    if not RUNTIME.counted_together:
        return metrics.REGISTRY
    together = CollectorRegistry()
    MultiProcessCollector(together)
    return together


class _OwnTenant(Collector):
    """The process's metrics without the samples of other tenants."""

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant

    def collect(self) -> Iterator[Metric]:
        for metric in _counted().collect():
            metric.samples = [
                s for s in metric.samples if s.labels.get("tenant", self._tenant) == self._tenant
            ]
            yield metric
