"""A transcript as exchanges: what is new, what came before, and the digests by which a session is found.

All functions are pure. Digests are HMAC-SHA256 with the tenant's secret, so they say nothing about the text.
"""

from __future__ import annotations

import hmac
import re
import unicodedata
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple

import msgspec

from hearth.memory.types import Tails, Turn

_TAIL_BYTES = 40
"""User texts are taken from the end until they hold so many: "yes" alone names no session."""
_TAIL_TEXTS = 4
_LONG_SUMMARY_TOKENS = 2000
_CANNED_CHARS = 200
_CANNED = re.compile(r"Ok[,.!]")
"""How aider makes the assistant answer messages that only carry files."""


class Pair(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One exchange of a transcript: what the user said and the visible words of the reply."""

    user: str
    reply: str = ""
    index: int = -1
    """`Turn.index` of the exchange's last user message."""
    tools: bool = False
    """True if the assistant called tools in it."""

    @cached_property
    def essence(self) -> _Essence:
        """Both texts as digests see them; read for several digests of a request, and made once."""
        user, reply = _essence(self.user), _essence(self.reply)
        framed = b"%d:%b" % (len(user), user)
        return _Essence(user, framed, b"%b%d:%b" % (framed, len(reply), reply))


class _Essence(NamedTuple):
    user: bytes
    framed_user: bytes
    framed: bytes
    """Both texts."""


class Dialogue(msgspec.Struct, frozen=True, kw_only=True):
    """A request's transcript, read as one exchange after a history of exchanges."""

    user_text: str = ""
    """The exchange's user content; empty where there is nothing to remember."""
    user_index: int = -1
    """`Turn.index` of the message that the block belongs to."""
    first_step: bool = True
    """False for a later step of a tool loop: the exchange has been answered in part already."""
    carry_over: bool = False
    """True if the content is a machine-written summary of an earlier conversation."""
    reply_so_far: str = ""
    """Visible assistant texts of the exchange's earlier steps."""
    history: tuple[Pair, ...] = ()
    """Exchanges before this one, oldest first."""
    before: str = ""
    """The preceding turn: the last reply, or the last user text where it gave no words."""
    present: tuple[str, ...] = ()
    """Texts that the request already contains, the new content left out."""

    @property
    def asks_anew(self) -> bool:
        """True where a new exchange begins with the user's own content: what recall is for."""
        return self.first_step and not self.carry_over

    @property
    def looked_up(self) -> tuple[Pair, ...]:
        """The pairs whose tail names the session: the history and, within a tool loop, the open exchange."""
        if self.first_step:
            return self.history
        return (*self.history, Pair(user=self.user_text, reply=self.reply_so_far, index=self.user_index))

    def answered(self, reply: str) -> tuple[Pair, ...]:
        """The pairs as they stand once `reply` (this step's visible text) is given."""
        whole = "\n".join(text for text in (self.reply_so_far, reply) if text)
        return (*self.history, Pair(user=self.user_text, reply=whole, index=self.user_index))


_STRONG_MARKS = (
    "This session is being continued from a previous conversation",
    "This conversation is being continued from a previous",
    "Another language model started to solve this problem and produced a summary",
    "You were originally given instructions from a user over one or more turns. Here were the user messages:",
    "[CONTEXT COMPACTION]",
    "The conversation history before this point was compacted into the following summary:",
    "Our conversation history has been compacted",
)
_WEAK_MARKS = (
    "I spoke to you previously about a number of things.",
    "I asked you ",
    "<summary>",
    "<conversation_summary>",
    "<conversation-summary>",
    "[Previous conversation summary",
    "Previous conversation summary",
    "Conversation summary",
    "Summary of the conversation",
    "Summary of our conversation",
    "Here is a summary of",
    "Here's a summary of",
    "The following is a summary of",
    "[Conversation truncated",
)


def estimated_tokens(text: str) -> int:
    """Rough tokens of `text`: a quarter of its ASCII characters and two thirds of the others."""
    ascii_chars = len(text) if text.isascii() else sum(map(str.isascii, text))
    return ascii_chars // 4 + (len(text) - ascii_chars) * 2 // 3


def carry_over(text: str, *, known_session: bool = False) -> bool:
    """Whether `text` is a client's own summary of a conversation that it compacted.

    Marks that no person types (Claude Code's, Codex's) decide alone; headings that a person may type count
    above 2,000 estimated tokens in a session that is not known.
    """
    head = text[:200].lstrip(" \n#*-")
    if head.startswith(_STRONG_MARKS):
        return True
    if known_session or not head.startswith(_WEAK_MARKS):
        return False
    return estimated_tokens(text) > _LONG_SUMMARY_TOKENS


def _canned(turn: Turn, before: Turn | None) -> bool:
    """Whether an assistant's turn is a client's own answer to a message of scaffolding."""
    if before is None or before.role != "user" or not before.scaffolding or turn.tools:
        return False
    return len(turn.text) < _CANNED_CHARS and _CANNED.match(turn.text) is not None


def _real(turns: Sequence[Turn]) -> list[Turn]:
    """The turns that make exchanges, without canned answers and without a prefill at the end."""
    kept: list[Turn] = []
    before: Turn | None = None
    for turn in turns:
        own = not (turn.scaffolding if turn.role == "user" else _canned(turn, before))
        if turn.role != "system" and own:
            kept.append(turn)
        before = turn
    while kept and kept[-1].role == "assistant" and not kept[-1].tools:
        kept.pop()
    return kept


class _Exchange(NamedTuple):
    users: list[Turn]
    rest: list[Turn]
    """Replies and tool results after them."""


def _exchanges(turns: Sequence[Turn]) -> list[_Exchange]:
    """Split the turns; a user turn after anything else opens a new exchange, one without words too."""
    found: list[_Exchange] = []
    for turn in turns:
        if turn.role == "user":
            if not found or found[-1].rest:
                found.append(_Exchange([], []))
            found[-1].users.append(turn)
        elif found:
            found[-1].rest.append(turn)
    return found


class _Said(NamedTuple):
    text: str
    place: int
    carried: bool
    """Nothing but a carried-over summary."""


def _said(users: Sequence[Turn]) -> _Said:
    """The user's words in one exchange.

    What stands before a summary was said, and captured, before it (Codex keeps old messages there).
    """
    if len(users) == 1:
        (only,) = users
        return _Said(only.text, only.index if only.text else -1, carry_over(only.text))
    last = max((place for place, turn in enumerate(users) if carry_over(turn.text)), default=-1)
    own = [turn for turn in users[last + 1 :] if turn.text]
    if not own and last >= 0:
        return _Said(users[last].text, users[last].index, True)
    return _Said(_joined(turn.text for turn in own), own[-1].index if own else -1, False)


def _joined(texts: Iterable[str]) -> str:
    return "\n".join([text for text in texts if text])


def _pair(exchange: _Exchange) -> Pair:
    said = _said(exchange.users)
    replies = [turn for turn in exchange.rest if turn.role == "assistant"]
    return Pair(
        user=said.text,
        reply=_joined([turn.text for turn in replies]),
        index=said.place,
        tools=any(turn.tools for turn in replies),
    )


def read(turns: Sequence[Turn]) -> Dialogue:
    """Read a transcript: the exchange at its end and the history before it.

    Consecutive user messages are one exchange, so is a tool loop. A prefilled assistant message at the very
    end, system texts and scaffolding are no part of any. Without user content the result's text is empty; a
    past exchange without words (an image alone) is left out of the history, as it was left out of the log.
    """
    exchanges = _exchanges(_real(turns))
    now = exchanges.pop() if exchanges else _Exchange([], [turn for turn in turns if turn.role == "tool"])
    said = _said(now.users)
    history = tuple(pair for pair in map(_pair, exchanges) if pair.user)
    last = history[-1] if history else Pair(user="")
    return Dialogue(
        user_text=said.text,
        user_index=said.place,
        first_step=not now.rest,
        carry_over=said.carried,
        reply_so_far=_pair(now).reply,
        history=history,
        before=last.reply or last.user,
        present=_present(turns, {turn.index for turn in now.users}),
    )


def _present(turns: Sequence[Turn], new: AbstractSet[int]) -> tuple[str, ...]:
    return tuple(turn.text for turn in turns if turn.text and (turn.role != "user" or turn.index not in new))


_WIDE_SPACE = [chr(code) for code in range(128, 0x3001) if chr(code).isspace()]
_ASCII_SPACE = bytes(code for code in range(128) if chr(code).isspace())


def _essence(text: str) -> bytes:
    """Text as digests see it: NFC, no whitespace at all, so that a client may join and trim as it likes."""
    if text.isascii():
        return text.encode().translate(None, _ASCII_SPACE)
    composed = unicodedata.normalize("NFC", text)
    if any(space in composed for space in _WIDE_SPACE):
        composed = "".join(composed.split())
    return composed.encode("utf-8", "replace").translate(None, _ASCII_SPACE)


def _framed(parts: Iterable[bytes]) -> bytes:
    """The parts one after another, each with its length before it, so that none can be taken for two."""
    return b"".join([b"%d:%b" % (len(part), part) for part in parts])


def _digest(secret: bytes, kind: bytes, framed: bytes) -> str:
    """The digest of framed parts; `kind` is framed before them."""
    return hmac.digest(secret, b"%d:%b%b" % (len(kind), kind, framed), "sha256").hex()


def _user_tail(pairs: Sequence[Pair]) -> list[bytes]:
    """The last user texts, from the end, until they are long enough to mean something."""
    texts: list[bytes] = []
    for pair in reversed(pairs):
        texts.append(pair.essence.user)
        if sum(map(len, texts)) >= _TAIL_BYTES or len(texts) == _TAIL_TEXTS:
            break
    return texts


def tails(pairs: Sequence[Pair], secret: bytes) -> Tails:
    """Digests of the end of `pairs`; all empty for no pairs. `secret`: the tenant's 32 bytes.

    `user_texts` covers the last user texts up to 40 bytes, so that it survives rewritten replies and
    trimmed heads alike.
    """
    if not pairs:
        return Tails()
    framed = [pair.essence.framed for pair in pairs]
    return Tails(
        last_pair=_digest(secret, b"pair", framed[-1]),
        last_two_pairs=_digest(secret, b"pairs", b"".join(framed[-2:])) if len(framed) > 1 else "",
        user_texts=_digest(secret, b"users", _framed(_user_tail(pairs))),
        chain=_digest(secret, b"chain", b"".join(framed)),
    )


def exchange_id(session: str, parent: str, user_text: str, secret: bytes) -> str:
    """The 32-digit id of an exchange, the same for each step of a tool loop and for each time it is resent.

    `session` is `Scope.conversation`; `parent` is `Tails.last_pair` of the history before the exchange, empty
    at a session's start.
    """
    framed = _framed((_bytes(session), parent.encode(), _essence(user_text)))
    return _digest(secret, b"exchange", framed)[:32]


def exchange_ids(history: Sequence[Pair], session: str, secret: bytes) -> tuple[tuple[int, str], ...]:
    """(index of the user message, exchange id) of each exchange of the history, oldest first."""
    found: list[tuple[int, str]] = []
    named = _framed((_bytes(session),))
    parent = ""
    for pair in history:
        framed = b"%b%d:%b%b" % (named, len(parent), parent.encode(), pair.essence.framed_user)
        found.append((pair.index, _digest(secret, b"exchange", framed)[:32]))
        parent = _digest(secret, b"pair", pair.essence.framed)
    return tuple(found)


def retry_key(owner: str, turns: Sequence[Turn], secret: bytes, *, about: Sequence[str] = ()) -> str:
    """The digest that a client's repeated request shares with its first attempt.

    `owner` is `Scope.owner`; `about` names what else makes a request another one (route, model, chain).
    """
    parts = [_bytes(owner), *map(_bytes, about)]
    for turn in turns:
        parts += (turn.role.encode(), _essence(turn.text))
        parts += [_bytes(mark) for mark in _tool_marks(turn)]
    return _digest(secret, b"retry", _framed(parts))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _tool_marks(turn: Turn) -> list[str]:
    return [f"{tool.name}:{tool.argument_bytes}:{tool.result_bytes}" for tool in turn.tools]
