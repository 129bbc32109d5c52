"""What a provider keeps for `previous_response_id` and `conversation`: the items of each chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hearth.testing.ids import Ids
from hearth.testing.refusals import Refused
from hearth.testing.wire_responses import conversation_id


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored response: what it answered, with its own output at the end, and the object itself."""

    context: list[Any]
    given: list[Any]
    """The items of the request that led to it."""
    response: dict[str, Any]


class Held:
    """Responses and conversations by id, as long as nobody deletes them."""

    def __init__(self) -> None:
        self.responses: dict[str, Stored] = {}
        self.conversations: dict[str, list[Any]] = {}

    def context(self, body: dict[str, Any]) -> list[Any]:
        """All items that the model sees for a request.

        An unknown id is refused with 400 `previous_response_not_found` (status and code as users report
        them, e.g. in maximhq/bifrost#2441), an unknown conversation with 404. Raises Refused.
        """
        return [*self._earlier(body), *items_of(body.get("input"))]

    def _earlier(self, body: dict[str, Any]) -> list[Any]:
        if previous := body.get("previous_response_id"):
            if previous not in self.responses:
                raise Refused(
                    400,
                    f"Previous response with id '{previous}' not found.",
                    param="previous_response_id",
                    code="previous_response_not_found",
                )
            return self.responses[previous].context
        if name := conversation_id(body.get("conversation")):
            return self.conversation(name)
        return []

    def conversation(self, name: str) -> list[Any]:
        """A conversation's items. Raises Refused."""
        if name not in self.conversations:
            raise Refused(404, f"Conversation with id '{name}' not found.")
        return self.conversations[name]

    def keep(self, body: dict[str, Any], context: list[Any], response: dict[str, Any]) -> None:
        """Keep a response unless the request says `store: false`; add to its conversation."""
        given = items_of(body.get("input"))
        if body.get("store", True):
            self.responses[response["id"]] = Stored([*context, *response["output"]], given, response)
        if name := conversation_id(body.get("conversation")):
            self.conversations[name] += [*given, *response["output"]]

    def stored(self, name: str) -> Stored:
        """A stored response. Raises Refused (404)."""
        if name not in self.responses:
            raise Refused(404, f"Response with id '{name}' not found.")
        return self.responses[name]

    def open(self, ids: Ids, items: object) -> str:
        """A new conversation's id."""
        name = ids.item("conv")
        self.conversations[name] = items_of(items)
        return name


def items_of(given: object) -> list[Any]:
    """A request's `input` as items; a string is one user message."""
    if isinstance(given, str):
        return (
            [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
            if given
            else []
        )
    return list(given) if isinstance(given, list) else []
