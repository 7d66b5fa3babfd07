"""Bodies as they are received: in pieces, gzipped, in many members."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from typing import Any

import pytest

from runtime.foundation.errors import InvalidArgumentError
from server.errors import BodyTooLargeError
from server.rest import http_messages
from server.rest.http_messages import MAX_GZIP_MEMBERS, inflate, read_body
from server.steps.step_runner import OFF_LOOP_BYTES, off_loop

TEXT = bytes(range(256)) * 40
EMPTY = gzip.compress(b"", mtime=0)
ZIPPED = gzip.compress(TEXT, mtime=0)  # without a time, so that test names are always the same


@pytest.fixture(params=[(1, 4), (1 << 9, 1 << 20)], ids=["small windows", "windows"])
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_messages, "_FIRST_WINDOW", request.param[0])
    monkeypatch.setattr(http_messages, "_LAST_WINDOW", request.param[1])


@pytest.mark.usefixtures("windows")
def test_all_members_are_inflated() -> None:
    members = [TEXT, b"", b"x", TEXT[:300], b""]
    body = b"".join(map(gzip.compress, members))
    assert inflate(body, 1 << 20) == b"".join(members)
    assert inflate(body, len(TEXT) + 301) == b"".join(members)
    assert inflate(b"", 10) == b""


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (ZIPPED[:-1], "it is cut short"),
        (ZIPPED[:5], "it is cut short"),
        (ZIPPED + b"\x1f", "it is cut short"),
        (ZIPPED + b"xyz", "incorrect header check"),
        (TEXT, "incorrect header check"),
        (ZIPPED[:-8] + bytes(8), "incorrect data check"),
    ],
)
def test_broken_streams(body: bytes, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Cannot inflate the gzipped body: .*{message}"):
        inflate(body, 1 << 20)


@pytest.mark.usefixtures("windows")
def test_the_limit_is_one_of_all_members_together() -> None:
    body = gzip.compress(TEXT) * 2
    with pytest.raises(BodyTooLargeError, match=f"inflates to more than {2 * len(TEXT) - 1} bytes"):
        inflate(body, 2 * len(TEXT) - 1)


def test_the_number_of_members_is_limited() -> None:
    assert inflate(EMPTY * MAX_GZIP_MEMBERS, 10) == b""
    with pytest.raises(InvalidArgumentError, match=f"more than {MAX_GZIP_MEMBERS} members"):
        inflate(EMPTY * (MAX_GZIP_MEMBERS + 1), 10)


def test_many_members_are_copied_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows a member was copied for each of them: 4 MB of empty ones took 9 seconds."""
    passed: list[int] = []
    make = http_messages.zlib.decompressobj

    class Counted:
        def __init__(self, bits: int) -> None:
            self._made = make(bits)

        def decompress(self, window: bytes, limit: int) -> bytes:
            passed.append(len(window))
            return self._made.decompress(window, limit)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._made, name)

    monkeypatch.setattr(http_messages.zlib, "decompressobj", Counted)
    assert inflate(EMPTY * 10_000, 10) == b""
    assert sum(passed) <= 10_000 * http_messages._FIRST_WINDOW


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
