"""The names that capitals tell."""

from __future__ import annotations

import pytest

from hearth.memory.recall.capitals import names_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What did Caroline tell Zoë about Oslo?", ("Caroline", "Zoë", "Oslo")),
        ("Where is Anna's bike? Ask Jean-Luc.", ("Anna", "Jean-Luc")),
        ("Where do I live?", ()),
        ("nothing here. Nor here! Or here: Not", ()),
        ("¿Dónde vive Lucía? ¡Hola!", ("Lucía",)),
        ("Где живёт Анна?", ("Анна",)),
        ("", ()),
    ],
)
def test_names_stand_within_sentences(text: str, names: tuple[str, ...]):
    """A sentence's first word has its capital in any case."""
    assert names_in(text) == names


@pytest.mark.parametrize(
    "text", ["Wie heißt mein Hund?", "Das ist die Katze", "我的狗叫什么？", "ลูกสุนัขของเราชื่ออะไร"]
)
def test_where_capitals_tell_nothing(text: str):
    """German gives them to every noun, other scripts have none."""
    assert names_in(text) is None
