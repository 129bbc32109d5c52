"""What all sections of the settings share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Frozen, strict types, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


def yaml_word(value: object) -> object:
    """YAML 1.1 reads a bare on/off as a boolean; here they are words."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
