"""Reads YAML and remembers on which line each key stands, so that messages can point at it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import yaml

from hearth.config.problems import Problem, SettingsError

KeyPath: TypeAlias = tuple[str | int, ...]


def read_yaml(text: str, source: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """Parse one YAML mapping; return it with the line (from 1) of every key path.

    Raises SettingsError for text that is no YAML, is no mapping, or has one key twice.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        data = {} if node is None else loader.construct_document(node)
        found = list(_walk(node, ())) if node is not None else []
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError([_broken(source, error)]) from error
    finally:
        loader.dispose()
    if not isinstance(data, dict):
        raise SettingsError([_error(source, f"got a {type(data).__name__}", "write a mapping of sections")])
    lines: dict[KeyPath, int] = {}
    doubles = []
    for path, line in found:
        if path in lines:
            where = f"{dotted(path)} ({source}:{line})"
            doubles.append(_error(where, f"stands twice, first on line {lines[path]}", "keep one of the two"))
        lines.setdefault(path, line)
    if doubles:
        raise SettingsError(doubles)
    return {str(name): section for name, section in data.items()}, lines


def dotted(path: KeyPath) -> str:
    """`("hearth", "keys", 0, "user")` as `hearth.keys[0].user`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _walk(node: yaml.Node, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                here = (*path, key.value)
                yield here, key.start_mark.line + 1
                yield from _walk(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line + 1
            yield from _walk(item, (*path, index))


def _broken(source: str, error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = source if mark is None else f"{source}:{mark.line + 1}"
    return _error(where, f"is not YAML: {getattr(error, 'problem', None) or error}", "correct the syntax")


def _error(where: str, message: str, remedy: str) -> Problem:
    return Problem(level="error", where=where, message=message, remedy=remedy)
