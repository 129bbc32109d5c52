"""The REST API of memory, served under /memory."""

from hearth.gateway.api.app import create_api

__all__ = ["create_api"]
