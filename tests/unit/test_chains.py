"""Chains of responses that the gateway holds for backends that keep none."""

from __future__ import annotations

import json

import pytest

from hearth.gateway.chains import BrokenChainError, ChainLink, ChainOwner, Chains, continued, items_of

ALICE = ChainOwner(key="app", tenant="acme", user="alice", generation=1)


def reply(name: str, text: str = "ok", **fields: object) -> bytes:
    """The body of a completed response."""
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
    return json.dumps({"id": name, "status": "completed", "output": output, **fields}).encode()


async def keep(chains: Chains, name: str, said: str, previous: str = "", owner: ChainOwner = ALICE) -> None:
    """Hold a turn of one message and its reply."""
    await chains.keep(
        ChainLink(owner=owner, previous=previous, items=items_of(said)), reply(name, f"re {said}")
    )


async def words(chains: Chains, name: str, owner: ChainOwner = ALICE) -> list[str]:
    """The texts of a chain."""
    found = (item["content"] for item in await chains.before(owner, name))
    return [said if isinstance(said, str) else said[0]["text"] for said in found]


async def test_a_chain_is_all_its_turns_in_order() -> None:
    """From its last reply back to its start; a branch has its own."""
    chains = Chains()
    await keep(chains, "r1", "one")
    await keep(chains, "r2", "two", "r1")
    await keep(chains, "r3", "three", "r1")
    assert await words(chains, "r2") == ["one", "re one", "two", "re two"]
    assert await words(chains, "r3") == ["one", "re one", "three", "re three"]
    assert await chains.before(ALICE, "") == []
    assert continued({"input": "four"}, await chains.before(ALICE, "r1"))["input"][-1]["content"] == "four"


@pytest.mark.parametrize(
    "other",
    [
        ChainOwner(key="else", tenant="acme", user="alice", generation=1),
        ChainOwner(key="app", tenant="acme", user="bob", generation=1),
        ChainOwner(key="app", tenant="acme", user="alice", generation=2),
    ],
)
async def test_nobody_else_goes_on_with_a_chain(other: ChainOwner) -> None:
    """Neither another key, nor another user of the key, nor the user after an erasure."""
    chains = Chains()
    await keep(chains, "r1", "one")
    with pytest.raises(BrokenChainError):
        await chains.before(other, "r1")


async def test_a_call_without_memory_goes_on_with_its_keys_chain() -> None:
    """Memory may be off for one turn of a chain and on for the next."""
    chains = Chains()
    await keep(chains, "r1", "one")
    await keep(chains, "r2", "two", "r1", ChainOwner(key="app"))
    assert await words(chains, "r2") == ["one", "re one", "two", "re two"]


async def test_what_was_longest_unused_goes_first_and_breaks_its_chain() -> None:
    """Over the limit the oldest turns are let go, and a chain that misses one is refused as a whole."""
    chains = Chains(max_bytes=1_000)
    await keep(chains, "r1", "x" * 200)
    await keep(chains, "r2", "two", "r1")
    await keep(chains, "other", "y" * 200)
    with pytest.raises(BrokenChainError, match="whole conversation in `input`"):
        await chains.before(ALICE, "r2")
    assert (await words(chains, "other"))[0] == "y" * 200


async def test_an_erased_user_has_no_chains_left() -> None:
    """Dropping a user leaves the others' chains."""
    chains = Chains()
    await keep(chains, "r1", "one")
    await keep(chains, "r2", "two", owner=ChainOwner(key="app", tenant="acme", user="bob", generation=1))
    chains.drop("acme", "alice")
    with pytest.raises(BrokenChainError):
        await chains.before(ALICE, "r1")
    assert len(await chains.before(ChainOwner(key="app", tenant="acme", user="bob", generation=1), "r2")) == 2


@pytest.mark.parametrize(
    "raw",
    [
        reply("r1", store=False),
        reply("r1", status="failed"),
        b'data: {"type":"response.created","response":{"id":"r1","status":"in_progress"}}\n\n',
        b'{"error":{"message":"no"}}',
        b"",
    ],
)
async def test_only_a_response_that_ended_and_is_stored_is_held(raw: bytes) -> None:
    """What was not to be stored, or did not end, can't be continued."""
    chains = Chains()
    await chains.keep(ChainLink(owner=ALICE, previous="", items=items_of("one")), raw)
    with pytest.raises(BrokenChainError):
        await chains.before(ALICE, "r1")


@pytest.mark.parametrize("status", ["completed", "incomplete"])
@pytest.mark.parametrize("space", ["", " "])
async def test_a_streamed_response_is_held_by_its_last_event(status: str, space: str) -> None:
    """One that reached its limit of tokens can be continued as well."""
    response = json.loads(reply("r1", status=status))
    event = json.dumps({"type": f"response.{status}", "response": response}, separators=(",", f":{space}"))
    chains = Chains()
    await chains.keep(
        ChainLink(owner=ALICE, previous="", items=items_of("one")), f"data: {event}\n\n".encode()
    )
    assert await words(chains, "r1") == ["one", "ok"]
