"""The same prediction as a request of each front."""

from __future__ import annotations

import json

import numpy as np

import protos as pb
from bench.fronts.requests import (
    binary_outputs,
    infer_binary,
    infer_json,
    infer_rpc,
    predict_json,
    predict_rpc,
)
from runtime.api import tensor_from_proto

X = np.float32([[0.1, 2]])
DESCRIBED = {"name": "x", "shape": [1, 2], "datatype": "FP32"}


def test_json_has_as_many_digits_as_float32_needs() -> None:
    assert predict_json("m", {"x": X}).body == b'{"instances":[[0.1,2.0]]}'
    body = json.loads(infer_json("m", {"x": X}).body)
    assert body == {"inputs": [{**DESCRIBED, "data": [0.1, 2]}]}


def test_binary_data_follows_the_json() -> None:
    request = infer_binary("m", {"x": X})
    head = int(request.headers["Inference-Header-Content-Length"])
    assert json.loads(request.body[:head])["inputs"][0]["parameters"] == {"binary_data_size": 8}
    assert request.body[head:] == X.tobytes()


def test_messages_have_the_tensor() -> None:
    predict = pb.serving.PredictRequest.FromString(predict_rpc("m", {"x": X}).message)
    assert predict.model_spec.name == "m"
    np.testing.assert_array_equal(tensor_from_proto(predict.inputs["x"]), X)
    infer = pb.inference.ModelInferRequest.FromString(infer_rpc("m", {"x": X}).message)
    assert infer.raw_input_contents == [X.tobytes()]


def test_binary_outputs_are_read_in_their_order() -> None:
    sizes = {"a": 8, "b": 4}
    outputs = [
        {"name": name, "shape": [size // 4], "parameters": {"binary_data_size": size}}
        for name, size in sizes.items()
    ]
    head = json.dumps({"outputs": outputs}).encode()
    content = head + np.float32([1, 2, 3]).tobytes()
    found = {name: each.tolist() for name, each in binary_outputs(content, len(head)).items()}
    assert found == {"a": [1, 2], "b": [3]}
