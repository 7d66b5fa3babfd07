import re

import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from server.codec.session_tensors import (
    fetch_types,
    read_feeds,
    read_proto_feeds,
    write_outputs,
    write_proto_outputs,
)

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


def test_feeds_take_their_type_from_the_graph():
    arrays = read_feeds({"x": [[1, 2]], "any": [3], "text": "hi"}, info)
    np.testing.assert_array_equal(arrays["x"], X)
    assert arrays["x"].dtype == np.float32 and arrays["any"].dtype == np.int32
    assert arrays["text"][()] == b"hi"


def test_proto_feeds():
    (array,) = read_proto_feeds([named("x", X)], info, 1000).values()
    np.testing.assert_array_equal(array, X)
    with pytest.raises(InvalidArgumentError, match='Endpoint "x" fed more than once'):
        read_proto_feeds([named("x", X), named("x", X)], info, 1000)
    with pytest.raises(ResourceExhaustedError, match="the limit is 7"):
        read_proto_feeds([named("x", X)], info, 7)


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
        read_proto_feeds([named(name, array)], info, 1000)


@pytest.mark.parametrize("name", ["handle", "list"])
def test_what_lives_in_the_process_stays_there(name):
    with pytest.raises(InvalidArgumentError, match="which cannot be fed from the wire"):
        read_feeds({name: 1}, info)
    with pytest.raises(InvalidArgumentError, match="which cannot be fetched"):
        fetch_types([name], info)


def test_outputs_are_named_as_they_were_asked_for():
    types = fetch_types(["x", "any"], info)
    values = [X, np.int32(7)]
    written = write_outputs(["x", "any"], values, types, "b64", "string")
    assert list(written) == ["x", "any"] and written["any"]["b64"] == "BwAAAA=="
    protos = write_proto_outputs(["x", "any"], values, types)
    assert [proto.name for proto in protos] == ["x", "any"]
    np.testing.assert_array_equal(tensor_from_proto(protos[0].tensor), X)
