"""The table of all settings for the documentation, made from the settings models themselves.

`python -m hearth.config.reference docs/configure.md` renews it there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path, PurePath
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from hearth.config.life import (
    ConceptSettings,
    ExtractionSettings,
    HeatSettings,
    LifeSettings,
    LimitSettings,
    RetentionSettings,
    SegmentSettings,
    ShortTermSettings,
    SystemMemorySettings,
)
from hearth.config.load import section_model
from hearth.config.settings import (
    AgentSettings,
    CaptureSettings,
    EncryptionSettings,
    ErasureSettings,
    HearthSettings,
    ImportSettings,
    KeySettings,
    ModelSettings,
    QdrantSettings,
    RecallSettings,
    SharesSettings,
    TenantSettings,
)

SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("hearth", HearthSettings),
    ("hearth.recall", RecallSettings),
    ("hearth.recall.shares", SharesSettings),
    ("hearth.capture", CaptureSettings),
    ("hearth.erasure", ErasureSettings),
    ("hearth.encryption", EncryptionSettings),
    ("hearth.imports", ImportSettings),
    ("hearth.qdrant", QdrantSettings),
    ("hearth.life", LifeSettings),
    ("hearth.life.extraction", ExtractionSettings),
    ("hearth.life.short_term", ShortTermSettings),
    ("hearth.life.segments", SegmentSettings),
    ("hearth.life.heat", HeatSettings),
    ("hearth.life.limits", LimitSettings),
    ("hearth.life.retention", RetentionSettings),
    ("hearth.life.concepts", ConceptSettings),
    ("hearth.life.system_memory", SystemMemorySettings),
    ("hearth.models.PATTERN", ModelSettings),
    ("hearth.tenants.NAME", TenantSettings),
    ("hearth.tenants.NAME.agents.NAME", AgentSettings),
    ("hearth.keys[]", KeySettings),
)
BEGIN, END = "<!-- generated: settings -->", "<!-- end -->"
WORDS = {bool: "true, false", int: "whole number", float: "number", str: "text", SecretStr: "text"}


def settings_reference() -> str:
    """Markdown: a heading and a table for each section, a row for each setting."""
    return "\n".join(line for title, model in SECTIONS for line in _section(title, model))


def renewed(page: str) -> str:
    """The page with the table between its marks made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{settings_reference()}\n{END}{after}"


def _section(title: str, model: type[BaseModel]) -> Iterator[str]:
    yield f"### `{title}`\n"
    yield (model.__doc__ or "").strip() + "\n"
    yield "| setting | value | default | meaning |"
    yield "|---|---|---|---|"
    for name, field in model.model_fields.items():
        yield f"| `{name}` | {_value(field)} | {_default(field)} | {field.description} |"
    yield ""


def _value(field: FieldInfo) -> str:
    inner = section_model(field.annotation)
    return "section" if inner is not None else _kind(field.annotation) + _range(field)


def _kind(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if origin is tuple:
        return f"list of {_kind(arguments[0])}" if section_model(arguments[0]) is None else "list of sections"
    if origin is dict:
        inner = arguments[1]
        return "sections by name" if section_model(inner) is not None else f"{_kind(inner)}s by name"
    named = [argument for argument in arguments if argument is not NoneType]
    if named:
        return _kind(named[0])
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return "path"
    return WORDS[annotation]


def _range(field: FieldInfo) -> str:
    """The limits of a number, such as ` (10 to 10000)`; empty where there are none."""
    limits = {
        name: getattr(item, name)
        for item in field.metadata
        for name in ("ge", "gt", "le")
        if hasattr(item, name)
    }
    low = f"{limits['ge']}" if "ge" in limits else f"over {limits['gt']}" if "gt" in limits else ""
    if not low:
        return ""
    return f" ({low} to {limits['le']})" if "le" in limits else f" ({low} or more)"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if isinstance(value, BaseModel) or value is None or value in ((), {}):
        return ""
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
