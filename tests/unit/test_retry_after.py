"""The provider's `retry-after` behind LiteLLM's own errors."""

from __future__ import annotations

import httpx

from hearth.gateway.retry_after import retry_after


def test_the_providers_retry_after_is_found_behind_other_errors() -> None:
    """The header of the first error in the chain that has one."""
    refused = RuntimeError("429")
    refused.headers = httpx.Headers({"Retry-After": "7"})  # type: ignore[attr-defined]
    raised = ValueError("wrapped")
    raised.__cause__ = refused
    assert retry_after(raised) == "7"
    assert retry_after(None) == ""


def test_errors_that_are_causes_of_one_another_end_the_search() -> None:
    """A circle of causes and contexts, as a stream that was cut off leaves it, holds nobody up."""
    first, second = RuntimeError("cut"), RuntimeError("mapped")
    first.__cause__, second.__context__ = second, first
    assert retry_after(first) == ""
