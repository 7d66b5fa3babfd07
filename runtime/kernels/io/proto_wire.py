"""The wire format of protocol buffers: tags, varints and groups.

TF: the protobuf library's CodedInputStream, CodedOutputStream and WireFormatLite
"""

from __future__ import annotations

import numpy as np

VARINT, FIXED64, DELIMITED, START_GROUP, END_GROUP, FIXED32 = range(6)
FAILED = -1  # in place of a position
_LONGEST_VARINT = 10  # bytes
_MAX_DEPTH = 100  # of groups in groups
_MASK_64, _MASK_32, _MAX_INT32 = (1 << 64) - 1, (1 << 32) - 1, (1 << 31) - 1


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return (unsigned value of 64 bits, position after it); the position is FAILED if damaged."""
    value = shift = 0
    for place in range(position, min(position + _LONGEST_VARINT, end)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK_64, place + 1
        shift += 7
    return 0, FAILED


def read_tag(data: bytes, position: int, end: int) -> tuple[int, int, int]:
    """Return (field number, wire type, position after the tag); the position is FAILED if damaged.

    A tag of 0 is damaged.
    """
    tag, position = read_varint(data, position, end)
    tag &= _MASK_32
    return tag >> 3, tag & 7, position if tag else FAILED


def read_length(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return (start, end) of delimited bytes; the start is FAILED if they are damaged."""
    length, start = read_varint(data, position, end)
    length &= _MASK_32
    if start == FAILED or length > _MAX_INT32 or start + length > end:
        return FAILED, FAILED
    return start, start + length


def skip_value(data: bytes, position: int, end: int, number: int, wire_type: int) -> int:
    """Return the position after the value of a field whose tag was read; FAILED if damaged."""
    if not number:
        return FAILED
    if wire_type != START_GROUP:
        return _skip_plain(data, position, end, wire_type)
    groups = [number]
    while groups:
        number, wire_type, position = read_tag(data, position, end)
        if position == FAILED or not number:
            return FAILED
        if wire_type == END_GROUP:
            if number != groups.pop():
                return FAILED
        elif wire_type == START_GROUP:
            groups.append(number)
            if len(groups) > _MAX_DEPTH:
                return FAILED
        else:
            position = _skip_plain(data, position, end, wire_type)
            if position == FAILED:
                return FAILED
    return position


def _skip_plain(data: bytes, position: int, end: int, wire_type: int) -> int:
    if wire_type == VARINT:
        return read_varint(data, position, end)[1]
    if wire_type == DELIMITED:
        return read_length(data, position, end)[1]
    width = {FIXED64: 8, FIXED32: 4}.get(wire_type)
    return FAILED if width is None or position + width > end else position + width


def packed_varints(data: bytes) -> np.ndarray | None:
    """Return the varints that `data` consists of, uint64 `[n]`; None if it is damaged."""
    octets: np.ndarray = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets < 0x80)
    if not len(ends) or ends[-1] != len(octets) - 1:
        return None
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > _LONGEST_VARINT:
        return None
    result = np.zeros(len(ends), np.uint64)
    for place in range(int(lengths.max())):
        has = lengths > place
        bits = (octets[starts[has] + place] & 0x7F).astype(np.uint64)
        result[has] |= bits << np.uint64(7 * place)
    return result


def varint(value: int) -> bytes:
    """Return an unsigned value of 64 bits as a varint."""
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def tag(number: int, wire_type: int) -> bytes:
    """Return the tag of a field."""
    return varint(number << 3 | wire_type)
