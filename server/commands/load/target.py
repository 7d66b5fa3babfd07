"""What callers call, and how a call fails."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class CallFailed(Exception):  # noqa: N818 - the report counts these beside what was answered
    """A call was not answered as it should be.

    `code` is a canonical code, or the HTTP status if there is none; `lost` says that the connection
    is gone, so that a caller should wait before it calls again.
    """

    def __init__(self, code: str, message: str, lost: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.lost = lost


class Call(Protocol):
    """One caller's way to the target, for one call at a time."""

    def __call__(self) -> None:
        """Call, and return when the answer is there; raise CallFailed."""

    def close(self) -> None:
        """Close the connection."""


class Target(Protocol):
    """A model with the request that is sent to it."""

    @property
    def description(self) -> str:
        """What is called, in words, for the first line of the report."""

    @property
    def in_process(self) -> bool:
        """Whether calls compute in this process."""

    def open(self) -> Call:
        """Return the way of one more caller; it connects at the first call."""

    def close(self) -> None:
        """Free what the ways shared."""


class Size(NamedTuple):
    """How a target is loaded."""

    seconds: float
    callers: int
    rate: float | None  # requests a second, due at fixed times; None: each caller calls at once
    warm_up: float  # seconds of calls that are not counted
