"""The gateway's use of the engine, call by call, without a network: a real log, stores and embedder."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hearth.config.switches import Mode
from hearth.gateway.call import Call, response_headers
from hearth.gateway.flow import Flow
from hearth.gateway.wire import WIRES
from hearth.gateway.wire.types import Body, WireReply
from hearth.memory.embed.use import UseEmbedder
from hearth.memory.events.kinds import RecallDrawn
from hearth.memory.extract.secrets import mask_secrets
from hearth.memory.ports import EventFilter
from hearth.memory.types import Scope, ToolUse
from tests.api import open_engine
from tests.events import ManualClock
from tests.flow import Talker, exchanges, identity

DOG = "My dog is called Zebedee."
QUESTION = "What is the name of my dog?"


@pytest.fixture(name="embedder", scope="module")
def _embedder() -> UseEmbedder:
    return UseEmbedder()


@pytest.fixture(name="flow")
async def _flow(tmp_path: Path, clock: ManualClock, embedder: UseEmbedder) -> AsyncIterator[Flow]:
    async with open_engine(tmp_path, clock, embedder) as engine:
        yield Flow(engine)


async def test_a_call_s_tags_are_its_event_s(flow: Flow, clock: ManualClock) -> None:
    """The step is found by what its call was tagged with."""
    await Talker(flow, clock, identity(tags=("billing", "urgent"))).say("I live in Oslo.")
    found = await flow.engine.log.find(EventFilter(tenant="acme", tags=("urgent",)))
    assert [event.kind for event in found.events] == ["step.captured"]


async def test_what_was_said_is_recalled_in_the_next_conversation(flow: Flow, clock: ManualClock) -> None:
    """Before any worker has run, a new conversation is answered from memory."""
    await Talker(flow, clock).say(DOG, "Hello Zebedee!")
    other = Talker(flow, clock)
    call = await other.say(QUESTION)
    assert "Zebedee" in other.prompt()
    assert response_headers(call)["x-hearth-status"] == "ok"


async def test_what_the_reply_drew_on_is_in_the_log(flow: Flow, clock: ManualClock) -> None:
    """With the trace and the signals of what was shown; a shadow recall is not, no reply can draw on it."""
    await Talker(flow, clock).say(DOG, "Hello Zebedee!")
    call = await Talker(flow, clock).say(QUESTION, "Your dog is called Zebedee.")
    await Talker(flow, clock, identity(Mode.SHADOW)).say(QUESTION, "Your dog is called Zebedee.")
    await flow.engine.drain()
    events = await flow.engine.log.read(kinds=["recall.drawn"])
    (drawn,) = [event.payload for event in events if isinstance(event.payload, RecallDrawn)]
    assert call.recall is not None
    assert (drawn.trace, drawn.exchange) == (call.recall.trace, call.opened.exchange if call.opened else "")
    assert [item.used for item in drawn.items] == [True]
    assert drawn.ranking.signals == tuple(call.recall.scored[0].signals)
    assert [item.id for item in drawn.ranking.items if item.shown] == list(call.recall.block.items)


async def test_shadow_mode_recalls_and_captures_but_places_nothing(flow: Flow, clock: ManualClock) -> None:
    """In shadow mode the prompt is untouched, and the trace shows what would have been put in."""
    await Talker(flow, clock).say(DOG)
    shadow = Talker(flow, clock, identity(Mode.SHADOW))
    call = await shadow.say(QUESTION)
    assert shadow.sent["messages"] == [{"role": "user", "content": QUESTION}]
    assert call.recall is not None
    assert "Zebedee" in call.recall.block.text
    assert (await flow.engine.trace("acme", "alice", call.recall.trace)).items
    assert [one[0] for one in await exchanges(flow)] == [DOG, QUESTION]


async def test_reading_alone_captures_nothing(flow: Flow, clock: ManualClock) -> None:
    """With `read` a call is answered from memory and leaves no trace in it."""
    await Talker(flow, clock).say(DOG)
    reader = Talker(flow, clock, identity(Mode.READ))
    await reader.say(QUESTION)
    assert "Zebedee" in reader.prompt()
    assert [one[0] for one in await exchanges(flow)] == [DOG]


async def test_writing_alone_recalls_nothing(flow: Flow, clock: ManualClock) -> None:
    """With `write` the prompt is untouched and the exchange is kept."""
    await Talker(flow, clock).say(DOG)
    writer = Talker(flow, clock, identity(Mode.WRITE))
    await writer.say(QUESTION)
    assert writer.prompt() == QUESTION
    assert [one[0] for one in await exchanges(flow)] == [DOG, QUESTION]


async def test_a_window_that_is_too_small_gets_no_block(flow: Flow, clock: ManualClock) -> None:
    """Where prompt, reply and block would not fit the smallest window, the call goes without a block."""
    await Talker(flow, clock).say(DOG)
    talker = Talker(flow, clock)
    call = await talker.say(QUESTION, window=2000, max_tokens=1950)
    assert talker.prompt() == QUESTION
    assert response_headers(call)["x-hearth-reason"] == "no room in the model's window"


@pytest.mark.parametrize(
    ("window", "bound"), [(0, (1024, "settings")), (4000, (400, "window")), (40_000, (1024, "settings"))]
)
async def test_a_recall_tells_what_bounds_its_block(
    flow: Flow, clock: ManualClock, window: int, bound: tuple[int, str]
) -> None:
    """The smaller of the settings' tokens and the window's share, with its origin."""
    call = await Talker(flow, clock).say(QUESTION, window=window)
    assert call.recall is not None
    conditions = call.recall.conditions
    assert (conditions.budget, conditions.budget_from) == bound


async def test_a_block_that_the_provider_refused_costs_nothing_of_the_day(
    flow: Flow, clock: ManualClock
) -> None:
    """The try without the block gives its tokens back, so that the next conversation has memory."""
    await Talker(flow, clock).say(DOG)
    thrifty = identity(daily_tokens=1)
    body = {"model": "gpt", "messages": [{"role": "user", "content": QUESTION}]}
    call = Call(route="chat", headers=(), started_at=clock.now())
    call.request = request = WIRES["chat"].read_request(body)
    with_block = await flow.before(call, request, thrifty, body, window=0)
    assert "Zebedee" in str(with_block)
    call.without_block = True
    assert await flow.before(call, request, thrifty, body, window=0) == body
    await flow.after(call, WireReply(text="ok"))
    again = Talker(flow, clock, thrifty)
    await again.say(QUESTION)
    assert "Zebedee" in again.prompt()


async def test_a_spent_day_turns_recall_off_and_not_the_call(flow: Flow, clock: ManualClock) -> None:
    """Once the key's block tokens of a day are spent calls go on without recall, until the next day."""
    await Talker(flow, clock).say(DOG)
    thrifty = identity(daily_tokens=1)
    first = Talker(flow, clock, thrifty)
    await first.say(QUESTION)
    assert "Zebedee" in first.prompt()
    second = Talker(flow, clock, thrifty)
    call = await second.say(QUESTION)
    assert second.prompt() == QUESTION
    assert call.reason == "daily tokens spent"
    clock.advance(days=1)
    third = Talker(flow, clock, thrifty)
    await third.say(QUESTION)
    assert "Zebedee" in third.prompt()


async def test_case_32_every_step_of_a_tool_loop_carries_the_same_block(
    flow: Flow, clock: ManualClock
) -> None:
    """The block stands at the user's message, byte for byte the same, in each step; one page comes of it."""
    await Talker(flow, clock).say(DOG)
    talker = Talker(flow, clock)
    talker.messages.append({"role": "user", "content": QUESTION})
    seen = []
    for number in range(4):
        tool = ToolUse(name="look")
        last = number == 3
        await talker.send(WireReply(text="It is Zebedee." if last else "", tools=() if last else (tool,)))
        seen.append(talker.sent["messages"][0])
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        talker.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        talker.messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "42"})
    assert "Zebedee" in seen[0]["content"]
    assert all(message == seen[0] for message in seen)
    assert (await exchanges(flow))[1:] == [(QUESTION, "It is Zebedee.", "closed")]


async def test_after_tool_calls_earlier_blocks_go_back_where_they_were(
    flow: Flow, clock: ManualClock
) -> None:
    """The turn after a tool loop carries the loop's block in its old place, until the cache has expired."""
    await Talker(flow, clock).say(DOG)
    talker = Talker(flow, clock)
    talker.messages.append({"role": "user", "content": QUESTION})
    await talker.send(WireReply(tools=(ToolUse(name="look"),)))
    placed = talker.sent["messages"][0]
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    talker.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    talker.messages.append({"role": "tool", "tool_call_id": "c", "content": "42"})
    await talker.send("It is Zebedee.")
    talker.messages.append({"role": "assistant", "content": "It is Zebedee."})
    await talker.say("And how do I boil an egg?")
    assert talker.sent["messages"][0] == placed
    clock.advance(minutes=6)
    talker.messages = talker.messages[:-2]
    await talker.say("And how do I bake bread?")
    assert talker.sent["messages"][0] == {"role": "user", "content": QUESTION}


async def test_in_plain_chat_earlier_blocks_are_dropped(flow: Flow, clock: ManualClock) -> None:
    """Without tools or automatic caching only the newest message carries a block."""
    await Talker(flow, clock).say(DOG)
    talker = Talker(flow, clock)
    await talker.say(QUESTION, "I could not say.")
    await talker.say("Please try again: how is my dog called?")
    assert talker.sent["messages"][0] == {"role": "user", "content": QUESTION}


async def test_case_08_a_client_that_resends_its_history_is_stored_once(
    flow: Flow, clock: ManualClock
) -> None:
    """Five turns, each with all earlier ones, are five exchanges of one session, in order."""
    talker = Talker(flow, clock)
    for number in range(5):
        await talker.say(f"This is sentence number {number}.", f"Answer {number}.")
    assert [one[0] for one in await exchanges(flow)] == [f"This is sentence number {n}." for n in range(5)]
    assert len(await flow.engine.sessions("acme", "alice")) == 1


async def test_a_retry_after_a_failure_is_the_same_exchange(flow: Flow, clock: ManualClock) -> None:
    """The same request after a failed one goes on with its session and exchange."""
    talker = Talker(flow, clock)
    talker.messages.append({"role": "user", "content": DOG})
    first = await talker.send(WireReply(outcome="failed", error="overloaded"))
    second = await talker.send("Nice name!")
    assert first.opened is not None
    assert second.opened is not None
    assert first.opened.exchange == second.opened.exchange
    assert await exchanges(flow) == [(DOG, "Nice name!", "closed")]


async def test_case_09_recalled_text_does_not_come_back_as_a_memory(flow: Flow, clock: ManualClock) -> None:
    """After twenty turns with the memory in the prompt there is still one memory, and no block in a page."""
    await flow.engine.remember(Scope(tenant="acme", user="alice"), "I am allergic to kiwi.")
    await flow.engine.drain()
    for _ in range(20):
        talker = Talker(flow, clock)
        await talker.say("What should I cook? Mind my allergy.", "As you are allergic to kiwi, make soup.")
        assert talker.prompt().count("I am allergic to kiwi.") == 1
    await Talker(flow, clock).say("Remember that my snack is seaweed.")
    assert await flow.engine.count_memories("acme", "alice") == 1
    texts = [one[0] for one in await exchanges(flow)]
    assert not any("hearth-memory" in text for text in texts)
    assert texts[-1] == "Remember that my snack is seaweed."


async def test_case_50_secrets_reach_the_provider_but_not_memory(flow: Flow, clock: ManualClock) -> None:
    """A key in a message is forwarded as it is and stored as a marker; the rest of the sentence is kept."""
    talker = Talker(flow, clock)
    text = "My key is sk-test-FAKE0123456789abcdef and I use Postgres"
    await talker.say(text, "Never show sk-test-FAKE0123456789abcdef to anybody.")
    assert talker.prompt() == text
    [(said, reply, _)] = await exchanges(flow)
    assert "FAKE0123456789" not in said + reply
    assert "I use Postgres" in said


async def test_case_50_secrets_of_a_tool_loops_earlier_steps_are_in_no_page(
    flow: Flow, clock: ManualClock
) -> None:
    """What the assistant wrote before it called a tool is masked in short-term memory like its last words."""
    talker = Talker(flow, clock)
    talker.messages = [{"role": "user", "content": "Which key do you use?"}]
    words = "I use sk-test-FAKE0123456789abcdef here."
    await talker.send(WireReply(text=words, tools=(ToolUse(name="look"),)))
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    talker.messages += [
        {"role": "assistant", "content": words, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "42"},
    ]
    await talker.send("That is all.")
    view = await flow.engine.view(identity().scope)
    assert [page.reply_text for page in view.pages] == ["I use [secret:api-key] here.\n\nThat is all."]


@pytest.mark.parametrize("large", [True, False])
async def test_a_large_exchange_is_made_ready_in_a_thread(
    flow: Flow, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """Masking megabytes holds up no other call; a short text is not worth a thread."""
    threads = set()

    def noted(text: str) -> str:
        threads.add(threading.current_thread() is threading.main_thread())
        return mask_secrets(text)

    monkeypatch.setattr(flow.engine.policies, "mask", lambda tenant, key: noted)
    text = "My key is sk-test-FAKE0123456789abcdef. " + "I live in Oslo. " * (10_000 if large else 1)
    await Talker(flow, clock).say(text, "Noted.")
    assert threads == {not large}
    [(said, reply, _)] = await exchanges(flow)
    assert (len(said), reply) == (len(mask_secrets(text).strip()), "Noted.")


async def test_a_large_exchange_is_captured_though_the_client_hangs_up(
    flow: Flow, clock: ManualClock
) -> None:
    """The cancellation of a call that waits for the thread loses nothing."""
    body: Body = {"model": "gpt", "messages": [{"role": "user", "content": "I live in Oslo. " * 10_000}]}
    call = Call(route="chat", headers=(), started_at=clock.now())
    call.request = WIRES["chat"].read_request(body)
    await flow.before(call, call.request, identity(), body, window=0)
    ending = asyncio.create_task(flow.after(call, WireReply(text="Noted.")))
    await asyncio.sleep(0)
    assert ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert [one[1] for one in await exchanges(flow)] == ["Noted."]


async def test_memory_that_is_broken_does_not_break_the_call(flow: Flow, clock: ManualClock) -> None:
    """With the log closed the body is forwarded as it came, and the headers say that memory failed."""
    await flow.engine.worker.stop()
    await flow.engine.log.close()  # type: ignore[attr-defined]
    talker = Talker(flow, clock)
    call = await talker.say(QUESTION)
    assert talker.prompt() == QUESTION
    assert response_headers(call)["x-hearth-status"] == "failed"


async def test_one_deadline_is_for_all_that_a_call_asks_of_memory(
    flow: Flow, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the first part has used up the next ones don't get again."""

    async def hangs(*args: object, **asked: object) -> Any:
        await asyncio.Event().wait()

    engine = flow.engine
    engine.policy = msgspec.structs.replace(engine.policy, deadline_seconds=3_600)
    monkeypatch.setattr(engine, "due", time.monotonic)
    monkeypatch.setattr(engine.log, "open_call", hangs)
    monkeypatch.setattr(engine.log, "secret", hangs)
    async with asyncio.timeout(30):
        call = await Talker(flow, clock).say("I live in Bern.")
    assert (call.status, call.reason) == ("failed", "log")


async def test_case_21_erased_words_do_not_come_back_with_a_resent_history(
    flow: Flow, clock: ManualClock
) -> None:
    """A client that goes on with its old history after an erasure brings back nothing of it."""
    talker = Talker(flow, clock)
    await talker.say("I keep bees.", "How nice.")
    await flow.engine.erase("acme", "alice")
    await talker.say("thanks")
    assert [one[0] for one in await exchanges(flow)] == ["thanks"]
    other = Talker(flow, clock)
    await other.say("What animals do I keep?")
    assert "bees" not in other.prompt()


AUTOMATIC: dict[str, Any] = {"route": "messages", "cache_control": {"type": "ephemeral"}, "max_tokens": 9}


async def test_a_pause_ends_the_run_of_blocks_for_good(flow: Flow, clock: ManualClock) -> None:
    """What was dropped when the cache expired stays out later on, and the run begins anew behind it."""
    await flow.engine.remember(Scope(tenant="acme", user="alice"), "My cat is called Miso.")
    await flow.engine.remember(Scope(tenant="acme", user="alice"), DOG)
    await flow.engine.drain()
    talker = Talker(flow, clock)
    await talker.say(QUESTION, "Zebedee.", **AUTOMATIC)
    clock.advance(minutes=6)
    await talker.say("And what is the name of my cat?", "Miso.", **AUTOMATIC)
    after_the_pause = talker.sent["messages"]
    await talker.say("Thanks a lot!", **AUTOMATIC)
    assert after_the_pause[0] == {"role": "user", "content": QUESTION}
    assert "Miso" in after_the_pause[2]["content"]
    assert talker.sent["messages"][:3] == after_the_pause[:3]


async def test_what_a_block_that_stays_shows_is_not_recalled_again(flow: Flow, clock: ManualClock) -> None:
    """With automatic caching the second question finds its memory in the first one's block, once."""
    await flow.engine.remember(Scope(tenant="acme", user="alice"), DOG)
    await flow.engine.drain()
    talker = Talker(flow, clock)
    await talker.say(QUESTION, "I could not say.", **AUTOMATIC)
    await talker.say("Please try again: how is my dog called?", **AUTOMATIC)
    assert str(talker.sent["messages"]).count(DOG) == 1


@pytest.mark.parametrize("change", ["forget", "amend"])
async def test_case_19_a_block_does_not_bring_back_what_was_forgotten(
    flow: Flow, clock: ManualClock, change: str
) -> None:
    """A memory that was forgotten or rewritten leaves the earlier blocks of running sessions at once."""
    alice = Scope(tenant="acme", user="alice")
    memory = await flow.engine.remember(alice, DOG)
    await flow.engine.drain()
    talker = Talker(flow, clock)
    await talker.say(QUESTION, "I could not say.", **AUTOMATIC)
    assert "Zebedee" in talker.prompt()
    if change == "forget":
        await flow.engine.forget(alice, memory.id)
    else:
        await flow.engine.amend("acme", "alice", memory.id, text="My dog is called Quillon.")
    await flow.engine.drain()
    await talker.say("Please try again: how is my dog called?", **AUTOMATIC)
    sent = str(talker.sent["messages"])
    assert "Zebedee" not in sent
    assert sent.count("Quillon") == (1 if change == "amend" else 0)


@pytest.mark.parametrize(("allowance", "recalled"), [(2000, True), (100, False)])
async def test_blocks_that_stay_keep_within_their_allowance(
    flow: Flow, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, allowance: int, recalled: bool
) -> None:
    """A new block gets the tokens that the session's earlier ones have left, and the earlier ones stay."""
    alice, sister = Scope(tenant="acme", user="alice"), "Ludmila lives in Valparaíso, she is my sister."
    for text in (DOG, sister):
        await flow.engine.remember(alice, text)
    await flow.engine.drain()
    monkeypatch.setattr("hearth.gateway.replay.REPLAY_TOKENS", allowance)
    talker = Talker(flow, clock)
    await talker.say(QUESTION, "Zebedee.", **AUTOMATIC)
    await talker.say("Where does my sister Ludmila live?", **AUTOMATIC)
    assert DOG in talker.sent["messages"][0]["content"]
    assert (sister in talker.sent["messages"][2]["content"]) is recalled
