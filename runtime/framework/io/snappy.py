"""Compress and decompress snappy data.

A snappy block is a sequence of elements: literals, and copies from earlier output. `compress`
writes literals only. The result is a valid block, about as long as the data.

TF: tsl/lib/io/snappy/snappy_inputbuffer.cc; the format is google/snappy's format_description.txt
"""

from __future__ import annotations

from runtime.foundation.errors import DataLossError, ResourceExhaustedError
from runtime.framework.io.varint import decode_varint, encode_varint

_LITERAL, _SHORT_COPY = 0, 1
_LONGEST_INLINE = 60  # bytes; the tag byte of a literal can hold any length up to this one
# kind of copy (the low two bits of the tag) → number of bytes that encode the offset
_COPY_OFFSET_BYTES = {1: 1, 2: 2, 3: 4}


def compress(data: bytes) -> bytes:
    """Return `data` as one snappy block."""
    if not data:
        return encode_varint(0)
    size = len(data) - 1
    if size < _LONGEST_INLINE:
        return encode_varint(len(data)) + bytes([size << 2]) + data
    count = (size.bit_length() + 7) // 8
    tag = bytes([(_LONGEST_INLINE - 1 + count) << 2]) + size.to_bytes(count, "little")
    return encode_varint(len(data)) + tag + data


def decompress(block: bytes, limit: int) -> bytes:
    """Return the decompressed data of one block.

    Raises DataLossError if the block is damaged, ResourceExhaustedError if the header of the block
    gives a length above `limit` bytes.
    """
    length, position = decode_varint(block, 0)
    if length > limit:
        raise ResourceExhaustedError(f"A block of {length} bytes, at most {limit} are allowed")
    output = bytearray()
    try:
        while position < len(block):
            position = _element(block, position, output)
            if len(output) > length:
                break
    except IndexError:
        raise DataLossError("A snappy block is cut off") from None
    if len(output) != length:
        raise DataLossError(f"A snappy block of {len(output)} bytes should have {length}")
    return bytes(output)


def _element(block: bytes, position: int, output: bytearray) -> int:
    """Append the bytes of the element at `position` to `output`; return the position after it."""
    tag = block[position]
    kind, position = tag & 3, position + 1
    if kind == _LITERAL:
        size = tag >> 2
        if size >= _LONGEST_INLINE:
            count = size - _LONGEST_INLINE + 1
            size = int.from_bytes(block[position : position + count], "little")
            position += count
        if position + size >= len(block):
            raise IndexError
        output += block[position : position + size + 1]
        return position + size + 1
    width = _COPY_OFFSET_BYTES[kind]
    if position + width > len(block):
        raise IndexError
    offset = int.from_bytes(block[position : position + width], "little")
    if kind == _SHORT_COPY:
        size, offset = (tag >> 2 & 7) + 4, (tag >> 5 << 8) | offset
    else:
        size = (tag >> 2) + 1
    if not 0 < offset <= len(output):
        raise DataLossError(f"A snappy block copies from {offset} bytes back of {len(output)}")
    start = len(output) - offset
    # byte by byte, because a copy may read bytes that it has just written
    for index in range(start, start + size):
        output.append(output[index])
    return position + width


def compress_framed(data: bytes) -> bytes:
    """Return `data` as one block, preceded by the block's length (32 bits, big-endian)."""
    block = compress(data)
    return len(block).to_bytes(4, "big") + block


def decompress_framed(data: bytes, limit: int) -> bytes:
    """Return the decompressed data of a sequence of blocks written by `compress_framed`.

    Raises DataLossError if a block is truncated or damaged, ResourceExhaustedError if the data is
    longer than `limit` bytes.
    """
    parts: list[bytes] = []
    position = 0
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if position + size > len(data):
            raise DataLossError("A snappy file is cut off")
        parts.append(decompress(data[position : position + size], limit))
        limit -= len(parts[-1])
        position += size
    return b"".join(parts)
