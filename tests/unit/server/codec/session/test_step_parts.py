import re

import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_to_proto
from server.codec.session.json_steps import read_feeds
from server.codec.session.proto_steps import decoded_feeds
from server.codec.session.step_parts import fetch_types

TENSORS = {
    "x": (DataType.FLOAT, (-1, 2)),
    "any": (DataType.INT32, None),
    "text": (DataType.STRING, ()),
    "handle": (DataType.RESOURCE, None),
    "list": (DataType.VARIANT, None),
}


info = TENSORS.__getitem__


X = np.array([[1, 2]], np.float32)


def named(name, array):
    return pb.NamedTensorProto(name=name, tensor=tensor_to_proto(array))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("any", X, "Expects arg[0] to be int32 but float is provided"),
        ("text", X, "Expects arg[0] to be string but float is provided"),
        ("x", np.array(b"x", object), "Expects arg[0] to be float but string is provided"),
        ("x", X[0], "Cannot feed value of shape (2,) for Tensor x, which has shape (None, 2)"),
        ("x", X.T, "Cannot feed value of shape (2, 1) for Tensor x, which has shape (None, 2)"),
    ],
)
def test_feeds_that_do_not_fit(name, array, message):
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        decoded_feeds([named(name, array)], 1000, info)


@pytest.mark.parametrize("name", ["handle", "list"])
def test_what_lives_in_the_process_stays_there(name):
    with pytest.raises(InvalidArgumentError, match="which cannot be fed from the wire"):
        read_feeds({name: 1}, info)
    with pytest.raises(InvalidArgumentError, match="which cannot be fetched"):
        fetch_types([name], info)
