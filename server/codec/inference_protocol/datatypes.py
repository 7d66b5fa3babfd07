"""The protocol's datatypes, and the element types that they stand for.

Source: Open Inference Protocol, "Tensor Data Types"; BF16 is Triton's addition.
"""

from __future__ import annotations

import numpy as np

from runtime.api import DataType
from runtime.errors import InvalidArgumentError, UnimplementedError

DATA_TYPES: dict[str, DataType] = {
    "BOOL": DataType.BOOL,
    "UINT8": DataType.UINT8,
    "UINT16": DataType.UINT16,
    "UINT32": DataType.UINT32,
    "UINT64": DataType.UINT64,
    "INT8": DataType.INT8,
    "INT16": DataType.INT16,
    "INT32": DataType.INT32,
    "INT64": DataType.INT64,
    "FP16": DataType.HALF,
    "BF16": DataType.BFLOAT16,
    "FP32": DataType.FLOAT,
    "FP64": DataType.DOUBLE,
    "BYTES": DataType.STRING,
}
_DATATYPES = {data_type: name for name, data_type in DATA_TYPES.items()}
_DATATYPE_OF_ARRAY = {data_type.numpy: name for name, data_type in DATA_TYPES.items()}


def datatype_name(data_type: DataType) -> str:
    """Return the protocol's name of a type, or the type's own name if the protocol has none."""
    return _DATATYPES.get(data_type) or data_type.name_on_wire.upper()


def datatype_of(array: np.ndarray, name: str) -> str:
    """Return the datatype of the output `name`; raise UnimplementedError if there is none."""
    found = _DATATYPE_OF_ARRAY.get(array.dtype)
    if found is None:
        raise UnimplementedError(
            f"Output {name} has elements of {array.dtype}, for which the protocol has no datatype"
        )
    return found


def check_datatype(datatype: str, expected: DataType) -> None:
    """Raise InvalidArgumentError unless a datatype is the one of `expected`.

    Raises UnimplementedError if the protocol has no datatype for it.
    """
    if DATA_TYPES.get(datatype) is expected:
        return
    if datatype not in DATA_TYPES:
        known = ", ".join(DATA_TYPES)
        raise InvalidArgumentError(f"Unknown datatype {datatype!r:.80}; known are {known}")
    if expected not in _DATATYPES:
        raise UnimplementedError(
            f"The model expects {expected.name_on_wire}, for which the protocol has no datatype"
        )
    raise InvalidArgumentError(
        f"Its datatype is {datatype}, but the model expects {_DATATYPES[expected]}"
    )
