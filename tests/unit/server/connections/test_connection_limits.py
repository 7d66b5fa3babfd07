"""Which connections are ended, by what they wait for and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from server.connections.connection_limits import (
    LEAST_RATE,
    ConnectionLimits,
    Connections,
    Mark,
    Waiting,
    connections_that_fit,
)

LIMITS = ConnectionLimits(header_seconds=10, body_seconds=30, keep_alive_seconds=5)


class Connection:
    """Waits for what a test says, and notes how it was ended."""

    def __init__(self, waiting: Waiting) -> None:
        self.waiting, self.turn, self.amount = waiting, 0, 0
        self.last_mark: Mark | None = None
        self.ended: int | None = None  # the status, or 0

    def mark(self) -> Mark:
        return Mark(self.waiting, self.turn, self.amount)

    def refuse(self, status: int, message: str) -> None:
        self.ended = status

    def end(self) -> None:
        self.ended = 0


def seconds_until_end(connection: Connection, each: int = 0, is_crowded: bool = False) -> int:
    """After how many sweeps, one a second, the connection ends; `amount` changes by `each`."""
    connections = Connections(LIMITS)
    for second in range(1000):
        connections._look_at(connection, float(second), is_crowded)
        if connection.ended is not None:
            return second
        connection.amount += each
    return -1


@pytest.mark.parametrize(
    ("waiting", "seconds", "status"),
    [
        (Waiting.FIRST, 10, 0),
        (Waiting.NEXT, 5, 0),
        (Waiting.HEAD, 10, 408),
        (Waiting.BODY, 30, 408),
        (Waiting.SENDING, 30, 0),
        (Waiting.CLOSED, 5, 0),
        (Waiting.ANSWER, -1, None),
    ],
)
def test_a_silent_connection_ends(waiting: Waiting, seconds: int, status: int | None) -> None:
    connection = Connection(waiting)
    assert seconds_until_end(connection) == seconds
    assert connection.ended == status


@pytest.mark.parametrize("waiting", [Waiting.BODY, Waiting.SENDING])
def test_progress_must_have_the_least_rate(waiting: Waiting) -> None:
    assert seconds_until_end(Connection(waiting), LEAST_RATE - 1) == 30
    assert seconds_until_end(Connection(waiting), LEAST_RATE) == -1


def test_bytes_of_a_head_are_no_progress() -> None:
    assert seconds_until_end(Connection(Waiting.HEAD), 1 << 20) == 10


def test_another_request_begins_a_new_wait() -> None:
    connections, connection = Connections(LIMITS), Connection(Waiting.HEAD)
    for second in range(100):
        connection.turn = second // 9
        connections._look_at(connection, float(second), False)
    assert connection.ended is None


@pytest.mark.parametrize(("waiting", "seconds"), [(Waiting.NEXT, 1), (Waiting.BODY, 5)])
def test_waits_are_shorter_while_the_server_is_crowded(waiting: Waiting, seconds: int) -> None:
    assert seconds_until_end(Connection(waiting), is_crowded=True) == seconds


def test_connections_above_the_limit_are_refused_and_the_timer_ends_with_the_last_one() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        connections = Connections(ConnectionLimits(max_connections=2))
        made = [Connection(Waiting.NEXT) for _ in range(3)]
        for connection in made:
            connections.add(connection, loop)
        assert [connection.ended for connection in made] == [None, None, 503]
        assert len(connections) == 3
        for connection in made:
            connections.remove(connection)
        assert connections._timer is None

    asyncio.run(scenario())


class SlowLoop(asyncio.AbstractEventLoop):
    """A loop with a clock of its own, which begins its one timer as late as a test says."""

    def __init__(self) -> None:
        self.now, self.due = 100.0, 0.0
        self.callback: Callable[..., object] = lambda: None

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        self.due, self.callback = self.now + delay, callback
        return asyncio.TimerHandle(self.due, callback, args, self)

    def get_debug(self) -> bool:
        return False

    def sweep(self, late: float) -> None:
        self.now = self.due + late
        self.callback()


@pytest.mark.parametrize("late", [0.0, 0.4, 25.0])
def test_the_time_in_which_the_loop_was_busy_does_not_count(late: float) -> None:
    loop, connections, connection = SlowLoop(), Connections(LIMITS), Connection(Waiting.HEAD)
    connections.add(connection, loop)
    sweeps = 0
    while connection.ended is None:
        loop.sweep(late)
        sweeps += 1
    assert (connection.ended, sweeps) == (408, 11)  # the first one notes what it waits for


def test_one_late_sweep_ends_no_connection() -> None:
    loop, connections, connection = SlowLoop(), Connections(LIMITS), Connection(Waiting.NEXT)
    connections.add(connection, loop)
    for late in (0, 0, 3600, 0):
        loop.sweep(late)
    assert connection.ended is None


def test_the_limit_of_descriptors_permits_some_connections() -> None:
    assert connections_that_fit() >= 16
