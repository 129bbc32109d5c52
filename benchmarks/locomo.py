"""Reads dialogues of LoCoMo's form as turns, pages and questions, and counts what a block recalls of them.

LoCoMo (Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024) is
licensed CC BY-NC 4.0: it is for measuring, and no part of it is in this repository.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hearth.memory.events.kinds import StepCaptured
from hearth.memory.imports import imported_steps
from hearth.memory.types import ImportedTurn, Page, Scope

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_ADVERSARIAL = 5
"""Of questions that name the wrong one of the two, or ask what was never said."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question whose answer the dialogue has."""

    text: str
    kind: str
    evidence: tuple[str, ...]
    """Texts of the turns that hold the answer."""
    pages: frozenset[int]
    """Places of the pages that hold those turns."""


@dataclass(frozen=True, kw_only=True)
class Dialogue:
    """Two people's sessions: speaker A as the user, speaker B on the assistant's side."""

    name: str
    user: str
    """Whose memory it is in."""
    turns: tuple[ImportedTurn, ...]
    pages: tuple[Page, ...]
    questions: tuple[Question, ...]
    adversarial: tuple[str, ...]
    """Questions that it seems to answer and does not."""

    @property
    def names(self) -> tuple[str, str]:
        """Of both, the user's first."""
        named = {turn.role: turn.name for turn in self.turns}
        return named["user"], named["assistant"]

    @property
    def end(self) -> datetime:
        return self.turns[-1].at


def read_dialogues(path: Path) -> list[Dialogue]:
    """All dialogues of the file."""
    return [_dialogue(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def _dialogue(sample: dict[str, Any]) -> Dialogue:
    turns = tuple(_turns(sample["conversation"]))
    pages = tuple(_pages(sample["sample_id"], turns))
    texts = {turn.id: turn.content for turn in turns}
    return Dialogue(
        name=sample["sample_id"],
        user=sample["sample_id"],
        turns=turns,
        pages=pages,
        questions=tuple(_questions(sample["qa"], texts, pages)),
        adversarial=tuple(row["question"] for row in sample["qa"] if row["category"] == _ADVERSARIAL),
    )


def _turns(conversation: dict[str, Any]) -> Iterator[ImportedTurn]:
    sessions = [name for name, value in conversation.items() if isinstance(value, list)]
    for session in sorted(sessions, key=lambda name: int(name.removeprefix("session_"))):
        start = datetime.strptime(conversation[f"{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        for i, turn in enumerate(conversation[session]):
            yield ImportedTurn(
                role="user" if turn["speaker"] == conversation["speaker_a"] else "assistant",
                content=turn["text"],
                at=start + timedelta(seconds=30 * i),
                session=session,
                name=turn["speaker"],
                shown=turn.get("blip_caption", ""),
                id=turn["dia_id"],
            )


def _pages(name: str, turns: Sequence[ImportedTurn]) -> Iterator[Page]:
    events = imported_steps(Scope(tenant="locomo", user=name), turns, generation=1, mask=str)
    for event in sorted(events, key=lambda one: one.occurred_at):
        assert isinstance(event.payload, StepCaptured)
        step = event.payload.step
        yield Page(
            id=step.exchange,
            scope=Scope(tenant="locomo", user=name, session=event.session),
            generation=1,
            user_text=step.user_text,
            reply_text=step.reply_text,
            user_name=step.user_name,
            reply_name=step.reply_name,
            user_shown=step.user_shown,
            reply_shown=step.reply_shown,
            occurred_at=event.occurred_at,
            previous=event.parent,
        )


def _questions(
    rows: Sequence[dict[str, Any]], texts: dict[str, str], pages: Sequence[Page]
) -> Iterator[Question]:
    for row in rows:
        named = (
            f"D{int(a)}:{int(b)}" for e in row.get("evidence", ()) for a, b in re.findall(r"(\d+):(\d+)", e)
        )
        evidence = tuple(texts[i] for i in sorted(set(named)) if i in texts)
        if row["category"] in CATEGORIES and evidence:
            held = (
                i for i, p in enumerate(pages) if any(t in p.user_text or t in p.reply_text for t in evidence)
            )
            yield Question(
                text=row["question"],
                kind=CATEGORIES[row["category"]],
                evidence=evidence,
                pages=frozenset(held),
            )


def recalled(turn: str, block: str) -> bool:
    """True if at least 60 % of the turn's word trigrams stand in the block (all of it, under three words)."""
    wanted, found = _words(turn), _words(block)
    if len(wanted) < 3:
        return f" {' '.join(wanted)} " in f" {' '.join(found)} "
    grams = _trigrams(wanted)
    return len(grams & _trigrams(found)) >= 0.6 * len(grams)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _trigrams(words: Sequence[str]) -> set[tuple[str, str, str]]:
    return set(zip(words, words[1:], words[2:], strict=False))
