"""Errors as problem details (RFC 9457) that say what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from hearth.gateway.identity import IdentityError
from hearth.memory.errors import (
    BadInput,
    HearthError,
    Held,
    LogUnavailable,
    NotFound,
    StaleGeneration,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"
SHOWN = 120
"""Characters of a refused value that are shown again."""

TITLES = {
    "bad-request": "The request can't be read",
    "identity": "The request names a user, agent or session in a way that can't be used",
    "no-key": "No valid key",
    "forbidden": "This key may not do that",
    "not-found": "There is no such record",
    "no-route": "There is no such route",
    "method": "This route does not take that method",
    "erased": "The user was erased meanwhile",
    "held": "A legal hold keeps it",
    "too-large": "The request body is too large",
    "media-type": "This media type can't be read",
    "invalid": "A value can't be used",
    "internal": "An unexpected error",
    "unavailable": "A part of memory is not available",
}
"""Title by the last part of a problem's type."""


class FieldError(BaseModel):
    """One value that was refused."""

    field: str = Field(description="Name of the parameter, header or body field; `line 3: at` in an import.")
    value: Any = Field(default=None, description="What was sent, shortened.")
    expected: str = Field(description="What would be accepted.")


class ProblemDetails(BaseModel):
    """The body of every error answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:hearth:problem:invalid",
                    "title": TITLES["invalid"],
                    "status": 422,
                    "detail": "usr_id: got 'u1', expected a known parameter; did you mean `user`?",
                    "errors": [
                        {
                            "field": "usr_id",
                            "value": "u1",
                            "expected": "a known parameter; did you mean `user`?",
                        }
                    ],
                }
            ]
        }
    )

    type: str = Field(description="`urn:hearth:problem:` and the kind of the problem.")
    title: str
    status: int
    detail: str = Field(description="What went wrong here, and what to do.")
    errors: list[FieldError] = []


class Problem(Exception):  # noqa: N818 - the word of RFC 9457
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        self.status, self.kind, self.detail = status, kind, detail
        self.errors, self.headers = tuple(errors), headers or {}
        super().__init__(detail)

    def response(self) -> Response:
        """The problem as an HTTP answer; ASCII JSON, so that any text that a client sent can be shown."""
        details = ProblemDetails(
            type=f"urn:hearth:problem:{self.kind}",
            title=TITLES[self.kind],
            status=self.status,
            detail=self.detail,
            errors=list(self.errors),
        )
        return Response(
            json.dumps(details.model_dump(mode="python"), ensure_ascii=True),
            status_code=self.status,
            headers=self.headers,
            media_type=MEDIA_TYPE,
        )


def invalid(errors: Sequence[FieldError], status: int = 422, kind: str = "invalid") -> Problem:
    """The problem of one or more refused values."""
    detail = "; ".join(f"{error.field}: got {error.value!r}, expected {error.expected}" for error in errors)
    return Problem(status, kind, detail, errors=errors)


def unknown_name(name: str, value: object, known: Iterable[str], what: str) -> FieldError:
    """An unknown parameter or field, with the nearest right name where one is near."""
    return FieldError(field=name, value=shown(value), expected=f"a known {what}; {_hint(name, known)}")


def unknown_value(field: str, value: str, known: Iterable[str], what: str) -> FieldError:
    """A value that is none of those known, with the nearest right one where one is near."""
    return FieldError(field=field, value=shown(value), expected=f"a known {what}; {_hint(value, known)}")


def _hint(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else f"known are {', '.join(names) or 'none'}"


def shown(value: object) -> Any:
    """A refused value as it can be shown: short scalars as they are, all else as shortened text."""
    if value is None or isinstance(value, bool | int | float):
        return value if len(repr(value)) <= SHOWN else repr(value)[:SHOWN] + "…"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def install_handlers(app: FastAPI) -> None:
    """Answer every error of the app with problem details."""

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        return error.response()

    @app.exception_handler(HearthError)
    async def hearth_error(request: Request, error: HearthError) -> Response:
        return problem_of(error).response()

    @app.exception_handler(RequestValidationError)
    async def refused(request: Request, error: RequestValidationError) -> Response:
        return validation_problem(error.errors()).response()

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        return _http_problem(request, error).response()


def problem_of(error: HearthError) -> Problem:
    """The problem that an error of the engine is for a caller. Says nothing of what lies inside."""
    match error:
        case IdentityError():
            kind = "forbidden" if error.status == 403 else "identity"
            return invalid([_field_error(error)], status=error.status, kind=kind)
        case BadInput():
            return invalid([_field_error(error)])
        case NotFound():
            return Problem(404, "not-found", str(error))
        case StaleGeneration():
            detail = "The user was erased meanwhile, so nothing was kept. Send it again to begin anew."
            return Problem(409, "erased", detail)
        case Held():
            where = f"GET /memory/v1/erasures/{error.receipt}"
            detail = f"{error}. It follows by itself then; {where} says how far it is."
            return Problem(409, "held", detail)
        case Unavailable():
            part = "The event log" if isinstance(error, LogUnavailable) else "A memory store"
            detail = f"{part} is not available. Try again; GET /memory/v1/health says more."
            return Problem(503, "unavailable", detail, headers={"retry-after": "5"})
        case _:
            return internal_problem()


def internal_problem() -> Problem:
    """The problem of an error that nobody expected; the log has it in full."""
    return Problem(500, "internal", "Hearth made a mistake. Its log says which; please report it.")


def validation_problem(errors: Iterable[Any]) -> Problem:
    """The problem of what FastAPI refused, in Hearth's own words."""
    found = list(errors)
    for error in found:
        if error["type"] == "json_invalid":
            reason = f"{error['ctx']['error']} at character {error['loc'][-1]}"
            return Problem(400, "bad-request", f"The body is no valid JSON: {reason}.")
    return invalid([_refused_field(error, ".".join(map(str, error["loc"][1:]))) for error in found])


def field_errors(errors: Iterable[Any], where: str) -> list[FieldError]:
    """Refused fields of a model that was checked outside FastAPI; `where` is put before each name."""
    found = [_refused_field(error, ".".join(map(str, error["loc"]))) for error in errors]
    return [error.model_copy(update={"field": f"{where}: {error.field}"}) for error in found]


def _refused_field(error: Any, name: str) -> FieldError:
    context = error.get("ctx") or {}
    if error["type"] == "unknown_field":
        field = ".".join(filter(None, [name, context["field"]]))
        return FieldError(field=field, value=shown(context["value"]), expected=context["expected"])
    if error["type"] == "missing":
        return FieldError(field=name or "body", expected="a value; it is missing")
    words = _WORDS.get(error["type"])
    expected = words.format(**context) if words else _expectation(error["msg"])
    return FieldError(field=name or "body", value=shown(error["input"]), expected=expected)


_WORDS = {
    **dict.fromkeys(("string_type", "string_sub_type"), "a text"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type"), "an object"),
    "none_required": "null",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
}
"""What is expected, by the validator's type of error: its own texts name classes and how it parses."""

_PREFIX = re.compile(r"^(Value error, )?(expected |Input should be |Input should |Value should )?")


def _expectation(message: str) -> str:
    return _PREFIX.sub("", message, count=1) or message


def _field_error(error: BadInput) -> FieldError:
    return FieldError(field=error.field, value=shown(error.value), expected=error.expected)


def _http_problem(request: Request, error: HTTPException) -> Problem:
    headers = dict(error.headers or {})
    path = request.url.path
    match error.status_code:
        case 404:
            detail = f"{path} is no route of Hearth; GET /memory/v1/openapi.json lists them."
            return Problem(404, "no-route", detail, headers=headers)
        case 405:
            detail = f"{path} does not take {request.method}, but {headers.get('Allow', 'other methods')}."
            return Problem(405, "method", detail, headers=headers)
        case 413:
            return Problem(413, "too-large", error.detail, headers=headers)
        case 503:
            return Problem(503, "unavailable", error.detail, headers={"retry-after": "5", **headers})
        case status:
            detail = (
                f"{error.detail or HTTPStatus(status).phrase}. GET /memory/v1/openapi.json says what to send."
            )
            return Problem(status, "bad-request", detail, headers=headers)
