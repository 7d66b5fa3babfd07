"""The binary forms of arrays: there and back, and damaged ones."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from runstep.client.tensors import (
    DATATYPES,
    as_datatype,
    datatype_of,
    from_little_endian,
    little_endian,
    numpy_dtype,
    read_outputs,
    session_array,
    session_value,
    write_inputs,
)
from runtime.errors import InternalError, InvalidArgumentError

NUMBERS = [
    np.arange(6).reshape(2, 3).astype(numpy_dtype(name)) for name in (*DATATYPES, "complex64")
]
ARRAYS = [
    *NUMBERS,
    np.float32(3.5),
    np.empty((0, 4), np.int64),
    np.array([[b"a", b""], [b"\xff\x00", "ä".encode()]], object),
    np.array(b"scalar", object),
    np.arange(4, dtype=">i4"),
    np.arange(8)[::2],
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda each: f"{each.dtype}{list(np.shape(each))}")
def test_session_tensors_come_back(array: np.ndarray) -> None:
    value = session_value(array)
    assert isinstance(value, dict)
    back = session_array(value)
    np.testing.assert_array_equal(back, array)
    assert back.dtype.newbyteorder("=") == np.asarray(array).dtype.newbyteorder("=")


def test_numbers_and_lists_take_their_type_from_the_graph() -> None:
    assert session_value([[1, 2], [3, 4]]) == [[1, 2], [3, 4]]
    assert session_value(6) == 6
    assert session_value(b"\xff") == {"b64": "/w=="}
    assert session_value(np.array(["ä"])) == {"dtype": "string", "shape": [1], "b64": "AgAAAMOk"}


def test_inputs_and_outputs_of_v2_come_back() -> None:
    inputs = {
        "a": np.arange(3, dtype=np.float32),
        "b": np.array([b"x", b"yz"], object),
        "c": np.array([[1, -2]], ml_dtypes.bfloat16),
    }
    described, content = write_inputs(inputs)
    assert [each["datatype"] for each in described] == ["FP32", "BYTES", "BF16"]
    assert sum(each["parameters"]["binary_data_size"] for each in described) == len(content)
    back = read_outputs(described, content)
    assert list(back) == ["a", "b", "c"]
    for name, array in inputs.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype


def test_values_take_the_datatype_of_the_model() -> None:
    assert as_datatype([1, 2], "FP16").dtype == np.float16
    assert as_datatype(["a"], "BYTES").tolist() == ["a"]
    with pytest.raises(InvalidArgumentError, match=r"^expected values of INT8: "):
        as_datatype(["a"], "INT8")


@pytest.mark.parametrize(
    ("value", "datatype", "text"),
    [
        ([1.5], "INT32", "got floats"),
        (["3"], "FP32", "got strings"),
        ([True], "INT32", "got booleans"),
        ([2], "BOOL", "got integers"),
        ([1j], "FP32", "got complex numbers"),
        ([None], "FP32", "got other objects"),
        ([10**400], "FP32", "got other objects"),
        ([1, 300], "INT8", "got 1 to 300"),
        ([-1], "UINT8", "got -1 to -1"),
        ([2**63], "INT64", "got 9223372036854775808 to 9223372036854775808"),
        ([70000.0], "FP16", "overflow encountered in cast"),
        ([[1], [2, 3]], "FP32", "setting an array element"),
    ],
)
def test_values_that_would_change_are_refused(value: object, datatype: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^expected values of {datatype}: {text}"):
        as_datatype(value, datatype)


@pytest.mark.parametrize(
    ("value", "datatype", "expected"),
    [
        ([], "INT32", np.int32([])),
        ([True, False], "BOOL", np.array([True, False])),
        ([2**64 - 1], "UINT64", np.uint64([2**64 - 1])),
        ([ml_dtypes.bfloat16(1.5)], "FP32", np.float32([1.5])),
        (0.1, "FP32", np.float32(0.1)),
        ([float("nan"), float("inf")], "FP16", np.float16([np.nan, np.inf])),
        ([1, 2], "BF16", np.array([1, 2], ml_dtypes.bfloat16)),
    ],
)
def test_values_that_a_datatype_takes(value: object, datatype: str, expected: np.ndarray) -> None:
    array = as_datatype(value, datatype)
    np.testing.assert_array_equal(array, expected)
    assert array.dtype == expected.dtype


def test_arrays_from_the_server_may_be_written_to() -> None:
    described, content = write_inputs({"a": np.zeros(2, np.float32)})
    back = read_outputs(described, content)["a"]
    back[0] = 1
    assert back.tolist() == [1.0, 0.0]


def test_arrays_that_have_no_datatype_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^arrays of complex64 can't be sent: expected"):
        datatype_of(np.zeros(1, np.complex64))
    with pytest.raises(InvalidArgumentError, match="expected a string or bytes, got int"):
        little_endian(np.array([1], object))


@pytest.mark.parametrize(
    ("content", "name", "shape", "text"),
    [
        (b"abc", "float32", [1], r"expected 4 bytes of float32\[1\], got 3"),
        (b"\x05\x00\x00\x00abc", "string", [1], "expected 1 strings, got 7 bytes"),
        (b"\x01", "BYTES", [1], "expected 1 strings, got 1 bytes"),
        (b"", "nothing", [1], "a tensor of unknown type 'nothing'"),
    ],
)
def test_damaged_tensors(content: bytes, name: str, shape: list[int], text: str) -> None:
    with pytest.raises(InternalError, match=text):
        from_little_endian(content, name, shape)


def test_answers_that_are_no_tensors() -> None:
    with pytest.raises(InternalError, match="unreadable tensor: 'b64'"):
        session_array({"data": [1]})
    with pytest.raises(InternalError, match="unreadable tensor: KeyError"):
        read_outputs([{"name": "y"}], b"")
