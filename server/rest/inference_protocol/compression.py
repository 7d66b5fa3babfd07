"""Compressed responses."""

from __future__ import annotations

import zlib

MIN_COMPRESSED_BYTES = 1 << 10  # to compress less saves no packet
_LEVEL = 1  # takes a third of the time of the default level
_WINDOW_BITS = {"gzip": 31, "deflate": 15}


def accepted_encoding(accept: str) -> str | None:
    """Return the encoding of the response for an Accept-Encoding header, or None for none.

    Of encodings of the same quality the first one is used.
    """
    best, best_quality = None, 0.0
    for item in accept.lower().split(","):
        name, _, parameters = item.partition(";")
        name = name.strip()
        try:
            quality = float(parameters.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if name in _WINDOW_BITS and quality > best_quality:
            best, best_quality = name, quality
    return best


def compress(content: bytes, encoding: str) -> bytes:
    """Compress a response; `encoding` is gzip or deflate."""
    deflater = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS[encoding])
    return deflater.compress(content) + deflater.flush()
