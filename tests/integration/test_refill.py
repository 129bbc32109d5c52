"""Short-term memory that lost what it had while calls were served."""

from __future__ import annotations

from pathlib import Path

from hearth.memory import metrics
from hearth.memory.ports import ShortTerm
from hearth.memory.stores.memory_short_term import InMemoryShortTerm
from hearth.memory.types import Scope
from tests.api import open_api

ALICE = Scope(tenant="acme", user="alice", session="s1")


async def test_case_46_a_store_that_was_emptied_is_filled_from_the_log_again(tmp_path: Path) -> None:
    """case_46: the first look at an emptied store finds nothing, the next one what was said, once each."""
    async with open_api(tmp_path) as api:
        for number in range(3):
            await api.engine.capture(ALICE, f"I have {number} cats", "Noted.")
        await api.engine.drain()
        emptied: ShortTerm = InMemoryShortTerm()
        api.engine.short_term = emptied
        before = refilled()
        assert not (await api.engine.view(ALICE)).pages
        await api.engine.drain()
        assert refilled() == before + 1
        view = await api.engine.view(ALICE)
        assert [page.user_text for page in view.pages] == [f"I have {number} cats" for number in range(3)]
        stranger = Scope(tenant="acme", user="bob")
        assert not (await api.engine.view(stranger)).known
        await api.engine.drain()
        assert (await api.engine.view(stranger)).known
        assert refilled() == before + 1


def refilled() -> float:
    return metrics.REGISTRY.get_sample_value("hearth_short_term_refilled_total") or 0.0
