import re

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.dtypes import DataType as D
from server.codec.session.tensor_reader import read_tensor

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("value", "data_type", "expected"),
    [
        (1.5, D.FLOAT, np.float32(1.5)),
        (3, D.FLOAT, np.float32(3)),
        ([[1, 2.5], [3, 4]], D.FLOAT, np.array([[1, 2.5], [3, 4]], np.float32)),
        ([], D.FLOAT, np.zeros(0, np.float32)),
        ([[], []], D.INT32, np.zeros((2, 0), np.int32)),
        (["NaN", "Infinity", "-Infinity", 1], D.DOUBLE, np.array([NAN, INF, -INF, 1])),
        ([1e300], D.FLOAT, np.array([INF], np.float32)),
        ([10**400, -(10**400)], D.DOUBLE, np.array([INF, -INF])),
        ([-128, 127], D.INT8, np.array([-128, 127], np.int8)),
        ([2**64 - 1], D.UINT64, np.array([2**64 - 1], np.uint64)),
        ([True, False], D.BOOL, np.array([True, False])),
        ([[1, 2], [3, 4]], D.COMPLEX64, np.array([1 + 2j, 3 + 4j], np.complex64)),
        ([1, 2], D.COMPLEX128, np.array(1 + 2j)),
        ([-8, 7], D.INT4, np.array([-8, 7], D.INT4.numpy)),
        ([1.5, 2], D.BFLOAT16, np.array([1.5, 2], D.BFLOAT16.numpy)),
        (["a", {"b64": "/w=="}], D.STRING, np.array([b"a", b"\xff"], object)),
        ({"b64": "aGk="}, D.STRING, np.array(b"hi", object)),
        ({"dtype": "float32", "shape": [2, 1], "data": [1, 2]}, D.FLOAT,
         np.array([[1], [2]], np.float32)),
        ({"dtype": "DT_INT32", "shape": [2, 1], "data": [[1], [2]]}, D.FLOAT,
         np.array([[1], [2]], np.int32)),
        ({"dtype": "int32", "shape": [], "data": [7]}, D.INT32, np.array(7, np.int32)),
        ({"dtype": "int32", "shape": [0, 3], "data": []}, D.INT32, np.zeros((0, 3), np.int32)),
        ({"dtype": "int16", "shape": [2], "b64": "AQACAA=="}, D.INT16, np.array([1, 2], np.int16)),
        ({"shape": [2], "b64": "AAI="}, D.BOOL, np.array([False, True])),
        ({"dtype": "string", "shape": [2], "b64": "AQAAAGEAAAAA"}, D.STRING,
         np.array([b"a", b""], object)),
    ],
)  # fmt: skip
def test_read(value, data_type, expected):
    array = read_tensor(value, "x:0", data_type)
    assert array.dtype == expected.dtype and array.shape == expected.shape
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("value", "data_type", "message"),
    [
        ([1, True], D.FLOAT, "Expected a number at element 1, got true or false True"),
        ([1, None], D.FLOAT, "Expected a number at element 1, got null"),
        (["one"], D.FLOAT, "Expected a number at element 0, got a string 'one'"),
        ([1.0], D.INT32, "Expected an integer at element 0, got a number with a fraction 1.0"),
        ([True], D.INT32, "Expected an integer at element 0, got true or false True"),
        ([300], D.UINT8, "300 is out of range for uint8: 0 to 255"),
        ([-1], D.UINT64, "-1 is out of range for uint64"),
        ([8], D.INT4, "8 is out of range for int4: -8 to 7"),
        ([0], D.BOOL, "Expected true or false at element 0, got an integer 0"),
        ([1], D.STRING, 'Expected a string or {"b64": "…"} at element 0, got an integer 1'),
        ([[1, 2], [3]], D.FLOAT, "equal length at depth 2, got lengths [1, 2]"),
        ([[1], 2], D.FLOAT, "equal length at depth 2, got lists beside values"),
        ([1, [2]], D.FLOAT, "equal length at depth 2, got lists beside values"),
        ([[1, 2, 3]], D.COMPLEX64, "needs [re, im] innermost, got data of shape [1, 3]"),
        ({"dtype": "float32", "shape": [2], "data": [1]}, D.FLOAT,
         "Expected 2 elements for shape [2], got data of shape [1]"),
        ({"dtype": "float32", "shape": [4], "data": [[1, 2], [3, 4]]}, D.FLOAT,
         "got data of shape [2, 2]"),
        ({"dtype": "float32", "shape": [1], "data": [1], "b64": ""}, D.FLOAT,
         "Expected either data or b64, got both"),
        ({"dtype": "float32", "shape": [1]}, D.FLOAT, "got neither"),
        ({"dtype": "float33", "shape": [1], "data": [1]}, D.FLOAT, "Unknown dtype 'float33'"),
        ({"dtype": "resource", "shape": [], "data": 1}, D.FLOAT, "has no value on the wire"),
        ({"dtype": 1, "data": 1}, D.FLOAT, "dtype must be a string, got an integer"),
        ({"shape": [-1], "data": [1]}, D.FLOAT, "shape must be a list of non-negative integers"),
        ({"shape": [1] * 300, "data": [1]}, D.FLOAT, "has 300 dimensions; at most 64"),
        ({"shape": [1], "data": [1], "size": 3}, D.FLOAT, "Unknown keys: size"),
        ({"b64": "AAAA", "dtype": "int8"}, D.INT8, "A tensor given as b64 needs a shape"),
        ({"shape": [2], "b64": "AAAA"}, D.INT8, "Expected 2 bytes for shape [2] of int8, got 3"),
        ({"shape": [1], "b64": "A"}, D.INT8, "b64 is not valid base64"),
        ({"shape": [1], "b64": 5}, D.INT8, "b64 must be a string, got an integer"),
        ({"shape": [2], "b64": "AQAAAGEFAAAA"}, D.STRING, "The bytes end within string 1 of 2"),
        ({"shape": [0], "b64": "AQ=="}, D.STRING, "Expected 0 strings in 0 bytes, got 1 bytes"),
    ],
)  # fmt: skip
def test_read_refuses(value, data_type, message):
    with pytest.raises(InvalidArgumentError, match=re.escape(message)) as caught:
        read_tensor(value, "x:0", data_type)
    assert caught.value.message.startswith("Tensor x:0: ")


def test_deep_nesting_is_refused():
    value = 1
    for _ in range(400):
        value = [value]
    with pytest.raises(InvalidArgumentError, match="nested over 64 deep"):
        read_tensor(value, "x:0", D.FLOAT)


def test_a_huge_shape_is_refused_before_anything_is_allocated():
    with pytest.raises(ResourceExhaustedError, match="the limit is"):
        read_tensor({"shape": [1 << 40], "b64": ""}, "x:0", D.FLOAT)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ({"shape": [1 << 40, 0, 1 << 40], "data": []}, "has too many elements"),
        ({"shape": [1] * 65, "data": [1]}, "has 65 dimensions; at most 64 are supported"),
        ({"dtype": "string", "shape": [10**8], "b64": ""}, "0 bytes cannot hold 100000000 strings"),
    ],
)
def test_claims_that_no_array_can_hold_are_refused(tensor, message):
    with pytest.raises(InvalidArgumentError, match=message):
        read_tensor(tensor, "x:0", D.INT32)
