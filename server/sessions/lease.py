"""Leases: how long a session may lie idle. Arithmetic only; the clock is passed in."""

from __future__ import annotations

import dataclasses
import datetime
import math
import time
from collections.abc import Callable

from runtime.errors import InvalidArgumentError


@dataclasses.dataclass(frozen=True, slots=True)
class Clock:
    """`monotonic` measures leases, `wall` (seconds since 1970, UTC) tells clients about them."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time

    def wall_at(self, instant: float) -> float:
        """The wall time of a monotonic instant."""
        return self.wall() + instant - self.monotonic()


def rfc3339(wall_seconds: float) -> str:
    """A UTC time as `2026-01-02T03:04:05.678Z`."""
    instant = datetime.datetime.fromtimestamp(wall_seconds, datetime.UTC)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Lease:
    """Idle time that is left. It does not run out while something holds it (a step that runs).

    `deadline` is the instant at which it runs out; infinite while it is held.
    """

    __slots__ = ("_holders", "deadline", "seconds")

    def __init__(self, seconds: float, now: float) -> None:
        self.seconds = seconds
        self.deadline = now + seconds
        self._holders = 0

    def renew(self, now: float, seconds: float | None = None) -> None:
        """Start anew, with another length if one is given."""
        if seconds is not None:
            self.seconds = seconds
        if not self._holders:
            self.deadline = now + self.seconds

    def hold(self) -> None:
        """Keep the lease from running out until `release`."""
        self._holders += 1
        self.deadline = math.inf

    def release(self, now: float) -> None:
        """Idle time begins when the last holder lets go."""
        self._holders -= 1
        if not self._holders:
            self.deadline = now + self.seconds

    def expires_at(self, now: float) -> float:
        """The instant when it runs out if nothing happens; while held, as if released now."""
        return now + self.seconds if self._holders else self.deadline

    def has_expired(self, now: float) -> bool:
        """Whether it ran out."""
        return now >= self.deadline


def check_lease_seconds(seconds: object, longest: float) -> float:
    """A lease that a client asks for: 0 < n ≤ `sessions.max_lease_seconds`."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidArgumentError(f"lease_seconds must be a number, got {seconds!r:.80}")
    if not 0 < seconds <= longest:  # NaN fails too
        raise InvalidArgumentError(
            f"lease_seconds must be more than 0 and at most {longest:g}, got {seconds:g}"
        )
    return float(seconds)
