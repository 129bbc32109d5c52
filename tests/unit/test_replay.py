"""Which earlier blocks go back into a prompt, and which providers' caches make that worth while."""

from datetime import UTC, datetime, timedelta

import pytest

from hearth.gateway.caching import IMPLICIT_SECONDS, with_caching
from hearth.gateway.replay import MOST_BLOCKS, alive, allowance, run_of, stays
from hearth.gateway.wire import WIRES
from hearth.gateway.wire.types import WireRequest
from hearth.memory.dialogue import read
from hearth.memory.types import PlacedBlock

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def block(number: int, *, alone: bool = False, tokens: int = 100, text: str | None = None) -> PlacedBlock:
    said = f"block {number}" if text is None else text
    return PlacedBlock(exchange=f"{number}", text=said, tokens=tokens, at=NOON, alone=alone)


def run(
    *blocks: PlacedBlock, current: PlacedBlock | None = None, warm: bool = True, most: int = 2000
) -> list[int]:
    placed = [(place, one) for place, one in enumerate(blocks)]
    return list(run_of(placed, current, alive=warm, most=most))


def test_a_run_goes_back_whole() -> None:
    """All blocks since the last one that stood alone go back, wordless ones left out."""
    assert run(block(0, alone=True), block(1), block(2)) == [0, 1, 2]
    assert run(block(0, alone=True), block(1), block(2, alone=True), block(3)) == [2, 3]
    assert run(block(0, alone=True), block(1, text="", tokens=0), block(2)) == [0, 2]
    assert run() == []


def test_a_run_ends_when_the_cache_is_cold_or_the_run_too_long() -> None:
    """An expired entry, too many tokens or too many blocks drop all at once."""
    assert run(block(0), block(1), warm=False) == []
    assert run(block(0), block(1), most=199) == []
    assert run(block(0), block(1), most=200) == [0, 1]
    assert run(*(block(n, tokens=1) for n in range(MOST_BLOCKS))) == []


def test_later_steps_of_an_exchange_do_as_its_first_one_did() -> None:
    """What went with the exchange's block goes with it again, however late and long it has become."""
    history = (block(0), block(1))
    assert run(*history, current=block(2), warm=False, most=1) == [0, 1]
    assert run(*history, current=block(2, alone=True)) == []


def chat(*messages: dict[str, object], **fields: object) -> WireRequest:
    return WIRES["chat"].read_request({"model": "gpt-4o", "messages": list(messages), **fields})


CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
LOOP = (
    {"role": "user", "content": "Look it up."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "42"},
    {"role": "assistant", "content": "42."},
)
PLAIN = ({"role": "user", "content": "Thanks."}, {"role": "assistant", "content": "Welcome."})
NOW = {"role": "user", "content": "And now?"}


def test_blocks_stay_from_the_first_tool_call_on() -> None:
    """A tool loop anywhere before keeps them; a loop that is still open does not yet."""
    assert not stays(chat(*PLAIN, NOW), read(chat(*PLAIN, NOW).turns))
    assert not stays(chat(*PLAIN, *LOOP[:3]), read(chat(*PLAIN, *LOOP[:3]).turns))
    assert stays(chat(*LOOP, *PLAIN, NOW), read(chat(*LOOP, *PLAIN, NOW).turns))


def test_the_allowance_grows_with_the_prompt() -> None:
    """2,000 tokens, or a quarter of a longer prompt; tool results count, whose words are not read."""
    assert allowance(chat(NOW)) == 2000
    assert allowance(chat({"role": "system", "content": "x" * 160_000}, NOW)) == 10_000
    result = {"role": "tool", "tool_call_id": "c", "content": "x" * 160_000}
    assert allowance(chat(*LOOP[:2], result)) >= 10_000


def test_an_entry_lives_as_long_as_its_provider_says() -> None:
    """Five minutes from the last reply on; a session without a last call has no entry."""
    request = chat(NOW)
    assert alive(request, NOON, NOON + timedelta(minutes=5))
    assert not alive(request, NOON, NOON + timedelta(minutes=5, seconds=1))
    assert not alive(request, None, NOON)


@pytest.mark.parametrize(
    ("model", "automatic"),
    [
        ("openai/gpt-5.6", True),
        ("azure/us/gpt-5.6-mini", True),
        ("gpt-6", True),
        ("gpt-10.1-2027-01-01", True),
        ("openai/gpt-5.5", False),
        ("gpt-5-codex", False),
        ("gpt-4o", False),
        ("gpt-5.6x", False),
        ("anthropic/claude-sonnet-4-5", False),
        ("my-gpt-5.6", False),
        ("", False),
    ],
)
def test_newer_models_of_openai_write_behind_the_block(model: str, automatic: bool) -> None:
    """From gpt-5.6 on caching is automatic and lives half an hour, unless the client chose its own marks."""
    known = with_caching(chat(NOW), ["openai/gpt-4o", model])
    assert known.automatic_caching is automatic
    assert known.cache_seconds == (IMPLICIT_SECONDS if automatic else 300)
    own = chat(NOW, prompt_cache_options={"mode": "explicit"})
    assert with_caching(own, [model]) is own
