"""What a step needs to know of the open session that it belongs to."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from server.steps.step_request import StepRequest


class StepAccount(Protocol):
    """The record that an open session keeps of its steps.

    `queue_owner` is who takes turns with others in the queue of a pool.
    `default_timeout_ms` is the deadline of requests that set none; 0 means no deadline.
    `max_step_seconds` is the longest that any step may take; 0 means no limit.
    `runs_in_caller` is whether steps on the pool that only this session uses run in the caller's
    thread.
    """

    default_timeout_ms: int
    max_step_seconds: float
    runs_in_caller: bool

    @property
    def queue_owner(self) -> Hashable:
        """Whoever takes turns with others; equal objects are one owner."""

    def begin_step(self, request: StepRequest) -> None:
        """Register a step; raise if the session cannot run a step now."""

    def end_step(self, request: StepRequest) -> None:
        """Record that the step has ended, or that its request no longer waits for it."""
