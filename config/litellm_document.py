"""The document that LiteLLM is started with: the operator's sections and what Hearth adds."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hearth.config.settings import Settings

AUTH = "hearth.gateway.auth.user_api_key_auth"
CALLBACK = "hearth.gateway.plugin.instance"


def own_keys(settings: Settings) -> bool:
    """True if Hearth's key table authenticates, not LiteLLM's database."""
    return settings.hearth.keyless or bool(settings.hearth.keys)


def litellm_document(settings: Settings, *, administered: bool = True) -> dict[str, Any]:
    """LiteLLM's sections with Hearth's callback and, where the keys are in the file, its authentication.

    Where LiteLLM's administration is closed (not `administered`), nobody can sign in there, and it is told
    that no proxy stands before it, so that it does not warn of how it limits sign-ins.

    Both flags are needed with custom authentication, or LiteLLM ignores a key's `models` list. A deployment
    that speaks chat alone needs the other one: on the way over the responses format LiteLLM 1.108.7 loses the
    text of a message that isn't streamed.
    """
    document = copy.deepcopy(dict(settings.litellm))
    general = document["general_settings"] = dict(document.get("general_settings") or {})
    litellm = document["litellm_settings"] = dict(document.get("litellm_settings") or {})
    if own_keys(settings):
        general["custom_auth"] = AUTH
        general["custom_auth_run_common_checks"] = True
        litellm["enable_post_custom_auth_checks"] = True
    if not administered:
        general.setdefault("trusted_proxy_ranges", [])
    litellm["callbacks"] = _with_callback(litellm.get("callbacks"))
    if _speaks_chat_alone(document):
        litellm.setdefault("use_chat_completions_url_for_anthropic_messages", True)
    if included := document.get("include"):
        document["include"] = [str(settings.folder / name) for name in included]
    return document


def write_document(document: Mapping[str, Any], folder: Path) -> Path:
    """Write the document as `litellm.yaml` into the folder, readable by its owner only; return the path.

    Whole at every moment: several processes of one gateway write it as they start.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, fresh = folder / "litellm.yaml", folder / f"litellm.{os.getpid()}.yaml"
    fresh.touch(mode=0o600)
    fresh.write_text(yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True), encoding="utf-8")
    return fresh.replace(path)


def _speaks_chat_alone(document: Mapping[str, Any]) -> bool:
    """True if a deployment has `use_chat_completions_api`."""
    models = document.get("model_list") or []
    return any((model.get("litellm_params") or {}).get("use_chat_completions_api") for model in models)


def _with_callback(callbacks: Any) -> list[Any]:
    """The operator's callbacks (one name or a list) and ours, once, first."""
    named = [callbacks] if isinstance(callbacks, str) else list(callbacks or [])
    return [CALLBACK, *(name for name in named if name != CALLBACK)]
