"""Leases: how long a session may lie idle. Arithmetic only; the clock is passed in."""

from __future__ import annotations

import dataclasses
import datetime
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
    """Idle time that is left. It does not run out while somebody holds it (a step that runs)."""

    __slots__ = ("_holders", "_renewed_at", "seconds")

    def __init__(self, seconds: float, now: float) -> None:
        self.seconds = seconds
        self._renewed_at = now
        self._holders = 0

    def renew(self, now: float, seconds: float | None = None) -> None:
        """Start anew, with another length if one is given."""
        self._renewed_at = now
        if seconds is not None:
            self.seconds = seconds

    def hold(self, now: float) -> None:
        """Keep the lease from running out until `release`."""
        self._holders += 1
        self._renewed_at = now

    def release(self, now: float) -> None:
        """Idle time begins when the last holder lets go."""
        self._holders -= 1
        self._renewed_at = now

    def expires_at(self, now: float) -> float:
        """The instant when it runs out if nothing happens; while held, as if released now."""
        return (now if self._holders else self._renewed_at) + self.seconds

    def has_expired(self, now: float) -> bool:
        """Whether it ran out."""
        return not self._holders and now >= self._renewed_at + self.seconds


def check_lease_seconds(seconds: object, longest: float) -> float:
    """A lease that a client asks for: 0 < n ≤ `sessions.max_lease_seconds`."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidArgumentError(f"lease_seconds must be a number, got {seconds!r:.80}")
    if not 0 < seconds <= longest:  # NaN fails too
        raise InvalidArgumentError(
            f"lease_seconds must be more than 0 and at most {longest:g}, got {seconds:g}"
        )
    return float(seconds)
