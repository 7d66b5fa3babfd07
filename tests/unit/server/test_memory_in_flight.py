"""What requests hold together, and which are refused."""

from __future__ import annotations

import asyncio

import pytest

from runtime.errors import ResourceExhaustedError
from server.memory_in_flight import MemoryInFlight, hold, machine_bytes


def test_requests_are_refused_above_the_limit_and_accepted_when_others_have_ended():
    memory = MemoryInFlight(100)
    first, second = memory.begin_request(), memory.begin_request()
    first.add(60)
    second.add(40)
    with pytest.raises(ResourceExhaustedError, match="hold 100 bytes, and this one needs 1 more"):
        second.add(1)
    first.end()
    second.add(60)
    assert memory.held == 100
    second.end()
    second.end()
    assert memory.held == 0


def test_a_single_request_is_never_refused():
    memory = MemoryInFlight(100)
    holding = memory.begin_request()
    for _ in range(3):
        holding.add(80)
    other = memory.begin_request()
    with pytest.raises(ResourceExhaustedError):
        other.add(1)
    holding.end()
    other.add(1 << 60)
    assert memory.held == 100


def test_hold_counts_for_the_request_of_the_task():
    memory = MemoryInFlight(100)

    async def request(size: int) -> int:
        holding = memory.begin_request()
        await asyncio.sleep(0)
        hold(size)
        return holding.size

    async def scenario() -> list[int]:
        return await asyncio.gather(request(10), request(20))

    hold(1 << 60)  # outside a request
    assert asyncio.run(scenario()) == [10, 20]
    assert memory.held == 30


def test_the_default_is_a_share_of_the_machine():
    assert 0 < MemoryInFlight().limit < machine_bytes()
