"""When the limit of a session's resources is looked at, and what it refuses."""

from __future__ import annotations

import sys

import pytest

from runtime.foundation.errors import ResourceExhaustedError
from runtime.framework.growth_limit import NO_LIMIT, GrowthLimit


class Counted:
    def __init__(self) -> None:
        self.bytes = 0
        self.counts = 0

    def count(self) -> int:
        self.counts += 1
        return self.bytes


def test_many_small_growths_are_counted_seldom() -> None:
    counted = Counted()
    limit = GrowthLimit(counted.count, 1 << 30)
    for _ in range(10_000):
        counted.bytes += 1000
        limit.grow(1000)
    assert counted.counts == 9  # once a megabyte


def test_above_the_limit_every_growth_is_refused() -> None:
    counted = Counted()
    limit = GrowthLimit(counted.count, 1 << 30)
    counted.bytes = 2 << 30
    with pytest.raises(
        ResourceExhaustedError, match=r"would hold 2147483648 bytes; sessions\.max_session_bytes"
    ):
        limit.grow(1 << 21)
    for _ in range(3):
        with pytest.raises(ResourceExhaustedError):
            limit.grow(1)
    counted.bytes = 0
    limit.grow(1)
    limit.check(1 << 29)
    with pytest.raises(ResourceExhaustedError):
        limit.check((1 << 30) + 1)


def test_without_a_limit_nothing_is_counted() -> None:
    counted = Counted()
    limit = GrowthLimit(counted.count)
    limit.grow(1 << 60)
    limit.check(1 << 60)
    assert counted.counts == 0
    NO_LIMIT.grow(1 << 60)
    assert NO_LIMIT.max_bytes == sys.maxsize
