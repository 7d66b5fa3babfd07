"""Deflated bodies, and compressed responses; gzipped bodies are inflated for every front alike."""

from __future__ import annotations

import zlib

from runtime.errors import InvalidArgumentError
from server.errors import BodyTooLargeError

MIN_COMPRESSED_BYTES = 1 << 10  # to compress less saves no packet
_LEVEL = 1  # takes a third of the time of the default level
_WINDOW_BITS = {"gzip": 31, "deflate": 15}
_RAW_BITS = -15


def inflate_deflated(body: bytes, max_bytes: int) -> bytes:
    """Inflate a body of the encoding "deflate", with zlib's header or, as some send it, without.

    Raises InvalidArgumentError if the stream is broken, and BodyTooLargeError if it inflates to
    more than `max_bytes`.

    Source: RFC 9110 §8.4.1.2
    """
    # Source of the test: RFC 1950 §2.2
    has_header = len(body) > 1 and body[0] & 15 == zlib.DEFLATED
    has_header = has_header and int.from_bytes(body[:2], "big") % 31 == 0
    inflater = zlib.decompressobj(15 if has_header else _RAW_BITS)
    try:
        content = inflater.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise InvalidArgumentError(f"Cannot inflate the deflated body: {error}") from error
    if len(content) > max_bytes:
        raise BodyTooLargeError(
            f"The body inflates to more than {max_bytes} bytes (rest.max_body_bytes)"
        )
    if not inflater.eof:
        raise InvalidArgumentError("Cannot inflate the deflated body: it is cut short")
    if inflater.unused_data:
        raise InvalidArgumentError("Cannot inflate the deflated body: bytes follow its end")
    return content


def check_encoding(encoding: str) -> None:
    """Raise InvalidArgumentError unless a body of this Content-Encoding can be read."""
    if encoding not in ("", "identity", "gzip", "deflate"):
        raise InvalidArgumentError(
            f"Content-Encoding must be gzip, deflate or identity, got {encoding!r:.80}"
        )


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
