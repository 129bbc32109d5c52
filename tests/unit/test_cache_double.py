"""The prompt-cache double against the providers' published examples and the cost of the block policies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hearth.testing.cache import CacheDouble, has_breakpoints, rules_of

START = datetime(2026, 1, 1, tzinfo=UTC)
EPHEMERAL = {"type": "ephemeral"}


def stated(text: str) -> int:
    """Texts of these tests say how many tokens they have: `500 reply`."""
    return int(text.split(" ", 1)[0])


def block(tokens: int, name: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": f"{tokens} {name}", **more}


def marked(tokens: int, name: str, ttl: str = "5m") -> dict[str, Any]:
    return block(tokens, name, cache_control={"type": "ephemeral", "ttl": ttl})


def request(
    *blocks: dict[str, Any], system: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    message = {"role": "user", "content": list(blocks)}
    return {"model": "claude-sonnet-5", "system": system or [], "messages": [message], **more}


def conversation(*sizes: int, last: dict[str, Any] | None = None, every: int = 0) -> dict[str, Any]:
    """A conversation of blocks of these sizes, the last one marked, or every so many of them."""
    blocks = [block(size, f"block {at}") for at, size in enumerate(sizes)]
    for at in range(len(blocks)):
        if at == len(blocks) - 1 or (every and (at + 1) % every == 0):
            blocks[at] = {**blocks[at], "cache_control": EPHEMERAL}
    return request(*blocks)


@pytest.fixture(name="cache")
def _cache() -> CacheDouble:
    return CacheDouble(count=stated)


def test_a_first_request_writes_up_to_the_breakpoint_and_pays_the_rest(cache: CacheDouble) -> None:
    """The first request writes everything up to the breakpoint at 1.25 and pays the rest at 1."""
    charge = cache.charge(request(block(100, "question"), system=[marked(10_000, "book")]), START)
    assert (charge.input, charge.cache_read, charge.cache_write) == (100, 0, 10_000)
    assert charge.cost == 100 + 12_500


def test_the_second_request_reads_what_the_first_wrote(cache: CacheDouble) -> None:
    """The documented example: the next request with another question reads the system text at a tenth."""
    cache.charge(request(block(100, "first"), system=[marked(10_000, "book")]), START)
    charge = cache.charge(request(block(120, "second"), system=[marked(10_000, "book")]), START)
    assert (charge.input, charge.cache_read, charge.cache_write) == (120, 10_000, 0)
    assert charge.cost == 120 + 1_000


@pytest.mark.parametrize(
    ("model", "tokens", "written"),
    [
        ("claude-sonnet-5", 1023, 0),
        ("claude-sonnet-5", 1024, 1024),
        ("claude-haiku-4-5", 4095, 0),
        ("claude-haiku-4-5", 4096, 4096),
        ("claude-opus-5", 512, 512),
    ],
)
def test_a_prefix_below_the_minimum_is_not_cached(
    cache: CacheDouble, model: str, tokens: int, written: int
) -> None:
    """Below the model's minimum a breakpoint is without effect and without error."""
    body = request(block(5, "q"), system=[marked(tokens, "system")]) | {"model": model}
    assert cache.charge(body, START).cache_write == written


@pytest.mark.parametrize(
    ("ttl", "minutes", "read"), [("5m", 4, 2000), ("5m", 6, 0), ("1h", 59, 2000), ("1h", 61, 0)]
)
def test_an_entry_lives_as_long_as_its_ttl(cache: CacheDouble, ttl: str, minutes: int, read: int) -> None:
    """An entry is read within five minutes or an hour and gone afterwards."""
    body = request(block(5, "q"), system=[marked(2000, "system", ttl)])
    cache.charge(body, START)
    assert cache.charge(body, START + timedelta(minutes=minutes)).cache_read == read


def test_use_refreshes_an_entry(cache: CacheDouble) -> None:
    """An entry that is read every four minutes is still there after twelve."""
    body = request(block(5, "q"), system=[marked(2000, "system")])
    reads = [cache.charge(body, START + timedelta(minutes=at)).cache_read for at in (0, 4, 8, 12)]
    assert reads == [0, 2000, 2000, 2000]


def test_a_one_hour_write_costs_double(cache: CacheDouble) -> None:
    """With both lives in one request each part is paid at its own price, the hour's part first."""
    body = request(block(10, "q"), system=[marked(2000, "rules", "1h"), marked(1000, "facts")])
    charge = cache.charge(body, START)
    assert (charge.cache_write, charge.write_1h) == (3000, 2000)
    assert charge.cost == 10 + 2000 * 2 + 1000 * 1.25


def test_nothing_is_written_between_breakpoints(cache: CacheDouble) -> None:
    """The documented mistake: a breakpoint on a block that changes each time never finds an entry."""
    for clock in ("10:00", "10:01", "10:02"):
        charge = cache.charge(request(block(5000, "stable"), marked(50, f"time {clock}")), START)
        assert (charge.cache_read, charge.cache_write) == (0, 5050)


def test_the_lookback_ends_after_twenty_positions(cache: CacheDouble) -> None:
    """The documented example: 10, 15, then 35 blocks; block 15's entry is one position out of reach."""
    sizes = [200] * 35
    assert cache.charge(conversation(*sizes[:10]), START).cache_write == 2000
    second = cache.charge(conversation(*sizes[:15]), START)
    assert (second.cache_read, second.cache_write) == (2000, 1000)
    third = cache.charge(conversation(*sizes), START)
    assert (third.cache_read, third.cache_write) == (0, 7000)


def test_a_second_breakpoint_starts_a_window_of_its_own(cache: CacheDouble) -> None:
    """The documented remedy: a breakpoint at block 15 as well finds that entry."""
    sizes = [200] * 35
    cache.charge(conversation(*sizes[:15]), START)
    third = cache.charge(conversation(*sizes, every=15), START)
    assert (third.cache_read, third.cache_write) == (3000, 4000)


def test_a_run_of_tool_results_is_one_position(cache: CacheDouble) -> None:
    """Thirty parallel tool results are one step back, thirty texts are thirty."""
    first = {"role": "user", "content": [marked(2000, "question")]}
    results = [{"type": "tool_result", "tool_use_id": f"t{at}", "content": f"10 {at}"} for at in range(30)]
    results[-1]["cache_control"] = EPHEMERAL
    answered = {"role": "user", "content": results}
    cache.charge({"model": "claude-sonnet-5", "messages": [first]}, START)
    charge = cache.charge({"model": "claude-sonnet-5", "messages": [first, answered]}, START)
    assert (charge.cache_read, charge.cache_write) == (2000, 300)


def test_order_is_tools_then_system_then_messages(cache: CacheDouble) -> None:
    """A changed tool invalidates everything, a changed system text keeps the tools."""
    tool = {"name": "f", "description": "d", "text": "1500 tool", "cache_control": EPHEMERAL}
    body = request(marked(100, "q"), system=[marked(1000, "system")], tools=[tool])
    assert cache.charge(body, START).cache_write == 2600
    other_system = body | {"system": [marked(1000, "another")]}
    assert cache.charge(other_system, START).cache_read == 1500
    other_tool = body | {"tools": [{**tool, "description": "e"}]}
    assert cache.charge(other_tool, START).cache_read == 0


def test_tool_choice_keeps_system_and_breaks_messages(cache: CacheDouble) -> None:
    """A change of tool_choice or thinking leaves the system's entry and loses the messages'."""
    body = request(marked(3000, "q"), system=[marked(2000, "system")])
    cache.charge(body, START)
    charge = cache.charge(body | {"tool_choice": {"type": "any"}}, START)
    assert (charge.cache_read, charge.cache_write) == (2000, 3000)


def test_moving_the_marker_does_not_change_the_prefix(cache: CacheDouble) -> None:
    """cache_control is not part of what is cached: the next turn may mark another block."""
    cache.charge(request(marked(2000, "a")), START)
    charge = cache.charge(request(block(2000, "a"), marked(300, "b")), START)
    assert (charge.cache_read, charge.cache_write) == (2000, 300)


def test_automatic_caching_marks_the_last_cacheable_block(cache: CacheDouble) -> None:
    """A top-level cache_control is a breakpoint on the last block that can have one, never thinking."""
    thinking = {"type": "thinking", "thinking": "400 hm", "signature": "s"}
    messages = [
        {"role": "user", "content": [block(2000, "q")]},
        {"role": "assistant", "content": [block(50, "a"), thinking]},
    ]
    body = {"model": "claude-sonnet-5", "messages": messages, "cache_control": EPHEMERAL}
    charge = cache.charge(body, START)
    assert (charge.input, charge.cache_write) == (400, 2050)


# -- OpenAI


def chat(*texts: str, model: str = "gpt-4o", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text} for text in texts], **more}


def test_openai_reads_in_steps_of_128_from_1024() -> None:
    """The announcement's example: of a prompt of 2,006 tokens that came before, 1,920 are read."""
    cache = CacheDouble(count=len)
    assert cache.charge(chat("x" * 2006), START).cache_read == 0
    charge = cache.charge(chat("x" * 2006), START)
    assert (charge.total, charge.cache_read) == (2006, 1920)
    assert charge.cost == 86 + 1920 * 0.5


def test_openai_does_not_cache_a_short_prompt() -> None:
    """Below 1,024 tokens nothing is cached."""
    cache = CacheDouble(count=len)
    cache.charge(chat("x" * 1023), START)
    assert cache.charge(chat("x" * 1023), START).cache_read == 0


def test_openai_matches_a_prefix_inside_a_message() -> None:
    """A prompt that leaves an earlier one in the middle of a message still reads what comes before."""
    cache = CacheDouble(count=len)
    cache.charge(chat("s" * 1000, "x" * 300 + "old"), START)
    assert cache.charge(chat("s" * 1000, "x" * 300 + "new"), START).cache_read == 1280


def test_openai_forgets_after_five_idle_minutes() -> None:
    """An automatic entry goes after five minutes without use."""
    cache = CacheDouble(count=len)
    cache.charge(chat("x" * 2000), START)
    assert cache.charge(chat("x" * 2000), START + timedelta(minutes=6)).cache_read == 0


@pytest.mark.parametrize(
    ("model", "price"),
    [("gpt-4o-mini", 0.5), ("gpt-4.1", 0.25), ("o3", 0.25), ("gpt-5.1", 0.1), ("openai/gpt-5", 0.1)],
)
def test_openai_price_of_cached_input_goes_by_model(model: str, price: float) -> None:
    """Cached input has the price of its model family."""
    assert rules_of(model).read == price


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-5.6", True),
        ("gpt-5.6-mini", True),
        ("gpt-6", True),
        ("gpt-5", False),
        ("gpt-5.5", False),
        ("gpt-4o", False),
    ],
)
def test_breakpoints_begin_with_gpt_5_6(model: str, expected: bool) -> None:
    """Breakpoints and paid writes are for gpt-5.6 and later."""
    assert has_breakpoints(model) is expected


def test_gpt_5_6_writes_at_the_end_of_the_newest_message(cache: CacheDouble) -> None:
    """The implicit breakpoint is written at 1.25 and found again from the next message's."""
    first = chat("2000 a", model="gpt-5.6")
    assert cache.charge(first, START).cost == 2000 * 1.25
    charge = cache.charge(chat("2000 a", "300 b", model="gpt-5.6"), START + timedelta(minutes=29))
    assert (charge.cache_read, charge.cache_write) == (2000, 300)


def test_gpt_5_6_has_no_partial_match(cache: CacheDouble) -> None:
    """A message that changed takes its own entry with it; there is no shorter match inside it."""
    cache.charge(chat("2000 a", "300 b", model="gpt-5.6"), START)
    charge = cache.charge(chat("2000 a", "300 c", model="gpt-5.6"), START)
    assert charge.cache_read == 0


def test_gpt_5_6_explicit_mode_without_breakpoints_caches_nothing(cache: CacheDouble) -> None:
    """`mode: explicit` without any breakpoint turns caching off."""
    body = chat("2000 a", model="gpt-5.6", prompt_cache_options={"mode": "explicit"})
    cache.charge(body, START)
    assert cache.charge(body, START).cache_read == 0


# -- what the block policies cost

SYSTEM, BLOCK, USER, REPLY, USE, RESULT = 15_000, 500, 200, 300, 500, 1_000
SECONDS_A_CALL = 20


class Session:
    """A session of turns with tool steps, as a gateway with a policy would send it to the provider."""

    def __init__(self, policy: str, client: str) -> None:
        self.policy, self.client = policy, client
        self.cache = CacheDouble(count=stated)
        self.turns: list[list[dict[str, Any]]] = []
        self.cost, self.calls = 0.0, 0

    def run(self, turns: int, steps: int) -> float:
        for turn in range(turns):
            self.turns.append([self._message("user", USER, f"user {turn}")])
            for step in range(steps):
                self._call()
                self.turns[-1].append(self._message("assistant", USE, f"use {turn}.{step}"))
                self.turns[-1].append(self._message("user", RESULT, f"result {turn}.{step}"))
            self._call()
            self.turns[-1].append(self._message("assistant", REPLY, f"reply {turn}"))
        return self.cost

    def _message(self, role: str, tokens: int, name: str) -> dict[str, Any]:
        return {"role": role, "content": [block(tokens, name)]}

    def _call(self) -> None:
        messages = [
            self._placed(turn, at, message)
            for turn, found in enumerate(self.turns)
            for at, message in enumerate(found)
        ]
        self.cost += self.cache.charge(
            self._body(messages), START + timedelta(seconds=SECONDS_A_CALL * self.calls)
        ).cost
        self.calls += 1

    def _placed(self, turn: int, at: int, message: dict[str, Any]) -> dict[str, Any]:
        newest = turn == len(self.turns) - 1
        newest_message = newest and at == len(self.turns[turn]) - 1
        content = list(message["content"])
        if self.client == "explicit" and newest_message:
            content[0] = {**content[0], "cache_control": EPHEMERAL}
        if at == 0 and (self.policy == "replay" or (self.policy == "strip" and newest)):
            content.append(block(BLOCK, f"memory {turn}"))
        return {**message, "content": content}

    def _body(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        if self.client.startswith("gpt"):
            return {
                "model": self.client,
                "messages": [{"role": "system", "content": f"{SYSTEM} s"}, *messages],
            }
        system = [marked(SYSTEM, "system")]
        automatic = {"cache_control": EPHEMERAL} if self.client == "automatic" else {}
        return {"model": "claude-sonnet-5", "system": system, "messages": messages, **automatic}


@pytest.mark.parametrize(
    ("turns", "steps", "client", "strip", "replay"),
    [
        (20, 0, "explicit", 1.15, 1.45),
        (20, 0, "automatic", 2.69, 1.32),
        (10, 5, "explicit", 1.21, 1.06),
        (10, 5, "automatic", 1.96, 1.05),
        (10, 30, "explicit", 1.30, 1.01),
        (10, 30, "automatic", 1.29, 1.01),
        (20, 0, "gpt-4o", 1.05, 1.27),
        (20, 0, "gpt-5.6", 7.49, 1.32),
        (10, 5, "gpt-5.6", 2.31, 1.05),
    ],
)
def test_the_cost_of_dropping_and_of_replaying_older_blocks(
    turns: int, steps: int, client: str, strip: float, replay: float
) -> None:
    """Against the same session without memory, replay wins with tool steps or automatic breakpoints."""
    bare = Session("none", client).run(turns, steps)
    assert Session("strip", client).run(turns, steps) / bare == pytest.approx(strip, rel=0.01)
    assert Session("replay", client).run(turns, steps) / bare == pytest.approx(replay, rel=0.01)
