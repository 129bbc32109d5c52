"""A model's raw answer to the question for facts, read as it comes: fenced, amid prose, or broken. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from typing import Any, Final, get_args

import msgspec

from hearth.memory.errors import BadAnswer
from hearth.memory.extract.attributes import MANY, SINGLE
from hearth.memory.extract.clean import assistant_text, well_formed
from hearth.memory.types import Act

LONGEST: Final = 100_000
"""Characters of an answer that is read."""
_LONGEST_TEXT: Final = 600
"""Characters of a statement, and of a quote."""
_LONGEST_NAME: Final = 200
"""Characters of a subject and of a value."""
_MOST: Final = 200
"""Facts of one answer."""
_ATTRIBUTES: Final = SINGLE | MANY
_ACTS: Final = frozenset(get_args(Act))
_STATEMENTS: Final = ("statement", "fact", "text", "memory")
"""Names that models give the statement, the asked one first."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One fact as the model puts it, before anything of it is believed."""

    statement: str
    quote: str
    page: int = 0
    """The number that the page had in the question; 0 where none is given."""
    subject: str = "user"
    attribute: str = ""
    value: str = ""
    act: Act = "asserts"
    wrong: str = ""
    valid_from: date | None = None
    valid_to: date | None = None
    happens_at: date | None = None
    importance: float = 0.5


def claims(text: str) -> list[Claim]:
    """What the answer states, in order; entries of another form are passed over. Linear but for broken JSON.

    Raises BadAnswer for an answer without the JSON that was asked for: prose, a refusal, one that is cut off.
    """
    if len(text) > LONGEST:
        raise BadAnswer("the answer is too long")
    return [claim for entry in _entries(_answer(assistant_text(text)))[:_MOST] if (claim := _claim(entry))]


def _answer(text: str) -> Any:
    """The object with `facts`, or the bare list of them, that stands first in the text."""
    decoder = json.JSONDecoder()
    opened = False
    for place in _brackets(text):
        try:
            found, _ = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            if not text[error.pos :].strip(" \n`") or error.msg.startswith("Unterminated"):
                raise BadAnswer("the answer is cut off") from None
            opened = opened or text[place] == "{"
            continue
        except RecursionError:
            raise BadAnswer("the answer is nested too deeply") from None
        if isinstance(found, dict) and "facts" in found:
            return found["facts"]
        if isinstance(found, list) and not opened and not (found and all(map(_is_number, found))):
            return found
    raise BadAnswer("the answer holds no JSON with facts")


def _brackets(text: str) -> Iterator[int]:
    return (place for place, sign in enumerate(text) if sign in "{[")


def _is_number(value: object) -> bool:
    """`[1]` is a note in prose, and no list of facts."""
    return isinstance(value, int | float)


def _entries(facts: Any) -> list[Any]:
    if isinstance(facts, list):
        return facts
    if isinstance(facts, str | dict):
        return [facts]
    if facts is None:
        return []
    raise BadAnswer("the answer's `facts` is no list")


def _claim(entry: Any) -> Claim | None:
    """The entry as a claim; None where it states nothing. A bare text is its own quote."""
    if isinstance(entry, str):
        entry = {"statement": entry}
    if not isinstance(entry, dict):
        return None
    statement = next((said for name in _STATEMENTS if (said := _text(entry, name, _LONGEST_TEXT))), "")
    if not statement:
        return None
    attribute, value = _attribute(entry)
    act = _text(entry, "act", _LONGEST_NAME)
    page = entry.get("page")
    importance = entry.get("importance")
    return Claim(
        statement=statement,
        quote=_text(entry, "quote", _LONGEST_TEXT) or statement,
        page=page if isinstance(page, int) else 0,
        subject=_text(entry, "subject", _LONGEST_NAME) or "user",
        attribute=attribute,
        value=value,
        act=act if act in _ACTS else "asserts",  # type: ignore[arg-type]
        wrong=_text(entry, "wrong", _LONGEST_NAME),
        valid_from=_day(entry, "valid_from"),
        valid_to=_day(entry, "valid_to"),
        happens_at=_day(entry, "happens_at"),
        importance=min(max(float(importance), 0.0), 1.0) if isinstance(importance, int | float) else 0.5,
    )


def _attribute(entry: dict[str, Any]) -> tuple[str, str]:
    """Attribute and value; a free statement where either is missing or the attribute is none of Hearth's."""
    name = (
        _text(entry, "attribute", _LONGEST_NAME).casefold().replace("_", " ").replace("favorite", "favourite")
    )
    value = _text(entry, "value", _LONGEST_NAME)
    known = name in _ATTRIBUTES or (name.startswith("favourite ") and len(name) > len("favourite "))
    return (name, value) if known and value else ("", "")


def _text(entry: dict[str, Any], name: str, longest: int) -> str:
    """The text of that name; what is longer than it may be is no text."""
    value = entry.get(name)
    text = " ".join(well_formed(value).split()) if isinstance(value, str) else ""
    return text if len(text) <= longest else ""


def _day(entry: dict[str, Any], name: str) -> date | None:
    """The first day of an ISO date, month or year."""
    said = _text(entry, name, _LONGEST_NAME)
    for whole in (said[:10], f"{said}-01", f"{said}-01-01"):
        try:
            return date.fromisoformat(whole)
        except ValueError:
            continue
    return None
