"""The page on events, made from the records themselves.

`python -m hearth.memory.events.reference docs/events.md` renews it there.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from hearth.memory.events.kinds import VERSIONS, Payload

BEGIN, END = "<!-- generated: events -->", "<!-- end -->"

_WHEN = datetime(2026, 11, 29, 9, 30, tzinfo=UTC)
_TEXTS = {
    "text": "Lives in Lisbon.",
    "user_text": "I moved to Lisbon in May.",
    "reply_text": "How do you like it?",
    "tenant": "acme",
    "user": "alice",
    "agent": "default",
    "session": "s-7",
    "owner": "acme/alice",
    "subject": "user",
    "attribute": "residence",
    "value": "Lisbon",
    "reason": "requested",
    "model": "gpt-5",
    "route": "chat",
    "name": "handbook.md",
    "title": "Handbook",
    "media_type": "text/markdown",
    "note": "just so",
    "timezone": "Europe/Lisbon",
    "episode": "",
    "error": "",
}
"""What an example says in fields of these names; others name a record."""
_ID = "018f3c2a"


class _Field(NamedTuple):
    name: str
    type: str
    default: str
    meaning: str


def reference() -> str:
    """Markdown: every kind with its version, meaning, fields and an example, then the records in them."""
    kinds = get_args(Payload)
    return "\n".join([*(line for kind in kinds for line in _kind(kind)), *_records(kinds)])


def renewed(page: str) -> str:
    """The page with what stands between its marks made anew. Raises ValueError where it has no marks."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page lacks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


def example(kind: type[msgspec.Struct]) -> Any:
    """A payload of the kind that says something in each field that it must have."""
    return _sample(kind, "")


def _kind(kind: type[msgspec.Struct]) -> Iterator[str]:
    name = str(kind.__struct_config__.tag)
    shown = msgspec.to_builtins(_bare(example(kind)), str_keys=True)
    yield f"### {name}\n"
    yield f"Version {VERSIONS[name]}. {_meaning(kind)}\n"
    yield from _table(kind)
    yield "```json"
    yield msgspec.json.format(msgspec.json.encode(shown)).decode()
    yield "```\n"


def _records(kinds: tuple[type[msgspec.Struct], ...]) -> Iterator[str]:
    yield "## Records in payloads\n"
    found: dict[str, type[msgspec.Struct]] = {}
    waiting = list(kinds)
    while waiting:
        for inner in _structs(waiting.pop(0)):
            if inner.__name__ not in found:
                found[inner.__name__] = inner
                waiting.append(inner)
    for name in sorted(found):
        yield f"### {name}\n"
        yield f"{_meaning(found[name])}\n"
        yield from _table(found[name])


def _structs(record: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """The records that its fields hold."""
    waiting = list(get_type_hints(record).values())
    while waiting:
        hint = waiting.pop(0)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield hint
        waiting.extend(get_args(hint))


def _table(record: type[msgspec.Struct]) -> Iterator[str]:
    yield "| field | type | default | meaning |"
    yield "|---|---|---|---|"
    for field in _fields(record):
        shown = field.type.replace("|", "\\|")
        yield f"| `{field.name}` | `{shown}` | {field.default} | {field.meaning} |"
    yield ""


def _fields(record: type[msgspec.Struct]) -> list[_Field]:
    """As the record's source has them, with what stands below each."""
    (tree,) = ast.parse(inspect.getsource(record)).body
    assert isinstance(tree, ast.ClassDef)  # noqa: S101 - the source of a class
    found: list[_Field] = []
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            name, default = ast.unparse(node.target), "" if node.value is None else ast.unparse(node.value)
            found.append(_Field(name, ast.unparse(node.annotation), f"`{default}`" if default else "", ""))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and found:
            found[-1] = found[-1]._replace(meaning=" ".join(str(node.value.value).split()))
    return found


def _meaning(record: type[msgspec.Struct]) -> str:
    return " ".join((inspect.getdoc(record) or "").split())


def _bare(value: Any) -> Any:
    """The value without what is as by default, as its JSON is read all the same."""
    if not isinstance(value, msgspec.Struct):
        return value
    tag = value.__struct_config__.tag
    kept = {"kind" if isinstance(value, get_args(Payload)) else "record": tag} if tag else {}
    for field in msgspec.structs.fields(type(value)):
        given = getattr(value, field.name)
        if field.required or given != field.default:
            kept[field.encode_name] = _bare(given)
    return kept


def _sample(hint: Any, name: str) -> Any:
    """Something of that type, for a field of that name."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return parts[0]
    if origin in (Union, types.UnionType):
        return _sample(parts[0], name)
    if origin is tuple:
        return (_sample(parts[0], name),)
    if origin is dict:
        return {_sample(parts[0], name): _sample(parts[1], name)}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = get_type_hints(hint)
        given = [field for field in msgspec.structs.fields(hint) if field.required or field.name in _TEXTS]
        return hint(**{field.name: _sample(hints[field.name], field.name) for field in given})
    plain = {bool: False, int: 1, float: 0.5, bytes: b"\x7f", datetime: _WHEN, type(None): None}
    return _TEXTS.get(name, _ID) if hint is str else plain[hint]


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
