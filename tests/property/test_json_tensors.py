"""JSON tensors of any dtype, shape and value are read back as they were written."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from runtime.framework.dtypes import DataType, from_numpy
from server.codec.json_body import parse_json, to_json
from server.codec.session.tensor_reader import read_tensor
from server.codec.session.tensor_writer import write_tensor

VALUES = [t for t in DataType if t and t.numpy.kind != "O" and from_numpy(t.numpy) is t]
NUMERIC = [t for t in VALUES if t.numpy.isbuiltin == 1]  # numpy's types, which hypothesis can draw
SMALL = [t for t in VALUES if t.numpy.isbuiltin != 1]  # types of ml_dtypes
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def round_trip(array, data_type, encoding, non_finite="string"):
    text = to_json(write_tensor(array, data_type, encoding=encoding, non_finite=non_finite))
    return read_tensor(parse_json(text), "x:0", data_type)


@pytest.mark.parametrize("encoding", ["json", "b64"])
@settings(max_examples=150, deadline=None)
@given(
    data=st.data(), data_type=st.sampled_from(NUMERIC), policy=st.sampled_from(["string", "token"])
)
def test_numbers(data, data_type, policy, encoding):
    array = data.draw(hnp.arrays(data_type.numpy, SHAPES))
    back = round_trip(array, data_type, encoding, policy)
    assert back.dtype == array.dtype and back.shape == array.shape
    np.testing.assert_array_equal(back, array)
    if array.dtype.kind == "f":  # the sign of zero is kept too
        np.testing.assert_array_equal(np.signbit(back[array == 0]), np.signbit(array[array == 0]))


@pytest.mark.parametrize("encoding", ["json", "b64"])
@pytest.mark.parametrize("data_type", SMALL, ids=lambda t: t.tf_name)
def test_small_types(data_type, encoding):
    array = np.arange(-8, 16).astype(np.float32).clip(-1, 1).astype(data_type.numpy)
    back = round_trip(array, data_type, encoding)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("encoding", ["json", "b64"])
@settings(max_examples=100, deadline=None)
@given(items=st.lists(st.binary(max_size=8) | st.text(max_size=8).map(str.encode)))
def test_strings(items, encoding):
    array = np.empty(len(items), object)
    array[:] = items
    assert round_trip(array, DataType.STRING, encoding).tolist() == items
