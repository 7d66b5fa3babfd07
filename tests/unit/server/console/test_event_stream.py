"""The console's stream: one source for all readers, only while there are any, bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runtime.errors import ResourceExhaustedError
from server.console.event_stream import MAX_PAUSE_SECONDS, MAX_READERS, EventStream
from server.lifecycle import Lifecycle, Phase


class Counted:
    """Figures that count how often they are read."""

    def __init__(self) -> None:
        self.made = self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1

    def message(self) -> bytes:
        self.made += 1
        return b"%d" % self.made


def stream(figures: Counted, lifecycle: Lifecycle | None = None) -> EventStream:
    async def sleep(_: float) -> None:
        for _ in range(20):  # readers get each message before the next
            await asyncio.sleep(0)

    source: Any = figures
    return EventStream(source, lifecycle or Lifecycle(), sleep)


def test_readers_share_what_is_made_once() -> None:
    async def run() -> None:
        figures = Counted()
        events = stream(figures)
        first, second = events.open(), events.open()
        got = [await anext(first) for _ in range(3)]
        assert got == [b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]
        assert await anext(second) == b"data: 3\n\n"  # the newest, at once
        assert events.readers == 2
        await first.aclose()
        await second.aclose()
        assert events.readers == 0
        made = figures.made
        await asyncio.sleep(0.01)
        assert figures.made == made
        third = events.open()
        assert await anext(third) == b"data: %d\n\n" % (made + 1)
        assert figures.forgotten == 2
        await third.aclose()

    asyncio.run(run())


def test_readers_are_limited_and_those_that_never_begin_take_no_place() -> None:
    async def run() -> None:
        events = stream(Counted())
        for _ in range(MAX_READERS):
            events.open()  # the client leaves before the first message
        readers = [events.open() for _ in range(MAX_READERS)]
        for reader in readers:
            assert await anext(reader)
        with pytest.raises(ResourceExhaustedError, match=f"open {MAX_READERS} times"):
            events.open()
        for reader in readers:
            await reader.aclose()
        assert events.readers == 0

    asyncio.run(run())


def test_the_stream_ends_when_the_server_drains() -> None:
    async def run() -> None:
        lifecycle = Lifecycle()
        events = stream(Counted(), lifecycle)
        reader = events.open()
        await anext(reader)
        lifecycle.phase = Phase.DRAINING
        assert len([message async for message in reader]) <= 1
        assert events.readers == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("cost", "pause"), [(0.001, 1), (0.01, 1), (0.02, 2), (0.084, 9), (5.0, MAX_PAUSE_SECONDS)]
)
def test_messages_that_cost_much_come_less_often(cost: float, pause: int) -> None:
    async def run() -> None:
        used, slept, made_at = [0.0], [0.0], []

        class Costly(Counted):
            def message(self) -> bytes:
                used[0] += cost
                made_at.append(slept[0])
                return super().message()

        async def sleep(seconds: float) -> None:
            slept[0] += seconds
            for _ in range(20):
                await asyncio.sleep(0)

        source: Any = Costly()
        events = EventStream(source, Lifecycle(), sleep, lambda: used[0])
        reader = events.open()
        for _ in range(3):
            await anext(reader)
        await reader.aclose()
        assert made_at[:3] == [0, pause, 2 * pause]

    asyncio.run(run())


def test_a_long_pause_ends_when_the_server_drains() -> None:
    async def run() -> None:
        lifecycle, slept, used = Lifecycle(), [0.0], [0.0]

        class Costly(Counted):
            def message(self) -> bytes:
                used[0] += 0.08
                return super().message()

        async def sleep(seconds: float) -> None:
            slept[0] += seconds
            if slept[0] == 2:
                lifecycle.phase = Phase.DRAINING
            for _ in range(20):
                await asyncio.sleep(0)

        source: Any = Costly()
        reader = EventStream(source, lifecycle, sleep, lambda: used[0]).open()
        assert [message async for message in reader] == [b"data: 1\n\n", b"data: 2\n\n"]
        assert slept[0] <= 3

    asyncio.run(run())


def test_figures_that_cannot_be_read_end_the_streams(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Counted):
        def message(self) -> bytes:
            if self.made == 1:
                self.made += 1
                raise ValueError("no figures")
            return super().message()

    async def run() -> None:
        events = stream(Broken())
        reader = events.open()
        assert [message async for message in reader] == [b"data: 1\n\n"]
        assert events.readers == 0
        again = events.open()
        assert await anext(again) == b"data: 3\n\n"
        await again.aclose()

    asyncio.run(run())
    assert "The console's figures can't be read" in caplog.text
