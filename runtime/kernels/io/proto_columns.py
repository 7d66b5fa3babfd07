"""The values of one field of many serialized messages.

TF: tensorflow/core/kernels/decode_proto_op.cc (CountCollector, DenseCollector),
tensorflow/core/util/proto/decode.h
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

from runtime.foundation.errors import DataLossError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.kernels.io import proto_wire as wire
from runtime.kernels.io.proto_descriptors import Field

_F = FieldDescriptor
_U32, _U64 = np.dtype("<u4"), np.dtype("<u8")
_MASK_32 = (1 << 32) - 1
_SIGNED_32 = frozenset((_F.TYPE_INT32, _F.TYPE_ENUM))
FIXED: dict[int, np.dtype] = {
    _F.TYPE_DOUBLE: np.dtype("<f8"), _F.TYPE_FIXED64: _U64, _F.TYPE_SFIXED64: np.dtype("<i8"),
    _F.TYPE_FLOAT: np.dtype("<f4"), _F.TYPE_FIXED32: _U32, _F.TYPE_SFIXED32: np.dtype("<i4"),
}  # fmt: skip
_DELIMITED = frozenset((_F.TYPE_STRING, _F.TYPE_BYTES, _F.TYPE_MESSAGE))


def wire_type_of(field_type: int) -> int:
    """Return the wire type of a value of this type that is not packed."""
    if field_type in FIXED:
        return wire.FIXED64 if FIXED[field_type].itemsize == 8 else wire.FIXED32
    if field_type in _DELIMITED:
        return wire.DELIMITED
    return wire.START_GROUP if field_type == _F.TYPE_GROUP else wire.VARINT


def _zigzag(raw: np.ndarray) -> np.ndarray:
    return ((raw >> np.uint64(1)) ^ (np.uint64(0) - (raw & np.uint64(1)))).view(np.int64)


# Types of fields → how raw values, uint64, are converted before the tensor's element type.
_FROM_VARINT: dict[int, Callable[[np.ndarray], np.ndarray]] = {
    _F.TYPE_SINT32: lambda raw: _zigzag(raw & np.uint64(_MASK_32)),
    _F.TYPE_SINT64: _zigzag,
    _F.TYPE_BOOL: lambda raw: raw != 0,
    _F.TYPE_UINT32: lambda raw: raw & np.uint64(_MASK_32),
}


class Column:
    """Collects the values of a field, message after message.

    A packed value of a field that is not repeated is counted but gives the default, and a packed
    list after the last place is an error, as in TensorFlow.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self.wire_type = wire_type_of(field.type)
        self.sizes: list[int] = []  # of each message, as counted
        self._written: list[int] = []  # of each message: values that replace defaults
        self._pieces: list[np.ndarray] = []
        self._pending: list[int | bytes] = []  # values after those in `_pieces`
        self._size = self._next = 0
        self._single: int | bytes | None = None
        self._last_packed_at = -1  # the largest place at which a packed list began

    def end_message(self) -> None:
        """Finish a message; the next values belong to the next one."""
        if self._single is not None:
            self._pending.append(self._single)
        self._written.append(self._next)
        self.sizes.append(self._size)
        self._size = self._next = 0
        self._single = None

    def read(self, data: bytes, start: int, position: int, end: int) -> int:
        """Read one value; its tag begins at `start`. Return the position after it, or FAILED."""
        value: int | bytes
        if self.wire_type == wire.VARINT:
            value, after = wire.read_varint(data, position, end)
            if self.field.type in _SIGNED_32:
                value &= _MASK_32
                value = value | ~_MASK_32 & (1 << 64) - 1 if value >> 31 else value
        elif self.wire_type == wire.DELIMITED:
            first, after = wire.read_length(data, position, end)
            value = data[first:after] if after != wire.FAILED else b""
        else:
            after = wire.skip_value(data, position, end, self.field.number, self.wire_type)
            # a group is returned with its tags
            value = data[start if self.wire_type == wire.START_GROUP else position : max(after, 0)]
        if after != wire.FAILED:
            if self.field.is_repeated:
                self._pending.append(value)
                self._size += 1
                self._next += 1
            else:
                self._single, self._size, self._next = value, 1, 1
        return after

    def read_packed(self, data: bytes) -> None:
        """Read a packed list; raise DataLossError if it is damaged."""
        self._last_packed_at = max(self._last_packed_at, self._next)
        if not data:
            return
        values = self._unpacked(data)
        if self.field.is_repeated:
            self._flush()
            self._pieces.append(self._converted(values))
            self._size += len(values)
            self._next += len(values)
        else:
            self._size = 1

    def _unpacked(self, data: bytes) -> np.ndarray:
        fixed = FIXED.get(self.field.type)
        if fixed is not None:
            if len(data) % fixed.itemsize:
                raise DataLossError(f"Illegal data length for packed fixed-size type: {len(data)}")
            return np.frombuffer(data, fixed)
        if self.field.type == _F.TYPE_GROUP:
            raise DataLossError("TYPE_GROUP encountered as packed")
        values = wire.packed_varints(data)
        if values is None:
            raise DataLossError("Corrupt packed varint")
        # In an int64 tensor, negative numbers of a packed int32 are not sign-extended.
        return values & np.uint64(_MASK_32) if self.field.type in _SIGNED_32 else values

    def _converted(self, values: np.ndarray) -> np.ndarray:
        """Return values of the wire as elements of the tensor."""
        convert = _FROM_VARINT.get(self.field.type)
        if convert is not None:
            values = convert(values)
        return values.astype(self.field.data_type.numpy)

    def _flush(self) -> None:
        """Move pending values to the pieces."""
        if not self._pending:
            return
        if self.field.data_type is DataType.STRING:
            piece = np.empty(len(self._pending), object)
            piece[:] = self._pending
            self._pieces.append(piece)
        elif self.field.type in FIXED:
            joined = b"".join(self._pending)  # type: ignore[arg-type] # fixed values are bytes
            self._pieces.append(self._converted(np.frombuffer(joined, FIXED[self.field.type])))
        else:
            self._pieces.append(self._converted(np.array(self._pending, np.uint64)))
        self._pending = []

    @property
    def width(self) -> int:
        """The last dimension of the tensor: the largest number of values, at least 1."""
        return max(max(self.sizes, default=0), 1)

    def check(self) -> None:
        """Raise DataLossError if a packed list began after the last place."""
        if self._last_packed_at >= self.width:
            raise DataLossError(
                "ReadPackedValues: Tried to write more entries than allowed.  Field tag: "
                f"{self.field.number}, Max entries allowed: {self.width}"
            )

    def tensor(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return the values `[shape…, width]`, with the field's default in all other places."""
        dtype, width = self.field.data_type.numpy, self.width
        check_allocation((*shape, width), dtype)
        self._flush()
        result = np.full((len(self.sizes), width), self.field.default, dtype)
        if self._pieces:
            places = np.arange(width) < np.array(self._written)[:, np.newaxis]
            result[places] = np.concatenate(self._pieces)
        return result.reshape(*shape, width)
