"""TensorProtos that TensorFlow's front end writes, and what they mean."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto


@pytest.mark.parametrize(
    ("shape", "values", "expected"),
    [
        ((3,), (1.0, 2.0), [1, 2, 2]),  # the last value is repeated
        ((2,), (), [0, 0]),
        ((1,), (1.0, 2.0), [1]),  # surplus values are ignored
        ((0,), (1.0,), []),
    ],
)
def test_values_fill_the_shape(
    shape: tuple[int], values: tuple[float], expected: list[float]
) -> None:
    dims = [pb.TensorShapeProto.Dim(size=size) for size in shape]
    proto = pb.TensorProto(
        dtype=pb.DT_FLOAT, tensor_shape=pb.TensorShapeProto(dim=dims), float_val=values
    )
    assert tensor_from_proto(proto).tolist() == expected


def test_an_empty_vector_of_strings_may_come_with_a_string() -> None:
    shape = pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=0)])
    proto = pb.TensorProto(dtype=pb.DT_STRING, tensor_shape=shape, string_val=[b""])
    array = tensor_from_proto(proto)
    assert (array.shape, array.dtype) == ((0,), np.dtype(object))


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">c16", "<f8", "?"])
def test_an_array_of_any_byte_order_has_its_values_in_a_proto(dtype: str) -> None:
    array = np.array([[1, 0], [0, 1]]).astype(dtype).T
    read = tensor_from_proto(tensor_to_proto(array))
    assert read.dtype == array.dtype.newbyteorder("=")
    assert read.tolist() == array.tolist()


def test_unsigned_values_of_64_bits_are_never_floats() -> None:
    shape = pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=3)])
    values = [5, (1 << 63) + 1, (1 << 64) - 1]
    proto = pb.TensorProto(dtype=pb.DT_UINT64, tensor_shape=shape, uint64_val=values)
    assert tensor_from_proto(proto).tolist() == values
