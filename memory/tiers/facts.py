"""What statements do to the facts that are known: add, confirm, replace, end, correct. Pure.

Facts of one subject and attribute stand beside each other, or, where the attribute has one value at a time,
in a chain in which each closes the one before. `tell` adds what was said last; where something was said
earlier than what is known, or is taken back, `retold` builds the facts anew from what the pages say, so that
it does not matter in which order exchanges are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from msgspec import structs

from hearth.memory.events.kinds import (
    MemoryAdded,
    MemoryChanged,
    MemoryForgotten,
    MemoryWithdrawn,
    Payload,
)
from hearth.memory.extract.attributes import (
    OPPOSITE,
    counted,
    folded_value,
    is_profile,
    is_single,
    kind_of,
    names,
    subject_key,
    value_key,
    words_of,
)
from hearth.memory.types import CandidateFact, Evidence, Memory, Page

Facts: TypeAlias = Mapping[str, Memory]
"""Facts by id, closed ones among them."""

_NAMESPACE: Final = uuid5(NAMESPACE_URL, "hearth:fact")
_MOST_EVIDENCE: Final = 20
"""Quotes kept of one fact: the first ones, which made it, and the latest."""
_OF_NAMES: Final = frozenset({"residence", "birthplace", "visited", "speaks", "learns", "preferred language"})
"""Attributes whose values are places or languages: of people and firms the same words are but names."""
_LEFT: Final = frozenset({"employer", "school", "partner", "residence", "member of"})
"""What the same words may leave: `J'ai quitté` a firm, a town or somebody."""
_PERSONS: Final = frozenset(
    {"name", "nickname", "partner", "child", "sibling", "parent", "friend", "relative", "colleague"}
)
_IDLE: Final = frozenset({"retired", "unemployed"})
"""Occupations that leave no employer."""
_WORK: Final = {"occupation": "employer", "employer": "occupation"}
_LONG: Final = timedelta(days=400)
"""What began so long before something else was told to hold is no news that ends it."""


class Told(NamedTuple):
    """One statement where it was made."""

    page: Page
    said: CandidateFact
    id: str
    """Of the fact that it makes, if it makes one."""


def fact_id(page: Page, said: CandidateFact) -> str:
    """The same whenever the page is read: a branch that returns brings its facts back as they were."""
    value = _key(said.attribute, said.value or said.statement)
    return uuid5(_NAMESPACE, "\0".join((page.id, subject_key(said.subject), said.attribute, value))).hex


def _key(attribute: str, value: str) -> str:
    """By which values of the attribute are compared: a person's name is that alone, in any language."""
    if number := counted(value, attribute):
        return f"{number[0]} {number[1]}"
    return subject_key(value) if attribute in _PERSONS else value_key(value, attribute)


class Chain(NamedTuple):
    """What facts bear on one another, and nothing else does."""

    subject: str
    attribute: str
    value: str
    """Empty where the attribute has one value at a time. What is liked and disliked is one chain, and so
    are two dogs and three.
    """


def chain_of(one: Memory | CandidateFact) -> Chain:
    """The chain of a fact, or of the fact that a statement is about."""
    text = one.text if isinstance(one, Memory) else one.statement
    value = one.value if one.attribute else text
    number = counted(value, one.attribute)
    key = "" if is_single(one.attribute) else number[1] if number else _key(one.attribute, value)
    attribute = min(one.attribute, OPPOSITE.get(one.attribute, one.attribute))
    return Chain(subject_key(one.subject), attribute, key)


def chains_of(one: Memory | CandidateFact) -> tuple[Chain, ...]:
    """The chain of a fact, or of the fact that a statement is about, and one that it may end or be ended by
    though nobody says so: who has retired has no employer.
    """
    chain = chain_of(one)
    other = _WORK.get(one.attribute)
    return (chain, chain._replace(attribute=other)) if other else (chain,)


def bearing_on(attribute: str) -> tuple[str, ...]:
    """Other attributes whose facts may be ended by what is said of this one, or that end its own."""
    if attribute in OPPOSITE:
        return (OPPOSITE[attribute],)
    left = tuple(sorted(_LEFT - {attribute})) if attribute in _LEFT else ()
    work = _WORK.get(attribute)
    return (*left, work) if work else left


def is_late(known: Facts, told: Told) -> bool:
    """True if something of the same chain was said after it."""
    chain, at = chain_of(told.said), told.page.occurred_at
    return any(
        fact.occurred_at > at or any(one.at > at for one in fact.evidence)
        for fact in known.values()
        if chain_of(fact) == chain
    )


def pages_of(facts: Iterable[Memory]) -> list[str]:
    """The pages that the facts rest on, or were ended by."""
    named = (id for fact in facts for id in (*(one.id for one in fact.evidence), fact.ended_by))
    return [id for id in dict.fromkeys(named) if id]


def retold(known: Facts, told: Iterable[Told]) -> Facts:
    """The facts as what was added or changed by hand and what was told make them, in order of time.

    What was changed by hand stands for the statement that it was read from.
    """
    facts = {fact.id: _by_hand(fact) for fact in known.values() if fact.source == "api"}
    waiting = sorted(facts.values(), key=_said_at)
    made: Facts = {}
    for one in sorted(told, key=lambda one: (one.page.occurred_at, one.page.id)):
        if one.id in facts:
            continue
        while waiting and waiting[0].occurred_at <= one.page.occurred_at:
            made = put(made, waiting.pop(0))
        made = tell(made, one)
    for fact in waiting:
        made = put(made, fact)
    return made


def tell(known: Facts, told: Told) -> Facts:
    """The facts after a statement that nothing known of its chain was said after."""
    match told.said.act:
        case "ends" | "denies":
            return _end(known, told)
        case "corrects":
            return _correct(known, told)
        case _:
            return _assert(known, told)


def put(known: Facts, new: Memory) -> Facts:
    """The facts with the new one in its place in time: where there is one value or number at a time, or the
    opposite held, it closes the one before it, and the one after closes it.
    """
    one_at_a_time = is_single(new.attribute) or counted(new.value, new.attribute)
    if not one_at_a_time and new.attribute not in OPPOSITE:
        return {**known, new.id: new}
    beside = [fact for fact in _beside(known, chain_of(new)) if not _never(fact)]
    if since := next((fact for fact in beside if _is_long_before(new, fact)), None):
        return {**known, new.id: _closed(new, since)}
    later = [fact for fact in beside if fact.occurred_at > new.occurred_at]
    closed = _closed(new, later[0]) if later else new
    held = (fact for fact in beside if fact not in later and _is_open(fact, new.occurred_at, later))
    return {**known, new.id: closed, **{fact.id: _closed(fact, new) for fact in held}}


def _is_long_before(new: Memory, held: Memory) -> bool:
    """True if the new one began so long before the other was said to hold that it must have been over by
    then: who lives in Milan, and moved to Rome in 2015, has moved on.
    """
    if new.valid_from is None or not _is_open(held, new.occurred_at) or held.value == new.value:
        return False
    told = max([held.occurred_at, *(one.at for one in held.evidence)])
    return new.valid_from < _start(held) and told - new.valid_from > _LONG


def changes(before: Facts, after: Facts, *, now: datetime, forgotten: bool) -> list[Payload]:
    """What must be decided to come from one to the other. `forgotten`: what goes must never come back."""
    made: list[Payload] = []
    for id in before:
        if id not in after and forgotten:
            made.append(MemoryForgotten(memory=id, reason="its exchange was forgotten"))
        elif id not in after:
            made.append(MemoryWithdrawn(memory=id))
    for id, fact in after.items():
        old = before.get(id)
        if old is None:
            made.append(MemoryAdded(memory=fact))
        elif changed := _differing(old, fact):
            made.append(MemoryChanged(memory=structs.replace(fact, updated_at=now), changed=changed))
    return made


def holds(fact: Memory, at: datetime) -> bool:
    """Whether the fact held at that moment, by what is known now."""
    return _start(fact) <= at and (fact.valid_to is None or fact.valid_to > at)


def _differing(old: Memory, new: Memory) -> tuple[str, ...]:
    names = (name for name in new.__struct_fields__ if name != "updated_at")
    return tuple(name for name in names if getattr(old, name) != getattr(new, name))


def _assert(known: Facts, told: Told) -> Facts:
    said, page = told.said, told.page
    for fact in _beside(known, chain_of(said)):
        if _says(fact, said) and _is_open(fact, page.occurred_at):
            return {**known, fact.id: _confirmed(fact, told)}
    new = _fact(told)
    made = {**known, new.id: new} if said.act == "adds" else put(known, new)
    idle = said.attribute == "occupation" and value_key(said.value) in _IDLE
    return {**made, **_closed_all(_of(made, said, "employer", page), told)} if idle else made


def _end(known: Facts, told: Told) -> Facts:
    """Close what the words say has ended. What nobody knew of needs no end."""
    said, page = told.said, told.page
    named = _named(_of(known, said, said.attribute, page), said, page) or _left(known, said, page)
    return {**known, **_closed_all(named, told)}


def _of(known: Facts, said: CandidateFact, attribute: str, page: Page) -> list[Memory]:
    """What holds of the attribute of whom the words are about."""
    about = (subject_key(said.subject), attribute)
    return [
        fact
        for fact in known.values()
        if (subject_key(fact.subject), fact.attribute) == about and _is_open(fact, page.occurred_at)
    ]


def _closed_all(facts: Sequence[Memory], told: Told) -> Facts:
    """The facts as ended by the words, at the time that they give."""
    said, page = told.said, told.page
    ends = said.valid_to or (said.valid_from if said.act == "asserts" else None) or page.occurred_at
    return {
        fact.id: structs.replace(fact, valid_to=max(_start(fact), ends), ended_by=page.id) for fact in facts
    }


def _named(held: Sequence[Memory], said: CandidateFact, page: Page) -> list[Memory]:
    """Those of the facts that the words name: by the value, or a pet, where it can be one alone, by what it
    is: `my dog` for `My dog is called Rex`.
    """
    if not said.value:
        return [fact for fact in held if all(one.id != page.id for one in fact.evidence)]
    named = [fact for fact in held if names(said.value, fact.value)]
    if named or said.attribute != "pet":
        return named
    kind = [fact for fact in held if words_of(said.value) <= words_of(fact.text)]
    return kind if len(kind) == 1 else []


def _left(known: Facts, said: CandidateFact, page: Page) -> list[Memory]:
    """What the words leave of another kind than they were read as, where that alone has the very name."""
    if said.attribute not in _LEFT or not said.value or said.act != "ends":
        return []
    name = value_key(said.value)
    held = [fact for attribute in sorted(_LEFT) for fact in _of(known, said, attribute, page)]
    named = [fact for fact in held if value_key(fact.value) == name]
    return named if len(named) == 1 else []


def _correct(known: Facts, told: Told) -> Facts:
    """Put the right one in the wrong one's place, from the wrong one's beginning."""
    said, page = told.said, told.page
    wrong = _wrong(known, said, page)
    if wrong is None:
        asserted = told._replace(said=structs.replace(said, act="asserts"))
        return _assert(known, asserted) if said.attribute else known
    if folded_value(wrong.value) == folded_value(said.value):
        return known  # it is right already: whoever got it wrong was not the memory
    start = _start(wrong)
    right = structs.replace(
        _fact(told),
        text=said.statement if said.attribute else _with_value(wrong, said.value),
        type=wrong.type,
        subject=wrong.subject,
        attribute=wrong.attribute,
        valid_from=said.valid_from or start,
        source="correction",
        confidence=1.0,
    )
    never = structs.replace(wrong, valid_from=start, valid_to=start, successor=right.id, ended_by=page.id)
    return {**known, wrong.id: never, right.id: right}


def _wrong(known: Facts, said: CandidateFact, page: Page) -> Memory | None:
    """The fact that is set right: of the named value; else, of what the exchange before said, the one alone
    whose value is of that kind: `I meant Nice` is no name, where one lives in Lyon.
    """
    current = [fact for fact in known.values() if _is_open(fact, page.occurred_at)]
    if said.attribute:
        about = (subject_key(said.subject), said.attribute)
        current = [fact for fact in current if (subject_key(fact.subject), fact.attribute) == about]
    if said.wrong:
        current = [f for f in current if f.value and value_key(f.value) == value_key(said.wrong)]
    elif not said.attribute:
        return _meant(
            [f for f in current if f.value and any(one.id == page.previous for one in f.evidence)], said
        )
    return max(current, key=_said_at, default=None)


def _meant(just_said: Sequence[Memory], said: CandidateFact) -> Memory | None:
    kind = kind_of(said.value)
    if len(just_said) == 1 and not kind:
        return just_said[0]
    same = [
        fact for fact in just_said if (kind_of(fact.value) if fact.attribute in _OF_NAMES else "") == kind
    ]
    return same[0] if len(same) == 1 else None


def _with_value(wrong: Memory, value: str) -> str:
    """The wrong statement with the right value in it."""
    found = re.search(re.escape(wrong.value), wrong.text, re.IGNORECASE)
    return value if found is None else f"{wrong.text[: found.start()]}{value}{wrong.text[found.end() :]}"


def _confirmed(fact: Memory, told: Told) -> Memory:
    """The fact with one quote more; the same page adds nothing, and what was added by hand needs none."""
    said, page = told.said, told.page
    if fact.source == "api" or any(one.id == page.id for one in fact.evidence):
        return fact
    evidence = (*fact.evidence, _evidence(said, page))
    if len(evidence) > _MOST_EVIDENCE:
        half = _MOST_EVIDENCE // 2
        evidence = (*evidence[:half], *evidence[-half:])
    sure = 1 - (1 - fact.confidence) * (1 - said.confidence)
    return structs.replace(
        fact,
        evidence=evidence,
        confidence=round(sure, 4),
        importance=max(fact.importance, said.importance),
    )


def _fact(told: Told) -> Memory:
    page, said, id = told
    return Memory(
        id=id,
        scope=page.scope,
        generation=page.generation,
        type="persona" if is_profile(said.subject, said.attribute) else "fact",
        text=said.statement,
        subject=said.subject,
        attribute=said.attribute,
        value=said.value,
        confidence=said.confidence,
        importance=said.importance,
        occurred_at=page.occurred_at,
        created_at=page.occurred_at,
        updated_at=page.occurred_at,
        valid_from=said.valid_from,
        valid_to=said.valid_to,
        happens_at=said.happens_at,
        evidence=(_evidence(said, page),),
        source="extraction",
    )


def _evidence(said: CandidateFact, page: Page) -> Evidence:
    return Evidence(id=page.id, role=said.role, quote=said.quote, at=page.occurred_at)


def _closed(fact: Memory, successor: Memory) -> Memory:
    by = successor.evidence[0].id if successor.evidence else ""
    until = max(_start(fact), _start(successor))
    return structs.replace(fact, valid_to=until, successor=successor.id, ended_by=by)


def _by_hand(fact: Memory) -> Memory:
    """What was added by hand as it was before anything said later closed it."""
    if not (fact.ended_by or fact.successor):
        return fact
    return structs.replace(fact, valid_to=None, successor=None, ended_by="")


def _beside(known: Facts, chain: Chain) -> list[Memory]:
    """Facts of that chain, in the order in which they were said."""
    return sorted((fact for fact in known.values() if chain_of(fact) == chain), key=_said_at)


def _says(fact: Memory, said: CandidateFact) -> bool:
    if said.attribute:
        same = fact.attribute == said.attribute
        return same and _key(fact.attribute, fact.value) == _key(said.attribute, said.value)
    return value_key(fact.text) == value_key(said.statement)


def _is_open(fact: Memory, at: datetime, later: Iterable[Memory] = ()) -> bool:
    """True if nothing said up to then has ended it: an end that was foreseen may still be ahead."""
    if fact.valid_to is None or fact.successor in {one.id for one in later}:
        return True
    return not (fact.ended_by or fact.successor) and fact.valid_to > at


def _never(fact: Memory) -> bool:
    """True for what was set right: it never held."""
    return fact.valid_to is not None and fact.valid_to <= _start(fact)


def _start(fact: Memory) -> datetime:
    return fact.valid_from or fact.occurred_at


def _said_at(fact: Memory) -> tuple[datetime, str]:
    return fact.occurred_at, fact.id
