"""Bodies of every encoding: in many members, cut short, too large, of unknown compressions."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from runtime.foundation.errors import InvalidArgumentError
from server.errors import BodyTooLargeError
from server.rest import content_encoding
from server.rest.content_encoding import (
    MAX_GZIP_MEMBERS,
    compression_of,
    decoded,
    inflate,
    inflate_deflated,
)

TEXT = bytes(range(256)) * 40
EMPTY = gzip.compress(b"", mtime=0)
ZIPPED = gzip.compress(TEXT, mtime=0)  # without a time, so that test names are always the same


@pytest.fixture(params=[(1, 4), (1 << 9, 1 << 20)], ids=["small windows", "windows"])
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_encoding, "_FIRST_WINDOW", request.param[0])
    monkeypatch.setattr(content_encoding, "_LAST_WINDOW", request.param[1])


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
    make = content_encoding.zlib.decompressobj

    class Counted:
        def __init__(self, bits: int) -> None:
            self._made = make(bits)

        def decompress(self, window: bytes, limit: int) -> bytes:
            passed.append(len(window))
            return self._made.decompress(window, limit)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._made, name)

    monkeypatch.setattr(content_encoding.zlib, "decompressobj", Counted)
    assert inflate(EMPTY * 10_000, 10) == b""
    assert sum(passed) <= 10_000 * content_encoding._FIRST_WINDOW


def test_deflated_bodies_with_and_without_a_header() -> None:
    assert inflate_deflated(zlib.compress(TEXT), len(TEXT)) == TEXT
    assert inflate_deflated(zlib.compress(TEXT)[2:-4], len(TEXT)) == TEXT


def test_broken_cut_and_too_large_bodies() -> None:
    compressed = zlib.compress(TEXT)
    with pytest.raises(BodyTooLargeError, match=f"inflates to more than {len(TEXT) - 1} bytes"):
        inflate_deflated(compressed, len(TEXT) - 1)
    with pytest.raises(InvalidArgumentError, match="cut short"):
        inflate_deflated(compressed[:-5], len(TEXT))
    with pytest.raises(InvalidArgumentError, match="bytes follow its end"):
        inflate_deflated(compressed + b"x", len(TEXT))
    for body in (b"\xff\xff\xff", b"x"):
        with pytest.raises(InvalidArgumentError, match="Cannot inflate"):
            inflate_deflated(body, len(TEXT))


@pytest.mark.parametrize(
    ("encoding", "compression"),
    [
        ("gzip", b"gzip"),
        ("X-GZIP", b"gzip"),
        (" Deflate ", b"deflate"),
        ("identity, deflate,", b"deflate"),
        ("gzip, utf-8", b"gzip"),  # some clients name the character set here
        ("identity", None),
        ("utf-8", None),
        ("", None),
    ],
)
def test_the_compression_that_a_header_names(encoding: str, compression: bytes | None) -> None:
    assert compression_of(encoding.encode()) == compression


@pytest.mark.parametrize(
    "encoding", ["br", "zstd", "Compress", "br, gzip", "deflate, gzip", "gzip,gzip", "utf-8, br"]
)
def test_other_compressions_and_several_are_refused(encoding: str) -> None:
    with pytest.raises(
        InvalidArgumentError,
        match=f"Content-Encoding must be gzip, deflate or identity, got '{encoding}'",
    ):
        compression_of(encoding.encode())


@pytest.mark.parametrize("encoding", ["utf-8", "zip", "gzip2", "gzip, utf-8", "deflate\xa0"])
def test_a_strict_protocol_takes_no_other_name(encoding: str) -> None:
    with pytest.raises(InvalidArgumentError, match="must be gzip, deflate or identity, got "):
        compression_of(encoding.encode("latin-1"), is_strict=True)
    assert compression_of(b"x-gzip", is_strict=True) == b"gzip"


@pytest.mark.parametrize("of", [bytes, memoryview])
def test_bodies_of_both_compressions(of: Callable[[bytes], Any]) -> None:
    for compression, body in ((b"gzip", ZIPPED), (b"deflate", zlib.compress(TEXT))):
        assert asyncio.run(decoded(of(body), compression, 1 << 20)) == TEXT
        assert asyncio.run(decoded(b"", compression, 1 << 20)) == b""
