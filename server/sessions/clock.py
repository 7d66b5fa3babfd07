"""The two clocks of a server: one for leases, one for the times in responses."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Callable


@dataclasses.dataclass(frozen=True, slots=True)
class Clock:
    """`monotonic` measures leases; `wall` (seconds since 1970, UTC) is for times in responses."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time

    def wall_at(self, instant: float) -> float:
        """Convert an instant of `monotonic` to wall time."""
        return self.wall() + instant - self.monotonic()


def rfc3339(wall_seconds: float) -> str:
    """Format a UTC time as `2026-01-02T03:04:05.678Z`."""
    instant = datetime.datetime.fromtimestamp(wall_seconds, datetime.UTC)
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
