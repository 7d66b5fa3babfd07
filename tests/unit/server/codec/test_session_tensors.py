import re

import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from server.codec.json_body import parse_json
from server.codec.session.json_steps import JsonSteps, read_feeds
from server.codec.session.proto_steps import ProtoSteps, decoded_feeds
from server.codec.session_tensors import fetch_types
from server.steps.step_request import StepRequest

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
    (array,) = decoded_feeds([named("x", X)], 1000, info).values()
    np.testing.assert_array_equal(array, X)
    with pytest.raises(InvalidArgumentError, match='Endpoint "x" fed more than once'):
        decoded_feeds([named("x", X), named("x", X)], 1000, info)
    with pytest.raises(ResourceExhaustedError, match="the limit is 7"):
        decoded_feeds([named("x", X)], 7, info)


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


def test_outputs_are_named_as_they_were_asked_for():
    step = StepRequest(fetches=["x", "any"], fetch_types=fetch_types(["x", "any"], info))
    values = [X, np.int32(7)]
    outputs = parse_json(JsonSteps("b64", "string").write_run(step, values))["outputs"]
    assert list(outputs) == ["x", "any"] and outputs["any"]["b64"] == "BwAAAA=="
    message = pb.RunStepResponse.FromString(ProtoSteps(1000).write_run(step, values))
    assert [each.name for each in message.tensor] == ["x", "any"]
    np.testing.assert_array_equal(tensor_from_proto(message.tensor[0].tensor), X)
