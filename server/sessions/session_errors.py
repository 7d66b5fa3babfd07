"""Errors of sessions that need more than a status code."""

from __future__ import annotations

from runtime.errors import CancelledError, ResourceExhaustedError


class SessionGoneError(CancelledError):
    """The session existed, but it was closed or its lease expired."""


class TooManySessionsError(ResourceExhaustedError):
    """`sessions.max_open` sessions are open; the first may expire in `retry_after_seconds`."""

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
