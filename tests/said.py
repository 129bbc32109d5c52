"""What a user says, as a page, and what rules read from it."""

from __future__ import annotations

from datetime import UTC, datetime

from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.types import CandidateFact, Page, Scope

AT = datetime(2025, 5, 24, 12, tzinfo=UTC)  # a Saturday


def page(text: str, *, reply: str = "", at: datetime = AT, zone: str = "UTC") -> Page:
    """An exchange."""
    return Page(
        id="0" * 32,
        scope=Scope(tenant="t", user="u"),
        generation=1,
        user_text=text,
        reply_text=reply,
        occurred_at=at,
        timezone=zone,
    )


def facts(text: str, reply: str = "", *, at: datetime = AT, zone: str = "UTC") -> list[CandidateFact]:
    """What the rules read."""
    return RuleExtractor().extract(page(text, reply=reply, at=at, zone=zone))


def told(text: str) -> set[tuple[str, str, str]]:
    """The attribute, the value and the act of each."""
    return {(fact.attribute, fact.value, fact.act) for fact in facts(text)}
