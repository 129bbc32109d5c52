"""What users of such systems reported of extraction, with a model whose answers the test sets, end to end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from msgspec import structs

from hearth.memory import attach
from hearth.memory.errors import ModelUnavailable
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.extraction import ExtractionDecider
from hearth.memory.health import engine_health
from hearth.memory.ports import ModelReply, ModelRequest
from hearth.memory.tiers.life import ExtractionPolicy, LifePolicy
from hearth.memory.types import ImportedTurn, Memory, Scope, Usage
from tests.api import KEYS, Api, open_api, secret
from tests.events import ManualClock, page, step

ALICE = Scope(tenant="acme", user="alice", session="s1")
LIFE = LifePolicy(facts="model", extraction=ExtractionPolicy(model="reader", pages=8, gather_seconds=0))


class ScriptedModel:
    """`EX`: answers as the test says; greetings, which ask whether it is there, always."""

    def __init__(self) -> None:
        self.answer: Callable[[list[dict[str, Any]]], Any] = lambda pages: {"facts": []}
        self.asked: list[list[dict[str, Any]]] = []
        self.down = False
        self.held: tuple[asyncio.Event, asyncio.Event] | None = None
        """Told that it was asked, and waited for before the answer; once."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.down:
            raise ModelUnavailable("it is down")
        pages = json.loads(request.prompt)
        text: Any = '{"facts": []}'
        if pages:
            self.asked.append(pages)
            if self.held is not None:
                (told, release), self.held = self.held, None
                told.set()
                await release.wait()
            text = self.answer(pages)
        text = text if isinstance(text, str) else json.dumps(text)
        return ModelReply(text=text, model="reader-1", usage=Usage(input=30, output=5), cost=0.001)


def every(word: str) -> Callable[[list[dict[str, Any]]], Any]:
    """Every sentence of its input that holds the word, as a fact."""

    def answer(pages: list[dict[str, Any]]) -> Any:
        texts = [text for page in pages for text in (page["said"], page.get("before", ""))]
        return {"facts": [s.strip() for text in texts for s in text.split(".") if word in s]}

    return answer


@pytest.fixture(name="model")
def _model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture(name="api")
async def _api(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Api]:
    clock = ManualClock(datetime(2026, 5, 1, 9, tzinfo=UTC))
    async with open_api(tmp_path, clock=clock, extractor=RuleExtractor(), model=model, life=LIFE) as api:
        yield api


async def say(api: Api, text: str, reply: str = "I see.", *, drain: bool = True) -> str:
    api.engine.clock.advance(minutes=5)
    recall = await api.engine.recall(ALICE, text)
    sent = attach(text, recall.block.text) if recall.block.text else text
    opened = await api.engine.capture(ALICE, sent, reply, recall=recall)
    if drain:
        await api.engine.drain()
    return opened.exchange


async def facts(api: Api) -> list[Memory]:
    found = await api.engine.memories("acme", "alice")
    return [one for one in found if one.type in ("fact", "persona")]


async def events(api: Api, kind: str) -> list[Any]:
    return [event.payload for event in await api.engine.log.read(limit=10_000, kinds=[kind])]


async def test_case_09_recalled_text_is_not_extracted_again(api: Api, model: ScriptedModel) -> None:
    """Replies that repeat it leave one memory; no block reaches the model; what is new is kept."""
    model.answer = every("allergic")
    await say(api, "I'm allergic to kiwi.")
    for _ in range(5):
        await say(api, "What should I cook?", "As you are allergic to kiwi, make soup.", drain=False)
    await api.engine.drain()
    assert [one.text for one in await facts(api)] == ["I'm allergic to kiwi."]
    assert not any("<" in page["said"] for asked in model.asked for page in asked)
    model.answer = every("seaweed")
    await say(api, "Remember that my snack is seaweed.")
    assert any("seaweed" in one.text for one in await facts(api))


async def test_case_08_each_message_reaches_the_model_once(tmp_path: Path, model: ScriptedModel) -> None:
    """Several in one call, and none anew after a restart or when its page comes a second time."""
    model.answer = every("I ")
    clock = ManualClock(datetime(2026, 5, 1, 9, tzinfo=UTC))
    opened = {"clock": clock, "extractor": RuleExtractor(), "model": model, "life": LIFE}
    async with open_api(tmp_path, **opened) as api:
        for text in ("I play chess.", "I own a boat.", "I speak Dutch."):
            await say(api, text, drain=False)
        await api.engine.drain()
        (closed, *_) = await api.engine.log.read(kinds=["page.closed"])
        again = msgspec.structs.replace(closed, id="f" * 32, seq=0, recorded_at=None)
        await api.engine.log.append([again])
        await api.engine.drain()
    async with open_api(tmp_path, **opened) as api:
        await say(api, "I collect stamps.")
        assert len(await facts(api)) == 4
    said = [page["said"] for asked in model.asked for page in asked]
    assert said == ["I play chess.", "I own a boat.", "I speak Dutch.", "I collect stamps."]


async def test_case_11_the_assistant_s_words_are_no_fact_of_the_user(api: Api, model: ScriptedModel) -> None:
    """What it says of itself is refused and counted; what the user confirms has the user's own evidence."""
    model.answer = lambda pages: {"facts": ["User prefers Rust", "User lives in Bern"]}
    await say(api, "How do I reverse a list?", "I'd use recursion. I prefer Rust and I live in Bern.")
    assert await facts(api) == []
    (read,) = [one for one in await events(api, "page.read") if one.by]
    assert (read.said, read.refused) == ((), {"not said": 2})
    quote = "Bern is right for me too"
    entry = {"statement": "Bern is right for me.", "quote": quote, "attribute": "residence", "value": "Bern"}
    model.answer = lambda pages: {"facts": [entry]}
    told = await say(api, "Yes, Bern is right for me too.")
    (fact,) = await facts(api)
    assert [(one.id, one.role, one.quote) for one in fact.evidence] == [(told, "user", quote)]
    assert model.asked[-1][0]["before"].startswith("I'd use recursion")


async def test_case_16_an_update_closes_what_was_so_before(api: Api, model: ScriptedModel) -> None:
    """By the same rules as facts that rules read, however the model puts it."""
    acme = {
        "statement": "I work at Acme.",
        "quote": "I work at Acme",
        "attribute": "employer",
        "value": "Acme",
    }
    left = {**acme, "statement": "I left Acme.", "quote": "I left Acme", "act": "ends"}
    new = {**acme, "statement": "I am at Borealis.", "quote": "I'm at Borealis now", "value": "Borealis"}
    answers = iter(({"facts": [acme]}, {"facts": [left, new]}))
    model.answer = lambda pages: next(answers)
    await say(api, "I work at Acme")
    await say(api, "I left Acme, I'm at Borealis now")
    assert [one.value for one in await facts(api)] == ["Borealis"]
    before = await api.engine.log.facts_about("acme", "alice", [("user", "employer")])
    await api.engine.log.rebuild_views()
    assert await api.engine.log.facts_about("acme", "alice", [("user", "employer")]) == before
    assert sorted(one.value for one in before) == ["Acme", "Borealis"]


async def test_case_49_the_model_is_given_the_day_on_which_it_was_said(
    api: Api, model: ScriptedModel
) -> None:
    """Of an import the turn's own, live that of the user's zone; the text has the date."""

    def answer(pages: list[dict[str, Any]]) -> Any:
        dated = {
            "statement": "My exam is tomorrow.",
            "quote": "My exam is tomorrow",
            "happens_at": "2026-01-02",
        }
        return {"facts": [dated] if "exam" in pages[0]["said"] else []}

    model.answer = answer
    at = datetime(2025, 5, 24, 12, tzinfo=UTC)
    turns = [
        ImportedTurn(role="user", content="I moved to Paris last week", at=at, session="s2"),
        ImportedTurn(role="assistant", content="Bienvenue!", at=at, session="s2"),
    ]
    await api.engine.import_turns(Scope(tenant="acme", user="alice"), turns)
    await api.engine.drain()
    live = datetime(2026, 1, 1, 0, 30, tzinfo=ZoneInfo("Asia/Tokyo")).astimezone(UTC)
    await api.engine.log.append(
        [step("x1", at=live, user_text="My exam is tomorrow.", timezone="Asia/Tokyo")]
    )
    await api.engine.drain()
    assert [asked[0]["day"][:10] for asked in model.asked] == ["2025-05-24", "2026-01-01"]
    (fact,) = await facts(api)
    assert fact.text == "My exam is tomorrow (2026-01-02)."


async def test_case_50_no_secret_reaches_the_model_and_none_is_kept(api: Api, model: ScriptedModel) -> None:
    """What stands beside it is read."""
    key = {"statement": "My key is sk-test-FAKE0123456789abcdef.", "quote": "I use Postgres"}
    model.answer = lambda pages: {"facts": [key, "I use Postgres"]}
    await say(api, "My key is sk-test-FAKE0123456789abcdef and I use Postgres")
    assert "FAKE" not in str(model.asked)
    assert [one.text for one in await facts(api)] == ["I use Postgres."]


async def test_case_40_a_bad_answer_is_counted_asked_for_again_and_never_stored(
    api: Api, model: ScriptedModel
) -> None:
    """After three times its page is set aside, where health shows it, and a retry has it read."""
    model.answer = lambda pages: "I can't help with that."
    await say(api, "I play the oboe.")
    tried = len(model.asked)
    replies = await events(api, "extraction.replied")
    assert {(one.text, bool(one.problem), one.usage.input) for one in replies} == {("", True, 30)}
    assert len(replies) == tried >= 3
    assert await facts(api) == []
    health = await api.engine.worker.health()
    assert health.parked == 1
    model.answer = every("oboe")
    assert await api.engine.worker.retry_parked() == (1, 0)  # type: ignore[attr-defined]
    await api.engine.drain()
    assert [one.text for one in await facts(api)] == ["I play the oboe."]


async def test_case_44_a_model_that_is_down_is_waited_for(api: Api, model: ScriptedModel) -> None:
    """Recall and everything else go on; when it is back the page is read once."""
    model.down, model.answer = True, every("oboe")
    await say(api, "I play the oboe.", drain=False)
    waiting = asyncio.create_task(api.engine.drain())
    for _ in range(1000):
        health = await engine_health(api.engine)
        if health.parts["extraction"].reasons:
            break
        await asyncio.sleep(0.01)
    assert health.parts["extraction"].reasons == ("does not read: it is down",)
    assert health.parts["worker"].state == "ok"
    assert "oboe" in (await api.engine.recall(ALICE, "Which oboe do I play?")).block.text
    assert not waiting.done()
    model.down = False
    await waiting
    assert [one.text for one in await facts(api)] == ["I play the oboe."]
    assert (len(model.asked), (await engine_health(api.engine)).reasons) == (1, ())


async def test_case_21_what_is_erased_while_the_model_is_asked_stays_gone(
    api: Api, model: ScriptedModel
) -> None:
    """Its late answer is dropped; what is said afterwards is read."""
    asked, release = asyncio.Event(), asyncio.Event()
    model.answer, model.held = every("bees"), (asked, release)
    await say(api, "I keep bees.", drain=False)
    draining = asyncio.create_task(api.engine.drain())
    await asked.wait()
    assert (await api.engine.erase("acme", "alice")).done
    release.set()
    await draining
    await say(api, "Thanks!")
    assert await facts(api) == []
    assert not any("bees" in str(one) for one in await api.engine.log.read(limit=1000))
    await say(api, "I keep bees again.")
    assert [one.text for one in await facts(api)] == ["I keep bees again."]


async def test_forgetting_reaches_the_answer_and_what_was_made_of_it(api: Api, model: ScriptedModel) -> None:
    """Of an exchange or of a fact; what the answer said of other exchanges stays a fact."""
    model.answer = every("I ")
    left = await say(api, "I play chess.", drain=False)
    await say(api, "I own a boat. I sail it.", drain=False)
    await api.engine.drain()
    assert len(model.asked) == 1
    await api.engine.forget_exchange(ALICE, left)
    await api.engine.drain()
    log = str(await api.engine.log.read(limit=1000))
    assert "chess" not in log
    assert sorted(one.text for one in await facts(api)) == ["I own a boat.", "I sail it."]
    (boat,) = [one for one in await facts(api) if "boat" in one.text]
    await api.engine.forget(ALICE, boat.id)
    await api.engine.drain()
    made = [*await events(api, "extraction.replied"), *await events(api, "page.read")]
    assert not any("boat" in str(one) for one in made)
    assert any("sail" in str(one) for one in made)


async def test_what_is_forgotten_while_the_model_is_asked_is_not_written_down(
    api: Api, model: ScriptedModel
) -> None:
    """The answer comes to a log that must not hold it."""
    asked, release = asyncio.Event(), asyncio.Event()
    model.answer, model.held = every("chess"), (asked, release)
    gone = await say(api, "I play chess.", drain=False)
    draining = asyncio.create_task(api.engine.drain())
    await asked.wait()
    await api.engine.forget_exchange(ALICE, gone)
    release.set()
    await draining
    assert "chess" not in str(await api.engine.log.read(limit=1000))
    assert await facts(api) == []


async def test_a_tenant_that_has_spent_its_tokens_is_read_by_rules(
    tmp_path: Path, model: ScriptedModel
) -> None:
    """Until the next day; what was spent is told by day and model, and nobody else's."""
    clock = ManualClock(datetime(2026, 5, 1, 9, tzinfo=UTC))
    life = structs.replace(LIFE, extraction=structs.replace(LIFE.extraction, daily_tokens=35))
    settings = {"life": {"extraction": {"daily_tokens": 35}}}
    async with open_api(
        tmp_path, clock=clock, extractor=RuleExtractor(), model=model, life=life, settings=settings
    ) as api:
        model.answer = every("chess")
        await say(api, "We love chess at home.")
        await say(api, "I live in Bern.")
        assert sorted(one.text for one in await facts(api)) == ["I live in Bern.", "We love chess at home."]
        assert len(model.asked) == 1
        async with api.client("alice") as alice, api.client("rival") as rival:
            told = (await alice.get("/spending")).json()
            health = (await alice.get("/health")).json()["parts"]["extraction"]
            assert (await rival.get("/spending")).json()["items"] == []
        assert (told["left_today"], told["daily_tokens"]) == (0, 35)
        assert told["items"] == [
            {
                "day": "2026-05-01",
                "purpose": "memory",
                "model": "reader-1",
                "calls": 1,
                "input": 30,
                "output": 5,
                "cost": 0.001,
            }
        ]
        assert health["numbers"]["tokens_left_today"] == 0
        clock.advance(days=1)
        await say(api, "I play the oboe.")
        assert len(model.asked) == 2


async def test_what_a_key_s_exchanges_say_never_reaches_the_model_where_it_says_so(
    tmp_path: Path, model: ScriptedModel
) -> None:
    """Rules read it; nor does it go along as what was said before another key's."""
    clock = ManualClock(datetime(2026, 5, 1, 9, tzinfo=UTC))
    keys = [{**one, "key": secret(one["name"])} for one in KEYS if one["name"] != "bob"]
    quiet = {"name": "bob", "tenant": "acme", "user": "alice", "facts": "rules", "key": secret("bob")}
    async with open_api(
        tmp_path,
        clock=clock,
        extractor=RuleExtractor(),
        model=model,
        life=LIFE,
        settings={"keys": [*keys, quiet]},
    ) as api:
        model.answer = every("oboe")
        at = clock.now()
        first = step("x1", at=at, user_text="I live in Bern.", reply_text="Bern it is.", key="bob")
        second = step("x2", at=at, parent="x1", user_text="I play the oboe.", key="alice")
        await api.engine.log.append([first, second])
        await api.engine.drain()
        assert sorted(one.text for one in await facts(api)) == ["I live in Bern.", "I play the oboe."]
    assert model.asked == [[{"page": 1, "day": "2026-05-01 (Friday)", "said": "I play the oboe."}]]


async def test_pages_that_were_left_to_a_model_are_read_by_rules_once_the_policy_says_so(
    tmp_path: Path, model: ScriptedModel
) -> None:
    """So nothing stays unread where a model that is away is given up."""
    clock = ManualClock(datetime(2026, 5, 1, 9, tzinfo=UTC))
    opened = {"clock": clock, "extractor": RuleExtractor()}
    model.down = True
    async with open_api(tmp_path, model=model, life=LIFE, **opened) as api:
        await say(api, "I live in Bern.", drain=False)
        while not await events(api, "page.read"):  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0.01)
    async with open_api(tmp_path, life=structs.replace(LIFE, facts="rules"), **opened) as api:
        await api.engine.drain()
        assert [one.value for one in await facts(api)] == ["Bern"]
    assert model.asked == []


async def test_what_a_user_asked_to_forget_is_not_shown_to_the_model(
    tmp_path: Path, model: ScriptedModel
) -> None:
    """Neither what was said before, nor the message that asks, though no model had come to them yet."""
    clock = ManualClock(datetime(2026, 5, 1, 9, tzinfo=UTC))
    async with open_api(
        tmp_path, clock=clock, extractor=RuleExtractor(), life=LifePolicy(facts="off")
    ) as api:
        await say(api, "I keep bees.")
        await say(api, "Please forget that.")
        closed = await api.engine.log.read(kinds=["page.closed"])
        decider = ExtractionDecider(
            log=api.engine.log,
            model=model,
            rules=RuleExtractor(),
            clock=clock,
            policy=lambda tenant, agent, key: LIFE,
        )
        await decider.handle(closed)
    assert (len(closed), model.asked) == (2, [])


def test_pages_of_a_user_wait_for_others_and_not_for_ever() -> None:
    """Until one has waited for long, or there are as many as one call takes; pages of rules wait for none."""
    clock = ManualClock()
    policy = structs.replace(LIFE, extraction=ExtractionPolicy(model="reader", pages=3, gather_seconds=20))
    decider = ExtractionDecider(
        log=None,  # type: ignore[arg-type]
        model=ScriptedModel(),
        rules=RuleExtractor(),
        clock=clock,
        policy=lambda tenant, agent, key: LifePolicy() if key == "private" else policy,
    )
    young = [structs.replace(page(id), recorded_at=clock.now()) for id in ("a", "b")]
    assert not decider.ripe(young)
    assert decider.ripe([*young, page("c")])
    private = page("d", key="private")
    assert decider.ripe([private])
    assert not decider.ripe([*young, private])
    clock.advance(seconds=20)
    assert decider.ripe(young)
