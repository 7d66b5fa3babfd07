"""The kernel of EncodeProto: serialized messages made of tensors.

TF: tensorflow/core/kernels/encode_proto_op.cc
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import string_tensor
from runtime.kernels.io import proto_wire as wire
from runtime.kernels.io.proto_columns import FIXED, wire_type_of
from runtime.kernels.io.proto_descriptors import (
    COMPATIBLE,
    TYPE_NAMES,
    descriptor_pool,
    field_descriptor,
    message_descriptor,
)

_F = FieldDescriptor
_MASK_64 = (1 << 64) - 1
# Numbers are first cut to the field's size, and negative ones take ten bytes.
_VARINTS: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    _F.TYPE_INT32: lambda values: values.astype(np.int32),
    _F.TYPE_UINT32: lambda values: values.astype(np.uint32),
    _F.TYPE_SINT32: lambda values: _zigzag(values.astype(np.int32)).view(np.uint32),
    _F.TYPE_SINT64: lambda values: _zigzag(values).view(np.uint64),
}


def _zigzag(values: np.ndarray) -> np.ndarray:
    return (values << 1) ^ (values >> (8 * values.itemsize - 1))


class FieldWriter:
    """Writes the values of one field of a message."""

    def __init__(self, name: str, descriptor: FieldDescriptor) -> None:
        self.name = name
        self.number = descriptor.number
        self.type = descriptor.type
        self._is_packed = descriptor.is_packed
        self._tag = wire.tag(self.number, wire_type_of(self.type))

    def write(self, values: np.ndarray) -> bytes:
        """Return the field with `values` `[n]`; a packed field may not be of strings."""
        if values.dtype == object:
            return b"".join(map(self._text, values.tolist()))
        items = self._numbers(values)
        if not self._is_packed:
            return b"".join(self._tag + each for each in items)
        packed = b"".join(items)
        return wire.tag(self.number, wire.DELIMITED) + wire.varint(len(packed)) + packed

    def _text(self, value: bytes) -> bytes:
        if self.type == _F.TYPE_GROUP:
            return self._tag + value + wire.tag(self.number, wire.END_GROUP)
        return self._tag + wire.varint(len(value)) + value

    def _numbers(self, values: np.ndarray) -> list[bytes]:
        fixed = FIXED.get(self.type)
        if fixed is not None:
            with np.errstate(over="ignore"):
                data = values.astype(fixed).tobytes()
            width = fixed.itemsize
            return [data[place : place + width] for place in range(0, len(data), width)]
        cut = _VARINTS.get(self.type)
        whole = values if cut is None else cut(values)
        return [wire.varint(int(each) & _MASK_64) for each in whole.tolist()]


def _writers(
    context: OpKernelContext, message_type: str, field_names: Sequence[str], source: str
) -> list[FieldWriter]:
    """Return the writers of a node's fields, which the session keeps."""

    def make() -> list[FieldWriter]:
        pool = descriptor_pool(context, source)
        message = message_descriptor(pool, message_type)
        return [
            FieldWriter(name, field_descriptor(pool, message, name, with_extensions=False))
            for name in field_names
        ]

    writers: list[FieldWriter] = context.kernel_state(make)
    return writers


def _check_values(
    writers: Sequence[FieldWriter], values: Sequence[np.ndarray], types: Sequence[DataType]
) -> tuple[int, ...]:
    """Return the shape that all values have, without the last dimension."""
    prefix: tuple[int, ...] = ()
    for place, (writer, value, data_type) in enumerate(zip(writers, values, types, strict=True)):
        if data_type not in COMPATIBLE[writer.type]:
            raise InvalidArgumentError(
                f"Incompatible type for field {writer.name}.  Saw dtype: {data_type.tf_name} but "
                f"field type is: {TYPE_NAMES[writer.type]}"
            )
        if value.ndim < 2:
            raise InvalidArgumentError(
                f"Invalid shape for field {writer.name}.  Saw shape {shape_text(value.shape)} but "
                "it should be at least a matrix."
            )
        if not place:
            prefix = value.shape[:-1]
        elif value.shape[:-1] != prefix:
            raise InvalidArgumentError("Values must match up to the last dimension")
    return prefix


def _check_sizes(
    sizes: np.ndarray, values: Sequence[np.ndarray], prefix: tuple[int, ...]
) -> np.ndarray:
    """Return `sizes` as `[messages, fields]`."""
    expected = (*prefix, len(values))
    if sizes.shape != expected:
        raise InvalidArgumentError(
            f"sizes should be batch_size + [len(field_names)].  Saw: {shape_text(sizes.shape)} "
            f"but expected: {shape_text(expected)}"
        )
    flat = sizes.reshape(-1, len(values)) if values else np.zeros((0, 0), np.int32)
    for place, value in enumerate(values):
        large = np.flatnonzero(flat[:, place] > value.shape[-1])
        if len(large):
            raise InvalidArgumentError(
                "Size to write must not be larger than value tensor; but saw: "
                f"{flat[large[0], place]} > {value.shape[-1]} at message {large[0]} field {place}"
            )
    return flat


def encode_proto(
    context: OpKernelContext,
    sizes: np.ndarray,
    *values: np.ndarray,
    field_names: Sequence[str],
    message_type: str,
    descriptor_source: str,
    Tinput_types: Sequence[DataType],  # noqa: N803 # the attribute's name
) -> np.ndarray:
    """EncodeProto: return a serialized message for each row of the values `[…, n]`.

    `sizes` `[…, fields]` says how many values of a row are written.
    """
    writers = _writers(context, message_type, field_names, descriptor_source)
    if len(writers) != len(values):
        raise InvalidArgumentError("Length of inputs list must match field_names")
    prefix = _check_values(writers, values, Tinput_types)
    counts = _check_sizes(sizes, values, prefix)
    order = sorted(range(len(writers)), key=lambda place: writers[place].number)
    rows = [value.reshape(-1, value.shape[-1]) if value.size else value for value in values]
    result = []
    for message in range(len(counts)):
        check_task()
        parts = [
            writers[place].write(rows[place][message, : max(counts[message, place], 0)])
            for place in order
            if counts[message, place]  # a packed field of negative size is written, empty
        ]
        result.append(b"".join(parts))
    return string_tensor(result if values else [b""], prefix)


KERNELS = (KernelDef("EncodeProto", encode_proto),)
