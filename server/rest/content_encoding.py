"""Inflate the bodies of requests, for every front alike.

Source: RFC 9110 §8.4.1; of TensorFlow Serving, net_http/server/internal/evhttp_request.cc, that a
body is gzipped if the header has "gzip" anywhere, and that names it doesn't know are ignored (some
clients name a character set there).
"""

from __future__ import annotations

import zlib

from runtime.errors import InvalidArgumentError
from server.connections.large_body import Body
from server.errors import BodyTooLargeError
from server.memory_in_flight import COUNTED_BYTES, TIMES_BODY, hold
from server.steps.step_runner import off_loop

MAX_GZIP_MEMBERS = 1 << 14  # 0.2 s of work; a blocked gzip file of 1 GB has as many
_OTHER_COMPRESSIONS = frozenset(
    (b"br", b"compress", b"x-compress", b"dcb", b"dcz", b"xz", b"x-xz", b"zstd", b"x-zstd")
)
_GZIP = 31  # value of zlib's `wbits` that expects a gzip header
_RAW_BITS = -15
_FIRST_WINDOW, _LAST_WINDOW = 1 << 9, 1 << 20  # bytes that are inflated at once
_RATIO = 1032  # the most that a stream can inflate to (zlib's technical details)


def compression_of(encoding: bytes, *, is_strict: bool = False) -> bytes | None:
    """Return the compression that a Content-Encoding header names: gzip, deflate or None.

    Raises InvalidArgumentError if it names another one or several, and if it `is_strict` also for
    any other name.
    """
    if not encoding:
        return None
    names = [each.strip() for each in encoding.lower().split(b",")]
    names = [each for each in names if each not in (b"", b"identity")]
    known = [
        each
        for each in names
        if each in (b"gzip", b"x-gzip", b"deflate") or (not is_strict and b"gzip" in each)
    ]
    is_other = any(is_strict or each in _OTHER_COMPRESSIONS for each in names if each not in known)
    if is_other or len(known) > 1:
        raise InvalidArgumentError(
            "Content-Encoding must be gzip, deflate or identity, "
            f"got {encoding.decode('latin-1')!r:.80}"
        )
    if not known:
        return None
    return b"deflate" if known == [b"deflate"] else b"gzip"


async def decoded(body: Body, compression: bytes, max_bytes: int) -> Body:
    """Return the content of a body that is compressed with gzip or deflate.

    Raises InvalidArgumentError if the stream is broken or has more than MAX_GZIP_MEMBERS members,
    and BodyTooLargeError if it inflates to more than `max_bytes`.
    """
    if not body:  # some clients name an encoding with every request
        return body
    work = inflate if compression == b"gzip" else inflate_deflated
    content = await off_loop(len(body) * _RATIO, work, body, max_bytes)
    if len(content) >= COUNTED_BYTES:
        hold(len(content) * TIMES_BODY, is_body=True)
    return content


def inflate(body: Body, max_bytes: int) -> bytes:
    """Inflate all members of a gzip stream; raise the same errors as `decoded`.

    Takes time in proportion to the body and its content, however many members there are.
    """
    chunks: list[bytes] = []
    left, position = max_bytes, 0
    for _ in range(MAX_GZIP_MEMBERS):
        if position == len(body):
            return b"".join(chunks)
        inflater = zlib.decompressobj(_GZIP)
        # zlib copies what follows a member, so only little more than the member is passed to it.
        size = _FIRST_WINDOW
        while not inflater.eof:
            if position == len(body):
                raise InvalidArgumentError("Cannot inflate the gzipped body: it is cut short")
            window = body[position : position + size]
            try:
                chunk = inflater.decompress(window, left + 1)
            except zlib.error as error:
                raise InvalidArgumentError(f"Cannot inflate the gzipped body: {error}") from error
            left -= len(chunk)
            if left < 0:
                raise BodyTooLargeError(
                    f"The body inflates to more than {max_bytes} bytes (rest.max_body_bytes)"
                )
            chunks.append(chunk)
            position += len(window) - len(inflater.unused_data)
            size = min(2 * size, _LAST_WINDOW)
    if position == len(body):
        return b"".join(chunks)
    raise InvalidArgumentError(
        f"Cannot inflate the gzipped body: it has more than {MAX_GZIP_MEMBERS} members"
    )


def inflate_deflated(body: Body, max_bytes: int) -> bytes:
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
