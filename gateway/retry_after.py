"""The `retry-after` of a provider's refusal, out of the chain of errors that LiteLLM makes of it."""

from __future__ import annotations


def retry_after(error: BaseException | None) -> str:
    """The header of the provider's reply, wherever LiteLLM has put it; empty where there is none.

    Causes and contexts may go round in a circle: LiteLLM raises an error from another that came of it.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        response = getattr(error, "response", None)
        for headers in (
            getattr(error, "litellm_response_headers", None),
            getattr(error, "headers", None),
            getattr(response, "headers", None),
        ):
            if headers and headers.get("retry-after"):
                return str(headers["retry-after"])
        error = error.__cause__ or error.__context__
    return ""
