"""What someone sees who has just begun: their few facts are found, and what they only asked stays out."""

from __future__ import annotations

import pytest

from hearth.testing.provider import ScriptedProvider
from tests.acceptance.conftest import GatewayProcess
from tests.acceptance.talk import BLOCK, ask, sent_text

FACTS = (
    "I am allergic to kiwi.",
    "I moved to Lisbon in March and work as a nurse.",
    "By the way, my dog is called Zebedee.",
    "I run ten kilometres every morning before work.",
)
UNANSWERED = (
    ("What is my favourite film?", "I'm sorry, I don't have any information about your favourite film."),
    ("When is my birthday?", "You haven't told me your birthday yet. If you share it, I'll remember it!"),
    ("What's my sister's name?", "I don't know your sister's name."),
    ("Wie heißt meine Schwester?", "Das weiß ich leider nicht."),
    ("What did I eat yesterday?", "I don't know."),
)


def converse(gateway: GatewayProcess, provider: ScriptedProvider, user: str, *turns: tuple[str, str]) -> None:
    """Hold one conversation for each (text, reply), and wait until they are recallable."""
    for said, reply in turns:
        provider.reply(text=reply)
        assert ask(gateway, user, said).status == 200
    gateway.drain()


def prompt(gateway: GatewayProcess, provider: ScriptedProvider, user: str, question: str) -> str:
    """All that the provider is sent for this question in a new conversation."""
    provider.reply(text="I don't know.")
    assert ask(gateway, user, question).status == 200
    return sent_text(provider.last.body)


def test_questions_that_were_left_unanswered_are_not_recalled(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """Neither alone, nor beside what does answer, nor for the same question asked again."""
    converse(gateway, provider, user, *UNANSWERED)
    for question in ("Where do I live?", "What should I cook tonight?", UNANSWERED[0][0]):
        assert BLOCK not in prompt(gateway, provider, user, question)
    converse(gateway, provider, user, (FACTS[2], "What a fine name!"))
    sent = prompt(gateway, provider, user, "What is the name of my dog?")
    assert "Zebedee" in sent
    assert not [asked for asked, _ in UNANSWERED if asked in sent]


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("What should I cook tonight?", FACTS[0]),
        ("Where do I live?", FACTS[1]),
        ("Was soll ich heute kochen?", FACTS[0]),
    ],
)
def test_an_indirect_question_reaches_a_new_users_fact(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str, question: str, fact: str
) -> None:
    """Without a word in common, as the only thing ever said and among others."""
    converse(gateway, provider, user, (fact, "Thanks for telling me."))
    answer = fact.partition(" and ")[0].rstrip(".")  # a fact that was read of it may stand for all of it
    assert answer in prompt(gateway, provider, user, question)
    converse(gateway, provider, user, *((other, "Noted.") for other in FACTS if other != fact))
    assert answer in prompt(gateway, provider, user, question)


@pytest.mark.parametrize(
    ("question", "was", "became", "now"),
    [
        ("Where do I work?", "I work at Acme.", "I left Acme, I'm at Borealis now.", "Borealis"),
        ("Where do I live?", "I live in Bern.", "I moved to Chur last week.", "Chur"),
    ],
    ids=["work", "home"],
)
def test_case_16_a_fact_never_stands_without_what_replaced_it(
    gateway: GatewayProcess,
    provider: ScriptedProvider,
    user: str,
    question: str,
    was: str,
    became: str,
    now: str,
) -> None:
    """case_16: what holds is sent, and not what it replaced; after a wrong answer it is sent again."""
    converse(gateway, provider, user, (was, "Noted."), (became, "Thanks for telling me."))
    sent = prompt(gateway, provider, user, question)
    assert now in sent
    assert f"user: {was}" not in sent
    converse(gateway, provider, user, (question, f"You told me: {was}"))
    assert now in prompt(gateway, provider, user, question)


def test_case_15_an_unrelated_request_of_a_new_user_gets_no_block(
    gateway: GatewayProcess, provider: ScriptedProvider, user: str
) -> None:
    """However personal what was said is, a haiku, a sum and a traceback need none of it."""
    converse(gateway, provider, user, *((fact, "Noted.") for fact in FACTS), *UNANSWERED)
    for request in (
        "Write a haiku about rivers",
        "What is 17*23?",
        "Fix this Python traceback: KeyError: 'name' in line 12 of main.py",
    ):
        assert BLOCK not in prompt(gateway, provider, user, request)
