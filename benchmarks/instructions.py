"""Messages that instruct the assistant for good, and some that only look so, labelled by a careful reader.

`instructions.json` is made up. `instructs` is true of what is to hold in later conversations, not of one
task, what others say or want, play, questions and what the user does.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from hearth.memory.extract.agreements import agreements
from hearth.memory.extract.attributes import AGENT
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.types import Page, Scope

MESSAGES = Path(__file__).with_name("instructions.json")


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody wrote, and whether it instructs."""

    language: str
    text: str
    instructs: bool


def messages() -> list[Message]:
    """All messages."""
    return msgspec.json.decode(MESSAGES.read_bytes(), type=list[Message])


def is_read(message: Message) -> bool:
    """Whether anything is read from it as an instruction."""
    page = Page(
        id="p",
        scope=Scope(tenant="t", user="u"),
        generation=1,
        user_text=message.text,
        reply_text="",
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return any(fact.subject == AGENT for fact in agreements(RuleExtractor().extract(page), page))
