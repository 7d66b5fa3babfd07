"""Compressed responses."""

from __future__ import annotations

import gzip
import zlib

import pytest

from server.rest.inference_protocol.compression import accepted_encoding, compress

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
