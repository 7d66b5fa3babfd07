"""Compressed bodies and responses."""

from __future__ import annotations

import gzip
import zlib

import pytest

from runtime.errors import InvalidArgumentError
from server.errors import BodyTooLargeError
from server.rest.inference_protocol.compression import (
    accepted_encoding,
    check_encoding,
    compress,
    inflate_deflated,
)

TEXT = b"a tensor " * 100


def test_deflated_bodies_with_and_without_a_header() -> None:
    assert inflate_deflated(zlib.compress(TEXT), 900) == TEXT
    assert inflate_deflated(zlib.compress(TEXT)[2:-4], 900) == TEXT


def test_broken_cut_and_too_large_bodies() -> None:
    compressed = zlib.compress(TEXT)
    with pytest.raises(BodyTooLargeError, match="inflates to more than 899 bytes"):
        inflate_deflated(compressed, 899)
    with pytest.raises(InvalidArgumentError, match="cut short"):
        inflate_deflated(compressed[:-5], 900)
    with pytest.raises(InvalidArgumentError, match="bytes follow its end"):
        inflate_deflated(compressed + b"x", 900)
    for body in (b"\xff\xff\xff", b"x"):
        with pytest.raises(InvalidArgumentError, match="Cannot inflate"):
            inflate_deflated(body, 900)


@pytest.mark.parametrize(
    ("accept", "encoding"),
    [
        ("gzip", "gzip"),
        ("gzip, deflate, br", "gzip"),
        ("deflate;q=1.0, gzip;q=0.5", "deflate"),
        ("gzip;q=0, deflate;q=0.1", "deflate"),
        ("gzip;q=0", None),
        ("gzip;q=x", None),
        ("br, identity", None),
        ("*", None),
        ("", None),
    ],
)
def test_the_encoding_of_a_response(accept: str, encoding: str | None) -> None:
    assert accepted_encoding(accept) == encoding


def test_responses_can_be_inflated() -> None:
    assert gzip.decompress(compress(TEXT, "gzip")) == TEXT
    assert zlib.decompress(compress(TEXT, "deflate")) == TEXT


def test_unknown_encodings_are_refused() -> None:
    check_encoding("gzip")
    with pytest.raises(InvalidArgumentError, match="gzip, deflate or identity, got 'zstd'"):
        check_encoding("zstd")
