"""Bodies as they are received: in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from server.rest import http_messages
from server.rest.http_messages import read_body
from server.steps.step_runner import OFF_LOOP_BYTES, off_loop


@pytest.mark.parametrize("size", [OFF_LOOP_BYTES, 10])
def test_a_large_body_is_joined_off_the_loop(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [b"a" * size, b"b", b""]
    joins: list[int] = []

    async def noted(size: int, join: Callable[[Any], bytes], parts: Any) -> bytes:
        joins.append(size)
        return await off_loop(size, join, parts)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    monkeypatch.setattr(http_messages, "off_loop", noted)
    assert asyncio.run(read_body(receive, {}, 1 << 30)) == b"a" * size + b"b"
    assert joins == [size + 1]
