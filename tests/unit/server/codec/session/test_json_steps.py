import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_from_proto
from server.codec.json_body import parse_json
from server.codec.session.json_steps import JsonSteps, read_feeds
from server.codec.session.proto_steps import ProtoSteps
from server.codec.session.step_parts import fetch_types
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


def test_feeds_take_their_type_from_the_graph():
    arrays = read_feeds({"x": [[1, 2]], "any": [3], "text": "hi"}, info)
    np.testing.assert_array_equal(arrays["x"], X)
    assert arrays["x"].dtype == np.float32 and arrays["any"].dtype == np.int32
    assert arrays["text"][()] == b"hi"


def test_outputs_are_named_as_they_were_asked_for():
    step = StepRequest(fetches=["x", "any"], fetch_types=fetch_types(["x", "any"], info))
    values = [X, np.int32(7)]
    outputs = parse_json(JsonSteps("b64", "string").write_run(step, values))["outputs"]
    assert list(outputs) == ["x", "any"] and outputs["any"]["b64"] == "BwAAAA=="
    message = pb.RunStepResponse.FromString(ProtoSteps(1000).write_run(step, values))
    assert [each.name for each in message.tensor] == ["x", "any"]
    np.testing.assert_array_equal(tensor_from_proto(message.tensor[0].tensor), X)
