"""The servers that the settings name, as memory takes them."""

from __future__ import annotations

from pydantic import SecretStr

from hearth.config.settings import HearthSettings
from hearth.memory.encryption.master import MasterKeys, read_master_key
from hearth.memory.opening import Servers
from hearth.memory.stores.qdrant_server import QdrantServer


def servers_of(hearth: HearthSettings) -> Servers:
    """What is held by servers in place of the data folder's files."""
    return Servers(
        redis_url=_plain(hearth.redis_url),
        postgres_url=_plain(hearth.postgres_url),
        postgres_connections=hearth.postgres_connections,
        qdrant=_qdrant(hearth),
        archive=hearth.archive_dir,
        masters=masters_of(hearth),
    )


def masters_of(hearth: HearthSettings) -> MasterKeys | None:
    """The master keys that the settings name; None where nothing is encrypted."""
    keys = [read_master_key(key.get_secret_value()) for key in hearth.encryption.keys]
    return MasterKeys(keys) if keys else None


def _qdrant(hearth: HearthSettings) -> QdrantServer | None:
    if hearth.qdrant_url is None:
        return None
    return QdrantServer(
        url=hearth.qdrant_url, api_key=_plain(hearth.qdrant_api_key), **hearth.qdrant.model_dump()
    )


def _plain(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""
