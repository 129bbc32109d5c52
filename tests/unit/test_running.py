"""A session's running summary: what stands in it, and when a block has some of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hearth.memory.recall.eligible import Gate, Present
from hearth.memory.recall.policy import RecallPolicy
from hearth.memory.recall.running import context
from hearth.memory.tiers.overflow import BYTES_PER_TOKEN
from hearth.memory.tiers.running import lines_from, summed_up
from hearth.memory.types import Outdated, Page, Query, Scope, ShortTermView, SummaryLine
from tests.events import START

SCOPE = Scope(tenant="acme", user="alice", session="s1")


def page(text: str, id: str = "p", **fields: object) -> Page:
    given = {"scope": SCOPE, "generation": 1, "reply_text": "ok", "occurred_at": START} | fields
    return Page(id=id, user_text=text, **given)  # type: ignore[arg-type]


def line(text: str, n: int = 0, **fields: object) -> SummaryLine:
    return SummaryLine(page=f"p{n}", at=START + timedelta(minutes=n), text=text, **fields)  # type: ignore[arg-type]


def test_a_page_gives_what_its_user_states_and_holds() -> None:
    """No question, no bare yes, nothing that has ended or was forgotten; what ends later says when."""
    mark = Outdated(role="user", quote="I work at Acme.", fact="f", until=START + timedelta(days=2))
    said = page("I work at Acme. Who are you? Yes. I live in Bern.", outdated=(mark,))
    now = lines_from(said, START, important=True)
    assert [one.text for one in now] == ["I work at Acme.", "I live in Bern."]
    assert [one.outdated for one in now] == [(mark,), ()]
    later = lines_from(said, START + timedelta(days=3), important=True)
    assert [one.text for one in later][-1] == "I live in Bern."
    assert "Acme" not in str(later)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(min_size=1, max_size=90), st.booleans()), max_size=25), st.integers(0, 90))
def test_a_summary_is_bounded_in_order_and_the_same_when_made_again(
    said: list[tuple[str, bool]], tokens: int
) -> None:
    """Whatever was said, in whatever order it comes."""
    lines = [line(text, n, important=important) for n, (text, important) in enumerate(said)]
    made = summed_up(lines, tokens)
    assert sum(len(one.text.encode()) // BYTES_PER_TOKEN for one in made) <= tokens
    assert list(made) == sorted(made, key=lambda one: one.at)
    assert sorted(one.rank for one in made) == list(range(len(made)))
    assert summed_up(made, tokens) == made or len(made) < len(lines)
    assert summed_up(lines[::-1], tokens) == made


def test_facts_come_first_and_what_says_the_same_last() -> None:
    """Twenty lines about a list are not worth more than one about the user."""
    lines = [line(f"The list of luggage has entry x{n}.", n) for n in range(20)]
    lines += [line("My daughter is called Ida.", 20), line("Fine, noted.", 21, important=True)]
    ranked = sorted(summed_up(lines, 10_000), key=lambda one: one.rank)
    assert ranked[0].text == "Fine, noted."
    assert "My daughter is called Ida." in [one.text for one in ranked[:3]]


def shown(
    text: str, *, present: tuple[str, ...] = (), ids: tuple[str, ...] = (), recalled: str = ""
) -> list[str]:
    summary = (line("I fly to Oslo in June.", 0, rank=1), line("My dog is called Bilbo.", 1))
    query = Query(text=text, at=START + timedelta(days=1), present=present, present_ids=frozenset(ids))
    others = [page("So it is.", id="other", scope=Scope(tenant="acme", user="alice", session=recalled))]
    gate = Gate(query, SCOPE, 1)
    view = ShortTermView(summary=summary)
    pieces = context(view, others, query, SCOPE, 1, gate, Present(present), RecallPolicy())
    return [piece.text for piece in pieces]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("And what about it?", 2),
        ("Why?", 2),
        ("Thanks!", 0),
        ("Fix this function: f(x)", 0),
        ("Which countries border the Black Sea in the east of Europe?", 0),
    ],
)
def test_a_follow_up_has_the_summary_and_another_request_has_not(text: str, count: int) -> None:
    """By the words of the question alone."""
    assert len(shown(text)) == count


def test_what_was_recalled_of_the_same_session_ties_the_question_to_it() -> None:
    """Of another one it does not; what matters most comes first."""
    question = "Which countries border the Black Sea in the east of Europe?"
    assert shown(question, recalled="s1") == ["My dog is called Bilbo.", "I fly to Oslo in June."]
    assert shown(question, recalled="s2") == []


def test_nothing_that_the_request_has_is_told_again() -> None:
    """By its words, or by its exchange."""
    assert shown("And it?", present=("Well, I fly to Oslo in June. Ok?",)) == ["My dog is called Bilbo."]
    assert shown("And it?", ids=("p1",)) == ["I fly to Oslo in June."]
    assert shown("And it?", ids=("p0", "p1")) == []
