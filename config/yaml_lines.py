"""Reads YAML and remembers on which line each key stands, so that messages can point at it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import yaml

from hearth.config.problems import Problem, SettingsError

KeyPath: TypeAlias = tuple[str | int, ...]


class Document(NamedTuple):
    """A YAML mapping as it was read."""

    sections: dict[str, Any]
    lines: dict[KeyPath, int]
    """Line (from 1) of every key path; of a key that stands twice the last, whose value counts."""
    doubles: list[Problem]
    """A problem for each key that stands twice in one mapping."""


def read_yaml(text: str, source: str) -> Document:
    """Parse one YAML mapping. Raises SettingsError for text that is no YAML or no mapping."""
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        data = {} if node is None else loader.construct_document(node)
        lines = dict(_walk(node, ())) if node is not None else {}
        doubles = list(_doubles(node, (), source)) if node is not None else []
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError([_broken(source, error)]) from error
    finally:
        loader.dispose()
    if not isinstance(data, dict):
        raise SettingsError([_error(source, f"got a {type(data).__name__}", "write a mapping of sections")])
    return Document({str(name): section for name, section in data.items()}, lines, doubles)


def dotted(path: KeyPath) -> str:
    """`("hearth", "keys", 0, "user")` as `hearth.keys[0].user`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _walk(node: yaml.Node, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    for name, line, value in _children(node):
        yield (*path, name), line
        yield from _walk(value, (*path, name))


def _doubles(node: yaml.Node, path: KeyPath, source: str) -> Iterator[Problem]:
    """YAML silently takes the last of two values of a key."""
    first: dict[str | int, int] = {}
    for name, line, value in _children(node):
        if name in first:
            where = f"{dotted((*path, name))} ({source}:{line})"
            yield _error(where, f"stands twice, first on line {first[name]}", "keep one of the two")
        first.setdefault(name, line)
        yield from _doubles(value, (*path, name), source)


def _children(node: yaml.Node) -> Iterator[tuple[str | int, int, yaml.Node]]:
    """Name or index, line and value of what a mapping or a list holds."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                yield key.value, key.start_mark.line + 1, value
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield index, item.start_mark.line + 1, item


def _broken(source: str, error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = source if mark is None else f"{source}:{mark.line + 1}"
    return _error(where, f"is not YAML: {getattr(error, 'problem', None) or error}", "correct the syntax")


def _error(where: str, message: str, remedy: str) -> Problem:
    return Problem(level="error", where=where, message=message, remedy=remedy)
