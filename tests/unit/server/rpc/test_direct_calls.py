"""Calls of handlers without gRPC's transport: their context, errors, deadline and end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest

from runtime.errors import DeadlineExceededError, ResourceExhaustedError, UnimplementedError
from server.rpc.call import RETRY_AFTER
from server.rpc.direct_calls import DirectCalls

PATH = "/service/Method"
LONG = 20.0


def calls_of(handler: Callable[[bytes, Any], Awaitable[bytes]]) -> DirectCalls:
    return DirectCalls({PATH: handler})


async def forever(data: bytes, context: Any) -> bytes:
    await asyncio.sleep(LONG)
    return b""


def test_a_handler_sees_the_metadata_and_the_time_that_is_left() -> None:
    async def handler(data: bytes, context: Any) -> bytes:
        return repr((data, context.invocation_metadata(), context.time_remaining())).encode()

    calls = calls_of(handler)
    assert asyncio.run(calls.call(PATH, b"x")) == b"(b'x', (), None)"
    answer = asyncio.run(calls.call(PATH, b"x", [("key", "value")], LONG))
    assert answer == b"(b'x', [('key', 'value')], 20.0)"


def test_what_a_handler_ends_its_call_with_is_raised() -> None:
    async def handler(data: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", ((RETRY_AFTER, "2"),))
        raise AssertionError("abort raises")

    with pytest.raises(ResourceExhaustedError, match="full") as caught:
        asyncio.run(calls_of(handler).call(PATH, b""))
    assert caught.value.retry_after_seconds == 2


def test_a_method_that_is_not_there_is_unimplemented() -> None:
    with pytest.raises(UnimplementedError, match="Method not found!"):
        asyncio.run(calls_of(forever).call("/service/Other", b""))


def test_a_call_ends_at_its_deadline_and_when_it_is_cancelled() -> None:
    ends: list[str] = []

    async def handler(data: bytes, context: Any) -> bytes:
        try:
            return await forever(data, context)
        finally:
            ends.append(data.decode())

    async def scenario() -> None:
        calls = calls_of(handler)
        with pytest.raises(DeadlineExceededError):
            await calls.call(PATH, b"late", (), 0.01)
        calling = asyncio.ensure_future(calls.call(PATH, b"left"))
        await asyncio.sleep(0.01)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert ends == ["late", "left"]

    asyncio.run(scenario())


def test_calls_may_end_before_all_are_cancelled() -> None:
    may_end = asyncio.Event()

    async def handler(data: bytes, context: Any) -> bytes:
        if data == b"long":
            return await forever(data, context)
        await may_end.wait()
        return data

    async def scenario() -> None:
        calls = calls_of(handler)
        await calls.stop(LONG)  # nothing runs
        short, long = (asyncio.ensure_future(calls.call(PATH, each)) for each in (b"s", b"long"))
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(calls.stop(0.05))
        may_end.set()
        await stopping
        assert await short == b"s"
        with pytest.raises(asyncio.CancelledError):
            await long

    asyncio.run(scenario())
