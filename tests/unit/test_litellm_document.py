"""What Hearth adds to the document that LiteLLM is started with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hearth.config.litellm_document import litellm_document
from hearth.config.settings import HearthSettings, Settings

FLAG = "use_chat_completions_url_for_anthropic_messages"


def document(tmp_path: Path, *, chat_alone: bool, **litellm: Any) -> dict[str, Any]:
    """The document of a configuration with one deployment."""
    params = {"model": "openai/any", **({"use_chat_completions_api": True} if chat_alone else {})}
    sections = {"model_list": [{"model_name": "m", "litellm_params": params}], "litellm_settings": litellm}
    settings = Settings(hearth=HearthSettings(data_dir=tmp_path), litellm=sections, folder=tmp_path)
    return litellm_document(settings)["litellm_settings"]


@pytest.mark.parametrize("chat_alone", [True, False])
def test_messages_go_straight_to_chat_where_a_deployment_speaks_nothing_else(
    tmp_path: Path, chat_alone: bool
) -> None:
    """One deployment with `use_chat_completions_api` is enough; without one LiteLLM's default stays."""
    assert (document(tmp_path, chat_alone=chat_alone).get(FLAG) is True) == chat_alone


def test_the_operators_own_word_counts(tmp_path: Path) -> None:
    """What the file says about it is left as it is."""
    assert document(tmp_path, chat_alone=True, **{FLAG: False})[FLAG] is False


@pytest.mark.parametrize(("administered", "ranges"), [(True, None), (False, [])])
def test_litellm_need_not_warn_of_sign_ins_where_nobody_can(
    tmp_path: Path, administered: bool, ranges: list[str] | None
) -> None:
    """With closed administration no proxy is said to stand before it; else the operator's word counts."""
    settings = Settings(hearth=HearthSettings(data_dir=tmp_path), litellm={"model_list": []})
    general = litellm_document(settings, administered=administered)["general_settings"]
    assert general.get("trusted_proxy_ranges") == ranges
    own = {"general_settings": {"trusted_proxy_ranges": ["10.0.0.0/8"]}}
    settings = Settings(hearth=HearthSettings(data_dir=tmp_path), litellm=own)
    general = litellm_document(settings, administered=administered)["general_settings"]
    assert general["trusted_proxy_ranges"] == ["10.0.0.0/8"]
