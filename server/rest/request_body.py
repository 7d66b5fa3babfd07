"""The body of an ASGI request, inflated when it is gzipped."""

from __future__ import annotations

import zlib

from starlette.types import Receive

from runtime.errors import CancelledError, InvalidArgumentError
from server.errors import BodyTooLargeError

_GZIP = 31  # zlib's window bits that expect a gzip header


async def read_body(receive: Receive, content_encoding: bytes, max_bytes: int) -> bytes:
    """All of the body.

    Raises CancelledError when the client goes away, InvalidArgumentError for a broken gzip
    stream, BodyTooLargeError when it inflates to more than `max_bytes`.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body") or message["type"] != "http.request":
        chunks = [body]
        while message.get("more_body"):
            message = await receive()
            chunks.append(message.get("body", b""))
        if message["type"] == "http.disconnect":
            raise CancelledError("The client went away.")
        body = b"".join(chunks)
    return inflate(body, max_bytes) if b"gzip" in content_encoding.lower() else body


def inflate(body: bytes, max_bytes: int) -> bytes:
    """The content of a gzip stream, of all its members."""
    chunks = []
    left = max_bytes
    while body:
        inflater = zlib.decompressobj(_GZIP)
        try:
            chunk = inflater.decompress(body, left + 1)
        except zlib.error as error:
            raise InvalidArgumentError(f"Cannot inflate the gzipped body: {error}") from error
        left -= len(chunk)
        if left < 0:
            raise BodyTooLargeError(
                f"The body inflates to more than {max_bytes} bytes (rest.max_body_bytes)"
            )
        if not inflater.eof:
            raise InvalidArgumentError("Cannot inflate the gzipped body: it is cut short")
        chunks.append(chunk)
        body = inflater.unused_data
    return b"".join(chunks)
