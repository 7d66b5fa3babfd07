"""Conversion of TensorProtos to numpy arrays and back.

Arrays of strings are `object` arrays of `bytes`. A TensorProto contains either raw little-endian
bytes in `tensor_content`, or a typed `*_val` list whose last element is repeated to fill the shape.

Guarantees: sizes are checked before memory is allocated; a decoded array is writable only if it
owns its memory (a view of `tensor_content`, and a large array of equal elements, is read-only).

TF: tensorflow/core/framework/tensor.proto, tensor.cc (Tensor::FromProto)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import protos as pb
from runtime.foundation.errors import (
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from runtime.framework.allocation import check_representable, tensor_limit
from runtime.framework.dtypes import DataType, from_number, from_numpy

# A tensor of at least this many bytes whose elements are all equal shares the memory of one element
# (stride 0). Smaller ones are copied, because dense arrays compute faster.
SHARED_BYTES = 1 << 20
_POINTER_BYTES = 8
_STRING_BYTES = 20  # at most, for each byte on the wire, of a bytes object and its field
_MAX_VARINT_SHIFT = 28  # bits; shift of the fifth byte, the last of a 32-bit length

# The `*_val` field of each element type, which is read if `tensor_content` is empty.
VALUE_FIELD: dict[DataType, str] = {
    DataType.FLOAT: "float_val",
    DataType.DOUBLE: "double_val",
    DataType.INT32: "int_val",
    DataType.INT16: "int_val",
    DataType.INT8: "int_val",
    DataType.UINT8: "int_val",
    DataType.UINT16: "int_val",
    DataType.QINT8: "int_val",
    DataType.QUINT8: "int_val",
    DataType.QINT16: "int_val",
    DataType.QUINT16: "int_val",
    DataType.QINT32: "int_val",
    DataType.INT4: "int_val",
    DataType.UINT4: "int_val",
    DataType.INT2: "int_val",
    DataType.UINT2: "int_val",
    DataType.STRING: "string_val",
    DataType.COMPLEX64: "scomplex_val",
    DataType.INT64: "int64_val",
    DataType.BOOL: "bool_val",
    DataType.COMPLEX128: "dcomplex_val",
    DataType.HALF: "half_val",
    DataType.BFLOAT16: "half_val",
    DataType.UINT32: "uint32_val",
    DataType.UINT64: "uint64_val",
    DataType.FLOAT8_E5M2: "float8_val",
    DataType.FLOAT8_E4M3FN: "float8_val",
    DataType.FLOAT8_E4M3FNUZ: "float8_val",
    DataType.FLOAT8_E4M3B11FNUZ: "float8_val",
    DataType.FLOAT8_E5M2FNUZ: "float8_val",
    DataType.FLOAT4_E2M1FN: "float8_val",
}


def shape_from_proto(proto: pb.TensorShapeProto) -> tuple[int, ...] | None:
    """Return the static shape in a proto; −1 is an unknown dimension, None an unknown rank."""
    if proto.unknown_rank:
        return None
    return tuple(dim.size if dim.size >= 0 else -1 for dim in proto.dim)


def shape_to_proto(shape: Sequence[int] | None) -> pb.TensorShapeProto:
    """Return the proto of a static shape; −1 is an unknown dimension, None an unknown rank."""
    if shape is None:
        return pb.TensorShapeProto(unknown_rank=True)
    return pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=size) for size in shape])


def tensor_from_proto(proto: pb.TensorProto, max_bytes: int | None = None) -> np.ndarray:
    """Decode a TensorProto to an array of its shape.

    Raises InvalidArgumentError if the dtype is unknown, if the shape is not fully defined, or if
    the size of the content does not fit the shape; ResourceExhaustedError if the array needs more
    than `max_bytes` (default: `tensor_limit()`); UnimplementedError if the tensor holds resources
    or variants, which exist in one process only.
    """
    data_type, _ = from_number(proto.dtype)
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise InvalidArgumentError(f"A tensor value needs a fully defined shape, got {shape}")
    count = math.prod(shape)
    dtype = data_type.numpy
    limit = tensor_limit() if max_bytes is None else max_bytes
    if count * dtype.itemsize > limit:
        raise ResourceExhaustedError(
            f"Tensor of shape {list(shape)} and type {data_type.tf_name} needs "
            f"{count * dtype.itemsize} bytes; the limit is {limit}"
        )
    check_representable(shape)
    field = VALUE_FIELD.get(data_type)
    if field is None:
        raise UnimplementedError(f"A tensor of type {data_type.tf_name} has no value on the wire")
    if data_type is DataType.STRING:
        values = list(proto.string_val)
        if proto.tensor_content:
            values = _strings_from_content(proto.tensor_content, count)
        return _fill(values, b"", count, dtype, shape)
    if proto.tensor_content:
        return _from_content(proto.tensor_content, dtype, count, shape)
    return _from_values(getattr(proto, field), data_type, count, shape)


def decoded_bytes(proto: pb.TensorProto, wire: int) -> int:
    """Return the bytes of the array that `tensor_from_proto` returns, or an upper bound.

    `wire` is the size of the message. 0 is returned for what can't be decoded.
    """
    try:
        data_type, _ = from_number(proto.dtype)
    except InvalidArgumentError:
        return 0
    count = math.prod(max(dim.size, 0) for dim in proto.tensor_shape.dim)
    if data_type is DataType.STRING:
        return count * _POINTER_BYTES + _STRING_BYTES * wire
    size = count * data_type.numpy.itemsize
    if size >= SHARED_BYTES and size > wire and _is_uniform(proto, data_type):
        return data_type.numpy.itemsize
    return size


def _is_uniform(proto: pb.TensorProto, data_type: DataType) -> bool:
    field = VALUE_FIELD.get(data_type)
    parts = 2 if data_type in (DataType.COMPLEX64, DataType.COMPLEX128) else 1
    return field is not None and len(getattr(proto, field)) <= parts and not proto.tensor_content


def _strings_from_content(content: bytes, count: int) -> list[bytes]:
    """Return the `count` strings in a `tensor_content`.

    It contains the lengths of all strings as varints, then the bytes of all strings.
    TF: tensorflow/core/platform/tensor_coding.cc (DecodeStringList)
    """
    lengths: list[int] = []
    position = 0
    while len(lengths) < count:
        length = shift = 0
        while True:
            if position >= len(content) or shift > _MAX_VARINT_SHIFT:
                raise InvalidArgumentError("The lengths of a packed string tensor are cut short")
            byte = content[position]
            position += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        lengths.append(length)
    if position + sum(lengths) != len(content):
        raise InvalidArgumentError(
            f"A packed string tensor has {len(content) - position} bytes of text, "
            f"its lengths say {sum(lengths)}"
        )
    strings = []
    for length in lengths:
        strings.append(content[position : position + length])
        position += length
    return strings


def _from_content(
    content: bytes, dtype: np.dtype, count: int, shape: tuple[int, ...]
) -> np.ndarray:
    if len(content) != count * dtype.itemsize:
        raise InvalidArgumentError(
            f"tensor_content has {len(content)} bytes, but shape {list(shape)} of {dtype} "
            f"needs {count * dtype.itemsize}"
        )
    return np.frombuffer(content, dtype, count).reshape(shape)


def _from_values(
    values: Sequence[object] | bytes, data_type: DataType, count: int, shape: tuple[int, ...]
) -> np.ndarray:
    dtype = data_type.numpy
    if data_type in (DataType.HALF, DataType.BFLOAT16):
        flat = np.array(values, np.uint32).astype(np.uint16).view(dtype)
    elif data_type in (DataType.FLOAT, DataType.DOUBLE):
        # A slice is a list, which numpy reads at once; the message's own sequence takes it longer.
        flat = np.array(values[:], dtype)
    elif data_type is DataType.UINT64:
        flat = np.array(values, dtype)  # numpy's default type for both 1 and 2**63 is float64
    elif isinstance(values, bytes):  # float8_val: one byte for each element
        flat = np.frombuffer(values, dtype)
    elif data_type in (DataType.COMPLEX64, DataType.COMPLEX128):
        part = np.float32 if data_type is DataType.COMPLEX64 else np.float64
        flat = np.array(values, part)
        if flat.size % 2:
            raise InvalidArgumentError("A complex tensor has an odd number of parts")
        flat = flat.view(dtype)
    else:
        # First convert to numpy's default type (int64 for `int_val`), because numpy does not
        # convert a Python int to a type that can't hold it (−1 to uint8).
        flat = np.array(values).astype(dtype) if len(values) else np.empty(0, dtype)
    return _fill(flat, dtype.type(0), count, dtype, shape)


def _fill(
    values: Sequence[object] | np.ndarray,
    empty: object,
    count: int,
    dtype: np.dtype,
    shape: tuple[int, ...],
) -> np.ndarray:
    """Return an array of `shape` with the first `count` values.

    If there are fewer values, the last one is repeated; if there are none, `empty` is repeated. A
    large array with one value is read-only, and all its elements are one place in memory: a few
    bytes on the wire do not take gigabytes.

    TF: tensorflow/core/framework/tensor.cc (FromProtoField)
    """
    if isinstance(values, np.ndarray) and len(values) == count:
        return values.reshape(shape)
    values = values[:count]
    if len(values) <= 1 and count * dtype.itemsize >= SHARED_BYTES:
        single = np.empty((), dtype)
        single[()] = values[0] if len(values) else empty
        return np.broadcast_to(single, shape)
    array = np.empty(count, dtype)
    array[: len(values)] = values
    array[len(values) :] = values[-1] if len(values) else empty
    return array.reshape(shape)


def tensor_to_proto(
    value: object, data_type: DataType | None = None, into: pb.TensorProto | None = None
) -> pb.TensorProto:
    """Encode an array as a TensorProto: numbers in `tensor_content`, strings in `string_val`.

    `data_type` must be given if the array's dtype does not determine it (QINT8 is stored as int8).
    `into` is an empty message to fill, such as a field of another message; using it avoids a copy.
    Raises UnimplementedError if `value` is a resource or a variant.
    """
    if not isinstance(value, np.ndarray | np.generic):
        raise UnimplementedError(f"A {type(value).__name__} has no value on the wire")
    array = np.asarray(value)
    if data_type is None:
        data_type = from_numpy(array.dtype)
    if data_type not in VALUE_FIELD:
        raise UnimplementedError(f"A tensor of type {data_type.tf_name} has no value on the wire")
    proto = pb.TensorProto() if into is None else into
    proto.dtype = int(data_type)  # type: ignore[assignment] # an IntEnum of the same numbers
    proto.tensor_shape.CopyFrom(shape_to_proto(array.shape))
    if data_type is DataType.STRING:
        proto.string_val.extend(as_bytes(item) for item in array.ravel().tolist())
    else:
        proto.tensor_content = np.ascontiguousarray(in_native_order(array)).tobytes()
    return proto


def in_native_order(array: np.ndarray) -> np.ndarray:
    """Return an array in the byte order of the machine, which kernels and messages require."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_bytes(item: object) -> bytes:
    """Return an element of a string tensor as bytes; encode a str as UTF-8.

    Raises InvalidArgumentError if `item` is neither bytes nor str.
    """
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode()
    raise InvalidArgumentError(f"A string element must be bytes or str, got {type(item).__name__}")
