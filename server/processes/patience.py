"""Patience: waiting for the answer of another process of the server, for as long as it runs.

A call may take long for good reasons, so it is not the call that has a time limit: while it waits,
its process must show that its event loop runs (`server/processes/beats.py`). The deadline of a call
is kept by the process that answers; here it is for one that does not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from runtime.errors import DeadlineExceededError, UnavailableError
from server.processes.beats import SILENT_SECONDS, seconds_since_beat
from server.processes.host_table import Row
from server.processes.session_ids import Place
from server.steps.step_waiter import TIMED_OUT

T = TypeVar("T")

# Twice as long as a process takes to show that it runs: after a stall of the whole machine it does
# so before the second look.
LOOK_SECONDS = 0.5
_GRACE_SECONDS = 0.25  # after a deadline, for the answer of the process that says so


def no_deadline() -> float | None:
    """Return None: the call has no deadline that is known here."""
    return None


class Patience:
    """How long one call waits for the process at `place`, whose row is `row`.

    `deadline` returns an instant of `time.monotonic()` or None, and is asked again at each look.
    Guarantees: used from one event loop.
    """

    def __init__(
        self,
        row: Row,
        place: Place,
        deadline: Callable[[], float | None] = no_deadline,
        out_of_time: str = TIMED_OUT,
    ) -> None:
        self._row = row
        self._place = place
        self._deadline = deadline
        self._out_of_time = out_of_time
        self._was_silent = False

    def check(self) -> None:
        """Look whether to wait on; to be called every LOOK_SECONDS.

        Raises DeadlineExceededError soon after the deadline, and UnavailableError if the process
        has not shown for SILENT_SECONDS that it runs.
        """
        deadline = self._deadline()
        if deadline is not None and time.monotonic() >= deadline + _GRACE_SECONDS:
            raise DeadlineExceededError(self._out_of_time)
        # If another process has taken its place, the call fails by itself.
        is_silent = (
            self._row.generation == self._place.generation
            and seconds_since_beat(self._row) >= SILENT_SECONDS
        )
        if is_silent and self._was_silent:
            raise UnavailableError(
                f"Process {self._place.slot} of the server does not answer: its event loop has not "
                f"run for {SILENT_SECONDS:g} s"
            )
        self._was_silent = is_silent

    async def answer_of(self, waiting: asyncio.Future[T]) -> T:
        """Return the result of a call; cancel it and raise what `check` raises."""
        try:
            while not (await asyncio.wait((waiting,), timeout=LOOK_SECONDS))[0]:
                self.check()
            return waiting.result()
        finally:
            waiting.cancel()
