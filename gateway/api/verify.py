"""Verification: the log against its checksums, and the stores against the log, for the key's tenant."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hearth.gateway.api.access import AdminKey, TheEngine
from hearth.gateway.api.door import KeyedRoute
from hearth.gateway.api.fields import Body, Identifier
from hearth.gateway.api.shapes import example
from hearth.memory.verify import Drift, Verified

router = APIRouter(tags=["operations"], route_class=KeyedRoute)


class VerifyIn(Body):
    """What to verify."""

    model_config = example(repair=True)

    user: Identifier | None = Field(default=None, description="This user alone.")
    after: str = Field(default="", max_length=256, description="`next` of the part before.")
    repair: bool = Field(default=False, description="Bring views and stores to what the events say.")


class DriftOut(BaseModel):
    """Records that a store holds otherwise than the log says."""

    missing: int
    extra: int
    different: int
    older: int = Field(description="Of a generation that was erased.")

    @classmethod
    def of(cls, drift: Drift) -> DriftOut:
        """The drift as the API shows it."""
        return cls(**{name: getattr(drift, name) for name in drift.__struct_fields__})


class DamagedOut(BaseModel):
    """An event that is not as it was written."""

    seq: int
    id: str
    kind: str
    reason: str


class VerifiedOut(BaseModel):
    """What a part of a verification found."""

    model_config = example(
        users=2,
        events=1204,
        redacted=3,
        unsealed=0,
        missing=0,
        damages=0,
        damaged=[],
        records=402,
        long_term={"missing": 0, "extra": 0, "different": 0, "older": 0},
        short_term={"missing": 0, "extra": 0, "different": 0, "older": 0},
        views={"missing": 0, "extra": 0, "different": 0, "older": 0},
        unfolded=0,
        repaired=0,
        behind=0,
        next=None,
    )

    users: int
    events: int
    redacted: int = Field(description="Of them, those whose content is gone; their envelopes were checked.")
    unsealed: int = Field(description="Of them, those of a Hearth that made no checksums.")
    missing: int = Field(description="Events that are gone whole, envelope and all.")
    damages: int = Field(description="Events that are not as they were written.")
    damaged: list[DamagedOut] = Field(description="The first thousand of them.")
    records: int = Field(description="That long-term memory is to hold.")
    long_term: DriftOut
    short_term: DriftOut
    views: DriftOut = Field(description="Rows of the log's folded views.")
    unfolded: int = Field(
        description="Users whose views were not compared: an event can't be read, or they went on talking."
    )
    repaired: int = Field(description="Records and rows that were brought to what the events say.")
    behind: int = Field(description="Users whose stores the worker has yet to bring up to date.")
    next: str | None = Field(description="`after` of the next part; null at the end.")

    @classmethod
    def of(cls, found: Verified, following: str | None) -> VerifiedOut:
        """What was found as the API shows it."""
        plain = (
            "users",
            "events",
            "redacted",
            "unsealed",
            "missing",
            "damages",
            "records",
            "unfolded",
            "repaired",
        )
        return cls(
            **{name: getattr(found, name) for name in (*plain, "behind")},
            damaged=[
                DamagedOut(**{name: getattr(one, name) for name in one.__struct_fields__})
                for one in found.damaged
            ],
            long_term=DriftOut.of(found.long_term),
            short_term=DriftOut.of(found.short_term),
            views=DriftOut.of(found.views),
            next=following,
        )


@router.post("/verifications")
async def verify(key: AdminKey, engine: TheEngine, body: VerifyIn) -> VerifiedOut:
    """Verify some of the tenant's users, two seconds' worth; go on with `next`."""
    if body.repair:
        await engine.note(key.tenant, "repair", by=key.name, user=body.user or "")
    if body.user is not None:
        return VerifiedOut.of(await engine.verifier.user(key.tenant, body.user, repair=body.repair), None)
    found, following = await engine.verifier.some(key.tenant, after=body.after, repair=body.repair)
    return VerifiedOut.of(found, following)
