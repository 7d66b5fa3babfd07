"""Write TensorProtos as TensorFlow Serving does, from parts that are joined once.

The values are in the typed field of the element type, or in `tensor_content`. Large tensors are
written slice by slice, so that other threads run in between.

TF: tensorflow/core/framework/tensor.cc (AsProtoField, AsProtoTensorContent);
    protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import protos as pb
from runtime.api import VALUE_FIELD, DataType, tensor_to_proto
from server.codec.large.slices import STEP_BYTES, steps
from server.codec.session.large_responses import Part, message_field

_FIELDS = pb.TensorProto.DESCRIPTOR.fields_by_name
_CONTENT = _FIELDS["tensor_content"].number
_NUMBERS = {data_type: _FIELDS[name].number for data_type, name in VALUE_FIELD.items()}
# Of these types, the packed values on the wire are the array's own bytes.
_SAME_BYTES = frozenset(
    data_type
    for data_type, name in VALUE_FIELD.items()
    if name in {"float_val", "double_val", "scomplex_val", "dcomplex_val", "bool_val", "float8_val"}
)
# The fields of these types take Python's numbers. The message writes a few of them sooner.
_PYTHON_VALUES = frozenset(
    data_type
    for data_type, name in VALUE_FIELD.items()
    if name
    in {"float_val", "double_val", "bool_val", "int_val", "int64_val", "uint32_val", "uint64_val"}
)
_FEW_VALUES = 64
_BITS = frozenset({DataType.HALF, DataType.BFLOAT16})  # their values are written as 16-bit numbers
_SLICE_VALUES = 1 << 14  # one slice of varints takes a millisecond
_BITS_OF_GROUP = 7  # of a varint: https://protobuf.dev/programming-guides/encoding/#varints


def tensor_parts(array: np.ndarray, data_type: DataType, *, as_content: bool) -> list[Part]:
    """Return the parts of a serialized TensorProto.

    If `as_content` is true, numbers are in `tensor_content`. Strings are in `string_val` in any
    case, because TensorFlow's Python clients cannot read them elsewhere. Raises UnimplementedError
    if the values are resources or variants.
    """
    if data_type is DataType.STRING or data_type not in VALUE_FIELD:
        return [tensor_to_proto(array, data_type).SerializeToString()]
    empty = pb.TensorProto(dtype=int(data_type))  # type: ignore[arg-type] # the same numbers
    dims = empty.tensor_shape.dim
    empty.tensor_shape.SetInParent()  # a scalar has the shape without dimensions
    for size in array.shape:
        dims.add(size=size)
    if array.size <= _FEW_VALUES and not as_content and data_type in _PYTHON_VALUES:
        getattr(empty, VALUE_FIELD[data_type]).extend(array.ravel().tolist())
        return [empty.SerializeToString()]
    header = empty.SerializeToString()
    if not array.size:
        return [header]
    values = np.ascontiguousarray(array).reshape(-1)
    if as_content or data_type in _SAME_BYTES:
        content = values.view(np.uint8)
        pieces = [content[begin:end].tobytes() for begin, end in _slices(len(content), STEP_BYTES)]
        return [header, *message_field(_CONTENT if as_content else _NUMBERS[data_type], pieces)]
    if data_type in _BITS:
        values = values.view(np.uint16)
    pieces = [varints(values[begin:end]) for begin, end in _slices(len(values), _SLICE_VALUES)]
    return [header, *message_field(_NUMBERS[data_type], pieces)]


def _slices(length: int, size: int) -> Iterable[tuple[int, int]]:
    """Return the bounds of the slices of a tensor; between those of a large one is a pause."""
    return ((0, length),) if length <= size else steps(0, length, size)


def varints(values: np.ndarray) -> bytes:
    """Return integers `[n]` as varints; a negative one takes ten bytes."""
    if values.dtype != np.uint64:
        values = values.astype(np.int64).view(np.uint64)
    longest = max(1, -(-int(values.max()).bit_length() // _BITS_OF_GROUP))
    shifts = np.arange(0, longest * _BITS_OF_GROUP, _BITS_OF_GROUP, dtype=np.uint64)
    rest = values[:, None] >> shifts  # what remains from each group on
    groups = (rest & 0x7F).astype(np.uint8)
    groups[:, :-1] |= (rest[:, 1:] != 0).astype(np.uint8) << 7  # another group follows
    is_written = rest != 0
    is_written[:, 0] = True
    written: bytes = groups[is_written].tobytes()
    return written
