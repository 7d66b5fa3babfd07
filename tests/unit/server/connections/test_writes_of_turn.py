"""What one turn of the event loop writes is written together, and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from server.connections.writes_of_turn import HOLD_SECONDS, WritesOfTurn


class Loop:
    """Keeps what is to be called in the next turn."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        """Begin the next turn."""
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


class Wire(asyncio.Transport):
    """Notes in `log` what is written on which transport."""

    def __init__(self, name: str, log: list[tuple[str, bytes]]) -> None:
        super().__init__()
        self.name, self.log = name, log
        self.is_closed = False

    def write(self, data: Any) -> None:
        assert not self.is_closed
        self.log.append((self.name, bytes(data)))

    def is_closing(self) -> bool:
        return self.is_closed


class Turns:
    """Two connections, a loop and a clock."""

    def __init__(self) -> None:
        self.now = 7.0
        self.loop: Any = Loop()
        self.written: list[tuple[str, bytes]] = []
        self.a, self.b = Wire("a", self.written), Wire("b", self.written)
        self.writes = WritesOfTurn(lambda: self.now)

    def add(self, wire: Wire, data: bytes) -> None:
        self.writes.add(self.loop, wire, data)


@pytest.fixture
def turns() -> Turns:
    return Turns()


def test_what_is_added_is_written_in_the_next_turn(turns: Turns) -> None:
    turns.add(turns.a, b"1")
    turns.add(turns.b, b"2")
    turns.add(turns.a, b"3")
    assert turns.written == [] and len(turns.loop.soon) == 1
    turns.loop.turn()
    assert turns.written == [("a", b"13"), ("b", b"2")]
    turns.add(turns.b, b"4")
    turns.loop.turn()
    assert turns.written[2:] == [("b", b"4")] and not turns.loop.soon


def test_nothing_is_held_for_long(turns: Turns) -> None:
    turns.add(turns.a, b"1")
    turns.now += HOLD_SECONDS / 2
    turns.add(turns.b, b"2")
    assert turns.written == []
    turns.now += HOLD_SECONDS
    turns.add(turns.a, b"3")
    assert turns.written == [("a", b"13"), ("b", b"2")]
    turns.add(turns.b, b"4")
    assert len(turns.written) == 2
    turns.loop.turn()
    assert turns.written[2:] == [("b", b"4")]


def test_one_connection_can_be_written_before(turns: Turns) -> None:
    turns.add(turns.a, b"1")
    turns.add(turns.b, b"2")
    turns.writes.write_of(turns.b)
    turns.writes.write_of(turns.b)
    assert turns.written == [("b", b"2")]
    turns.loop.turn()
    assert turns.written == [("b", b"2"), ("a", b"1")]


def test_nothing_is_written_to_a_connection_that_has_ended(turns: Turns) -> None:
    turns.add(turns.a, b"1")
    turns.add(turns.b, b"2")
    turns.a.is_closed = turns.b.is_closed = True
    turns.writes.write_of(turns.b)
    turns.loop.turn()
    assert turns.written == []
