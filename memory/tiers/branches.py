"""The branches of a session: edits make a dialogue a tree, and one path of it is live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeAlias

import msgspec

from hearth.memory.events.kinds import Event, PageClosed, PageForgotten, PageMoved, Payload, StepCaptured
from hearth.memory.types import PageState, Step

KINDS = ("step.captured", "page.closed", "page.moved", "page.forgotten")
"""The kinds of event that a tree is folded from."""


class Node(msgspec.Struct, kw_only=True):
    """One exchange of a session."""

    parent: str | None = None
    at: datetime | None = None
    """When its newest step began that was not dead."""
    page: PageState | None = None
    """None while it has no page."""


Tree: TypeAlias = dict[str, Node]
"""The exchanges of one session by id."""


def grow(tree: Tree, events: Iterable[Event], *, upto: int) -> Tree:
    """Fold events of one session into `tree` and return it; steps past `upto` are not looked at."""
    for event in events:
        if not isinstance(event.payload, StepCaptured):
            apply(tree, event.payload)
        elif event.seq <= upto:
            node = tree.setdefault(event.payload.step.exchange, Node())
            node.parent = node.parent if event.parent is None else event.parent
            if not is_dead(event.payload.step):
                node.at = event.occurred_at if node.at is None else max(node.at, event.occurred_at)
    return tree


def apply(tree: Tree, payload: Payload) -> None:
    """Fold one decision, or a tombstone, into `tree`."""
    if isinstance(payload, PageClosed):
        tree.setdefault(payload.page.id, Node(at=payload.page.occurred_at)).page = payload.page.state
    elif isinstance(payload, PageMoved) and (node := tree.get(payload.page)) and node.page is not None:
        node.page = payload.state
    elif isinstance(payload, PageForgotten) and (node := tree.get(payload.page)):
        node.page = None


def is_dead(step: Step) -> bool:
    """True for a step that adds nothing: failed, or cut off before anything came."""
    return step.outcome == "failed" or (step.outcome == "partial" and not step.reply_text and not step.tools)


def nearest_page(tree: Tree, parent: str | None) -> str | None:
    """The page that comes before a child of `parent`: the nearest exchange upwards that has one.

    A parent that the session does not know is taken at its word: its events may still arrive.
    """
    for exchange in _upwards(tree, parent):
        if exchange not in tree or tree[exchange].page is not None:
            return exchange
    return None


def follow(
    tree: Tree, exchange: str, parent: str | None, *, at: datetime
) -> tuple[PageState, list[PageMoved]]:
    """Decide the state of an exchange's page, and what its branch brings back and makes inactive.

    The path from the root to the exchange is live, all else under that root is not. If the client has moved
    on to another path since `at`, the news is late: the page is inactive and nothing moves. A session that
    starts more than once, with no parent, has as many roots, and one does not touch another.
    """
    path = list(_upwards(tree, parent))
    roots = _roots(tree)
    root = path[-1] if path else exchange
    others = {name: node for name, node in tree.items() if name != exchange and roots[name] == root}
    live = [name for name, node in others.items() if node.page == "active" and name not in path]
    newer = {name for name in live if (since := others[name].at) is not None and since > at}
    ahead = [list(_upwards(tree, name)) for name in newer]
    if any(exchange not in line for line in ahead):
        return "inactive", []
    left = sorted(set(live).difference(*ahead))
    back = [name for name in path if name in others and others[name].page == "inactive"]
    return "active", [
        *(PageMoved(page=name, state="inactive", reason="branch left") for name in left),
        *(PageMoved(page=name, state="active", reason="branch continued") for name in back),
    ]


def _roots(tree: Tree) -> dict[str, str]:
    """The topmost exchange above each; one that is not in the tree stands for itself."""
    roots: dict[str, str] = {}
    for name in tree:
        passed: list[str] = []
        root = name
        for root in _upwards(tree, name):
            if root in roots:
                root = roots[root]
                break
            passed.append(root)
        roots.update(dict.fromkeys(passed, root))
    return roots


def _upwards(tree: Tree, exchange: str | None) -> Iterator[str]:
    """The exchange and what it follows, nearest first; ends at a root, an unknown parent or a loop."""
    passed: set[str] = set()
    while exchange is not None and exchange not in passed:
        passed.add(exchange)
        yield exchange
        exchange = tree[exchange].parent if exchange in tree else None
