"""The kernel of DecodeProtoV2: fields of serialized messages as tensors.

TF: tensorflow/core/kernels/decode_proto_op.cc
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from google.protobuf import message_factory, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from runtime.foundation.errors import DataLossError, InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.string_tensor import as_strings
from runtime.kernels.io import proto_wire as wire
from runtime.kernels.io.proto_columns import Column
from runtime.kernels.io.proto_descriptors import (
    COMPATIBLE,
    CPP_TYPE_NAMES,
    Field,
    descriptor_pool,
    field_descriptor,
    message_descriptor,
)

_FORMATS = ("binary", "text")
_TAGS_BETWEEN_CHECKS = 1 << 12


@dataclasses.dataclass(frozen=True, slots=True)
class DecodingPlan:
    """The fields that a node decodes, and the class of its messages."""

    fields: tuple[Field, ...]
    message_class: type[Message]


def decoding_plan(
    context: OpKernelContext,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[DataType],
    descriptor_source: str,
) -> DecodingPlan:
    """Return the plan of a node, which the session keeps.

    Raises InvalidArgumentError if the descriptors are damaged or do not fit the attributes.
    """

    def make() -> DecodingPlan:
        pool = descriptor_pool(context, descriptor_source)
        message = message_descriptor(pool, message_type)
        if len(field_names) != len(output_types):
            raise InvalidArgumentError(
                "field_names and output_types attributes must have the same length"
            )
        fields = tuple(
            _field(field_descriptor(pool, message, name, with_extensions=True), data_type)
            for name, data_type in zip(field_names, output_types, strict=True)
        )
        return DecodingPlan(fields, message_factory.GetMessageClass(message))

    plan: DecodingPlan = context.kernel_state(make)
    return plan


def _field(descriptor: FieldDescriptor, data_type: DataType) -> Field:
    if data_type not in COMPATIBLE[descriptor.type]:
        raise InvalidArgumentError(
            f"Unexpected output type for {descriptor.full_name}: "
            f"{CPP_TYPE_NAMES[descriptor.cpp_type]} to DT_{data_type.name}"
        )
    default = b"" if data_type is DataType.STRING else 0
    repeated = descriptor.is_repeated
    if not repeated and descriptor.type not in (
        FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP,
    ):  # fmt: skip
        default = descriptor.default_value
        default = default.encode() if isinstance(default, str) else default
    return Field(descriptor.number, descriptor.type, repeated, data_type, default)


def columns_of(plan: DecodingPlan, messages: Sequence[bytes]) -> list[Column]:
    """Return the values of each field in serialized messages.

    Raises DataLossError if a message is damaged.
    """
    columns = [Column(field) for field in plan.fields]
    by_number: dict[int, Column] = {}
    for column in columns:
        by_number.setdefault(column.field.number, column)
    for data in messages:
        check_task()
        _collect(data, by_number)
        for column in columns:
            column.end_message()
    for column in columns:
        column.check()
    return columns


def _collect(data: bytes, columns: dict[int, Column]) -> None:
    """Read the fields of one message into their columns."""
    position, end, count = 0, len(data), 0
    while position < end:
        count += 1
        if not count % _TAGS_BETWEEN_CHECKS:
            check_task()
        start = position
        number, wire_type, position = wire.read_tag(data, start, end)
        if position == wire.FAILED or wire_type == wire.END_GROUP:
            raise DataLossError("CountFields: Failed to consume entire buffer")
        column = columns.get(number)
        if column is None:
            position = wire.skip_value(data, position, end, number, wire_type)
            fault = "Failed skipping unrequested field"
        elif wire_type == column.wire_type:
            position = column.read(data, start, position, end)
            fault = "ReadValue: Failed skipping field when counting"
        elif wire_type == wire.DELIMITED:
            position = _read_packed(column, data, position, end)
            continue
        else:
            position = wire.skip_value(data, position, end, number, wire_type)
            fault = "CollectField: Failed skipping malformed field"
        if position == wire.FAILED:
            raise DataLossError(fault)


def _read_packed(column: Column, data: bytes, position: int, end: int) -> int:
    length, first = wire.read_varint(data, position, end)
    if first == wire.FAILED or length >= 1 << 31:
        raise DataLossError("CollectField: Failed reading packed size")
    if length and first + length > end:
        raise DataLossError("ReadPackedValues: Skipping packed field failed")
    column.read_packed(data[first : first + length])
    return first + length


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        check_task()
        yield line


def _reserialized(message_class: type[Message], data: bytes, is_binary: bool) -> bytes:
    """Return a message that was parsed by the protobuf library, serialized again.

    Raises DataLossError if it can't be parsed, or if a required field is missing.
    """
    message, kind = message_class(), "binary" if is_binary else "text"
    try:
        if is_binary:
            message.ParseFromString(data)
        else:
            text_format.ParseLines(  # type: ignore[attr-defined] # the stubs lack it
                _lines(data.decode()), message
            )
        return message.SerializeToString()
    except (
        DecodeError, EncodeError, text_format.ParseError, ValueError, TypeError, RecursionError
    ):  # fmt: skip
        raise DataLossError(f"Unable to parse {kind} protobuf") from None


def binary_messages(
    plan: DecodingPlan, given: Sequence[bytes], message_format: str, sanitize: bool
) -> Sequence[bytes]:
    """Return messages in the wire format; those to be sanitized are parsed and serialized."""
    if message_format not in _FORMATS:
        raise InvalidArgumentError("format must be one of binary or text")
    is_binary = message_format == "binary"
    if is_binary and not sanitize:
        return given
    result = []
    for data in given:
        check_task()
        result.append(_reserialized(plan.message_class, data, is_binary))
    return result


def decode_proto(
    context: OpKernelContext,
    bytes: np.ndarray,
    *,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[DataType],
    descriptor_source: str,
    message_format: str,
    sanitize: bool,
) -> tuple[np.ndarray, ...]:
    """DecodeProtoV2: return the sizes of fields `[…, fields]`, and each field's values `[…, n]`.

    n is the largest number of values that a message has, at least 1; missing values are the field's
    default.
    """
    plan = decoding_plan(context, message_type, field_names, output_types, descriptor_source)
    strings = as_strings(bytes)
    given = strings.ravel().tolist()
    if message_format in _FORMATS and not given:
        raise InvalidArgumentError("Bufs argument must contain at least one value")
    columns = columns_of(plan, binary_messages(plan, given, message_format, sanitize))
    sizes = np.array([column.sizes for column in columns], np.int32)
    return (
        sizes.reshape(len(columns), len(given)).T.reshape(*strings.shape, len(columns)),
        *(column.tensor(strings.shape) for column in columns),
    )


KERNELS = (KernelDef("DecodeProtoV2", decode_proto),)
