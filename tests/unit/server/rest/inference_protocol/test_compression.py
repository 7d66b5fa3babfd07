"""Encodings that are admitted, and compressed responses."""

from __future__ import annotations

import gzip
import zlib

import pytest

from runtime.errors import InvalidArgumentError
from server.rest.inference_protocol.compression import (
    accepted_encoding,
    check_encoding,
    compress,
)

TEXT = b"a tensor " * 100


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
