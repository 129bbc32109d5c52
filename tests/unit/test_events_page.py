"""The page on events is what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from hearth.memory.events.codec import decode
from hearth.memory.events.kinds import VERSIONS, Payload
from hearth.memory.events.reference import renewed

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^### ([a-z.]+)\n.*?```json\n(.*?)```", PAGE, flags=re.MULTILINE | re.DOTALL))


def test_the_page_is_the_records_own() -> None:
    """Between its marks the page holds exactly what the records say."""
    assert renewed(PAGE) == PAGE, "renew it: python -m hearth.memory.events.reference docs/events.md"


@pytest.mark.parametrize("kind", get_args(Payload), ids=lambda kind: kind.__struct_config__.tag)
def test_every_kind_has_an_example_that_is_read(kind: type[msgspec.Struct]) -> None:
    """What is shown of a kind is a payload of it, and its fields are explained by the version in force."""
    name = str(kind.__struct_config__.tag)
    payload = decode(name, VERSIONS[name], EXAMPLES[name].encode())
    assert isinstance(payload, kind)
    assert f"### {name}\n\nVersion {VERSIONS[name]}. " in PAGE
