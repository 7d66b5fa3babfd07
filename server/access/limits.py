"""The limits of an owner, and what the owner uses of them.

Guarantees: used from the event loop only; clocks are passed in.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from server.access.access_errors import DeniedError, LimitExceededError

BURST_SECONDS = 1.0  # of an idle owner: this much of a rate may be used at once
_SOON = 1.0  # seconds after which running steps may have ended


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one owner; None means no limit.

    `requests_per_second` and `bytes_per_second` (bodies of requests and of responses together) are
    averages, of which one second's worth may be used at once. `priorities` and `pools` are the
    names that the owner's steps may use; if only `priorities` is given, the pools are theirs.
    """

    requests_per_second: float | None = None
    bytes_per_second: float | None = None
    sessions: int | None = None
    concurrent_steps: int | None = None
    priorities: tuple[str, ...] | None = None
    pools: tuple[str, ...] | None = None

    @property
    def limits_pools(self) -> bool:
        """Whether a step may be refused the pool of the default priority."""
        return self.priorities is not None or self.pools is not None


NO_LIMITS = Limits()


class TokenBucket:
    """Grants `rate` units per second; the balance is at most what BURST_SECONDS bring.

    What is taken may exceed the balance, which is then negative and must be earned first.
    """

    __slots__ = ("_balance", "_burst", "_rate", "_updated")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._burst = max(1.0, rate * BURST_SECONDS)
        self._balance = self._burst
        self._updated = now

    def seconds_to_wait(self, now: float) -> float:
        """Return the time until the balance is enough for a request; 0 if it is now."""
        self._balance = min(self._burst, self._balance + (now - self._updated) * self._rate)
        self._updated = now
        return 0.0 if self._balance >= 1 else (1 - self._balance) / self._rate

    def take(self, units: float) -> None:
        """Take units, of which there may be fewer."""
        self._balance -= units


class Usage:
    """What one owner uses, and its limits, which a reload may replace."""

    __slots__ = ("_bytes", "_clock", "_owner", "_requests", "limits", "running_steps")

    def __init__(self, owner: str, limits: Limits, clock: Callable[[], float]) -> None:
        self._owner = owner
        self._clock = clock
        self.running_steps = 0
        self.limits = limits
        self._requests: TokenBucket | None = None
        self._bytes: TokenBucket | None = None
        self.set_limits(limits)

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits; steps that run now go on."""
        self.limits = limits
        now = self._clock()
        requests, size = limits.requests_per_second, limits.bytes_per_second
        self._requests = None if requests is None else TokenBucket(requests, now)
        self._bytes = None if size is None else TokenBucket(size, now)

    @property
    def counts_bytes(self) -> bool:
        """Whether the owner has a limit of bytes, so that `add_bytes` must be called."""
        return self._bytes is not None

    def begin_request(self) -> None:
        """Count a request; raise LimitExceededError if it exceeds a rate."""
        now = self._clock()
        for bucket, rate in (
            (self._requests, "requests_per_second"),
            (self._bytes, "bytes_per_second"),
        ):
            seconds = 0.0 if bucket is None else bucket.seconds_to_wait(now)
            if seconds:
                raise LimitExceededError(
                    f"{self._owner} exceeds its limit: {rate} is {getattr(self.limits, rate):g}",
                    rate,
                    seconds,
                )
        if self._requests is not None:
            self._requests.take(1)

    def add_bytes(self, count: int) -> None:
        """Count the bytes of a body."""
        if self._bytes is not None:
            self._bytes.take(count)

    @property
    def allows_short_step(self) -> bool:
        """Whether a step of the default priority that ends before any other begins may run now."""
        limits = self.limits
        most = limits.concurrent_steps
        return not limits.limits_pools and (most is None or self.running_steps < most)

    def begin_step(self) -> None:
        """Count a running step; raise LimitExceededError if as many run as may."""
        most = self.limits.concurrent_steps
        if most is not None and self.running_steps >= most:
            raise LimitExceededError(
                f"{self._owner} exceeds its limit: concurrent_steps is {most}",
                "concurrent_steps",
                _SOON,
            )
        self.running_steps += 1

    def end_step(self) -> None:
        """End a step that `begin_step` has counted."""
        self.running_steps -= 1

    def check_sessions(self, count: int, retry_after_seconds: float) -> None:
        """Raise LimitExceededError if the owner, who has `count` sessions, may not open another."""
        most = self.limits.sessions
        if most is not None and count >= most:
            raise LimitExceededError(
                f"{self._owner} exceeds its limit: sessions is {most}",
                "sessions",
                retry_after_seconds if math.isfinite(retry_after_seconds) else _SOON,
            )

    def check_priority(self, name: str) -> None:
        """Raise PermissionDeniedError if the owner may not use a priority."""
        allowed = self.limits.priorities
        if allowed is not None and name not in allowed:
            raise DeniedError(
                f"{self._owner} may not use priority {name!r}; it may use {', '.join(allowed)}",
                "priority",
            )
