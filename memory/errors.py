"""The engine's errors, split by who must act.

HearthError
├── BadInput                the caller: a field, its value, what was expected
├── NotFound                the caller: no such record in this scope
├── Held                    the operator: a legal hold keeps what was to be erased
├── UnderHold               nobody: a legal hold was placed while this was in flight
├── StaleGeneration         nobody: the user was erased while this was in flight
├── PrivateSession          nobody: the session was switched to private while this was in flight
├── LeaseLost               nobody: another worker took over
├── UnknownEvent            the operator: the log was written by a newer program
├── BadAnswer               nobody: a model's answer that can't be used, and is asked for again
└── Unavailable             the operator
    ├── LogUnavailable        the event log can't take or give events
    ├── StoreUnavailable      a projection store can't be reached
    └── ModelUnavailable      a model that memory asks does not answer
"""

from __future__ import annotations


class HearthError(Exception):
    """Something in Hearth went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class BadInput(HearthError):
    """A value that can't be used."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        shown = repr(value)
        self.field, self.value, self.expected = field, value, expected
        super().__init__(f"{field}: got {shown[:120]}{'…' if len(shown) > 120 else ''}, expected {expected}")


class NotFound(HearthError):
    """There is no such record in this scope."""

    def __init__(self, said: str = "This user has no record of that id. Check the id and the user.") -> None:
        super().__init__(said)


class Held(HearthError):
    """A legal hold keeps what was to be erased; that is queued until the hold is lifted."""

    def __init__(self, receipt: str, users: tuple[str, ...]) -> None:
        self.receipt, self.users = receipt, users
        whom = ", ".join(users[:5]) + ("…" if len(users) > 5 else "")
        super().__init__(f"a legal hold is on {whom}: erasure {receipt} waits until it is lifted")


class UnderHold(HearthError):
    """A legal hold is on these users, so that nothing of theirs may go."""

    def __init__(self, users: tuple[str, ...]) -> None:
        self.users = users
        super().__init__(f"a legal hold is on {', '.join(users)}")


class StaleGeneration(HearthError):
    """The user's memory was erased after this work began, so its result is refused."""


class PrivateSession(HearthError):
    """The session is private: nothing of it is captured."""


class LeaseLost(HearthError):
    """Another worker holds this consumer's lease now."""


class UnknownEvent(HearthError):
    """An event that this program can't read."""

    def __init__(self, kind: str, version: int, reason: str) -> None:
        self.kind, self.version, self.reason = kind, version, reason
        super().__init__(f"event {kind} of version {version} can't be read: {reason}")


class BadAnswer(HearthError):
    """A model's answer can't be used."""


class Unavailable(HearthError):
    """A part of memory is not available."""


class LogUnavailable(Unavailable):
    """The event log can't be written or read."""


class StoreUnavailable(Unavailable):
    """A memory store can't be reached, or it refused the request where `refused` is true."""

    def __init__(self, part: str, cause: str, *, refused: bool = False) -> None:
        self.part, self.cause, self.refused = part, cause, refused
        super().__init__(f"{part} is not available: {cause}")


class ModelUnavailable(Unavailable):
    """A model that memory asks does not answer."""
