"""The documentation of the settings agrees with the settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from hearth.config.check import check
from hearth.config.litellm_document import litellm_document
from hearth.config.load import load_settings, parse_settings
from hearth.config.reference import renewed, settings_reference
from hearth.config.settings import Client
from hearth.gateway import identity
from hearth.gateway.clients import PRESETS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "configure.md").read_text(encoding="utf-8")
ENVIRONMENT = {"ALICE_GATEWAY_KEY": "sk-0123456789abcdef"}


def test_the_table_of_settings_is_the_models_own() -> None:
    """Between its marks the page holds exactly what the models say."""
    assert renewed(PAGE) == PAGE, "renew it: python -m hearth.config.reference docs/configure.md"
    assert settings_reference() in PAGE


def test_every_setting_is_explained() -> None:
    """No row of the table is without a meaning."""
    rows = [line for line in settings_reference().splitlines() if line.startswith("| `")]
    assert len(rows) > 40
    assert not [row for row in rows if row.endswith(("| None |", "|  |"))]


def test_every_header_is_documented() -> None:
    """The page names each header that a call can send."""
    headers = {value for name, value in vars(identity).items() if name.endswith("_HEADER")}
    assert headers == set(re.findall(r"^\| `(x-hearth-[a-z-]+)`", PAGE, flags=re.MULTILINE))


def test_the_example_configuration_is_sound() -> None:
    """The commented example parses and has no error."""
    settings = load_settings(ROOT / "litellm_config.yaml", ENVIRONMENT)
    assert [problem for problem in check(settings) if problem.level == "error"] == []
    assert {key.name for key in settings.hearth.keys} == {"alice-laptop", "support-chat"}


def test_what_is_added_to_litellm_is_what_the_page_says() -> None:
    """Every value that Hearth adds stands in the page."""
    document = litellm_document(load_settings(ROOT / "litellm_config.yaml", ENVIRONMENT))
    added = {**document["litellm_settings"], **document["general_settings"]}
    assert added.pop("callbacks") == ["hearth.gateway.plugin.instance"]
    assert "callbacks: [hearth.gateway.plugin.instance]" in PAGE
    for name, value in added.items():
        assert f"{name}: {str(value).lower() if value is True else value}" in PAGE


def test_every_client_preset_can_be_named_in_the_settings() -> None:
    """The words of `clients` are the presets that there are."""
    assert set(get_args(Client)) == {preset.name for preset in PRESETS}
    assert set(parse_settings("", {}).hearth.clients) == set(get_args(Client))
