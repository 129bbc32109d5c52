"""The only reader of the configuration file and of environment variables: Settings come out."""

from __future__ import annotations

import difflib
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hearth.config.check import check_sections
from hearth.config.problems import Problem, SettingsError
from hearth.config.sections import SECTION, misnamed
from hearth.config.settings import HearthSettings, KeySettings, Settings
from hearth.config.yaml_lines import KeyPath, dotted, read_yaml
from hearth.memory.addresses import without_password

PREFIX = "HEARTH_"
CONFIG_VARIABLE = "HEARTH_CONFIG"
"""Names the file, for the command line."""
NO_SETTINGS = frozenset({CONFIG_VARIABLE, "HEARTH_URL", "HEARTH_API_KEY"})
"""The HEARTH_ names that are no settings: they tell the command line of a file, a gateway and a key."""
REFERENCE = "os.environ/"
"""LiteLLM's way to name an environment variable in YAML."""
QUICKSTART = Path(__file__).with_name("quickstart.yaml")
"""The configuration of the keyless quickstart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Origin:
    """Where values came from, to say so in messages."""

    source: str
    lines: Mapping[KeyPath, int]
    variables: dict[KeyPath, str] = field(default_factory=dict)
    root: KeyPath = (SECTION,)
    """What stands before the paths that it is asked about."""

    def where(self, path: KeyPath) -> str:
        full = (*self.root, *path)
        for end in range(len(path), -1, -1):
            if path[:end] in self.variables:
                return f"{dotted(full)} ({self.variables[path[:end]]})"
            line = self.lines.get((*self.root, *path[:end]))
            if line is not None:
                return f"{dotted(full)} ({self.source}:{line})"
        return f"{dotted(full)} ({self.source})"


def load_settings(path: str | Path, environ: Mapping[str, str]) -> Settings:
    """Read the file, apply `HEARTH_<SECTION>__<KEY>` from the environment, and check everything.

    Values `os.environ/NAME` in the section `hearth:` are looked up; LiteLLM's sections stay as they are.
    Raises SettingsError with every problem found.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"can't be read: {error}"
        problem = Problem(level="error", where=str(path), message=message, remedy="name a readable YAML file")
        raise SettingsError([problem]) from error
    settings = parse_settings(text, environ, source=path.name)
    return settings.model_copy(
        update={
            "path": path.absolute(),
            "again": partial(load_settings, path.absolute(), environ),
            "folder": path.resolve().parent,
        }
    )


def parse_settings(text: str, environ: Mapping[str, str], *, source: str = "configuration") -> Settings:
    """As `load_settings`, from text; `source` names it in messages. Raises SettingsError."""
    document, lines, problems = read_yaml(text, source)
    problems += _misnamed(document, lines, source)
    origin = _Origin(source=source, lines=lines)
    section = _section(document.pop(SECTION, {}), origin, problems)
    values, missing = _resolve(section, (), environ, origin)
    problems += missing
    problems += _apply_environment(values, environ, origin, named=set(_names_in(section)))
    try:
        hearth = HearthSettings.model_validate(values)
    except ValidationError as error:
        unknown = {name for name in _names_in(section) if name not in environ}
        problems += _mistakes(error.errors(include_url=False), origin, unknown)
    if any(problem.level == "error" for problem in problems):
        raise SettingsError([*problems, *check_sections(document)])
    _, unset = _resolve(document, (), environ, _Origin(source=source, lines=lines, root=()))
    problems += [replace(problem, level="warning") for problem in unset]
    problems += _written_out(section, origin)
    return Settings(hearth=hearth, litellm=document, source=source, warnings=tuple(problems))


def _misnamed(document: Mapping[str, Any], lines: Mapping[KeyPath, int], source: str) -> Iterator[Problem]:
    for name in document:
        problem = misnamed(name, f"{name} ({source}:{lines.get((name,), 1)})", document)
        if problem is not None:
            yield problem


def _section(section: object, origin: _Origin, problems: list[Problem]) -> dict[str, Any]:
    """The section `hearth:`; empty, and a problem more, where it is no mapping."""
    if isinstance(section, dict):
        return section
    if section is not None:
        problems.append(_error(origin.where(()), "is no mapping", "indent its keys"))
    return {}


def _written_out(section: Mapping[str, Any], origin: _Origin) -> Iterator[Problem]:
    """Keys that stand in the file itself, where whoever reads it could use them; one warning for a sort."""
    told = section.get("encryption")
    masters = (
        told.get("keys") if isinstance(told, dict) and ("encryption", "keys") not in origin.variables else ()
    )
    if not all(map(_is_reference, masters or ())):
        yield Problem(
            level="warning",
            where="hearth.encryption.keys",
            message="a master key stands in the file itself",
            remedy="take it from os.environ/NAME, and keep it where no backup of the stores is",
        )
    if ("keys",) in origin.variables:
        return
    entries = [entry for entry in section.get("keys") or [] if isinstance(entry, dict)]
    names = [str(entry["name"]) for entry in entries if not _is_reference(entry.get("key", REFERENCE))]
    if names:
        yield Problem(
            level="warning",
            where=f"hearth.keys ({', '.join(names)})",
            message="the key itself is configured, not its hash",
            remedy="put the `hash:` that `hearth key new` prints, or take it from os.environ/NAME",
        )


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and value.startswith(REFERENCE)


def _resolve(
    value: Any, path: KeyPath, environ: Mapping[str, str], origin: _Origin
) -> tuple[Any, list[Problem]]:
    """The value with every `os.environ/NAME` in it looked up, and a problem for each name that is not set."""
    if isinstance(value, dict):
        pairs = {str(key): _resolve(item, (*path, str(key)), environ, origin) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, [p for _, bad in pairs.values() for p in bad]
    if isinstance(value, list):
        items = [_resolve(item, (*path, index), environ, origin) for index, item in enumerate(value)]
        return [item for item, _ in items], [p for _, bad in items for p in bad]
    if _is_reference(value):
        name = value.removeprefix(REFERENCE)
        if name in environ:
            return environ[name], []
        return value, [_error(origin.where(path), f"environment variable {name} is not set", f"set {name}")]
    return value, []


def _names_in(value: object) -> Iterator[str]:
    """The environment variables that a value refers to."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _names_in(item)
    elif isinstance(value, str) and value.startswith(REFERENCE):
        yield value.removeprefix(REFERENCE)


def _apply_environment(
    values: dict[str, Any], environ: Mapping[str, str], origin: _Origin, *, named: Collection[str]
) -> list[Problem]:
    """Put each HEARTH_ variable's value in its place; return a problem for each name that is no setting and
    not `named` in the file.
    """
    known = {PREFIX + "__".join(path).upper(): (path, kind) for path, kind in _scalars(HearthSettings, ())}
    problems = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in NO_SETTINGS or (name in named and name not in known):
            continue
        if name not in known:
            problems.append(_error(name, "is no setting", _nearest(name, list(known))))
            continue
        path, kind = known[name]
        try:
            value = environ[name] if kind is str else yaml.safe_load(environ[name])
        except (yaml.YAMLError, ValueError, RecursionError):
            problems.append(_error(name, "can't be read as a YAML value", "quote it as YAML does"))
            continue
        origin.variables[path] = name
        _put(values, path, value)
    return problems


def _scalars(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every setting that one environment variable can name, with its type."""
    for name, info in model.model_fields.items():
        inner = section_model(info.annotation)
        if inner is not None:
            yield from _scalars(inner, (*path, name))
        else:
            yield (*path, name), info.annotation


def section_model(annotation: Any) -> type[BaseModel] | None:
    """The model of a nested section; None for a value, a list or a mapping."""
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        inner = values.get(part)
        values[part] = inner = dict(inner) if isinstance(inner, dict) else {}
        values = inner
    values[path[-1]] = value


def _mistakes(details: Sequence[ErrorDetails], origin: _Origin, unknown: set[str]) -> list[Problem]:
    """Pydantic's errors, but for those of values that are not known, since a variable is not set."""
    return [
        _explain(detail, origin)
        for detail in details
        if detail["type"] in ("missing", "extra_forbidden") or not unknown & set(_names_in(detail["input"]))
    ]


_WORDS = {
    "path_type": "a path",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "a text",
}
"""What pydantic says in Python's words."""


def _explain(detail: ErrorDetails, origin: _Origin) -> Problem:
    """One problem from one of pydantic's errors: the key path, the value, what was expected."""
    path = detail["loc"]
    model = _model_at(path)
    if detail["type"] == "extra_forbidden":
        names = list(_model_at(path[:-1]).model_fields) if path else []
        return _error(origin.where(path), "unknown key", _nearest(str(path[-1]), names))
    if detail["type"] == "missing":
        return _error(origin.where(path), "is missing", f"add `{path[-1]}`: {_meaning(path)}")
    if detail["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return _error(origin.where(path), "is no section", "expected settings by name below it")
    if detail["type"] in ("tuple_type", "list_type"):
        return _error(origin.where(path), "is no list", "expected items below it, each behind a dash")
    said = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    expected = _WORDS.get(detail["type"], said)
    expected = expected if expected.startswith("expected") or "`" in expected else f"expected {expected}"
    whole = isinstance(detail["input"], dict | list) and model is not None and detail["type"] not in _WORDS
    shown = "" if whole else f"got {_shown(path, detail['input'])}"
    return _error(origin.where(path), shown or "does not fit together", expected)


def _shown(path: KeyPath, value: object) -> str:
    """The value for a message; of `keys` only what can't be a secret put in the wrong place, of addresses
    what holds no password, of master keys and stores' keys nothing.
    """
    in_key = path[:1] == ("keys",) and _PLAIN_KEY_FIELDS.isdisjoint(path[2:3])
    if in_key or path[:2] == ("encryption", "keys") or str(path[0]).endswith("_api_key"):
        return "a value that is not shown"
    if str(path[-1]).endswith("_url"):
        value = without_password(str(value))
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


_PLAIN_KEY_FIELDS = frozenset(KeySettings.model_fields) - {"key", "hash"}


def _meaning(path: KeyPath) -> str:
    info = _model_at(path[:-1]).model_fields.get(str(path[-1]))
    return (info.description or "") if info else ""


def _model_at(path: KeyPath) -> type[BaseModel]:
    """The innermost model that the path goes through."""
    model: type[BaseModel] = HearthSettings
    for part in path:
        info = model.model_fields.get(str(part))
        inner = next(_models_in(info.annotation), None) if info else None
        model = inner or model
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    found = section_model(annotation)
    if found is not None:
        yield found
    elif get_origin(annotation) in (tuple, dict, list, Union, types.UnionType):
        for argument in get_args(annotation):
            yield from _models_in(argument)


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else f"known are: {', '.join(sorted(known))}"


def _error(where: str, message: str, remedy: str) -> Problem:
    return Problem(level="error", where=where, message=message, remedy=remedy)
