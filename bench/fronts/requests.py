"""The same prediction as a request of each front: JSON `:predict`, v2 as JSON and binary, gRPC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import orjson

import protos as pb
from runtime.api import tensor_to_proto

JSON = {"Content-Type": "application/json"}
PREDICT = "/tensorflow.serving.PredictionService/Predict"
MODEL_INFER = "/inference.GRPCInferenceService/ModelInfer"
Inputs = Mapping[str, np.ndarray]  # float32 by alias; v2 has other words for other types


class HttpRequest(NamedTuple):
    """A POST: its path, its body, and its headers but the length."""

    path: str
    body: bytes
    headers: Mapping[str, str]


class RpcRequest(NamedTuple):
    """A unary call: the full name of the method, and the request as bytes."""

    method: str
    message: bytes


def predict_json(model: str, inputs: Inputs) -> HttpRequest:
    """Return `:predict` in the row format, of a signature with one input."""
    (rows,) = inputs.values()
    return HttpRequest(f"/v1/models/{model}:predict", dumped({"instances": rows}), JSON)


def infer_json(model: str, inputs: Inputs) -> HttpRequest:
    """Return v2 infer with its data as JSON."""
    tensors = [{**described(name, each), "data": each.ravel()} for name, each in inputs.items()]
    return HttpRequest(f"/v2/models/{model}/infer", dumped({"inputs": tensors}), JSON)


def infer_binary(model: str, inputs: Inputs) -> HttpRequest:
    """Return v2 infer with binary data, which requests binary data too."""
    tensors = [
        {**described(name, each), "parameters": {"binary_data_size": each.nbytes}}
        for name, each in inputs.items()
    ]
    head = dumped({"inputs": tensors, "parameters": {"binary_data_output": True}})
    headers = {
        "Content-Type": "application/octet-stream",
        "Inference-Header-Content-Length": str(len(head)),
    }
    content = b"".join(each.tobytes() for each in inputs.values())
    return HttpRequest(f"/v2/models/{model}/infer", head + content, headers)


def predict_rpc(model: str, inputs: Inputs) -> RpcRequest:
    """Return PredictionService.Predict."""
    request = pb.serving.PredictRequest()
    request.model_spec.name = model
    for name, each in inputs.items():
        request.inputs[name].CopyFrom(tensor_to_proto(each))
    return RpcRequest(PREDICT, request.SerializeToString())


def infer_rpc(model: str, inputs: Inputs) -> RpcRequest:
    """Return ModelInfer with raw contents."""
    request = pb.inference.ModelInferRequest(model_name=model)
    for name, each in inputs.items():
        request.inputs.add(**described(name, each))
        request.raw_input_contents.append(each.tobytes())
    return RpcRequest(MODEL_INFER, request.SerializeToString())


def described(name: str, array: np.ndarray) -> dict[str, object]:
    """Return what v2 says of a float32 tensor beside its data."""
    return {"name": name, "shape": list(array.shape), "datatype": "FP32"}


def dumped(content: object) -> bytes:
    """Return JSON whose float32 numbers have as many digits as they need."""
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def binary_outputs(content: bytes, head_length: int) -> dict[str, np.ndarray]:
    """Return the float32 outputs of an answer with binary data, by name."""
    found, begin = {}, head_length
    for each in json.loads(content[:head_length])["outputs"]:
        size = each["parameters"]["binary_data_size"]
        array = np.frombuffer(content[begin : begin + size], np.float32)
        found[each["name"]] = array.reshape(each["shape"])
        begin += size
    return found
