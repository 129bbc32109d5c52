"""Qdrant's REST interface over HTTP for tests, by qdrant-client's own local mode, with faults to order.

Every request is read by qdrant-client's models, which are generated from Qdrant's OpenAPI document and refuse
what it does not know. It is no Qdrant: what graphs, clusters and quantization do is not tried with it.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, TypeAdapter
from qdrant_client import QdrantClient, models

ALL = "*"
ALIASES = "* aliases"
ROUTES: dict[tuple[str, str], str] = {
    ("GET", ALL): "list",
    ("POST", ALIASES): "alias",
    ("GET", ALIASES): "aliases",
    ("GET", "/aliases"): "aliases_of",
    ("GET", ""): "info",
    ("PUT", ""): "create",
    ("PATCH", ""): "update",
    ("DELETE", ""): "drop",
    ("PUT", "/index"): "index",
    ("PUT", "/points"): "upsert",
    ("POST", "/points/delete"): "delete",
    ("POST", "/points/query/batch"): "query",
    ("POST", "/points/scroll"): "scroll",
    ("POST", "/points/count"): "count",
}
PLAIN = {
    ("GET", "/collections"): ALL,
    ("GET", "/aliases"): ALIASES,
    ("POST", "/collections/aliases"): ALIASES,
}
"""Paths that name no collection."""
PATH = re.compile(r"/collections/([^/]+)(/.*)?")
WORDS = {
    400: "Bad Request",
    401: "Must provide an API key",
    404: "Not found: Collection `it` doesn't exist!",
    429: "Rate limited",
}


_BY_OWN_NAME = ("create", "drop", "list", "alias", "aliases", "aliases_of")
"""What looks for no alias."""


class Request(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    query: dict[str, list[str]]
    body: Any
    headers: dict[str, str]
    did: str
    """What of `ROUTES` it asked for."""


class RefusedError(Exception):
    """The answer is an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class QdrantShim:
    """A server on a port of its own, which it keeps when it is down. Start it by `running`."""

    def __init__(self, *, api_key: str = "") -> None:
        self.api_key = api_key
        self.requests: list[Request] = []
        self.failing: list[int] = []
        """Statuses that the next requests get, one each, in the order in which they arrive."""
        self.always: int = 0
        """A status that every request gets."""
        self.gate = threading.Event()
        """While it is not set no request is answered."""
        self.gate.set()
        self.delay = 0.0
        """Seconds that each request waits for."""
        self.status = models.UpdateStatus.COMPLETED
        self._turn = threading.Lock()
        self._http: ThreadingHTTPServer | None = None
        self._port = 0
        self.forget()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def forget(self) -> None:
        """Lose everything."""
        self.client = QdrantClient(":memory:", force_disable_check_same_thread=True)
        self.indexes: dict[str, dict[str, models.PayloadIndexInfo]] = {}
        self.created: list[models.CreateCollection] = []

    def did(self, *names: str) -> list[Request]:
        """The requests so far that asked for one of those."""
        return [one for one in self.requests if one.did in names]

    def up(self) -> None:
        """Listen, on the same port as before."""
        shim = self

        class Handler(_Handler):
            owner = shim

        self._http = _Server(("127.0.0.1", self._port), Handler)
        self._port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        """Refuse connections, and end those there are."""
        if self._http is not None:
            http, self._http = self._http, None
            http.shutdown()
            http.server_close()

    @contextmanager
    def running(self) -> Iterator[QdrantShim]:
        """Up until the end."""
        self.up()
        try:
            yield self
        finally:
            self.gate.set()
            self.down()

    def arrive(self, request: Request) -> int:
        """Note the request; the status that it is refused with, or 0."""
        with self._turn:
            self.requests.append(request)
            return self.always or (self.failing.pop(0) if self.failing else 0)

    def answer(self, request: Request, name: str, refused: int) -> Any:
        """The result of the request. Raises RefusedError."""
        if not request.did:
            raise RefusedError(404, "")
        if self.api_key and request.headers.get("api-key") != self.api_key:
            raise RefusedError(401, WORDS[401])
        if refused:
            raise RefusedError(refused, WORDS.get(refused, "broken"))
        with self._turn:
            name = self._resolved(name) if request.did not in _BY_OWN_NAME else name
            made: Callable[[str, Request], Any] = getattr(self, f"_{request.did}")
            return made(name, request)

    @property
    def aliases(self) -> dict[str, str]:
        """The collection that each alias leads to."""
        return {one.alias_name: one.collection_name for one in self.client.get_aliases().aliases}

    def _resolved(self, name: str) -> str:
        """The collection of that name or alias, as the server looks for it."""
        name = self.aliases.get(name, name)
        if not self._is_there(name):
            raise RefusedError(404, f"Not found: Collection `{name}` doesn't exist!")
        return name

    def _is_there(self, name: str) -> bool:
        return name in (one.name for one in self.client.get_collections().collections)

    def _aliases(self, name: str, _: Request) -> models.CollectionsAliasesResponse:
        return self.client.get_aliases()

    def _aliases_of(self, name: str, _: Request) -> models.CollectionsAliasesResponse:
        return self.client.get_collection_aliases(name)

    def _alias(self, name: str, request: Request) -> bool:
        """One action after another while nobody else is answered: what was done before one fails stays."""
        for action in models.ChangeAliasesOperation.model_validate(request.body).actions:
            match action:
                case models.CreateAliasOperation(create_alias=asked):
                    if not self._is_there(asked.collection_name):
                        raise RefusedError(
                            404, f"Not found: Collection `{asked.collection_name}` doesn't exist!"
                        )
                    if self._is_there(asked.alias_name):
                        raise RefusedError(
                            409, f"Wrong input: Collection `{asked.alias_name}` already exists!"
                        )
                case models.RenameAliasOperation(rename_alias=asked):
                    if asked.old_alias_name not in self.aliases:
                        raise RefusedError(404, f"Not found: Alias {asked.old_alias_name} does not exists!")
            self.client.update_collection_aliases([action])
        return True

    def _list(self, name: str, _: Request) -> models.CollectionsResponse:
        return self.client.get_collections()

    def _info(self, name: str, _: Request) -> Any:
        info = self.client.get_collection(name)
        return info.model_copy(update={"payload_schema": self.indexes.get(name, {})})

    def _create(self, name: str, request: Request) -> bool:
        asked = models.CreateCollection.model_validate(request.body)
        if self.client.collection_exists(name):
            raise RefusedError(409, f"Wrong input: Collection `{name}` already exists!")
        if name in self.aliases:
            said = f"Can't create collection with name {name}. Alias with the same name already exists"
            raise RefusedError(400, f"Wrong input: {said}")
        self.created.append(asked)
        return self.client.create_collection(
            name,
            vectors_config=asked.vectors,
            sparse_vectors_config=asked.sparse_vectors,
            metadata=asked.metadata,
        )

    def _update(self, name: str, request: Request) -> bool:
        asked = models.UpdateCollection.model_validate(request.body)
        return self.client.update_collection(name, metadata=asked.metadata)

    def _drop(self, name: str, _: Request) -> bool:
        """An alias is no name here; those of the collection go with it."""
        self.indexes.pop(name, None)
        return self._is_there(name) and self.client.delete_collection(name)

    def _index(self, name: str, request: Request) -> models.UpdateResult:
        asked = models.CreateFieldIndex.model_validate(request.body)
        info = models.PayloadIndexInfo(
            data_type=models.PayloadSchemaType.KEYWORD, params=asked.field_schema, points=0
        )
        self.indexes.setdefault(name, {})[asked.field_name] = info
        return self._updated()

    def _upsert(self, name: str, request: Request) -> models.UpdateResult:
        asked = models.PointsList.model_validate(request.body)
        self.client.upsert(name, asked.points)
        return self._updated()

    def _delete(self, name: str, request: Request) -> models.UpdateResult:
        asked: Any = TypeAdapter(models.PointsSelector).validate_python(request.body)
        self.client.delete(name, asked)
        return self._updated()

    def _query(self, name: str, request: Request) -> list[models.QueryResponse]:
        asked = models.QueryRequestBatch.model_validate(request.body)
        # local mode warns of params: it scans anyway
        return self.client.query_batch_points(
            name, [one.model_copy(update={"params": None}) for one in asked.searches]
        )

    def _scroll(self, name: str, request: Request) -> models.ScrollResult:
        asked = models.ScrollRequest.model_validate(request.body)
        points, following = self.client.scroll(
            name,
            asked.filter,
            limit=asked.limit,
            offset=asked.offset,
            with_payload=asked.with_payload,
            with_vectors=asked.with_vector or False,
        )
        return models.ScrollResult(points=points, next_page_offset=following)

    def _count(self, name: str, request: Request) -> models.CountResult:
        asked = models.CountRequest.model_validate(request.body)
        return self.client.count(name, asked.filter)

    def _updated(self) -> models.UpdateResult:
        return models.UpdateResult(operation_id=1, status=self.status)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.connections: set[Any] = set()

    def finish_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        try:
            super().finish_request(request, client_address)
        except OSError:  # the client, or `down`, has hung up
            pass
        finally:
            self.connections.discard(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self.connections):
            try:
                connection.shutdown(2)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    owner: QdrantShim
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        plain, found = PLAIN.get((self.command, parts.path)), PATH.fullmatch(parts.path)
        name, rest = ("", plain) if plain else (found[1], found[2] or "") if found else ("", "?")
        request = Request(
            method=self.command,
            path=parts.path,
            query=parse_qs(parts.query),
            body=json.loads(raw) if raw else None,
            headers={name.lower(): value for name, value in self.headers.items()},
            did=ROUTES.get((self.command, rest), ""),
        )
        refused = self.owner.arrive(request)
        self.owner.gate.wait()
        threading.Event().wait(self.owner.delay)
        try:
            result = self.owner.answer(request, name, refused)
            self._send(200, {"result": _plain(result), "status": "ok", "time": 0.0})
        except RefusedError as error:
            self._send(error.status, {"status": {"error": error.message}, "time": 0.0})
        except ValueError as error:
            self._send(400, {"status": {"error": f"Format error in JSON body: {error}"}, "time": 0.0})

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 (the library's names)

    def _send(self, status: int, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def _plain(result: Any) -> Any:
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json", exclude_none=True)
    return [_plain(one) for one in result] if isinstance(result, list) else result
