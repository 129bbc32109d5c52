"""What users of such systems reported of extraction, with the rules that read facts here, end to end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from hearth.memory import attach
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.types import ImportedTurn, Memory, Scope
from tests.api import Api, open_api
from tests.events import ManualClock, step

ALICE = Scope(tenant="acme", user="alice", session="s1")


@pytest.fixture(name="api")
async def _api(tmp_path: Path) -> AsyncIterator[Api]:
    clock = ManualClock(datetime(2026, 5, 1, 9, tzinfo=UTC))
    async with open_api(tmp_path, clock=clock, extractor=RuleExtractor()) as api:
        yield api


async def say(api: Api, text: str, reply: str = "I see.") -> str:
    api.engine.clock.advance(minutes=5)
    recall = await api.engine.recall(ALICE, text)
    sent = attach(text, recall.block.text) if recall.block.text else text
    opened = await api.engine.capture(ALICE, sent, reply, recall=recall)
    await api.engine.drain()
    return opened.exchange


async def facts(api: Api) -> list[Memory]:
    found = await api.engine.memories("acme", "alice")
    return [one for one in found if one.type in ("fact", "persona")]


async def test_case_09_recalled_text_makes_no_second_memory(api: Api) -> None:
    """Twenty replies that repeat it leave one kiwi memory; what the user adds beside a block is kept."""
    await say(api, "I'm allergic to kiwi.")
    for _ in range(20):
        await say(api, "What should I cook?", "As you are allergic to kiwi, make soup.")
    assert [one.value for one in await facts(api) if "kiwi" in one.text] == ["kiwi"]
    await say(api, "Remember that my snack is seaweed.")
    assert any("seaweed" in one.text for one in await facts(api))


async def test_case_11_the_assistants_words_are_no_fact_of_the_user(api: Api) -> None:
    """Whatever it says of itself; every fact names words of the user's."""
    await say(api, "How do I reverse a list?", "I'd use recursion. I prefer Rust and I live in Bern.")
    assert await facts(api) == []
    told = await say(api, "I live in Bern too.", "Nice. I work at Acme.")
    (fact,) = await facts(api)
    assert (fact.attribute, fact.value) == ("residence", "Bern")
    assert [(one.id, one.role) for one in fact.evidence] == [(told, "user")]


async def test_case_16_who_left_acme_works_at_borealis(api: Api) -> None:
    """The reported words, a day apart."""
    await say(api, "I work at Acme")
    api.engine.clock.advance(days=1)
    await say(api, "I left Acme, I'm at Borealis now")
    assert [one.value for one in await facts(api)] == ["Borealis"]
    block = (await api.engine.recall(ALICE, "Where do I work?")).block.text
    assert "Borealis" in block
    assert "I work at Acme" not in block


async def test_case_49_days_are_counted_from_when_it_was_said(api: Api) -> None:
    """Of an import from the turn's own day, live by the user's own zone; the text has the day itself."""
    turn = ImportedTurn(
        role="user",
        content="I moved to Paris last week",
        at=datetime(2025, 5, 24, 12, tzinfo=UTC),
        session="s2",
    )
    reply = ImportedTurn(
        role="assistant", content="Bienvenue!", at=datetime(2025, 5, 24, 12, 1, tzinfo=UTC), session="s2"
    )
    await api.engine.import_turns(Scope(tenant="acme", user="alice"), [turn, reply])
    live = datetime(2026, 1, 1, 0, 30, tzinfo=ZoneInfo("Asia/Tokyo")).astimezone(UTC)
    exam = step("x1", at=live, user_text="My exam is tomorrow.", timezone="Asia/Tokyo")
    await api.engine.log.append([exam])
    await api.engine.drain()
    found = {one.attribute: one for one in await facts(api)}
    moved, exam_fact = found["residence"], next(one for one in found.values() if "exam" in one.text)
    assert moved.value == "Paris"
    assert moved.valid_from is not None
    assert date(2025, 5, 12) <= moved.valid_from.date() <= date(2025, 5, 24)
    assert exam_fact.happens_at is not None
    assert exam_fact.happens_at.astimezone(ZoneInfo("Asia/Tokyo")).date() == date(2026, 1, 2)
    assert "2 January 2026" in exam_fact.text or "2026-01-02" in exam_fact.text


async def test_case_50_a_secret_is_in_no_fact_and_what_stands_beside_it_is(api: Api) -> None:
    """`I use Postgres` is kept; the key is nowhere in the log."""
    await say(api, "My key is sk-test-FAKE0123456789abcdef and I use Postgres")
    assert [(one.attribute, one.value) for one in await facts(api)] == [("uses", "Postgres")]
    log = " ".join(str(event.payload) for event in await api.engine.log.read(limit=1000))
    assert "FAKE0123456789" not in log


async def test_a_correction_sets_right_what_was_said_just_before(api: Api) -> None:
    """In the wrong one's place, with its words; what is right already stays."""
    await say(api, "I live in Lisbon.", "Lisbon, nice.")
    await say(api, "No, I said Porto.", "Sorry, Porto.")
    (fact,) = await facts(api)
    assert (fact.attribute, fact.value, fact.text, fact.source) == (
        *("residence", "Porto", "I live in Porto.", "correction"),
    )
    block = (await api.engine.recall(ALICE, "Where do I live?")).block.text
    assert "Porto" in block
    assert "I live in Lisbon" not in block
    await say(api, "I live in Porto.", "So you live in Lisbon.")
    await say(api, "No, I said Porto.", "Sorry.")
    assert [one.value for one in await facts(api)] == ["Porto"]


async def test_what_was_erased_can_be_imported_anew(api: Api) -> None:
    """The same turns, after an erasure, are kept again."""
    scope = Scope(tenant="acme", user="alice")
    at = datetime(2025, 5, 24, 12, tzinfo=UTC)
    turns = [
        ImportedTurn(role="user", content="I live in Oslo.", at=at, session="s2"),
        ImportedTurn(role="assistant", content="Nice.", at=at, session="s2"),
    ]
    for _ in range(2):
        await api.engine.import_turns(scope, turns)
        await api.engine.drain()
        assert [one.value for one in await facts(api)] == ["Oslo"]
        await api.engine.erase("acme", "alice")
        assert await facts(api) == []
