"""Pages that hold a question and no answer are told from all that say something."""

from datetime import UTC, datetime

import pytest

from hearth.memory.recall.unanswered import says_nothing
from hearth.memory.types import Memory, Page, Scope

NOW = datetime(2024, 6, 1, tzinfo=UTC)
SCOPE = Scope(tenant="t", user="u")


def page(asked, reply):
    return Page(id="p", scope=SCOPE, generation=1, user_text=asked, reply_text=reply, occurred_at=NOW)


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("Where do I live?", "I don't know where you live."),
        ("Hi! what's my address? Thanks", "Sorry, you haven't told me your address yet. What is it?"),
        ("When is my birthday?", "I don't have access to personal information unless you share it with me."),
        ("What is my blood type?", ""),
        ("Wie heißt meine Schwester?", "Das hast du mir leider noch nicht gesagt."),
        ("¿Dónde vivo?", "Lo siento, no tengo esa información."),
        ("Où est-ce que j'habite ?", "Je ne sais pas."),
        ("Как меня зовут?", "Я не знаю, как вас зовут."),
        ("我住在哪里？", "抱歉，我不知道您住在哪里。"),
        ("私の誕生日はいつ？", "申し訳ありませんが、わかりません。"),
    ],
)
def test_a_question_without_an_answer_says_nothing(asked, reply):
    """In many languages, greetings around it or not, with an empty reply too."""
    assert says_nothing(page(asked, reply))


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        ("What is the tallest mountain in Austria?", "The Großglockner."),
        ("Where do I live?", "You live in Lisbon."),
        ("What's my dog's name?", "I remember you told me that your dog's name is Rex!"),
        ("Does my plan cover teeth?", "No, your plan does not cover teeth."),
        ("How old am I?", "42."),
        ("What should we see in Porto?", "I don't know your taste, but the Livraria Lello is lovely."),
        ("谁写了《红楼梦》？", "曹雪芹。"),
    ],
)
def test_a_question_with_an_answer_says_something(asked, reply):
    """One new word is an answer, and so is a yes or no."""
    assert not says_nothing(page(asked, reply))


@pytest.mark.parametrize(
    "said",
    [
        "I live in Oslo.",
        "I am allergic to kiwi, what should I eat?",
        "Ich wohne in Bern. Wo kann ich baden?",
        "When I was six I lived in Oslo.",
        "Is the flight that I booked for 3 May delayed?",
        "我叫李雷，你是谁？",
    ],
)
def test_whoever_says_something_beside_the_question_is_heard(said):
    """A clause that is no question, or a number, is kept whatever the reply was."""
    assert not says_nothing(page(said, "I don't know."))


def test_a_memory_always_says_something():
    """It was written down on purpose, even as a question."""
    text = "Where do I live?"
    assert not says_nothing(
        Memory(id="m", scope=SCOPE, generation=1, text=text, occurred_at=NOW, created_at=NOW, updated_at=NOW)
    )
