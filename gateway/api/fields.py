"""The types of request fields: what is accepted, with the words that say so."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from hearth.config.settings import MAX_ID
from hearth.gateway.api.door import loads
from hearth.gateway.api.problems import unknown_name
from hearth.gateway.identity import usable_id
from hearth.memory.engine.answers import CLOCKS_APART
from hearth.memory.errors import BadInput
from hearth.memory.types import JsonScalar

MAX_TEXT = 32_768
"""Characters of one memory; what is longer is a document, to be split by whoever knows its parts."""
MAX_QUERY = 8_192
"""Characters of a question."""
MAX_NOTE = 2_000
"""Characters of a note about a recall."""
MAX_REASON = 500
"""Characters of why something is done."""
MAX_NAME = 256
"""Characters of a subject, an attribute or a value."""
MAX_TAGS = 64
MAX_METADATA = 64
MAX_VALUE = 4_096
"""Characters of one metadata value."""
LARGEST_INTEGER = 2**53 - 1
"""Beyond it JSON numbers lose digits in many programs."""
MAX_LIMIT = 200
"""Records of one page of a list."""

MOMENT = "an ISO 8601 time with its zone, such as 2026-11-28T09:30:00Z (in a URL write + as %2B)"
IDENTIFIER = f"1 to {MAX_ID} characters without control characters"


class Body(BaseModel):
    """What all request bodies share: an unknown field is an error that names the nearest one, and
    JSON's types are taken as they are (`true` is no number, `"5"` neither).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for name in data:
                if name not in cls.model_fields:
                    raise _unknown(str(name), data[name], cls)
        return data


def _unknown(name: str, value: object, model: type[BaseModel]) -> PydanticCustomError:
    error = unknown_name(name, value, model.model_fields, "field")
    context = {"field": name, "value": error.value, "expected": error.expected}
    return PydanticCustomError("unknown_field", "{expected}", context)


def _refuse(expected: str) -> NoReturn:
    """Pydantic reports ValueErrors alone."""
    raise ValueError(f"expected {expected}")


def _moment(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime) and moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        _refuse(MOMENT)
    _refuse(MOMENT)


def _text(value: str) -> str:
    if not value.strip():
        _refuse("text that is not empty")
    return value


def _identifier(value: str) -> str:
    if not usable_id(value.strip()):
        _refuse(IDENTIFIER)
    return value.strip()


def check_metadata(value: object) -> dict[str, JsonScalar]:
    """The metadata as it is. Raises ValueError for anything but names with scalar values."""
    if not isinstance(value, dict):
        _refuse("an object of names and scalar values")
    if len(value) > MAX_METADATA:
        _refuse(f"at most {MAX_METADATA} entries")
    for name, entry in value.items():
        _check_entry(name, entry)
    return value


def given_metadata(given: str | None) -> dict[str, JsonScalar]:
    """Metadata of a parameter, which is JSON. Raises BadInput."""
    if given is None:
        return {}
    try:
        return check_metadata(loads(given.encode()))
    except ValueError as error:
        raise BadInput("metadata", given, f"a JSON object of names and scalar values ({error})") from error


def _check_entry(name: object, entry: object) -> None:
    if not isinstance(name, str) or not usable_id(name):
        _refuse(f"names of {IDENTIFIER}")
    ok = entry is None or isinstance(entry, bool)
    ok = ok or (isinstance(entry, str) and len(entry) <= MAX_VALUE)
    ok = ok or (isinstance(entry, int) and abs(entry) <= LARGEST_INTEGER)
    ok = ok or (isinstance(entry, float) and math.isfinite(entry))
    if not ok:
        _refuse(
            f"a text of at most {MAX_VALUE} characters, a finite number, a boolean or null "
            f"as the value of {name!r}"
        )


def check_past(name: str, moment: datetime, now: datetime) -> None:
    """Raises BadInput for a moment that is to come, as far as clocks agree."""
    if moment > now + CLOCKS_APART:
        raise BadInput(name, moment.isoformat(), "a time that is not in the future")


Moment: TypeAlias = Annotated[datetime, BeforeValidator(_moment)]
Text: TypeAlias = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(_text)]
Question: TypeAlias = Annotated[str, Field(max_length=MAX_QUERY), AfterValidator(_text)]
Named: TypeAlias = Annotated[str, Field(max_length=MAX_NAME)]
Reason: TypeAlias = Annotated[str, Field(max_length=MAX_REASON)]
Identifier: TypeAlias = Annotated[str, AfterValidator(_identifier)]
Tags: TypeAlias = Annotated[list[Identifier], Field(max_length=MAX_TAGS)]
Importance: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Metadata: TypeAlias = Annotated[dict[str, JsonScalar], BeforeValidator(check_metadata)]
