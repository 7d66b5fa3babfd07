"""The errors of requests that are refused because of who makes them, and their names in metrics."""

from __future__ import annotations

from runtime.errors import (
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
)


class DeniedError(PermissionDeniedError):
    """The caller may not do this; `reason` names the rule: a word for metrics."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class LimitExceededError(ResourceExhaustedError):
    """An owner has reached the limit `reason`; there may be room in `retry_after_seconds`."""

    def __init__(self, message: str, reason: str, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


class ForeignSessionError(NotFoundError):
    """The session has another owner; its text is that of an unknown session."""


def refusal_of(error: BaseException | None) -> str | None:
    """Return why a request was refused, as a word for metrics; None if `error` is no refusal.

    An error that another error has replaced counts as its cause.
    """
    if isinstance(error, DeniedError | LimitExceededError):
        return error.reason
    if isinstance(error, UnauthenticatedError):
        return "unauthenticated"
    if isinstance(error, ForeignSessionError):
        return "owner"
    return refusal_of(error.__cause__) if isinstance(error, OpError) and error.__cause__ else None
