"""What only sessions can fail with, beyond the canonical codes."""

from __future__ import annotations

from runtime.errors import CancelledError, ResourceExhaustedError


class SessionGoneError(CancelledError):
    """The session existed, and was closed or its lease expired."""


class TooManySessionsError(ResourceExhaustedError):
    """`sessions.max_open` sessions are open; `retry_after_seconds` is when the first may expire."""

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
