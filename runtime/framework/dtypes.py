"""Element types: TensorFlow's DataType numbers, their names and their numpy dtypes.

A quantised type has the numpy dtype in which it is stored (`qint8` is stored as int8). Whether a
tensor is quantised can't be seen from its array, only from the graph's attributes.

TF: tensorflow/core/framework/types.proto
"""

from __future__ import annotations

import enum
import functools

import ml_dtypes
import numpy as np

from runtime.foundation.errors import InvalidArgumentError

REF_OFFSET = 100  # DT_FLOAT_REF = DT_FLOAT + 100


class DataType(enum.IntEnum):
    """Element types, with TensorFlow's numbers; error messages show a type's `tf_name`."""

    INVALID = 0
    FLOAT = 1
    DOUBLE = 2
    INT32 = 3
    UINT8 = 4
    INT16 = 5
    INT8 = 6
    STRING = 7
    COMPLEX64 = 8
    INT64 = 9
    BOOL = 10
    QINT8 = 11
    QUINT8 = 12
    QINT32 = 13
    BFLOAT16 = 14
    QINT16 = 15
    QUINT16 = 16
    UINT16 = 17
    COMPLEX128 = 18
    HALF = 19
    RESOURCE = 20
    VARIANT = 21
    UINT32 = 22
    UINT64 = 23
    FLOAT8_E5M2 = 24
    FLOAT8_E4M3FN = 25
    FLOAT8_E4M3FNUZ = 26
    FLOAT8_E4M3B11FNUZ = 27
    FLOAT8_E5M2FNUZ = 28
    INT4 = 29
    UINT4 = 30
    INT2 = 31
    UINT2 = 32
    FLOAT4_E2M1FN = 33

    def __str__(self) -> str:
        """Return the text that a dtype of TensorFlow's Python API prints: `<dtype: 'float32'>`."""
        return f"<dtype: '{self.name_on_wire}'>"

    @property
    def as_numpy_dtype(self) -> type:
        """The numpy scalar type of this element type."""
        return self.numpy.type

    @property
    def base_dtype(self) -> DataType:
        """This type itself, because a DataType is never a reference type (see `from_number`)."""
        return self

    @functools.cached_property
    def tf_name(self) -> str:
        """TensorFlow's lower-case name: `float`, `int32`, `bfloat16`, `string`."""
        return self.name.lower()

    @functools.cached_property
    def numpy(self) -> np.dtype:
        """The numpy dtype of arrays of this type; `object` for strings, resources and variants.

        Raises InvalidArgumentError for INVALID.
        """
        try:
            return _NUMPY[self]
        except KeyError:
            raise InvalidArgumentError(f"No tensor has values of type {self.tf_name}") from None

    @functools.cached_property
    def name_on_wire(self) -> str:
        """The name in REST bodies: numpy's name of the dtype, or `tf_name` if numpy has none."""
        return _WIRE_NAME.get(self, self.tf_name)

    @property
    def is_floating(self) -> bool:
        """Whether this is a real floating-point type, of any size from 4 to 64 bits."""
        return self in FLOATING

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer type that is not quantised."""
        return self in INTEGER


_NUMPY: dict[DataType, np.dtype] = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.DOUBLE: np.dtype(np.float64),
    DataType.INT32: np.dtype(np.int32),
    DataType.UINT8: np.dtype(np.uint8),
    DataType.INT16: np.dtype(np.int16),
    DataType.INT8: np.dtype(np.int8),
    DataType.STRING: np.dtype(object),
    DataType.COMPLEX64: np.dtype(np.complex64),
    DataType.INT64: np.dtype(np.int64),
    DataType.BOOL: np.dtype(np.bool_),
    DataType.QINT8: np.dtype(np.int8),
    DataType.QUINT8: np.dtype(np.uint8),
    DataType.QINT32: np.dtype(np.int32),
    DataType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    DataType.QINT16: np.dtype(np.int16),
    DataType.QUINT16: np.dtype(np.uint16),
    DataType.UINT16: np.dtype(np.uint16),
    DataType.COMPLEX128: np.dtype(np.complex128),
    DataType.HALF: np.dtype(np.float16),
    DataType.RESOURCE: np.dtype(object),
    DataType.VARIANT: np.dtype(object),
    DataType.UINT32: np.dtype(np.uint32),
    DataType.UINT64: np.dtype(np.uint64),
    DataType.FLOAT8_E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DataType.FLOAT8_E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DataType.FLOAT8_E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    DataType.FLOAT8_E4M3B11FNUZ: np.dtype(ml_dtypes.float8_e4m3b11fnuz),
    DataType.FLOAT8_E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
    DataType.INT4: np.dtype(ml_dtypes.int4),
    DataType.UINT4: np.dtype(ml_dtypes.uint4),
    DataType.INT2: np.dtype(ml_dtypes.int2),
    DataType.UINT2: np.dtype(ml_dtypes.uint2),
    DataType.FLOAT4_E2M1FN: np.dtype(ml_dtypes.float4_e2m1fn),
}

_WIRE_NAME = {
    DataType.FLOAT: "float32",
    DataType.DOUBLE: "float64",
    DataType.HALF: "float16",
}

FLOATING = (
    DataType.HALF, DataType.BFLOAT16, DataType.FLOAT, DataType.DOUBLE,
    DataType.FLOAT8_E5M2, DataType.FLOAT8_E4M3FN, DataType.FLOAT8_E4M3FNUZ,
    DataType.FLOAT8_E4M3B11FNUZ, DataType.FLOAT8_E5M2FNUZ, DataType.FLOAT4_E2M1FN,
)  # fmt: skip
INTEGER = (
    DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
    DataType.INT2, DataType.UINT2, DataType.INT4, DataType.UINT4,
)  # fmt: skip
COMPLEX = (DataType.COMPLEX64, DataType.COMPLEX128)
QUANTIZED = (
    DataType.QINT8, DataType.QUINT8, DataType.QINT16, DataType.QUINT16, DataType.QINT32,
)  # fmt: skip
# The DataType of each numpy dtype. No numpy dtype has a quantised DataType; object has STRING.
_FROM_NUMPY: dict[np.dtype, DataType] = {}
for _data_type, _numpy in _NUMPY.items():
    if _data_type not in QUANTIZED:
        _FROM_NUMPY.setdefault(_numpy, _data_type)

_FROM_NAME: dict[str, DataType] = {}
for _data_type in DataType:
    for _name in (_data_type.tf_name, _data_type.name_on_wire, f"DT_{_data_type.name}"):
        _FROM_NAME[_name] = _data_type
# Number in a proto → (DataType, whether the number stands for a reference type, `DT_…_REF`).
_FROM_NUMBER = {int(each): (each, False) for each in DataType} | {
    each + REF_OFFSET: (each, True) for each in DataType if each
}


Types = tuple[DataType, ...]  # one for each component of an element, or for each argument


@functools.lru_cache(maxsize=256)
def from_numpy(dtype: np.dtype) -> DataType:
    """Return the DataType of a numpy dtype of any byte order; object, bytes and str give STRING.

    Raises InvalidArgumentError if no tensor can have the dtype.
    """
    found = _FROM_NUMPY.get(dtype)
    if found is None:
        if dtype.kind in "SUT":  # T: strings of any length
            return DataType.STRING
        native = dtype.newbyteorder("=")
        found = _FROM_NUMPY.get(native)
    if found is None:
        raise InvalidArgumentError(f"No tensor element type corresponds to numpy dtype {dtype}")
    return found


def from_name(name: str) -> DataType:
    """Return the DataType that has a name: `float32`, `float` and `DT_FLOAT` all give FLOAT.

    Raises InvalidArgumentError, which lists the known names, if `name` is not known.
    """
    try:
        return _FROM_NAME[name]
    except KeyError:
        known = ", ".join(sorted(t.name_on_wire for t in DataType if t))
        raise InvalidArgumentError(f"Unknown dtype {name!r}; known are {known}") from None


@functools.cache
def from_number(number: int) -> tuple[DataType, bool]:
    """Return (DataType, whether it is a reference type) for a number in a proto.

    Raises InvalidArgumentError if no type has the number.
    """
    try:
        return _FROM_NUMBER[number]
    except KeyError:
        raise InvalidArgumentError(f"Unknown DataType number {number}") from None
