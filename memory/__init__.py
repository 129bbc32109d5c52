"""Memory for LLM apps as a library: `from hearth.memory import open_memory`.

Everything named in `__all__` is imported at its first use, so that a module of this package that needs few of
the others stays quick to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hearth.memory.engine import Engine
    from hearth.memory.errors import BadInput, HearthError, Held, LogUnavailable, NotFound, StoreUnavailable
    from hearth.memory.opening import open_memory
    from hearth.memory.ports import MemoryFilter
    from hearth.memory.recall.block import attach, detach
    from hearth.memory.recall.policy import RecallPolicy
    from hearth.memory.types import ImportedTurn, Memory, Page, Query, Recall, Scope

_HOMES = {
    "BadInput": "errors",
    "Engine": "engine",
    "HearthError": "errors",
    "Held": "errors",
    "ImportedTurn": "types",
    "LogUnavailable": "errors",
    "Memory": "types",
    "MemoryFilter": "ports",
    "NotFound": "errors",
    "Page": "types",
    "Query": "types",
    "Recall": "types",
    "RecallPolicy": "recall.policy",
    "Scope": "types",
    "StoreUnavailable": "errors",
    "attach": "recall.block",
    "detach": "recall.block",
    "open_memory": "opening",
}
"""Module of each public name."""

__all__ = [
    "BadInput",
    "Engine",
    "HearthError",
    "Held",
    "ImportedTurn",
    "LogUnavailable",
    "Memory",
    "MemoryFilter",
    "NotFound",
    "Page",
    "Query",
    "Recall",
    "RecallPolicy",
    "Scope",
    "StoreUnavailable",
    "attach",
    "detach",
    "open_memory",
]


def __getattr__(name: str) -> object:
    """Import a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
