"""Looking into memory over REST: tiers, stories, heat and policy, of a real log, for their owner alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hearth.config.settings import HearthSettings
from hearth.gateway.life import EMBEDDERS, embedder_name
from hearth.memory.embed.use import UseEmbedder
from hearth.memory.events.kinds import DrawnItem, PageMoved, Ranking, RecallDrawn
from hearth.memory.tiers.segments import COSINES
from hearth.memory.types import Scope
from tests.api import Api, open_api
from tests.events import ManualClock

ALICE = Scope(tenant="acme", user="alice")
HERMIT = Scope(tenant="acme", user="alice", agent="hermit", isolated=True)
SETTINGS = {
    "life": {"short_term": {"pages": 3, "important": 1.0}, "heat": {"promotion": 4.0}},
    "tenants": {"acme": {"life": {"limits": {"segments": 40}}}},
}
SOUP = (
    "I cook leek soup with potatoes.",
    "The leek soup needs more salt.",
    "My soup recipe is from Grandma.",
)
IDLE = ("Fine weather.", "So it is.", "All right then.")


@pytest.fixture(name="embedder", scope="module")
def _embedder() -> UseEmbedder:
    return UseEmbedder()


@pytest.fixture(name="api")
async def _api(tmp_path: Path, embedder: UseEmbedder) -> AsyncIterator[Api]:
    async with open_api(tmp_path, clock=ManualClock(), embedder=embedder, settings=SETTINGS) as api:
        yield api


async def say(api: Api, *texts: str, scope: Scope = ALICE, session: str = "s1") -> list[str]:
    """One exchange each, five minutes after the last; their ids."""
    said = []
    for text in texts:
        api.engine.clock.advance(minutes=5)
        of = Scope(
            tenant="acme", user=scope.user, agent=scope.agent, isolated=scope.isolated, session=session
        )
        said.append((await api.engine.capture(of, text, "I see.")).exchange)
        await api.engine.drain()
    return said


async def drawn(api: Api, exchange: str, items: dict[str, bool]) -> None:
    """The reply of that exchange was given these records, and drew on those that are true."""
    payload = RecallDrawn(
        trace="t",
        exchange=exchange,
        items=tuple(DrawnItem(id=id, share=0.9 if used else 0.0, used=used) for id, used in items.items()),
        ranking=Ranking(signals=(), items=()),
    )
    await api.engine.log.append([api.engine._event(ALICE, payload, 1)])
    await api.engine.drain()


async def get(api: Api, path: str, *, key: str = "alice", status: int = 200, **params: Any) -> Any:
    async with api.client(key) as client:
        answer = await client.get(path, params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


async def segment_of(api: Api, page: str, user: str = "alice") -> str:
    return (await api.engine.log.segments_of("acme", user, [page]))[page]


async def told(api: Api, id: str, **more: Any) -> list[tuple[str, str]]:
    """What happened to a record, with the other record in it."""
    story = await get(api, f"/stories/{id}", **more)
    assert [one["at"] for one in story["chapters"]] == sorted(one["at"] for one in story["chapters"])
    return [(one["what"], one["of"]) for one in story["chapters"]]


# -- tiers -------------------------------------------------------------------------------------------------


async def test_tiers_say_what_stands_where(api: Api) -> None:
    """Pages that wait, segments by heat with words that a person reads, memories by kind, and the flow."""
    soup = await say(api, *SOUP)
    await say(api, "The car needs new engine oil.", "I live in Chur.", *IDLE, session="s2")
    await drawn(api, soup[0], {soup[1]: True})
    found = await get(api, "/tiers")
    short, mid, long, flow = (found[name] for name in ("short_term", "mid_term", "long_term", "flow"))
    assert (short["pages"], short["pages_limit"], short["sessions"]) == (3, 3, 1)
    assert short["bytes"] == sum(len(text) + len("I see.") for text in IDLE)
    assert short["tokens"] == short["bytes"] // 4
    assert (mid["segments_limit"], mid["promotion"], mid["evicted"]) == (40, 4.0, 0)
    assert mid["segments"] == len(mid["items"])
    assert (mid["pages"], flow["pages_moved"], flow["pages_moved_ever"]) == (5, 5, 5)
    hottest = mid["items"][0]
    assert hottest["id"] == await segment_of(api, soup[1])
    assert {"soup", "leek"} <= set(hottest["words"])
    assert any(word in hottest["words"] for word in ("recipe", "potatoes"))
    heats = [one["heat"] for one in mid["items"]]
    assert heats == sorted(heats, reverse=True)
    assert heats[0] > 2.0
    assert (hottest["pages"], hottest["closed"], hottest["opened_at"]) == (3, False, "2026-03-01T12:05:00Z")
    assert long["persona"] + long["fact"] == flow["memories_added"] - flow["promoted"] >= 1
    assert (flow["visits"], flow["evicted"], flow["days"]) == (1, 0, 7)


async def test_tiers_of_a_user_without_memory_are_empty(api: Api) -> None:
    """Nothing is an answer too; the flow looks back so many days, and a list no further than its limit."""
    await say(api, *SOUP, *IDLE, session="s1")
    nobody = await get(api, "/tiers", key="bob")
    assert nobody["short_term"]["oldest"] is None
    assert nobody["mid_term"]["items"] == []
    api.engine.clock.advance(days=3)
    assert (await get(api, "/tiers", days=2))["flow"]["pages_moved"] == 0
    assert (await get(api, "/tiers", days=4))["flow"]["pages_moved"] == 3
    assert len((await get(api, "/tiers", limit=1))["mid_term"]["items"]) == 1
    await get(api, "/tiers", limit=0, status=422)


async def test_tiers_take_three_looks_at_the_log(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many segments there are."""
    await say(api, *SOUP, "The car needs oil.", "A letter from the tax office came.", *IDLE)
    looks: list[str] = []

    class Counted:
        """The port, with each call written down."""

        def __getattr__(self, name: str) -> Any:
            looks.append(name)
            return getattr(api.engine.log, name)

    monkeypatch.setattr(api.engine, "mid_term", Counted())
    await get(api, "/tiers")
    assert looks == ["standing", "segments_named", "latest_in"]


async def test_tiers_are_the_named_users_in_the_keys_tenant(api: Api) -> None:
    """A person's key reaches itself, an app's key whom it names, another tenant nobody of this one."""
    await say(api, *SOUP, *IDLE)
    await get(api, "/tiers", key="bob", user="alice", status=403)
    assert (await get(api, "/tiers", key="app", user="alice"))["mid_term"]["pages"] == 3
    assert (await get(api, "/tiers", key="rival", user="alice"))["mid_term"]["pages"] == 0
    assert (await get(api, "/tiers", key="hermit"))["mid_term"]["pages"] == 0
    await say(api, *SOUP, *IDLE[:1], scope=HERMIT, session="h1")
    hermit = await get(api, "/tiers", key="hermit")
    assert (hermit["mid_term"]["pages"], hermit["short_term"]["pages"]) == (1, 3)
    assert (await get(api, "/tiers"))["mid_term"]["pages"] == 3


# -- stories -----------------------------------------------------------------------------------------------


async def facts(api: Api, **where: Any) -> list[dict[str, Any]]:
    return (await get(api, "/memories", types=["fact", "persona"], **where))["items"]


async def test_a_fact_tells_how_it_came_and_how_it_went(api: Api) -> None:
    """Said, read, said again, moved with its page, replaced, marked, and forgotten in the end."""
    first, again, _ = await say(api, "I live in Chur.", "As you know, I live in Chur.", "I live in Bern now.")
    await say(api, *IDLE)
    chur, bern = sorted(await facts(api, include_superseded=True), key=lambda one: one["occurred_at"])
    segment = await segment_of(api, first)
    story = await get(api, f"/stories/{chur['id']}")
    assert story["subject"] == "memory"
    chapters = {one["what"]: one for one in story["chapters"]}
    assert [one["what"] for one in story["chapters"]][:2] == ["said", "read"]
    assert chapters["said"]["of"] == first
    assert chapters["said"]["quote"] in "I live in Chur."
    assert chapters["confirmed"]["of"] == again
    assert (chapters["replaced"]["of"], chapters["replaced"]["quote"]) == (bern["id"], bern["text"])
    moved = [one for one in story["chapters"] if one["what"] == "moved"]
    assert segment in [one["of"] for one in moved]
    assert "affinity" in moved[0]["text"]
    assert {one["of"] for one in story["chapters"] if one["what"] == "outdated"} <= {first, again}
    assert any(one["what"] == "outdated" for one in story["chapters"])
    async with api.client("alice") as alice:
        await alice.delete(f"/memories/{chur['id']}")
    gone = await get(api, f"/stories/{chur['id']}")
    assert [(one["what"], one["text"]) for one in gone["chapters"]] == [("forgotten", "forgotten: requested")]
    assert "Chur" not in str(gone)


async def test_an_exchange_tells_what_was_read_from_it_and_where_it_went(api: Api) -> None:
    """Its words, its facts, its segment with the reason, the recalls that warmed it, its branch."""
    chur, *rest = await say(api, "I live in Chur.", *IDLE)
    await drawn(api, rest[0], {chur: True})
    story = await get(api, f"/stories/{chur}")
    assert story["subject"] == "exchange"
    assert [one["what"] for one in story["chapters"]] == ["said", "read", "moved", "visited"]
    assert story["chapters"][0]["quote"] == "I live in Chur."
    began = next(one for one in story["chapters"] if one["what"] == "moved")
    assert began["text"].startswith("began a segment")
    assert "more pages than it may" in began["text"]
    payload = PageMoved(page=chur, state="inactive", reason="the client went elsewhere")
    await api.engine.log.append([api.engine._event(ALICE, payload, 1)])
    await api.engine.drain()
    assert [what for what, _ in await told(api, chur)] == [
        *("said", "moved", "left its branch", "left its segment"),
    ]
    assert [what for what, _ in await told(api, rest[0])] == ["said", "drew"]


async def test_a_segment_tells_what_joined_and_what_warmed_it(api: Api) -> None:
    """Its pages with their affinity, visits in a row as one, the promotion, and the episode."""
    soup = await say(api, *SOUP)
    asked = (await say(api, *IDLE, session="s2"))[0]
    for _ in range(3):
        await drawn(api, asked, {soup[0]: True})
    segment = await segment_of(api, soup[0])
    story = await get(api, f"/stories/{segment}")
    assert (story["subject"], story["shown"]) == ("segment", 0)
    happened = [one["what"] for one in story["chapters"]]
    assert happened.count("moved") == 3
    assert [one["of"] for one in story["chapters"] if one["what"] == "moved"] == soup
    assert "promoted" in happened
    assert "summed up" in happened
    assert "recall" in next(one for one in story["chapters"] if one["what"] == "visited")["text"]


async def test_a_story_counts_the_prompts_that_showed_it(api: Api) -> None:
    """Shown in one, which drew on it."""
    async with api.client("alice") as alice:
        kiwi = (await alice.post("/memories", json={"text": "I am allergic to kiwi."})).json()["id"]
    await api.engine.drain()
    api.engine.clock.advance(hours=1)
    found = await api.engine.recall(ALICE, "What am I allergic to?")
    assert kiwi in found.block.items
    asked = await api.engine.capture(ALICE, "What am I allergic to?", "To kiwi, you said.", recall=found)
    await api.engine.drain()
    await drawn(api, asked.exchange, {kiwi: True})
    story = await get(api, f"/stories/{kiwi}")
    assert (story["shown"], story["drawn"]) == (1, 1)
    assert [one["what"] for one in story["chapters"]] == ["added"]


async def test_a_story_is_its_owners(api: Api) -> None:
    """To another user, another tenant and an isolated agent it is as if it did not exist."""
    (chur, *_) = await say(api, "I live in Chur.", *IDLE)
    segment = await segment_of(api, chur)
    (fact, *_) = await facts(api)
    for id in (chur, segment, fact["id"]):
        await get(api, f"/stories/{id}")
        await get(api, f"/stories/{id}", key="app", user="alice")
        await get(api, f"/stories/{id}", key="bob", status=404)
        await get(api, f"/stories/{id}", key="rival", user="alice", status=404)
        await get(api, f"/stories/{id}", key="hermit", status=404)
    await get(api, "/stories/nothing", status=404)
    await get(api, f"/segments/{segment}/heat", key="bob", status=404)
    await get(api, f"/segments/{segment}/heat", key="rival", user="alice", status=404)
    await get(api, f"/segments/{segment}/heat", key="hermit", status=404)
    await get(api, f"/segments/{chur}/heat", status=404)


async def test_an_isolated_agent_reads_the_stories_of_its_own(api: Api) -> None:
    """Of its exchange, its fact and its segment."""
    (chur, *_) = await say(api, "I live in Chur.", *IDLE, scope=HERMIT, session="h1")
    segment = await segment_of(api, chur)
    (fact, *_) = await facts(api)
    for id in (chur, segment, fact["id"]):
        await get(api, f"/stories/{id}", key="hermit")
    await get(api, f"/segments/{segment}/heat", key="hermit")


async def test_nothing_is_told_of_an_erased_user(api: Api) -> None:
    """Neither stories nor heat nor tiers."""
    (chur, *_) = await say(api, "I live in Chur.", *IDLE)
    segment = await segment_of(api, chur)
    (fact, *_) = await facts(api)
    await api.engine.erase("acme", "alice")
    for id in (chur, segment, fact["id"]):
        await get(api, f"/stories/{id}", status=404)
    await get(api, f"/segments/{segment}/heat", status=404)
    found = await get(api, "/tiers")
    assert (found["short_term"]["pages"], found["mid_term"]["segments"]) == (0, 0)
    assert set(found["flow"].values()) <= {0, 7}
    assert set(found["long_term"].values()) == {0}


# -- heat and policy ---------------------------------------------------------------------------------------


async def test_the_heat_of_a_segment_is_told_over_time(api: Api) -> None:
    """It rises with each page and visit, and ends with what it is now."""
    soup = await say(api, *SOUP)
    asked = (await say(api, *IDLE, session="s2"))[0]
    await drawn(api, asked, {soup[0]: True})
    api.engine.clock.advance(hours=24)
    segment = await segment_of(api, soup[0])
    found = await get(api, f"/segments/{segment}/heat")
    assert [one["what"] for one in found["points"]] == [
        *("page", "page", "page", "visit", "promotion", "now"),
    ]
    assert [one["of"] for one in found["points"]] == [*soup, asked, "", ""]
    heats = [one["heat"] for one in found["points"]]
    assert heats[:4] == sorted(heats[:4])
    assert heats[3] == heats[4] == pytest.approx(5.0, abs=0.1)
    assert heats[5] == pytest.approx(heats[4] / 2.718, rel=0.02)
    hottest = (await get(api, "/tiers"))["mid_term"]["items"][0]
    assert (hottest["id"], hottest["heat"]) == (segment, heats[5])
    assert (found["live"], found["fade_hours"], found["promotion"], found["whole"]) == (True, 24.0, 4.0, True)
    assert "soup" in found["words"]


async def test_a_policy_says_where_each_value_comes_from(api: Api) -> None:
    """Hearth's own, the installation's and the tenant's, for the key's tenant alone."""
    found = await get(api, "/policy")
    values = {one["name"]: (one["value"], one["source"]) for one in found["items"]}
    assert found["tenant"] == "acme"
    assert values["short_term.pages"] == (3, "hearth.life")
    assert values["limits.segments"] == (40, "tenant")
    assert values["limits.days"] == (None, "Hearth")
    assert values["facts"] == ("rules", "Hearth")
    other = await get(api, "/policy", key="rival")
    values = {one["name"]: (one["value"], one["source"]) for one in other["items"]}
    assert values["limits.segments"] == (2000, "Hearth")
    await get(api, "/policy", key="reader")


def test_an_embedder_is_named_without_being_loaded(embedder: UseEmbedder) -> None:
    """By its own name, which the cosines of its pages go by."""
    assert embedder_name(HearthSettings()) == embedder.name
    assert set(EMBEDDERS.values()) <= COSINES.keys()
