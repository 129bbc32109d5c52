"""How a client says that it has sent a request before: SDKs repeat theirs after an error or a timeout."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta

from hearth.gateway.call import HeaderPairs

REPEATED_WITHIN = timedelta(minutes=10)
"""How long an `Idempotency-Key` is remembered, as long as the log looks for the first attempt."""
MOST_KEYS = 10_000


class Retries:
    """Knows the `Idempotency-Key`s of the last minutes, in this process; a restart begins anew."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], datetime] = OrderedDict()

    def marked(self, owner: str, headers: HeaderPairs, now: datetime) -> bool:
        """Whether the request says that it is a retry, and from now on its key is known.

        It does by a retry count, which OpenAI's and Anthropic's SDKs send, or by an `Idempotency-Key` that
        the same owner (`Scope.owner`) has sent before.
        """
        repeated = [self._repeated((owner, key), now) for key in _values(headers, "idempotency-key") if key]
        counts = _values(headers, "x-stainless-retry-count")
        return any(repeated) or any(count.isdigit() and int(count) > 0 for count in counts)

    def _repeated(self, key: tuple[str, str], now: datetime) -> bool:
        before = self._seen.pop(key, None)
        self._seen[key] = now
        while len(self._seen) > MOST_KEYS:
            self._seen.popitem(last=False)
        return before is not None and now - before <= REPEATED_WITHIN


def _values(headers: HeaderPairs, wanted: str) -> list[str]:
    return [value for name, value in headers if name.lower() == wanted]
