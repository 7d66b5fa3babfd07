"""The protocol's datatypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from runtime.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.dtypes import DataType
from server.codec.inference_protocol.datatypes import (
    DATA_TYPES,
    check_datatype,
    datatype_name,
    datatype_of,
)


def test_every_datatype_has_one_type_and_is_found_again() -> None:
    assert len(set(DATA_TYPES.values())) == len(DATA_TYPES) == 14
    for name, data_type in DATA_TYPES.items():
        assert datatype_name(data_type) == name
        assert datatype_of(np.zeros(1, data_type.numpy), "y") == name
        check_datatype(name, data_type)
    assert datatype_of(np.zeros(1, ml_dtypes.bfloat16), "y") == "BF16"


def test_types_without_a_datatype() -> None:
    assert datatype_name(DataType.COMPLEX64) == "COMPLEX64"
    with pytest.raises(UnimplementedError, match="Output y has elements of complex64"):
        datatype_of(np.zeros(1, np.complex64), "y")
    with pytest.raises(UnimplementedError, match="expects complex64"):
        check_datatype("FP32", DataType.COMPLEX64)


def test_a_wrong_datatype() -> None:
    with pytest.raises(InvalidArgumentError, match="is FP64, but the model expects FP32"):
        check_datatype("FP64", DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match="Unknown datatype 'float'; known are BOOL"):
        check_datatype("float", DataType.FLOAT)
