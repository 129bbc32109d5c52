"""Facts as a pure function of what was said: chains, ends, corrections, withdrawal, in any order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hearth.memory.events.kinds import MemoryAdded, MemoryChanged, MemoryForgotten, MemoryWithdrawn
from hearth.memory.extract.attributes import subject_key, value_key
from hearth.memory.tiers.facts import Told, changes, holds, is_late, put, retold, tell
from hearth.memory.types import CandidateFact, Page, Scope

DAY = timedelta(days=1)
START = datetime(2026, 5, 1, 9, tzinfo=UTC)


def page(day, previous=None):
    scope = Scope(tenant="t", user="u", session="s")
    at = START + day * DAY
    return Page(
        id=f"page{day}",
        scope=scope,
        generation=1,
        user_text="x",
        reply_text="",
        occurred_at=at,
        previous=previous,
    )


def said(value, attribute="employer", act="asserts", **more):
    statement = f"I work at {value}." if value else "I left my job."
    return CandidateFact(
        statement=statement, quote=statement[:-1], attribute=attribute, value=value, act=act, **more
    )


def told_on(day, candidate, **more):
    return Told(page(day, **more), candidate, one_id(day, candidate))


def after(*said):
    """The facts after those (day, candidate), read in that order, as the decider does it."""
    known, read = {}, []
    for one in (told_on(*pair) for pair in said):
        read.append(one)
        known = retold(known, read) if is_late(known, one) else tell(known, one)
    return known


def one_id(day, candidate):
    about = "" if candidate.attribute == "employer" else candidate.attribute
    return f"{day}:{about}{candidate.value}"


def current(facts, day=100):
    return sorted(fact.value for fact in facts.values() if holds(fact, START + day * DAY))


def test_what_is_liked_now_is_no_longer_disliked():
    """Of one thing only the later holds, back and forth and in any order of arrival; others stay."""
    sushi, soup = said("sushi", "likes"), said("soup", "likes")
    facts = after((1, sushi), (1, soup), (3, sushi), (2, said("sushi", "dislikes")))
    assert sorted(
        (fact.attribute, fact.value) for fact in facts.values() if holds(fact, START + 9 * DAY)
    ) == [
        ("likes", "soup"),
        ("likes", "sushi"),
    ]
    first, hated = facts["1:likessushi"], facts["2:dislikessushi"]
    assert (first.successor, hated.successor) == (hated.id, "3:likessushi")
    assert [
        fact.attribute for fact in facts.values() if fact.value == "sushi" and holds(fact, hated.occurred_at)
    ] == ["dislikes"]


def test_case_16_the_newer_of_a_single_value_closes_the_older():
    """Both stay; the older one has an end and points at its successor."""
    facts = after((1, said("Acme")), (2, said("Borealis")))
    acme, borealis = facts["1:Acme"], facts["2:Borealis"]
    assert current(facts) == ["Borealis"]
    assert (acme.valid_to, acme.successor, acme.ended_by) == (borealis.occurred_at, borealis.id, "page2")
    assert current(facts, day=1) == ["Acme"]


def test_values_of_an_attribute_with_many_stand_beside_each_other():
    """So does a second one of a single attribute that is said to be one more."""
    assert current(after((1, said("kiwi", "allergy")), (2, said("nuts", "allergy")))) == ["kiwi", "nuts"]
    assert current(after((1, said("Acme")), (2, said("Borealis", act="adds")))) == ["Acme", "Borealis"]


def test_the_same_said_again_is_one_fact_with_more_evidence():
    """Articles and case make no other value; the same page counts once."""
    facts = after((1, said("Acme", confidence=0.8)), (2, said("the acme", confidence=0.5)), (2, said("Acme")))
    (fact,) = facts.values()
    assert [one.id for one in fact.evidence] == ["page1", "page2"]
    assert fact.confidence == pytest.approx(0.9)


def test_an_end_closes_without_a_successor():
    """By its value, or whatever the value where none is named; what was never said needs no end."""
    for end in (said("Acme", act="ends"), said("", act="ends"), said("ACME", act="denies")):
        facts = after((1, said("Acme")), (2, end))
        assert current(facts) == []
        assert facts["1:Acme"].successor is None
    assert current(after((1, said("Acme")), (2, said("Borealis", act="ends")))) == ["Acme"]
    assert after((2, said("Acme", act="ends"))) == {}


def test_an_end_may_be_of_another_kind_where_it_has_the_very_name():
    """Who leaves Lyon may leave a town, a firm or somebody: what is known tells."""
    known = [(1, said("Lyon", "residence")), (1, said("Renault")), (1, said("Léa", "partner"))]
    assert current(after(*known, (5, said("Lyon", "partner", act="ends")))) == ["Léa", "Renault"]
    assert current(after(*known, (5, said("Lea", "employer", act="ends")))) == ["Lyon", "Renault"]
    assert current(after(*known, (5, said("Lyo", act="ends")))) == ["Lyon", "Léa", "Renault"]
    both = [(1, said("ETH")), (1, said("ETH", "school"))]
    assert current(after(*both, (5, said("ETH", "partner", act="ends")))) == ["ETH", "ETH"]


def test_of_what_is_counted_the_latest_number_holds():
    """Two dogs and then one are one; a cat beside them stays, and so does what is added."""
    two, one, cats = said("two dogs", "pet"), said("one dog", "pet"), said("two cats", "pet")
    assert current(after((1, two), (2, cats), (5, one))) == ["one dog", "two cats"]
    assert current(after((5, one), (1, two))) == ["one dog"]
    assert current(after((1, two), (5, said("zwei Hunde", "pet")))) == ["two dogs"]
    assert current(after((1, two), (5, said("a dog", "pet")))) == ["a dog", "two dogs"]
    assert current(after((1, two), (5, said("two dogs", "pet", act="adds")))) == ["two dogs"]


def test_who_retires_has_no_employer_any_more():
    """From the day on that is told."""
    day = START + 3 * DAY
    facts = after((1, said("Acme")), (5, said("retired", "occupation", valid_from=day)))
    assert current(facts) == ["retired"]
    assert facts["1:Acme"].valid_to == day


def test_an_end_and_a_beginning_in_one_message():
    """`I left my job. I'm at Borealis now`, in either order of its sentences."""
    end, begin = (2, said("", act="ends")), (2, said("Borealis"))
    for order in ((end, begin), (begin, end)):
        assert current(after((1, said("Acme")), *order)) == ["Borealis"]


def test_what_is_set_right_never_held():
    """The right one takes the wrong one's beginning and says whose word it is."""
    facts = after((1, said("Lisboa")), (2, said("Lisbon", act="corrects", wrong="Lisboa")))
    assert current(facts) == current(facts, day=1) == ["Lisbon"]
    assert facts["2:Lisbon"].source == "correction"
    assert facts["1:Lisboa"].successor == "2:Lisbon"


def test_a_correction_without_an_attribute_is_of_what_was_said_just_before():
    """`No, I said Umbrella`: the statement is the old one with the right value in it."""
    known = after((1, said("Boston")))
    right = CandidateFact(
        statement="No, I said Umbrella.", quote="I said Umbrella", value="Umbrella", act="corrects"
    )
    facts = tell(known, Told(page(2, previous="page1"), right, "new"))
    assert (facts["new"].attribute, facts["new"].text) == ("employer", "I work at Umbrella.")
    assert current(facts) == ["Umbrella"]
    assert tell(known, Told(page(2, previous="page0"), right, "new")) == known


def test_a_return_is_a_fact_of_its_own():
    """Acme, Borealis, Acme again: three, and the last one holds."""
    facts = after((1, said("Acme")), (2, said("Borealis")), (3, said("Acme")))
    assert len(facts) == 3
    assert [day for day in range(1, 5) if current(facts, day=day) == ["Acme"]] == [1, 3, 4]


def test_what_one_said_of_another_is_the_others():
    """Subjects have chains of their own."""
    facts = after((1, said("Acme")), (2, said("Borealis", subject="my sister")))
    assert current(facts) == ["Acme", "Borealis"]


ATTRIBUTES = st.sampled_from(["employer", "residence", "allergy"])
SAID = st.tuples(
    st.integers(1, 8),
    st.builds(
        said, st.sampled_from(["Acme", "Borealis", "Cygnus"]), ATTRIBUTES, st.sampled_from(["asserts"])
    ),
)


def one_a_page(told):
    return list({(day, one.attribute): (day, one) for day, one in told}.values())


@given(st.lists(SAID, max_size=7).map(one_a_page), st.randoms())
def test_the_order_in_which_exchanges_are_read_does_not_matter(told, random):
    """What holds on each day is what was said up to then, whichever page came first."""
    shuffled = random.sample(told, len(told))
    for day in range(10):
        assert current(after(*shuffled), day=day) == current(
            after(*sorted(told, key=lambda one: one[0])), day=day
        )


@given(st.lists(SAID, max_size=6).map(one_a_page), st.integers(1, 8))
def test_a_withdrawn_page_leaves_no_trace(told, day):
    """Built anew from the other pages the facts are what they would be without it."""
    others = [one for one in told if one[0] != day]
    assert retold(after(*told), [told_on(*one) for one in others]) == after(
        *sorted(others, key=lambda one: one[0])
    )


def test_what_was_added_by_hand_keeps_its_place_in_time():
    """It closes what was said before, what was said after closes it, and no statement is read over it."""
    by_hand = structs.replace(
        after((2, said("Borealis")))["2:Borealis"], id="hand", source="api", evidence=()
    )
    told = [told_on(1, said("Acme")), told_on(3, said("Cygnus"))]
    facts = retold(put({}, by_hand), told)
    assert [current(facts, day=day) for day in (1, 2, 3)] == [["Acme"], ["Borealis"], ["Cygnus"]]
    assert current(retold(facts, told[:1])) == ["Borealis"]
    late = structs.replace(by_hand, occurred_at=START + DAY)
    facts = put(after((0, said("Acme")), (3, said("Cygnus"))), late)
    assert [current(facts, day=day) for day in (0, 2, 3)] == [["Acme"], ["Borealis"], ["Cygnus"]]
    changed = structs.replace(by_hand, id="1:Acme", value="ACME Ltd", occurred_at=START + DAY)
    assert current(retold({changed.id: changed}, told[:1])) == ["ACME Ltd"]


@given(st.lists(SAID, max_size=6).map(one_a_page))
def test_only_one_value_of_a_single_attribute_holds_at_a_time(told):
    """Whatever is said, in whatever order."""
    facts = after(*told)
    for day in range(10):
        at = START + day * DAY
        for attribute in ("employer", "residence"):
            assert sum(holds(fact, at) for fact in facts.values() if fact.attribute == attribute) <= 1


def test_changes_are_what_differs():
    """Added, changed with the names of the fields, withdrawn, or forgotten for ever."""
    one = after((1, said("Acme")))
    two = after((1, said("Acme")), (2, said("Borealis")))
    now = START + 9 * DAY
    changed, added = changes(one, two, now=now, forgotten=False)
    assert isinstance(changed, MemoryChanged)
    assert isinstance(added, MemoryAdded)
    assert changed.changed == ("valid_to", "successor", "ended_by")
    assert changed.memory.updated_at == now
    assert changes(two, two, now=now, forgotten=False) == []
    assert [type(one) for one in changes(one, {}, now=now, forgotten=False)] == [MemoryWithdrawn]
    assert [type(one) for one in changes(one, {}, now=now, forgotten=True)] == [MemoryForgotten]


def test_a_planned_end_is_still_open_before_it():
    """`until Friday` may be confirmed or replaced before Friday comes."""
    until = said("Acme", valid_to=START + 5 * DAY)
    facts = after((1, until), (2, said("Borealis")))
    assert current(facts, day=3) == ["Borealis"]
    assert current(after((1, until)), day=3) == ["Acme"]
    assert current(after((1, until)), day=6) == []
    assert structs.asdict(facts["1:Acme"])["successor"] == "2:Borealis"


def test_an_end_may_name_a_value_by_a_part_of_it():
    """`I sold the Skoda`; another one's part ends nothing."""
    car = said("a Skoda Octavia", "owns")
    assert current(after((1, car), (2, said("the Skoda", "owns", "ends")))) == []
    assert current(after((1, car), (2, said("Skoda Fabia", "owns", "ends")))) == ["a Skoda Octavia"]


def test_an_end_may_name_a_pet_by_what_it_is_where_it_can_be_one_alone():
    """`My dog died` is of the dog with a name, not of the cat; of two dogs nobody knows which."""
    rex, max_, tom = (
        structs.replace(said(name, "pet"), statement=f"My {kind} is called {name}.")
        for name, kind in (("Rex", "dog"), ("Max", "dog"), ("Tom", "cat"))
    )
    died = said("dog", "pet", act="ends")
    assert current(after((0, rex), (1, tom), (2, died))) == ["Tom"]
    assert sorted(current(after((0, rex), (1, max_), (2, died)))) == ["Max", "Rex"]


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        ("residence", ("Lisbon", "Lissabon", "Lisbonne", "リスボン", "Лиссабон")),
        ("visited", ("Germany", "Deutschland", "l'Allemagne", "ドイツ")),
        ("speaks", ("German", "Deutsch", "allemand", "немецкий")),
        ("allergy", ("peanuts", "Erdnüsse", "cacahuètes", "cacahuetes", "arachidi", "арахис", "花生")),
        ("occupation", ("a nurse", "Krankenschwester", "infirmière", "enfermero", "pielęgniarką", "看護師")),
        ("pet", ("a dog", "einen Hund", "un perro", "psa", "개")),
        ("plays", ("the violin", "Geige", "violon", "skrzypcach", "小提琴")),
        ("dislikes", ("coffee", "Kaffee", "el café", "cafe", "кофе", "القهوة")),
    ],
)
def test_what_was_said_in_several_languages_is_one_fact(attribute, names):
    """With the evidence of each; under the name by which it was said first."""
    facts = after(*((day, said(name, attribute)) for day, name in enumerate(names)))
    (fact,) = facts.values()
    assert (fact.value, len(fact.evidence)) == (names[0], len(names))


def test_a_persons_name_is_one_of_them_alone():
    """Somebody called Wolf is not Lobo, nor Rosa Pink."""
    facts = after((1, said("Wolf", "friend")), (2, said("Lobo", "friend")), (3, said("Koch", "name")))
    assert sorted(current(facts)) == ["Koch", "Lobo", "Wolf"]


def test_what_is_of_another_kind_stays_apart():
    """Trades and things that are near are not the same."""
    near = [
        ("nurse", "Hebamme"),
        ("nurse", "doctor"),
        ("peanuts", "Nüsse"),
        ("violin", "Cello"),
        ("dog", "chat"),
    ]
    for one, other in near:
        assert value_key(one) != value_key(other)


def test_an_end_in_another_language_names_the_same():
    """`Ich mag keinen Kaffee mehr` of what was said in English, and `mein Hund` of a dog with a name."""
    assert current(after((1, said("coffee", "likes")), (2, said("Kaffee", "likes", "ends")))) == []
    rex = structs.replace(said("Rex", "pet"), statement="My dog is called Rex.")
    assert current(after((0, rex), (1, said("Hund", "pet", act="ends")))) == []


def test_names_of_people_are_not_taken_for_places():
    """Florence is the sister's name, whatever the city is called."""
    assert subject_key("Florence") != subject_key("Florenz")
    assert value_key("Florence") == value_key("Florenz")
    assert value_key("Nice") != value_key("Cologne")


def test_what_began_long_before_is_no_news():
    """Who lives in Milan, and moved to Rome in 2015, has moved on; who moved there last month lives there."""
    milan = said("Milan", "residence")
    long_ago, lately = (said("Rome", "residence", valid_from=START - days * DAY) for days in (3_000, 20))
    assert current(after((0, milan), (1, long_ago))) == ["Milan"]
    assert current(after((0, milan), (1, lately))) == ["Rome"]
    (rome,) = (fact for fact in after((0, milan), (1, long_ago)).values() if fact.value == "Rome")
    assert (rome.valid_from, rome.valid_to) == (START - 3_000 * DAY, START)


@pytest.mark.parametrize(
    ("known", "meant", "left"),
    [
        ([("residence", "Bern")], "Italian", ["Bern"]),
        ([("name", "Luc"), ("residence", "Lyon")], "Nice", ["Luc", "Nice"]),
        ([("name", "Tom"), ("residence", "Rome"), ("pet", "Rex")], "Max", ["Rex", "Rome", "Tom"]),
        ([("residence", "Bern")], "Thun", ["Thun"]),
    ],
    ids=["a language for a place", "a place", "either of two", "the only one"],
)
def test_a_correction_is_of_what_the_words_can_mean(known, meant, left):
    """`I meant …` sets right the one thing just said whose value is of that kind, or nothing."""
    told = [told_on(0, said(value, attribute)) for attribute, value in known]
    right = told_on(1, said(meant, "", "corrects"), previous="page0")
    assert sorted(current(retold({}, [*told, right]))) == left
