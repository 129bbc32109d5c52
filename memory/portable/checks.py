"""What an event from a file must be beyond its types, so that nothing that reads it later can stumble."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from hearth.memory.errors import BadInput
from hearth.memory.events.kinds import (
    ActDone,
    ErasureChanged,
    Event,
    ExchangeEnriched,
    ExtractionReplied,
    ForgetAsked,
    ForgetDone,
    ForgetUndone,
    HoldLifted,
    HoldPlaced,
    KnowledgeLoaded,
    KnowledgeRemoved,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
    PageClosed,
    PageForgotten,
    PageMoved,
    PageOutdated,
    PageRead,
    PageSegmented,
    PolicyChanged,
    RecallDrawn,
    RecallJudged,
    SegmentChanged,
    SegmentDue,
    SegmentEvicted,
    SegmentPinned,
    SegmentPromoted,
    SegmentVisited,
    SessionForgotten,
    SessionSummarised,
    SessionSwitched,
    StepCaptured,
    SystemRefused,
    TenantErased,
    UserErased,
)
from hearth.memory.events.views import subject_of
from hearth.memory.tiers.heat import Heat
from hearth.memory.types import Memory

_EVENT_ID: Final = re.compile(r"[0-9a-f]{32}")
_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,128}")
_YEARS: Final = (1900, 9990)
_AHEAD: Final = timedelta(minutes=1)
"""How far another machine's clock may be ahead."""
_LARGEST: Final = 1 << 53
_CENTROID: Final = 65_536
"""Bytes of a centroid, a byte for each dimension."""
CARRIED: Final = (
    StepCaptured,
    ExchangeEnriched,
    PageClosed,
    PageMoved,
    PageOutdated,
    PageSegmented,
    PageForgotten,
    SegmentChanged,
    SegmentVisited,
    SegmentPromoted,
    SegmentPinned,
    SegmentEvicted,
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
    ForgetAsked,
    ForgetUndone,
    ForgetDone,
    RecallJudged,
    RecallDrawn,
    PageRead,
    SessionSummarised,
)
"""What a user's file has, and what is taken in."""
STAYS: Final = (
    SegmentDue,
    KnowledgeLoaded,
    KnowledgeRemoved,
    PolicyChanged,
    ExtractionReplied,
    SystemRefused,
    UserErased,
    SessionSwitched,
    SessionForgotten,
    TenantErased,
    ErasureChanged,
    HoldPlaced,
    HoldLifted,
    ActDone,
)
"""What is no user's own, or of the one place where it happened."""


def check(event: Event, now: datetime) -> None:
    """Raise BadInput that names the field unless the event can be taken in."""
    if not isinstance(event.payload, CARRIED):
        _refuse("event.payload.kind", event.kind, "a kind that an export has")
    _matches("event.id", event.id, _EVENT_ID, "32 hexadecimal digits")
    _matches("event.agent", event.agent, _NAME, "a name of 1 to 128 characters")
    for field, value in (("session", event.session), ("parent", event.parent or "")):
        if value:
            _matches(f"event.{field}", value, _NAME, "at most 128 characters")
    _past("event.occurred_at", event.occurred_at, now)
    _walk("event.payload", event.payload)
    if subject := subject_of(event.payload):
        _matches("event.payload", subject, _NAME, "an id of 1 to 128 characters")
    _check_payload(event, now)


def _check_payload(event: Event, now: datetime) -> None:
    match event.payload:
        case MemoryAdded(memory=memory) | MemoryChanged(memory=memory):
            _check_memory(memory, now)
        case PageClosed(page=page):
            _past("event.payload.page.occurred_at", page.occurred_at, now)
            _matches("event.payload.page.scope.agent", page.scope.agent, _NAME, "1 to 128 characters")
        case StepCaptured(step=step):
            _past("event.payload.step.started_at", step.started_at, now)
            _past("event.payload.step.finished_at", step.finished_at, now)
        case SegmentChanged(segment=segment, heat=heat):
            _check_heat(heat, now)
            if len(segment.centroid) > _CENTROID:
                _refuse("event.payload.segment.centroid", len(segment.centroid), f"at most {_CENTROID} bytes")
            _check_owner("event.payload.segment.owner", segment.owner)
        case SegmentVisited(heat=heat):
            _check_heat(heat, now)
        case MemoryForgotten(own_agent=own) | PageForgotten(own_agent=own) if own:
            _matches("event.payload.own_agent", own, _NAME, "a name of 1 to 128 characters")
        case SessionSummarised(session=session, owner=owner, lines=lines):
            _check_owner("event.payload.owner", owner)
            for field, name in (("session", session), *(("lines.page", line.page) for line in lines)):
                _matches(f"event.payload.{field}", name, _NAME, "a name of 1 to 128 characters")
        case _:
            pass


def _check_owner(where: str, owner: str) -> None:
    if owner.count("/") not in (1, 2):
        _refuse(where, owner, "tenant/user or tenant/user/agent")


def _check_memory(memory: Memory, now: datetime) -> None:
    at = "event.payload.memory"
    if not memory.text.strip():
        _refuse(f"{at}.text", memory.text, "text that is not empty")
    for name in ("confidence", "importance"):
        if not 0 <= getattr(memory, name) <= 1:
            _refuse(f"{at}.{name}", getattr(memory, name), "a number from 0 to 1")
    for name in ("occurred_at", "created_at", "updated_at"):
        _past(f"{at}.{name}", getattr(memory, name), now)
    _matches(f"{at}.scope.agent", memory.scope.agent, _NAME, "a name of 1 to 128 characters")


def _check_heat(heat: Heat, now: datetime) -> None:
    if not 0 < heat.fade_hours <= 1e6:
        _refuse("event.payload.heat.fade_hours", heat.fade_hours, "more than 0 and at most 1000000")
    if heat.level > 1e9:
        _refuse("event.payload.heat.level", heat.level, "at most 1e9")
    if heat.touched is not None:
        _past("event.payload.heat.touched", heat.touched, now)


def _walk(where: str, value: Any) -> None:
    """Every time has a zone and a year that can be reckoned with, every number is finite and no giant."""
    match value:
        case msgspec.Struct():
            inner = [(f".{name}", getattr(value, name)) for name in value.__struct_fields__]
        case dict():
            inner = [(f".{name}", one) for name, one in value.items()]
        case tuple() | list():
            inner = [(f"[{position}]", one) for position, one in enumerate(value)]
        case _:
            _check_scalar(where, value)
            return
    for name, one in inner:
        _walk(where + name, one)


def _check_scalar(where: str, value: Any) -> None:
    if isinstance(value, datetime):
        if value.tzinfo is None or not _YEARS[0] <= value.year <= _YEARS[1]:
            _refuse(where, value.isoformat(), f"a time with its zone, from {_YEARS[0]} to {_YEARS[1]}")
    elif isinstance(value, float) and not math.isfinite(value):
        _refuse(where, value, "a finite number")
    elif isinstance(value, int) and abs(value) > _LARGEST:
        _refuse(where, value, "a number of at most 53 bits")


def _past(where: str, moment: datetime, now: datetime) -> None:
    if moment.tzinfo is None or moment > now + _AHEAD:
        _refuse(where, moment.isoformat(), "a time with its zone that is not in the future")


def _matches(where: str, value: str, pattern: re.Pattern[str], expected: str) -> None:
    if not pattern.fullmatch(value):
        _refuse(where, value, expected)


def _refuse(where: str, value: object, expected: str) -> None:
    raise BadInput(where, value, expected)
