"""The format of tensor bundles: file names, and the encoding of strings and variants.

A bundle is a checkpoint in the V2 format. It consists of `<prefix>.index`, a sorted string table
that maps tensor names to BundleEntryProtos, and of `<prefix>.data-?????-of-?????`, which are the
shards with the bytes of the tensors. The entry of key "" is the BundleHeaderProto.

TF: tensorflow/core/util/tensor_bundle/tensor_bundle.h, naming.h
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import DataLossError
from runtime.framework.io.masked_crc32c import crc32c, mask, unmask
from runtime.framework.io.varint import decode_varint, encode_varint

HEADER_KEY = b""
VERSION = 1  # the version of the format; the reader refuses a bundle whose min_consumer is higher
_CHECKSUM_BYTES = 4


def index_path(prefix: str) -> str:
    """Return the path of the index of the bundle `prefix`."""
    return f"{prefix}.index"


def shard_path(prefix: str, shard: int, num_shards: int) -> str:
    """Return the path of the data file number `shard`, counted from 0, of the bundle `prefix`."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


def encode_strings(strings: Sequence[bytes]) -> tuple[bytes, int]:
    """Encode the elements of a string tensor; return (bytes on disk, checksum of the index entry).

    On disk are the lengths as varints, the masked checksum of the lengths, then the strings. Both
    checksums cover the lengths as fixed-width numbers, not as varints.
    """
    lengths = [len(string) for string in strings]
    crc = _lengths_checksum(lengths)
    stored = mask(crc).to_bytes(_CHECKSUM_BYTES, "little")
    body = b"".join(strings)
    data = b"".join(map(encode_varint, lengths)) + stored + body
    return data, crc32c(body, crc32c(stored, crc))


def decode_strings(data: bytes, count: int) -> tuple[list[bytes], int]:
    """Decode a string tensor of `count` elements; return (elements, checksum of the index entry).

    Raises DataLossError if the lengths do not match their checksum or the size of `data`.
    """
    lengths = []
    position = 0
    for _ in range(count):
        length, position = decode_varint(data, position)
        lengths.append(length)
    crc = _lengths_checksum(lengths)
    start = position + _CHECKSUM_BYTES
    stored = data[position:start]
    expected = unmask(int.from_bytes(stored, "little"))
    if len(stored) < _CHECKSUM_BYTES or expected != crc:
        raise DataLossError(
            f"The length checksum does not match: expected {expected} but actual is {crc}"
        )
    if start + sum(lengths) != len(data):
        raise DataLossError(
            f"A string tensor has {len(data) - start} bytes, but its lengths add up to "
            f"{sum(lengths)}"
        )
    strings = []
    for length in lengths:
        strings.append(data[start : start + length])
        start += length
    body = data[position + _CHECKSUM_BYTES :]
    return strings, crc32c(body, crc32c(stored, crc))


def encode_variants(messages: Sequence[bytes]) -> tuple[bytes, int]:
    """Encode the serialized elements of a variant tensor; return (bytes on disk, checksum).

    On disk, each element is its length as a varint, the message, and the masked checksum of
    everything before that checksum. The checksums cover the lengths as 64-bit numbers, not as
    varints. The returned checksum is the one to store in the index entry.
    """
    data = bytearray()
    crc = 0
    for message in messages:
        crc = _extended(crc, message)
        stored = mask(crc).to_bytes(_CHECKSUM_BYTES, "little")
        crc = crc32c(stored, crc)
        data += encode_varint(len(message)) + message + stored
    return bytes(data), crc


def _extended(crc: int, message: bytes) -> int:
    return crc32c(message, crc32c(len(message).to_bytes(8, "little"), crc))


def decode_variants(data: bytes, count: int) -> tuple[list[bytes], int]:
    """Decode a variant tensor of `count` elements; return (messages, checksum of the index entry).

    Raises DataLossError if the lengths do not add up to the size of `data`.
    """
    messages = []
    position = 0
    crc = 0
    for _ in range(count):
        length, start = decode_varint(data, position)
        stop = start + length
        position = stop + _CHECKSUM_BYTES
        messages.append(data[start:stop])
        crc = crc32c(data[stop:position], _extended(crc, messages[-1]))
    if position != len(data):
        raise DataLossError(
            f"A variant tensor has {len(data)} bytes, but its lengths add up to {position}"
        )
    return messages, crc


def _lengths_checksum(lengths: Sequence[int]) -> int:
    """Return the checksum of `lengths` as fixed-width numbers.

    A length below 2**32 is a 32-bit number, any other length a 64-bit number.
    """
    if max(lengths, default=0) < 1 << 32:
        return crc32c(np.array(lengths, "<u4").tobytes())
    widths = (4 if length < 1 << 32 else 8 for length in lengths)
    return crc32c(b"".join(n.to_bytes(w, "little") for n, w in zip(lengths, widths, strict=True)))
