"""What LiteLLM must find in the process environment before it is imported."""

from __future__ import annotations

import importlib.util
import secrets
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from hearth.config.settings import Settings

MASTER_KEY = "LITELLM_MASTER_KEY"
DATABASE_URL = "DATABASE_URL"


def prepare_environment(environ: MutableMapping[str, str], settings: Settings | None = None) -> None:
    """Set what keeps LiteLLM and tiktoken off the network, its database, and a master key if there is none.

    Values that the operator has set stay, but a `database_url` of the file wins, as in LiteLLM's own command,
    which alone reads it there. LiteLLM refuses to start without a master key; where neither file nor
    environment names one, a random one guards its administration routes until the process ends.
    Call it before the first import of litellm.
    """
    environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    tables = bundled_token_tables()
    if tables is not None:
        environ.setdefault("TIKTOKEN_CACHE_DIR", str(tables))
    if not has_master_key(environ, settings):
        environ[MASTER_KEY] = f"sk-{secrets.token_urlsafe(32)}"
    general = _general(settings)
    if general.get("database_url"):
        environ[DATABASE_URL] = str(general["database_url"])


def has_master_key(environ: Mapping[str, str], settings: Settings | None) -> bool:
    """True if the operator has given LiteLLM a master key, so that its administration can be used."""
    return bool(_general(settings).get("master_key") or environ.get(MASTER_KEY))


def _general(settings: Settings | None) -> Mapping[str, Any]:
    return settings.litellm.get("general_settings") or {} if settings is not None else {}


def bundled_token_tables() -> Path | None:
    """The folder of tiktoken's tables inside LiteLLM, found without importing it; None if absent."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    return folder if folder.is_dir() else None


def has_database_client() -> bool:
    """True if the client with which LiteLLM reaches its database is installed and generated."""
    spec = importlib.util.find_spec("prisma")
    return spec is not None and spec.origin is not None and Path(spec.origin).with_name("client.py").exists()
