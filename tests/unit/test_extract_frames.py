"""What a message's form tells of whose words its parts are: rather nothing is read than another's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.memory.extract.frames import own_parts
from tests.said import facts

STATED = [
    "I live in Bern and I have two cats.",
    "my name is Ines and I'm allergic to nuts",
    "Ich wohne in Kiel und habe zwei Katzen.",
    "J'habite à Metz et je suis infirmière.",
    "Vivo en Lugo y tengo dos perros.",
    "Abito a Pisa e ho un cane.",
    "Mieszkam w Łodzi i jestem weganką.",
    "Я живу в Казани, работаю учителем.",
    "我住在杭州,有一只猫。",
    "私は京都に住んでいます。",
]


@pytest.mark.parametrize("text", STATED)
def test_each_of_them_is_read_alone(text: str) -> None:
    """Else the tests below would say nothing."""
    assert facts(text)


quick = settings(max_examples=60)
_WORDS = st.lists(
    st.text(alphabet="bcdfghjklmnpqrstvwxzäöüßéñłżбвгд字文短", min_size=2, max_size=7), min_size=1, max_size=6
).map(" ".join)


@quick
@given(_WORDS, st.sampled_from([": ", "：", ":\n", ":\n\n", " -> ", " → "]), st.sampled_from(STATED))
def test_what_stands_behind_an_orders_colon_states_nothing(order: str, sign: str, text: str) -> None:
    """Whatever words the order has, in whatever language, and whatever follows the text."""
    assert facts(f"{order}{sign}{text}") == []
    assert facts(f"{order}{sign}{text} {STATED[0]}") == []


@quick
@given(_WORDS, st.sampled_from(STATED))
def test_lines_under_one_that_says_nothing_of_the_user_state_nothing(line: str, text: str) -> None:
    """The first line is what the others are there for; so is a short last one."""
    assert facts(f"{line}\n{text}") == []
    assert facts(f"{line}\n\n{text}\n{text}") == []
    assert facts(f"{text}\n\n{' '.join(line.split()[:3])}?") == []


@pytest.mark.parametrize(
    "opening",
    [
        "We finally did it",
        "It's official",
        "Es ist so weit",
        "Por fin lo hicimos",
        "Ça y est ",
        "È deciso",
        "I'm back home",
    ],
)
def test_what_is_announced_as_done_is_ones_own(opening: str) -> None:
    """Where nothing is named that could be a text."""
    assert {fact.value for fact in facts(f"{opening}: I moved to Bern.")} == {"Bern"}
    assert facts(f"{opening} for the poster: I moved to Bern.") == []


@pytest.mark.parametrize(
    "opening", ["fyi", "About me", "Quick question", "Update", "Kurz zu mir", "remember"]
)
def test_what_is_introduced_as_ones_own_is_read(opening: str) -> None:
    """By a word that says so."""
    assert {fact.value for fact in facts(f"{opening}: I live in Bern.")} & {"Bern", ""}


@pytest.mark.parametrize(
    "opening", ["By the way", "Just so you know", "For the record", "As it happens", "Good news"]
)
def test_what_is_said_in_passing_is_ones_own(opening: str) -> None:
    """However many words say that it is; an order behind them has its text as ever."""
    assert [fact.value for fact in facts(f"{opening}, I live in Bern.")] == ["Bern"]
    assert facts(f"{opening}, rewrite this: I live in Bern.") == []


@pytest.mark.parametrize(
    "text",
    [
        "*draws a sword* I live in Bern.",
        "_limps in, soaked_ I live in Bern.",
        "[Scene: a roof, night] I live in Bern.",
        "(ooc: start) I live in Bern.",
        "Hi [manager], I live in Bern and have two cats.",
        "I live in Bern and work for {company}.",
        "I live in Bern! #newbeginnings",
        "My wife (34F) and I live in Bern. I'm a nurse.",
        "you're the waiter and I'm a guest. I live in Bern.",
        "Du bist der Arzt, ich die Patientin. Ich wohne in Bern.",
        "Ты моя бабушка, я твой внук. Я живу в Казани.",
        "你演护士,我演病人。我住在上海。",
        "My landlord just texted. I live in Bern now.",
        "Make a headline of this. I live in Bern and I'm a nurse.",
        "from the group chat - I live in Bern",
        "Tighten. I live in Bern and I'm a nurse.",
        "auf Französisch bitte. Ich wohne in Bern.",
        "Haiku version pls, I live in Bern",
        "You're Ada and I'm late. I live in Bern.",
        "/me sits down. I live in Bern.",
        "假装我是皇帝,我住在上海。",
    ],
)
def test_play_posts_templates_and_reports_state_nothing(text: str) -> None:
    """Told by their form."""
    assert facts(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I live in Bern :) what's on?",
        "At 10:30 I call home. I live in Bern.",
        "Hi! I live in Bern.",
        "I have two allergies: nuts and latex. I live in Bern.",
        "I live in Bern.\nI have two cats.\nWhere can we swim?",
        "I live in Bern - any tips?",
        "I live in **Bern** now. I live in Bern.",
        "Good morning! I live in Bern.",
        "My sister Ana is here. I live in Bern.",
        "What's on this weekend? I live in Bern.",
        "The job's in Thun, I live in Bern.",
        "Honestly, I live in Bern.",
        "I play the cello and I live in Bern.",
    ],
)
def test_ones_own_words_in_such_a_form_are_read(text: str) -> None:
    """A colon within what one says of oneself, a smile, lines that all state something."""
    assert "Bern" in {fact.value for fact in facts(text)}


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Ich wohne in Bern.", "I live in Bern."),
        ("Ich wohne in Wien.", "I live in Vienna."),
        ("I work as a nurse and i has two cats", "“I work as a nurse and I have two cats.”"),
        ("I live in Bern.", "*The guard steps aside.* Then come in."),
    ],
)
def test_a_reply_in_the_users_place_shows_a_text_or_play(text: str, reply: str) -> None:
    """Translated, rewritten, played on."""
    assert facts(text)
    assert facts(text, reply) == []


@pytest.mark.parametrize(
    "reply", ["Nice. I work at Acme.", "You live in Bern, so try the Aare.", "Bern? *Lovely*."]
)
def test_a_reply_of_its_own_takes_nothing_back(reply: str) -> None:
    """Whatever else it says of itself or of the user."""
    assert [fact.value for fact in facts("I live in Bern.", reply)] == ["Bern"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "my grandson Rafi is here, he's 12, mad about trains",
            {("my grandson Rafi", "age"), ("my grandson Rafi", "likes")},
        ),
        ("my sister Ana's cat is sick, she's allergic to fish", set()),
        ("la hermana de mi novio vive en Cádiz, le gusta el flamenco", set()),
        ("The new one started on monday. Allergic to nuts, vegetarian.", set()),
        ("Allergic to nuts, vegetarian.", {("user", "allergy"), ("user", "diet")}),
        ("I'm half Danish and can't cook", {("user", "nationality"), ("user", "skill")}),
        ("odio el cilantro, el aguacate ni fu ni fa", {("user", "dislikes")}),
        ("not married, not looking", {("user", "marital status")}),
        ("Trabajo como fontanero en Getxo", {("user", "occupation")}),
        ("Lavoro come cuoco in Albenga", {("user", "occupation")}),
        ("I miss my dog Tess, she died in March", set()),
        ("Ich spiele Cello und mein Freund Geige.", {("user", "plays")}),
        ("my boss Mr Okafor hates emojis", {("my boss Mr Okafor", "dislikes")}),
        ("allergic to bees and work with them", {("user", "allergy")}),
    ],
)
def test_what_may_be_said_of_somebody_else_is_not_the_users(text: str, read: set[tuple[str, str]]) -> None:
    """A clause that lacks its subject goes on with the one before; a possessor is not who is meant."""
    told = {(fact.subject, fact.attribute) for fact in facts(text)}
    assert told - {("user", "relative"), ("user", "sibling")} == read
    assert len(facts(text)) <= len(read) + 1


@quick
@given(st.text(max_size=200), st.sampled_from(["", ":", "\n", " - ", "*a b* ", "[a b]", "#abc "]))
def test_covering_keeps_every_place(text: str, sign: str) -> None:
    """It is as long as it was, or all is dropped."""
    whole = f"{text}{sign}{text}"
    assert len(own_parts(whole, whole)) in (0, len(whole))
