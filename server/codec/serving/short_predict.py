"""Read and write the predict bodies that come most often: small, regular and of numbers.

Each function returns None for a body or a value of any other kind, for which the caller must use
`requests` and `answers`; these alone report what is wrong with a body. What is accepted here has
the same meaning there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from runtime.api import DataType
from server.codec.serving.answers import WRITABLE_NUMBERS
from server.codec.serving.requests import DEFAULT_SIGNATURE, PredictFormat
from server.codec.serving.tensor_reader import TensorReader

_READER = TensorReader(exact_range=True)
_ROWS, _COLUMNS = b'{"predictions":%b}', b'{"outputs":%b}'


def read_short(body: bytes) -> tuple[str, PredictFormat, Any] | None:
    """Parse a body that has no other members than the inputs and the name of the signature.

    Returns that name, the form of the body and the value of the inputs.
    """
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if type(members) is not dict:
        return None
    signature = members.pop("signature_name", DEFAULT_SIGNATURE)
    if len(members) != 1 or type(signature) is not str or not signature:
        return None
    value = members.get("instances")
    if value is not None:
        return signature, PredictFormat.ROW, value
    value = members.get("inputs")
    return None if value is None else (signature, PredictFormat.COLUMNAR, value)


def short_inputs(
    form: PredictFormat, value: Any, input_types: Mapping[str, DataType]
) -> list[np.ndarray] | None:
    """Read the arrays of a body's value of the inputs, in the order of `input_types`.

    An instance or an input must be a number or nested lists, or several in an object.
    """
    if form is PredictFormat.ROW:
        if type(value) is not list or not value:
            return None
        if len(input_types) == 1 and type(value[0]) is not dict:
            return _only(value, input_types)
        columns = _columns(value, input_types)
    elif len(input_types) == 1 and type(value) is not dict:
        return _only(value, input_types)
    elif type(value) is dict and value.keys() == input_types.keys():
        columns = [value[name] for name in input_types]
    else:
        return None
    arrays = []
    for column, data_type in zip(columns, input_types.values(), strict=False):
        array = _READER.fast_array(column, data_type)
        if array is None:
            return None
        arrays.append(array)
    return arrays if len(arrays) == len(input_types) else None


def _only(value: Any, input_types: Mapping[str, DataType]) -> list[np.ndarray] | None:
    """Read the array of the only input."""
    (data_type,) = input_types.values()
    array = _READER.fast_array(value, data_type)
    return None if array is None else [array]


def _columns(instances: list[Any], input_types: Mapping[str, DataType]) -> list[list[Any]]:
    """Return the values of each input; an empty list if an instance has other inputs."""
    names = input_types.keys()
    if not all(type(each) is dict and each.keys() == names for each in instances):
        return []
    return [[each[name] for each in instances] for name in names]


def write_short(form: PredictFormat, values: Sequence[Any]) -> bytes | None:
    """Write the response of one output that is an array of finite numbers."""
    if len(values) != 1:
        return None
    (value,) = values
    if (
        not isinstance(value, np.ndarray)
        or not value.ndim
        or value.dtype not in WRITABLE_NUMBERS
        or not value.flags.c_contiguous
    ):
        return None
    text = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    if b"null" in text:  # which orjson writes for NaN and infinities
        return None
    # To look a member of an Enum up in a dict calls its `__hash__`, which is Python.
    return (_ROWS if form is PredictFormat.ROW else _COLUMNS) % text
