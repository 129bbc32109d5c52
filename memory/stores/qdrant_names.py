"""The collections of a Qdrant server by name: numbered ones, and the alias by which one of them is addressed.

All processes address the alias, so that the collection behind it can be exchanged in one request, as Qdrant
advises ("Collection aliases" in its documentation), and they notice it neither by an error nor by a question.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from qdrant_client import QdrantClient, models

from hearth.memory.errors import StoreUnavailable
from hearth.memory.stores.qdrant_calls import CollectionMissingError, QdrantCalls
from hearth.memory.stores.qdrant_server import QdrantServer
from hearth.memory.stores.succession import Made
from hearth.memory.stores.vector_index import PART

FORMAT = 3
"""Ends the alias: a program of another format fills a collection of its own from the log."""
FIRST = 1
"""Number of a collection before which there was none."""
MADE, FILLED = "hearth_made", "hearth_filled"
EMBEDDER, LOADER, DIMENSION = "hearth_embedder", "hearth_loader", "hearth_dimension"
PLACE, KEPT_AT = "hearth_place", "hearth_kept_at"


class Standing(NamedTuple):
    """One collection of this installation."""

    name: str
    alias: str
    """By which it is addressed, or was, or will be."""
    number: int
    made: Made
    live: bool
    """Whether the alias leads to it."""
    place: str
    """How far a replay has filled it; empty where none does."""
    kept_at: float
    """When that was written down, in seconds since 1970 by the clock of who did."""


def collection_name(prefix: str, embedder: str, dimension: int) -> str:
    """The alias: `<prefix><embedder>-<dimension>-<format>`, of letters, digits, `_`, `.` and `-`.

    An embedder whose name has other signs gets a digest of it too, so that no two embedders share one.
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", embedder)[:100]
    if plain != embedder:
        plain += "-" + blake2b(embedder.encode(), digest_size=6).hexdigest()
    return f"{prefix}{plain}-{dimension}-{FORMAT}"


def numbered(alias: str, number: int) -> str:
    """The name of a collection: no alias is called so, since those end with the format."""
    return f"{alias}.{number}"


def collections_of(calls: QdrantCalls, server: QdrantServer, *, by: float) -> list[Standing]:
    """The server's collections of this prefix and format, by number. Raises StoreUnavailable."""
    names = [one.name for one in calls(lambda client, _: client.get_collections(), by=by).collections]
    aliases = calls(lambda client, _: client.get_aliases(), by=by).aliases
    leads = {one.alias_name: one.collection_name for one in aliases}
    found: list[Standing] = []
    for name in names:
        if name.startswith(server.prefix):
            with suppress(CollectionMissingError):
                info = calls(partial(_get, name), by=by)
                if (one := _standing(name, server.prefix, made_metadata(info), leads)) is not None:
                    found.append(one)
    return sorted(found, key=lambda one: one.number)


def lead(calls: QdrantCalls, alias: str, name: str, *, by: float) -> None:
    """The alias leads to that collection from now on, wherever it led before, in one step. Raises
    StoreUnavailable.
    """
    to_none = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
    to_it = models.CreateAliasOperation(
        create_alias=models.CreateAlias(collection_name=name, alias_name=alias)
    )
    try:
        calls(
            lambda client, seconds: client.update_collection_aliases([to_none, to_it], timeout=seconds), by=by
        )
    except CollectionMissingError as error:
        raise StoreUnavailable(PART, f"the collection {name} is gone") from error


def keep_place(calls: QdrantCalls, name: str, place: str, *, by: float) -> None:
    """Write down with the collection how far it is filled. Raises StoreUnavailable."""
    said = {PLACE: place, KEPT_AT: time.time()}
    try:
        calls(lambda client, _: client.update_collection(name, metadata=said), by=by)
    except CollectionMissingError as error:
        raise StoreUnavailable(PART, f"the collection {name} is gone") from error


def remove(calls: QdrantCalls, name: str, *, by: float) -> None:
    """Remove the collection of that name, no alias; that there is none is as good."""
    calls(lambda client, seconds: client.delete_collection(name, timeout=seconds), by=by)


def made_metadata(info: models.CollectionInfo | None) -> models.Payload | None:
    """What the collection says of itself; None where it says nothing of Hearth's."""
    found = info.config.metadata if info else None
    return found if found and found.get(MADE) else None


def _get(name: str, client: QdrantClient, _: int) -> models.CollectionInfo:
    return client.get_collection(name)


def _standing(name: str, prefix: str, said: models.Payload | None, leads: dict[str, str]) -> Standing | None:
    """None of a collection that another installation, whose prefix is longer, or another program has made."""
    said = said or {}
    embedder, dimension = str(said.get(EMBEDDER, "")), int(said.get(DIMENSION, 0))
    alias = collection_name(prefix, embedder, dimension)
    start, _, number = name.rpartition(".")
    if start != alias or not number.isdecimal():
        return None
    made = Made(
        embedder=embedder,
        dimension=dimension,
        loader=str(said.get(LOADER, "")),
        filled=bool(said.get(FILLED)),
    )
    return Standing(
        name=name,
        alias=alias,
        number=int(number),
        made=made,
        live=leads.get(alias) == name,
        place=str(said.get(PLACE, "")),
        kept_at=float(said.get(KEPT_AT, 0.0)),
    )
