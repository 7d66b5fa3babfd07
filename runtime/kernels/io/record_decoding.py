"""Kernels that decode strings: raw bytes to numbers, and decompression.

TF: tensorflow/core/kernels/decode_raw_op.cc, decode_padded_raw_op.cc, decode_compressed_op.cc
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import (
    DataLossError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from runtime.framework.allocation import check_allocation, tensor_limit
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, map_strings


def decode_raw(bytes: np.ndarray, *, out_type: DataType, little_endian: bool) -> np.ndarray:
    """DecodeRaw: return the bytes of each string as numbers; all strings must be equally long.

    The result is [*shape of the input, length / item size].
    """
    strings = as_strings(bytes)
    items = strings.ravel().tolist()
    if not items:
        return np.empty((*strings.shape, 0), out_type.numpy)
    length, item_size = len(items[0]), out_type.numpy.itemsize
    for index, item in enumerate(items):
        if len(item) != length:
            raise InvalidArgumentError(
                "DecodeRaw requires input strings to all be the same size, but element "
                f"{index} has size {length} != {len(item)}"
            )
    if length % item_size:
        raise InvalidArgumentError(
            f"Input to DecodeRaw has length {length} that is not a multiple of {item_size}, "
            f"the size of {out_type.tf_name}"
        )
    return _decoded_numbers(items, strings.shape, length, out_type, little_endian)


def decode_padded_raw(
    input_bytes: np.ndarray, fixed_length: np.ndarray, *, out_type: DataType, little_endian: bool
) -> np.ndarray:
    """DecodePaddedRaw: read the bytes of each string as numbers.

    Strings are first cut or padded with zero bytes to `fixed_length` bytes.
    """
    strings = as_strings(input_bytes)
    if np.ndim(fixed_length):
        raise InvalidArgumentError(
            f"k must be scalar, got shape {shape_text(np.shape(fixed_length))}"
        )
    length, item_size = int(fixed_length), out_type.numpy.itemsize
    if length <= 0:
        raise InvalidArgumentError(f"fixed_length ({length}) must be greater than zero.")
    if length % item_size:
        raise InvalidArgumentError(
            f"fixed_length ({length}) must be a multiple of the size of out_type ({item_size})"
        )
    check_allocation((strings.size, length), np.uint8)
    items = [item[:length].ljust(length, b"\0") for item in strings.ravel().tolist()]
    return _decoded_numbers(items, strings.shape, length, out_type, little_endian)


def _decoded_numbers(
    items: Sequence[bytes],
    shape: tuple[int, ...],
    length: int,
    out_type: DataType,
    little_endian: bool,
) -> np.ndarray:
    stored = np.frombuffer(b"".join(items), np.uint8)
    if out_type is DataType.BOOL:
        return (stored != 0).reshape((*shape, length))
    numbers = stored.view(out_type.numpy)
    if not little_endian:
        numbers = numbers.byteswap()
    return numbers.reshape((*shape, length // out_type.numpy.itemsize))


# What is left behind the end of a member is copied: the chunks begin small, so that members of few
# bytes cost little.
_FIRST_CHUNK = 1 << 12
# zlib's `wbits`, which selects the header that zlib expects.
_WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}


def decode_compressed(bytes: np.ndarray, *, compression_type: str) -> np.ndarray:
    """DecodeCompressed: decompress each element; if `compression_type` is empty, return the input.

    As in TensorFlow, of data that ends too early there is what was decoded so far, and members of
    GZIP data that follow each other are joined.

    Raises UnimplementedError if `compression_type` is ZSTD, InvalidArgumentError if it is unknown,
    DataLossError if data is corrupt, ResourceExhaustedError if an output is larger than a tensor
    may be.
    """
    if not compression_type:
        return as_strings(bytes)
    window_bits = _WINDOW_BITS.get(compression_type)
    if compression_type == "ZSTD":
        raise UnimplementedError("Decompressing ZSTD is not supported; ZLIB and GZIP are")
    if window_bits is None:
        raise InvalidArgumentError("Only ZLIB, ZSTD, GZIP or NONE are supported compressions")
    return map_strings(lambda item: _decompress(item, window_bits), bytes)


def _decompress(item: bytes, window_bits: int) -> bytes:
    parts: list[bytes] = []
    limit = room = tensor_limit()
    view, at, size = memoryview(item), 0, _FIRST_CHUNK
    decompressor = zlib.decompressobj(window_bits)
    while at < len(view):
        if decompressor.eof:
            if window_bits == zlib.MAX_WBITS:
                break
            decompressor, size = zlib.decompressobj(window_bits), _FIRST_CHUNK
        chunk = view[at : at + size]
        try:
            parts.append(decompressor.decompress(chunk, room + 1))
        except zlib.error as error:
            raise DataLossError(f"inflate() failed: {error}") from None
        room -= len(parts[-1])
        if room < 0:
            raise ResourceExhaustedError(
                f"A compressed string gives more than the {limit} bytes of a tensor"
            )
        at += len(chunk) - len(decompressor.unused_data)
        size *= 2
    return b"".join(parts)


KERNELS = (
    KernelDef("DecodeCompressed", decode_compressed),
    KernelDef("DecodePaddedRaw", decode_padded_raw),
    KernelDef("DecodeRaw", decode_raw),
)
