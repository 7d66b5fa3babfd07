import json

import numpy as np
import pytest

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType as D
from server.codec.json_body import to_json
from server.codec.session.tensor_writer import write_tensor

NAN, INF = float("nan"), float("inf")


def written(value, data_type, **options):
    return json.loads(to_json(write_tensor(value, data_type, **options)))


@pytest.mark.parametrize(
    ("array", "data_type", "data"),
    [
        (np.float32(0.1), D.FLOAT, 0.1),
        (np.array([0.1, 3], np.float32), D.FLOAT, [0.1, 3.0]),
        (np.array(2.5), D.DOUBLE, 2.5),
        (np.array([[1, 2], [3, 4]], np.int64).T, D.INT64, [[1, 3], [2, 4]]),
        (np.array([1, 2], ">i4"), D.INT32, [1, 2]),
        (np.array([True]), D.BOOL, [True]),
        (np.array([1 + 2j]), D.COMPLEX128, [[1.0, 2.0]]),
        (np.array(1 + 2j, np.complex64), D.COMPLEX64, [1.0, 2.0]),
        (np.array([b"a", b"\xff"], object), D.STRING, ["a", {"b64": "/w=="}]),
        (np.array("ü".encode(), object), D.STRING, "ü"),
        (np.array([1.5], D.BFLOAT16.numpy), D.BFLOAT16, [1.5]),
        (np.array([-8], D.INT4.numpy), D.INT4, [-8]),
        (np.array([15], D.UINT4.numpy), D.UINT4, [15]),
        (np.zeros((2, 0), np.float32), D.FLOAT, [[], []]),
        (np.array([NAN, INF, -INF, 0.1], np.float32), D.FLOAT,
         ["NaN", "Infinity", "-Infinity", 0.1]),
        (np.float64(NAN), D.DOUBLE, "NaN"),
    ],
)  # fmt: skip
def test_write(array, data_type, data):
    assert written(array, data_type) == {
        "dtype": data_type.name_on_wire,
        "shape": list(np.shape(array)),
        "data": data,
    }


def test_non_finite_policies():
    array = np.array([[NAN, 1], [INF, -INF]])
    tokens = to_json(write_tensor(array, D.DOUBLE, non_finite="token"))
    assert tokens == b'{"dtype":"float64","shape":[2,2],"data":[[NaN,1.0],[Infinity,-Infinity]]}'
    assert written(array, D.DOUBLE, non_finite="null")["data"] == [[None, 1.0], [None, None]]
    with pytest.raises(InvalidArgumentError, match=r"not finite, nan at \[0, 0\]"):
        write_tensor(array, D.DOUBLE, non_finite="error")


def test_resources_cannot_be_fetched():
    with pytest.raises(InvalidArgumentError, match="type resource cannot be fetched"):
        write_tensor(None, D.RESOURCE)
