"""A model's raw answer, in every form in which models send what was asked of them, and in others."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hearth.memory.errors import BadAnswer
from hearth.memory.extract.answer import Claim, claims
from hearth.memory.extract.grounding import Grounded, Shown, grounded, shown
from hearth.memory.extract.question import INSTRUCTION, question
from hearth.memory.types import Page, Scope

FENCE = "```"


def page(text: str, *, id: str = "p1", at: datetime | None = None, zone: str = "UTC") -> Page:
    moment = at or datetime(2026, 3, 1, 12, tzinfo=UTC)
    scope = Scope(tenant="acme", user="alice")
    return Page(
        id=id, scope=scope, generation=1, user_text=text, reply_text="", occurred_at=moment, timezone=zone
    )


def told(text: str, claim: Claim, *, before: str = "") -> Grounded | str:
    return grounded(claim, [shown(page(text), before)])


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        pytest.param(f'{FENCE}json\n{{"facts":["x","y"]}}\n{FENCE}\nThat is all.', ["x", "y"], id="a"),
        pytest.param('Here it is [as asked]: {"facts":["x"]} Hope {it} helps.', ["x"], id="b"),
        pytest.param('<think>\n{"facts":["no"]}\n</think>\n{"facts":["yes"]}', ["yes"], id="c"),
        pytest.param('{"facts":["no"]}</think>{"facts":["yes"]}', ["yes"], id="c half"),
        pytest.param(f'{{"facts":["run {FENCE}ls{FENCE} daily"]}}', [f"run {FENCE}ls{FENCE} daily"], id="e"),
        pytest.param('{"facts":"a"}', ["a"], id="f"),
        pytest.param('{"facts":[{"fact":"a"},null,3]}', ["a"], id="g"),
        pytest.param(f"Nothing to store.\n{FENCE}json\n[]\n{FENCE}", [], id="j"),
        pytest.param('See [1]. {"facts": null}', [], id="null"),
    ],
)
def test_case_40_what_is_meant_is_read(answer: str, facts: list[str]) -> None:
    """Fenced, amid prose, after reasoning, in a looser form: as it was meant; an empty list is no failure."""
    assert [claim.statement for claim in claims(answer)] == facts


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(f"{FENCE}json\n{FENCE}", id="d"),
        pytest.param('{"facts":["a","b', id="h"),
        pytest.param('{"facts":[{"fact":"a"},{"fact":"b', id="h amid an entry"),
        pytest.param("I can't help with that.", id="i"),
        pytest.param("", id="nothing"),
        pytest.param("[" * 50_000, id="too deep"),
        pytest.param('{"facts": 7}', id="a number"),
        pytest.param('{"facts": ["' + "x" * 100_000 + '"]}', id="too long"),
    ],
)
def test_case_40_what_is_no_answer_is_a_failure(answer: str) -> None:
    """It gives nothing, and says so, that it can be asked for again."""
    with pytest.raises(BadAnswer):
        claims(answer)


@given(st.text(alphabet='{}[]",:ftx1 \n`<>', max_size=60))
def test_no_text_breaks_the_reading(text: str) -> None:
    """It is read or refused, whatever it is."""
    with suppress(BadAnswer):
        assert all(claim.statement for claim in claims(text))


def test_case_23_an_escaped_pair_is_one_sign_and_a_lone_half_none() -> None:
    """As everywhere in memory."""
    whole, half = claims('{"facts": ["I like \\ud83c\\udf78", "I like \\ud83c"]}')
    assert whole.statement == "I like \U0001f378"
    assert half.statement == "I like \ufffd"


def test_fields_that_can_t_be_are_left_out() -> None:
    """An attribute that is none of Hearth's, an act, a day or a number that is none."""
    entry = {
        "statement": "I play chess.",
        "attribute": "mood",
        "value": "chess",
        "act": "shouts",
        "happens_at": "tomorrow",
        "valid_from": "2025-05",
        "importance": 7,
        "page": "first",
    }
    (claim,) = claims(json.dumps({"facts": [entry]}))
    assert (claim.attribute, claim.value, claim.act, claim.page) == ("", "", "asserts", 0)
    assert (claim.happens_at, claim.valid_from, claim.importance) == (None, date(2025, 5, 1), 1.0)


def test_a_quote_is_found_whatever_its_case_and_blanks_and_kept_as_it_was_said() -> None:
    """The evidence is the user's text, character by character."""
    claim = Claim(statement="I live in Bern.", quote='"i LIVE in bern…"', attribute="residence", value="Bern")
    held = told("Well, I live\n in Bern now.", claim)
    assert isinstance(held, Grounded)
    assert held.said.quote == "I live\n in Bern"


@pytest.mark.parametrize(
    ("text", "quote", "reason"),
    [
        ("How do I reverse a list?", "I live in Bern", "not said"),
        ("How do I reverse a list?", "How do I reverse a list", "a question"),
        ("Do I live in Bern?", "I live in Bern", "a question"),
        ('My friend wrote: "I live in Bern". Is that nice?', "I live in Bern", "not the user's own"),
        (f"{FENCE}\nI live in Bern\n{FENCE}\nWhat does it print?", "I live in Bern", "not the user's own"),
        ("Bernard is my dog.", "Bern", "not said"),
        ("Good morning to you.", "Good morning", "not in the quote"),
    ],
)
def test_case_11_a_claim_that_the_user_s_words_do_not_bear_is_refused(
    text: str, quote: str, reason: str
) -> None:
    """What somebody else said, a question, quoted or pasted text, a part of a word, words of other things."""
    claim = Claim(statement="User lives in Bern.", quote=quote, attribute="residence", value="Bern")
    assert told(text, claim) == reason


def test_case_11_a_confirmation_rests_on_what_was_said_before_it() -> None:
    """The words are the user's; what they confirm stood in the assistant's."""
    claim = Claim(
        statement="I live in Bern.", quote="Yes, that is right", attribute="residence", value="Bern"
    )
    held = told("Yes, that is right.", claim, before="You live in Bern, don't you?")
    assert isinstance(held, Grounded)
    assert told("Yes, that is right.", claim) == "not in the quote"


def test_case_50_a_secret_is_in_no_claim() -> None:
    """Neither one that the model has spelled out, nor the mark of one."""
    text = "My key is [secret:api-key] and I use Postgres"
    spelled = Claim(statement="My key is sk-test-FAKE0123456789abcdef.", quote="I use Postgres")
    assert told(text, spelled) == "secret"
    assert told(text, Claim(statement="My key is [secret:api-key].", quote="My key is")) == "secret"
    assert isinstance(told(text, Claim(statement="I use Postgres.", quote="I use Postgres")), Grounded)


def test_case_49_days_are_counted_from_the_user_s_own_day_and_stand_in_the_text() -> None:
    """The model is told that day, and a statement that lacks the date gets it."""
    exam = page("My exam is tomorrow.", at=datetime(2025, 12, 31, 15, 30, tzinfo=UTC), zone="Asia/Tokyo")
    (asked,) = json.loads(question([shown(exam)]))
    assert asked["day"] == "2026-01-01 (Thursday)"
    claim = Claim(statement="My exam is tomorrow", quote="My exam is tomorrow", happens_at=date(2026, 1, 2))
    held = grounded(claim, [shown(exam)])
    assert isinstance(held, Grounded)
    assert held.said.statement == "My exam is tomorrow (2026-01-02)."
    assert held.said.happens_at == datetime(2026, 1, 1, 15, tzinfo=UTC)


def test_the_model_sees_the_user_s_own_words_alone() -> None:
    """What is pasted or quoted is left out, and what it can't be told apart from stays out of evidence."""
    (asked,) = json.loads(question([shown(page('I like "The quick brown fox jumps over it", a lot.'))]))
    assert "fox" not in asked["said"]
    assert "[…]" in asked["said"]
    assert "before" not in asked
    assert "favourite colour" in INSTRUCTION


def test_a_quote_of_another_message_names_that_one() -> None:
    """Of several the number is only a hint."""
    pages: list[Shown] = [shown(page("I live in Bern.")), shown(page("I play the oboe.", id="p2"))]
    held = grounded(Claim(statement="I play the oboe.", quote="I play the oboe", page=1), pages)
    assert isinstance(held, Grounded)
    assert held.shown.page.id == "p2"


def test_a_script_without_spaces_is_read_too() -> None:
    """Words of Japanese can't be told apart by blanks."""
    claim = Claim(
        statement="私は東京に住んでいます", quote="東京に住んでいます", attribute="residence", value="東京"
    )
    held = told("私は東京に住んでいます。", claim)
    assert isinstance(held, Grounded)
    assert held.said.statement.endswith("。")
