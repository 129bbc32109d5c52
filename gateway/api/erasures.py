"""Erasures and their receipts, and the legal holds that keep them waiting."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from hearth.gateway.api.access import AdminKey, Reader, TheEngine, TheGateway, Writer
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import MAX_LIMIT, Body, Identifier, Reason
from hearth.gateway.api.shapes import MEMORY_ID, WHEN, ForgottenOut, example
from hearth.memory.engine import Forgotten
from hearth.memory.erasure.receipt import Hold, Receipt, State, What
from hearth.memory.errors import BadInput, NotFound
from hearth.memory.types import Scope

router = APIRouter(tags=["erasure"], route_class=KeyedRoute)

Because = Annotated[Reason, Query(description="Why; stands in the receipt.")]


class ErasedOut(BaseModel):
    """What became of an erasure so far."""

    model_config = example(user="alice", done=True, pending=[], receipt=MEMORY_ID)

    user: str
    done: bool = Field(description="True if nothing of the user is left in any store.")
    pending: list[str] = Field(
        description="Stores that are down: all is unreachable already, and the worker removes it there later."
    )
    receipt: str = Field(description="Id of its receipt, `GET /erasures/{id}`.")


class TenantErasedOut(BaseModel):
    """What became of a tenant's erasure so far."""

    model_config = example(tenant="acme", receipt=MEMORY_ID)

    tenant: str
    receipt: str = Field(description="Id of its receipt, `GET /erasures/{id}`.")


class StepOut(BaseModel):
    """One place that an erasure has to reach."""

    place: str
    done_at: datetime | None = Field(description="When it was gone there; null while it is not.")
    trouble: str = Field(description="Why it is not, when that was last tried.")


class ScannedOut(BaseModel):
    """What a scan of one place found."""

    place: str
    how: str = Field(description="`raw bytes` of every file, or the `content` that a store gives.")
    size: int = Field(description="Bytes that were read, or records that were looked for.")
    found: int = Field(description="Fragments of what was erased, or records of it.")


class HeldByProviderOut(BaseModel):
    """A response that a model's provider was given to keep."""

    response: str
    model: str
    at: datetime
    gone_at: datetime | None = Field(description="When it was deleted there; null while it may be kept.")


RECEIPT: dict[str, Any] = {
    "id": MEMORY_ID,
    "what": "user",
    "user": "alice",
    "record": "",
    "state": "purged",
    "by": "admin",
    "reason": "asked by mail",
    "requested_at": WHEN,
    "unreachable_at": WHEN,
    "purged_at": WHEN,
    "found": {"events": 41, "exchanges": 12, "memories": 3},
    "steps": [{"place": "log", "done_at": WHEN, "trouble": ""}],
    "scan": [{"place": "log", "how": "raw bytes", "size": 1048576, "found": 0}],
    "provider_held": [],
}


class ReceiptOut(BaseModel):
    """An erasure as it stands."""

    model_config = example(**RECEIPT)

    id: str
    what: What
    user: str = Field(description="Whose; empty for a tenant.")
    record: str = Field(description="The memory, exchange or session, where it is one.")
    state: State = Field(
        description="`held` by a legal hold, `pending` (unreachable, not yet gone everywhere), `purged`."
    )
    by: str = Field(description="Name of the key that asked for it.")
    reason: str
    requested_at: datetime
    unreachable_at: datetime | None
    purged_at: datetime | None
    found: dict[str, int] = Field(description="What there was, by sort.")
    steps: list[StepOut]
    scan: list[ScannedOut] = Field(description="Made once every step is done.")
    provider_held: list[HeldByProviderOut] = Field(
        description="Responses of the last seven days that their provider may keep: Hearth has no hand there."
    )

    @classmethod
    def of(cls, receipt: Receipt) -> ReceiptOut:
        """The receipt as the API shows it."""
        plain = {name: getattr(receipt, name) for name in _PLAIN}
        return cls(
            **plain,
            steps=[StepOut(place=s.place, done_at=s.done_at, trouble=s.trouble) for s in receipt.steps],
            scan=[ScannedOut(place=s.place, how=s.how, size=s.size, found=s.found) for s in receipt.scan],
            provider_held=[
                HeldByProviderOut(response=one.response, model=one.model, at=one.at, gone_at=one.gone_at)
                for one in receipt.provider_held
            ],
        )


_PLAIN = (
    *("id", "what", "user", "record", "state", "by", "reason", "requested_at", "unreachable_at", "purged_at"),
    "found",
)


class ReceiptPage(BaseModel):
    """The tenant's latest erasures, the last changed first."""

    model_config = example(items=[RECEIPT])

    items: list[ReceiptOut]


class HoldIn(Body):
    """Why a hold is placed."""

    model_config = example(reason="case 7, court of Zurich")

    reason: Reason = Field(min_length=1)


class HoldOut(BaseModel):
    """A legal hold."""

    model_config = example(user="alice", reason="case 7, court of Zurich", by="admin", at=WHEN)

    user: str
    reason: str
    by: str = Field(description="Name of the key that placed it.")
    at: datetime

    @classmethod
    def of(cls, hold: Hold) -> HoldOut:
        """The hold as the API shows it."""
        return cls(user=hold.user, reason=hold.reason, by=hold.by, at=hold.at)


class HoldPage(BaseModel):
    """The tenant's holds, by user."""

    items: list[HoldOut]


class LiftedOut(BaseModel):
    """A hold that stands no more."""

    model_config = example(user="alice")

    user: str


@router.delete(
    "/users/{user_id:path}", responses={202: {"model": ErasedOut, "description": "Pending in a store"}}
)
async def erase_user(
    user_id: str, caller: Writer, gateway: TheGateway, response: Response, reason: Because = ""
) -> ErasedOut:
    """Erase a user: everything, in every store, of every agent. 202 where a store is down for now."""
    scope = caller.scope(user_id)
    erased = await gateway.flow.engine.erase(scope.tenant, scope.user, by=caller.key.name, reason=reason)
    gateway.flow.chains.drop(scope.tenant, scope.user)
    response.status_code = _status(erased)
    return ErasedOut(user=scope.user, done=erased.done, pending=list(erased.pending), receipt=erased.receipt)


@router.delete(
    "/sessions/{session_id:path}",
    responses={202: {"model": ForgottenOut, "description": "Pending in a store"}},
)
async def forget_session(
    session_id: str, caller: Writer, engine: TheEngine, response: Response, reason: Because = ""
) -> ForgottenOut:
    """Forget a session everywhere: its exchanges, what rests on them alone, and what was added in it."""
    scope = caller.scope()
    if scope.isolated and not await _is_own(engine, scope, session_id):
        raise NotFound
    forgotten = await engine.forget_session(scope, session_id, by=caller.key.name, reason=reason)
    response.status_code = _status(forgotten)
    return ForgottenOut.of(session_id, forgotten)


@router.delete("/tenant", status_code=202)
async def erase_tenant(
    key: AdminKey,
    gateway: TheGateway,
    confirm: Annotated[str, Query(description="The name of the key's tenant: it can't be undone.")],
    reason: Because = "",
) -> TenantErasedOut:
    """Erase all users and documents of the key's tenant: unreachable at once, then one after the other."""
    if confirm != key.tenant:
        raise BadInput("confirm", confirm, f"the name of the key's tenant, {key.tenant!r}")
    erased = await gateway.flow.engine.erase_tenant(key.tenant, by=key.name, reason=reason)
    gateway.flow.chains.drop(key.tenant)
    return TenantErasedOut(tenant=key.tenant, receipt=erased.receipt)


@router.get("/erasures")
async def list_erasures(
    key: AdminKey, engine: TheEngine, limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50
) -> ReceiptPage:
    """List the latest erasures of the key's tenant, the last changed first."""
    found = await engine.office.erasures(key.tenant, limit=limit)
    return ReceiptPage(items=[ReceiptOut.of(one) for one in found])


@router.get("/erasures/{id}")
async def get_erasure(id: str, caller: Reader, engine: TheEngine) -> ReceiptOut:
    """Read the receipt of an erasure: one's own, or with an admin key any of the tenant's."""
    user = None if caller.admin else caller.scope().user
    found = await engine.receipt(caller.key.tenant, id)
    if user not in (None, found.user):
        raise NotFound
    return ReceiptOut.of(found)


@router.get("/holds")
async def list_holds(key: AdminKey, engine: TheEngine) -> HoldPage:
    """List the legal holds of the key's tenant."""
    return HoldPage(items=[HoldOut.of(one) for one in await engine.office.holds(key.tenant)])


@router.put("/holds/{user_id:path}")
async def place_hold(user_id: Identifier, key: AdminKey, engine: TheEngine, body: HoldIn) -> HoldOut:
    """Place a legal hold on a user: nothing of them is erased or runs out until it is lifted."""
    await engine.hold(key.tenant, user_id, by=key.name, reason=body.reason)
    (hold,) = await engine.office.holds(key.tenant, user=user_id)
    return HoldOut.of(hold)


@router.delete("/holds/{user_id:path}")
async def lift_hold(user_id: Identifier, key: AdminKey, engine: TheEngine, reason: Because = "") -> LiftedOut:
    """Lift a legal hold. Erasures that waited for that follow by themselves."""
    await engine.lift_hold(key.tenant, user_id, by=key.name, reason=reason)
    return LiftedOut(user=user_id)


async def _is_own(engine: TheEngine, scope: Scope, session: str) -> bool:
    """Whether all of the session is an isolated agent's own."""
    owners = await engine.office.owners_of(scope.tenant, scope.user, session)
    return owners == {scope.own_agent}


def _status(forgotten: Forgotten) -> int:
    return 200 if forgotten.done else 202
