"""Messages that ask to forget something, and some that only look so, labelled by a careful reader.

`forgetting.json` is made up. `asks` is what a message asks (`Asked` in `memory/types.py`), empty where it is
nothing: idioms, questions, other people's words, orders about files. `about` is the statement or the topic.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

MESSAGES = Path(__file__).with_name("forgetting.json")


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody wrote, and what it asks to forget."""

    language: str
    text: str
    asks: str
    about: str
