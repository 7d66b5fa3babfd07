import asyncio

import pytest

from runtime.api import process_account
from runtime.foundation.errors import ResourceExhaustedError, UnavailableError
from server.lifecycle import QUIET_SECONDS, Lifecycle, Phase


def test_a_server_serves_until_it_drains():
    lifecycle = Lifecycle()
    assert lifecycle.phase is Phase.STARTING
    lifecycle.begin_serving()
    lifecycle.check_accepting()
    assert asyncio.run(lifecycle.drain(0.01)) is True
    with pytest.raises(UnavailableError, match="draining and takes no new work"):
        lifecycle.check_accepting()
    lifecycle.begin_serving()
    assert lifecycle.phase is Phase.DRAINING


def test_a_server_is_not_ready_before_its_ports_are_open():
    lifecycle = Lifecycle()
    lifecycle.expect_port("gRPC")
    lifecycle.begin_serving()
    assert lifecycle.not_ready() == ["the gRPC port is not open"]
    lifecycle.port_is_open("gRPC")
    assert lifecycle.not_ready() == []


def test_drain_waits_for_requests():
    async def scenario():
        lifecycle = Lifecycle()
        lifecycle.begin_request()
        draining = asyncio.create_task(lifecycle.drain(60))
        await asyncio.sleep(0)
        assert not draining.done()
        lifecycle.end_request()
        assert await draining is True

    asyncio.run(scenario())


def test_drain_gives_up_after_the_grace_time():
    async def scenario():
        lifecycle = Lifecycle()
        lifecycle.begin_request()
        assert await lifecycle.drain(0.001) is False

    asyncio.run(scenario())


def test_above_the_watermark_only_calls_that_free_memory_are_taken():
    lifecycle = Lifecycle()
    process_account.set_limits(None, 1)
    process_account._next_glance = 0.0
    try:
        with pytest.raises(ResourceExhaustedError, match="new work is refused above 1 "):
            lifecycle.check_accepting()
        assert not lifecycle.is_accepting
        lifecycle.check_accepting(frees_memory=True)
    finally:
        process_account.remove_limits()
    assert lifecycle.is_accepting


@pytest.mark.parametrize(
    ("calls", "waits"),
    [([0], 1), ([1, 0], 2), ([2, 1, 1, 0], 4), ([1] * 100, 20)],
    ids=["no call", "one", "some", "without end"],
)
def test_ports_stay_open_while_calls_are_refused(calls: list[int], waits: int) -> None:
    lifecycle = Lifecycle()
    lifecycle.begin_request()
    lifecycle.end_request()
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        for _ in range(calls[len(slept)]):
            with pytest.raises(UnavailableError):
                lifecycle.check_accepting()
        slept.append(seconds)

    async def scenario() -> None:
        await lifecycle.drain(60)
        await lifecycle.until_noticed(sleep)

    asyncio.run(scenario())
    assert slept == [QUIET_SECONDS] * waits


def test_a_server_without_a_request_closes_at_once() -> None:
    async def sleep(_: float) -> None:
        raise AssertionError("it sleeps")

    asyncio.run(Lifecycle().until_noticed(sleep))
