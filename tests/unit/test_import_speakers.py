"""Who speaks on the user's side of an import."""

from datetime import UTC, datetime, timedelta

import pytest

from hearth.memory.imports import imported_steps
from hearth.memory.types import ImportedTurn, Scope

AT = datetime(2025, 5, 24, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("user", "names", "others"),
    [
        ("ada@example.org", ["Ada Byron", "Tom", "Ada Byron"], [False, True, False]),
        ("u-17", ["Ada", "Ada"], [False]),
        ("u-17", ["Ada", "Tom"], [True, True]),
        ("u-17", ["", ""], [False]),
    ],
)
def test_who_is_not_the_user_is_told_apart(user: str, names: list[str], others: list[bool]) -> None:
    """By the name that the user's id has, or else the only one; each speaker has an exchange of their own."""
    turns = [
        ImportedTurn(
            role="user", content=f"I live in town {place}", at=AT + timedelta(minutes=place), name=name
        )
        for place, name in enumerate(names)
    ]
    events = imported_steps(Scope(tenant="t", user=user), turns, generation=1, mask=str)
    assert [event.payload.step.by_other for event in events] == others
