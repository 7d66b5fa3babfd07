"""The limits of an owner, and what the owner uses of them.

Guarantees: used from the event loop only; clocks are passed in.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from server.access.access_errors import DeniedError, LimitExceededError
from server.access.owner_cells import OF_ONE_PROCESS, BucketCell, OwnerCells

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

    __slots__ = ("_burst", "_cell", "_rate")

    def __init__(self, rate: float, now: float, cell: BucketCell | None = None) -> None:
        """Go on with the balance of a cell, unless it has none yet."""
        self._rate = rate
        self._burst = max(1.0, rate * BURST_SECONDS)
        self._cell = BucketCell() if cell is None else cell
        if not self._cell.is_used:
            self._cell.balance, self._cell.updated, self._cell.is_used = self._burst, now, 1

    def seconds_to_wait(self, now: float) -> float:
        """Return the time until the balance is enough for a request; 0 if it is now."""
        cell = self._cell
        # Another process may have computed the balance a moment later.
        earned = max(0.0, now - cell.updated) * self._rate
        balance = cell.balance = min(self._burst, cell.balance + earned)
        cell.updated = max(now, cell.updated)
        return 0.0 if balance >= 1 else (1 - balance) / self._rate

    def take(self, units: float) -> None:
        """Take units, of which there may be fewer."""
        self._cell.balance -= units


class Usage:
    """What one owner uses, and its limits, which a reload may replace.

    `cells` has what the owner uses in other processes too.
    """

    __slots__ = (
        "__weakref__", "_bytes", "_cell", "_clock", "_locked", "_owner", "_requests", "_slot",
        "limits",
    )  # fmt: skip

    def __init__(
        self,
        owner: str,
        limits: Limits,
        clock: Callable[[], float],
        cells: OwnerCells = OF_ONE_PROCESS,
    ) -> None:
        self._owner = owner
        self._clock = clock
        self._slot = cells.slot
        self._locked = cells.locked
        self._cell = cells.cell(owner)
        self.limits = limits
        self._requests: TokenBucket | None = None
        self._bytes: TokenBucket | None = None
        with self._locked():
            self._use(limits)

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits; steps that run now go on."""
        with self._locked():
            self._cell.requests.is_used = self._cell.bytes.is_used = 0
            self._use(limits)

    def _use(self, limits: Limits) -> None:
        self.limits = limits
        now, cell = self._clock(), self._cell
        requests, size = limits.requests_per_second, limits.bytes_per_second
        self._requests = None if requests is None else TokenBucket(requests, now, cell.requests)
        self._bytes = None if size is None else TokenBucket(size, now, cell.bytes)

    @property
    def running_steps(self) -> int:
        """The running steps, in all processes."""
        return sum(self._cell.running)

    @property
    def counts_bytes(self) -> bool:
        """Whether the owner has a limit of bytes, so that `add_bytes` must be called."""
        return self._bytes is not None

    def begin_request(self) -> None:
        """Count a request; raise LimitExceededError if it exceeds a rate."""
        if self._requests is None and self._bytes is None:
            return
        now = self._clock()
        with self._locked():
            for bucket, rate in (
                (self._requests, "requests_per_second"),
                (self._bytes, "bytes_per_second"),
            ):
                seconds = 0.0 if bucket is None else bucket.seconds_to_wait(now)
                if seconds:
                    limit = getattr(self.limits, rate)
                    raise LimitExceededError(
                        f"{self._owner} exceeds its limit: {rate} is {limit:g}", rate, seconds
                    )
            if self._requests is not None:
                self._requests.take(1)

    def add_bytes(self, count: int) -> None:
        """Count the bytes of a body."""
        if self._bytes is not None:
            with self._locked():
                self._bytes.take(count)

    @property
    def allows_short_step(self) -> bool:
        """Whether a step of the default priority that ends before any other begins may run now."""
        limits = self.limits
        most = limits.concurrent_steps
        return not limits.limits_pools and (most is None or self.running_steps < most)

    def begin_step(self) -> None:
        """Count a running step; raise LimitExceededError if as many run as may."""
        most, running = self.limits.concurrent_steps, self._cell.running
        if most is None:
            running[self._slot] += 1
            return
        with self._locked():
            if self.running_steps >= most:
                raise LimitExceededError(
                    f"{self._owner} exceeds its limit: concurrent_steps is {most}",
                    "concurrent_steps",
                    _SOON,
                )
            running[self._slot] += 1

    def end_step(self) -> None:
        """End a step that `begin_step` has counted."""
        self._cell.running[self._slot] -= 1

    def note_sessions(self, count: int) -> None:
        """Note how many sessions the owner has in this process, or is opening."""
        self._cell.sessions[self._slot] = count

    def check_sessions(self, retry_after_seconds: float) -> None:
        """Raise LimitExceededError if the owner may not open a session beside those noted."""
        most = self.limits.sessions
        if most is not None and sum(self._cell.sessions) >= most:
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
