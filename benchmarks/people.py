"""The two people of a dialogue in questions about it: who is mentioned, and others in their place."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FIRST_PERSON = {"does": "do", "is": "am", "has": "have", "was": "was", "did": "did", "would": "would"}


def renamed(text: str, old: Sequence[str], new: Sequence[str]) -> str:
    """The text with each old name replaced by the new one in its place, both at once."""
    by_name = dict(zip(old, new, strict=True))
    return re.sub(_any_of(old), lambda found: by_name[found[0]], text)


def mentions(text: str, people: Sequence[str]) -> bool:
    """True if the text mentions one of them."""
    return re.search(_any_of(people), text) is not None


def asked_by(name: str, text: str) -> str:
    """The text as its subject would ask it: `What did I buy?` of `What did Ann buy?`."""
    verbs = "|".join(_FIRST_PERSON)
    text = re.sub(rf"\b{re.escape(name)}['’]s\b", "my", text)
    text = re.sub(rf"\b({verbs}) {re.escape(name)}\b", lambda found: f"{_FIRST_PERSON[found[1]]} I", text)
    return re.sub(rf"\b{re.escape(name)}\b", "I", text)


def _any_of(people: Sequence[str]) -> str:
    return rf"\b(?:{'|'.join(map(re.escape, people))})\b"
