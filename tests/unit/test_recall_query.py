"""What recall searches for: the new text, with the turn before where it needs it, cut where it is long."""

from datetime import UTC, datetime

import pytest

from hearth.memory.recall.cues import asks, concerns_self, is_small_talk
from hearth.memory.recall.dates import local_day
from hearth.memory.recall.policy import PRESETS, RecallPolicy
from hearth.memory.recall.query import (
    about_the_past,
    asking_part,
    lexical_text,
    search_request,
    search_text,
    shorten,
)
from hearth.memory.types import Query

NOW = datetime(2024, 6, 1, 23, 30, tzinfo=UTC)
POLICY = RecallPolicy()


def query(text, **fields):
    return Query(text=text, at=NOW, **fields)


def test_a_question_that_stands_alone_is_searched_alone():
    """The turn before would only dilute it."""
    assert search_text(query("Where do I live in winter?", before="My cat is ill."), POLICY) == (
        "Where do I live in winter?"
    )


@pytest.mark.parametrize(
    "text",
    [
        "And Bern?",
        "why",
        "What about the other flat?",
        "How much does it cost?",
        "Und wie heißt er?",
        "¿Y ella?",
        "那个呢",
    ],
)
def test_a_short_or_referring_question_is_read_with_the_turn_before(text):
    """Both are embedded and both are looked up."""
    asked = query(text, before="We looked at a flat in Basel.")
    assert search_text(asked, POLICY) == f"We looked at a flat in Basel.\n{text}"
    assert lexical_text(asked, POLICY) == f"We looked at a flat in Basel.\n{text}"


def test_of_a_long_paste_head_and_tail_are_searched():
    """The question stands at one of the two; more of the middle is looked up than embedded."""
    text = f"Review this please: {'lorem ipsum ' * 2000} Does it match my style guide?"
    dense, words = search_text(query(text), POLICY), lexical_text(query(text), POLICY)
    assert len(dense) <= POLICY.embed_characters + 1 < len(words) <= POLICY.lexical_characters + 1
    assert dense.startswith("Review this please")
    assert dense.endswith("Does it match my style guide?")


def test_case_23_a_cut_splits_no_character():
    """Ten thousand emoji are cut between two of them."""
    assert set(shorten("🍸" * 10_000, 600)) == {"🍸", "\n"}


def test_the_request_names_owners_and_kinds():
    """What the store needs of a query."""
    request = search_request(
        query("Where?", kinds=frozenset({"fact", "page"})), owners=("t/u",), deadline=0.1
    )
    assert (request.owners, request.where.types, request.deadline) == (("t/u",), ("fact", "page"), 0.1)


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "Hello!!",
        "thanks a lot",
        "ok 👍",
        "Danke!",
        "¿Qué tal?",
        "你好",
        "ありがとうございます",
        "...",
        "🙂",
    ],
)
def test_small_talk_is_told(text):
    """Greetings, thanks and signs alone ask nothing of memory."""
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text", ["hi, where do I live?", "yes but why", "Hello World in Rust", "thanks to whom?"]
)
def test_what_only_begins_like_small_talk_is_a_question(text):
    """A greeting before a question takes nothing from it."""
    assert not is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where do I live?",
        "Wie heißt meine Katze?",
        "¿Dónde vivo?",
        "我住在哪里",
        "Где я живу?",
        "ลูกสุนัขของเราชื่ออะไร",
        "मेरी बेटी कहाँ पढ़ती है",
        "على أي آلة تعزف ابنتي؟",
        "Waar woon ik?",
        "Gdzie jest moja książka?",
        "Benim kedimin adı ne?",
        "¿Dónde aprendo carpintería?",
        "Quando viajo para Lisboa?",
        "Dove lavoro?",
        "Когда выкатываем биллинг на прод?",
        "Gdzie pracujemy w środę? Kiedy zaczynam urlop?",
        "Perşembe günü nereye gidiyorum?",
        "ทีมเราใช้โปรแกรมออกแบบอะไร",
        "What did Rajesh Verma teach me?",
        "Who gave me the blue vase?",
    ],
)
def test_a_question_about_oneself_is_told_in_many_languages(text):
    """A signal of the relevance model, and what gives a new user the nearest facts."""
    assert asks(text)
    assert concerns_self(text)


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of Australia?",
        "How do I boil an egg?",
        "Tell me a joke",
        "Can you help me write a letter?",
        "Why does my code raise IndexError?",
        "Please correct my sentence: She go to school.",
        "Wie kann ich in Git einen Commit zurücknehmen?",
        "¿Cómo puedo ordenar una lista?",
        "Comment puis-je trier un tableau ?",
        "我怎么学习编程？",
        "What did Ben build with his mam?",
        "What is quantum entanglement?",
        "¿Dónde nació Cervantes y cuándo vino Colón?",
        "Dove vanno le rondini in inverno?",
        "Когда отменили крепостное право?",
        "ما هي عاصمة أستراليا؟",
        "เมืองหลวงของออสเตรเลียคืออะไร",
        "ऑस्ट्रेलिया की राजधानी क्या है?",
    ],
)
def test_how_a_thing_is_done_is_no_question_about_oneself(text):
    """Neither a how-to in the first person nor work on code and prose asks for what is remembered."""
    assert not concerns_self(text)


@pytest.mark.parametrize(
    "text",
    [
        "Where did I work before?",
        "Where did I use to live? I used to live somewhere else",
        "Wo habe ich früher gewohnt?",
        "What did I do in 2021?",
        "我以前住在哪里？",
    ],
)
def test_questions_about_the_past_are_told(text):
    """Then what has been superseded belongs in the answer."""
    assert about_the_past(query(text))


@pytest.mark.parametrize("text", ["Where do I work?", "What are my plans for 2025?", "Wo wohne ich?"])
def test_questions_about_now_are_not_about_the_past(text):
    """Then it doesn't."""
    assert not about_the_past(query(text))


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../etc/passwd", "a" * 300, "UTC\x00"])
def test_an_unknown_time_zone_is_utc(name):
    """Clients send what they like; recall goes on."""
    assert local_day(NOW, name).isoformat() == "2024-06-01"


def test_the_budget_is_the_smaller_of_its_own_and_a_tenth_of_the_window():
    """A small model gets a small block; an unknown window the default."""
    assert POLICY.tokens_for(8_000) == 800
    assert POLICY.tokens_for(200_000) == POLICY.tokens_for(None) == 1024
    assert PRESETS["small"].budget_tokens < PRESETS["balanced"].budget_tokens < PRESETS["large"].budget_tokens


@pytest.mark.parametrize(
    ("text", "asks_for"),
    [
        ("Where does José work? The report covers revenue and logistics.", "Where does José work?"),
        ("What should I cook? Mind my allergy.", "What should I cook? Mind my allergy."),
        ("I am writing a card for a birthday. Wo wohne ich?", "Wo wohne ich?"),
        ("我在写信。我住在哪里？", "我在写信。 我住在哪里？"),
        ("Where do I live? And who with?", "Where do I live? And who with?"),
        ("I moved. I am tired.", "I moved. I am tired."),
        ("One? Two? Three? Four? Five? Words.", "One? Two? Three? Four? Five? Words."),
        ("", ""),
    ],
)
def test_what_asks_in_a_text_is_embedded(text, asks_for):
    """What stands beside a question moves its vector away from the answer's; its words are looked up."""
    assert asking_part(text) == asks_for
    assert lexical_text(query(text or "x"), POLICY) == (text or "x")
