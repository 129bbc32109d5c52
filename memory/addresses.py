"""Addresses of servers, as they may be shown."""

from __future__ import annotations

import re

_SIGNED_IN = re.compile(r"//.*@")


def without_password(address: str) -> str:
    """The address without user and password."""
    return _SIGNED_IN.sub("//…@", address)


def without_secrets(address: str) -> str:
    """The address without user, password and parameters, any of which may be secret."""
    return without_password(address).partition("?")[0]
