"""Requests to forget: read where a careful reader sees one, nowhere else, and stating nothing themselves."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.forgetting import MESSAGES, Message
from hearth.memory.extract.forgetting import forget_request
from hearth.memory.extract.rules import RuleExtractor
from hearth.memory.tiers.forgetting import meant, said_about, topic_stems
from hearth.memory.types import CandidateFact, Memory, Page, Scope
from tests.events import START

SCOPE = Scope(tenant="t", user="u")

LABELLED = msgspec.json.decode(MESSAGES.read_bytes(), type=list[Message])


def _page(user_text: str, reply_text: str = "") -> Page:
    return Page(
        id="p", scope=SCOPE, generation=1, user_text=user_text, reply_text=reply_text, occurred_at=START
    )


def _fact(**fields: str) -> Memory:
    given = {"text": "so it is", **fields}
    return Memory(scope=SCOPE, generation=1, occurred_at=START, created_at=START, updated_at=START, **given)


def test_the_labelled_messages_are_read_as_they_are_labelled() -> None:
    """Of at least sixty requests and sixty that are none, 97 % of what is read is right, and 90 % is read."""
    read = [(one, forget_request(one.text)) for one in LABELLED]
    found = [(one, request) for one, request in read if request is not None]
    right = [one for one, request in found if (request.kind, request.about) == (one.asks, one.about)]
    asked = [one for one in LABELLED if one.asks]
    assert min(len(asked), len(LABELLED) - len(asked)) >= 60
    assert len(right) >= 0.97 * len(found)
    assert len(right) >= 0.9 * len(asked)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("Forget that I live in Bern.", True),
        ("Forget that I live in Bern. I live in Chur.", False),
        ("Forget that I live in Bern.\n```\ncode\n```", False),
    ],
)
def test_a_request_knows_where_it_stands_and_whether_it_is_all(text: str, alone: bool) -> None:
    """Its place is the sentence's in the text as it was written; quoted or pasted text counts as more."""
    request = forget_request(text)
    assert request is not None
    assert (text[request.start : request.end], request.alone) == ("Forget that I live in Bern", alone)


def test_the_request_states_nothing_and_the_rest_of_the_message_does() -> None:
    """`Forget that I live in Bern` is no statement of a residence."""
    said = _page("Forget that I live in Bern. I live in Chur.")
    assert [fact.value for fact in RuleExtractor().extract(said)] == ["Chur"]


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """Whatever is written, reading it raises nothing and gives a place inside the text."""
    request = forget_request(f"Forget that I {text}")
    assert request is None or 0 <= request.start < request.end <= len(text) + 14


def test_a_statement_means_the_fact_that_says_the_same_and_no_other() -> None:
    """Subject and attribute agree, and one value holds the other; another value of the same is not meant."""
    bern = _fact(id="1" * 32, subject="user", attribute="residence", value="the city of Bern")
    oslo = _fact(id="2" * 32, subject="user", attribute="residence", value="Oslo")
    ana = _fact(id="3" * 32, subject="Ana", attribute="residence", value="Bern")
    said = [CandidateFact(statement="I live in Bern.", quote="q", attribute="residence", value="Bern")]
    stems = topic_stems("I live in Bern")
    assert meant("statement", said, stems, [bern, oslo, ana]) == [bern]


def test_a_topic_means_its_attributes_only_where_it_is_the_users_own() -> None:
    """`my job` means employer and occupation; `Ana's job` only what names both."""
    acme = _fact(id="1" * 32, text="I work at Acme.", subject="user", attribute="employer", value="Acme")
    ana = _fact(id="2" * 32, text="Ana lost her job.", subject="Ana", attribute="employer", value="")
    assert meant("topic", (), topic_stems("my job"), [acme, ana]) == [acme, ana]
    assert meant("topic", (), topic_stems("Ana's job"), [acme, ana]) == [ana]


def test_of_a_page_the_sentences_with_all_words_are_meant() -> None:
    """A reply's sentence only beside one of the user's; a topic without words means nothing."""
    said = _page("My divorce is hard. I like tea.", "A divorce takes time. Tea helps.")
    marks = said_about(said, topic_stems("my divorce"), request="r")
    assert [(mark.role, mark.quote) for mark in marks] == [
        *(("user", "My divorce is hard."), ("assistant", "A divorce takes time.")),
    ]
    assert not said_about(
        msgspec.structs.replace(said, user_text="Tea."), topic_stems("divorce"), request="r"
    )
    assert not said_about(said, topic_stems("it"), request="r")
