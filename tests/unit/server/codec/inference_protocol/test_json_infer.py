"""Inference requests and responses as JSON with binary data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from runtime.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from server.codec.inference_protocol.infer_request import InferReply, OutputTensor
from server.codec.inference_protocol.json_infer import read_infer_request, write_infer_reply


def test_binary_tensors_are_taken_in_the_order_of_the_inputs() -> None:
    inputs = [
        {"name": "a", "shape": [1], "datatype": "FP32", "parameters": {"binary_data_size": 4}},
        {"name": "b", "shape": [1], "datatype": "INT8", "data": [7]},
        {"name": "c", "shape": [2], "datatype": "INT8", "parameters": {"binary_data_size": 2}},
    ]
    header = json.dumps({"inputs": inputs}).encode()
    body = header + np.float32(1.5).tobytes() + b"\1\2"
    request = read_infer_request(body, b"%d" % len(header))
    first, second, third = request.inputs
    array = first.read(DataType.FLOAT, (1,))
    assert array.tolist() == [1.5] and array.flags.aligned
    assert second.read(DataType.INT8, (1,)).tolist() == [7]
    assert third.read(DataType.INT8, (2,)).tolist() == [1, 2]


@pytest.mark.parametrize("padding", range(4))
def test_elements_that_begin_at_any_byte_are_aligned(padding: int) -> None:
    tensor = {"name": "a", "shape": [2], "datatype": "FP64"}
    header = json.dumps({"inputs": [{**tensor, "parameters": {"binary_data_size": 16}}]}).encode()
    header += b" " * padding
    body = header + np.array([0.5, 2.5]).tobytes()
    array = read_infer_request(body, b"%d" % len(header)).inputs[0].read(DataType.DOUBLE, (2,))
    assert array.flags.aligned and array.tolist() == [0.5, 2.5]


def test_too_many_tensors_are_refused() -> None:
    body = json.dumps({"inputs": [{"name": "x"}] * 5000}).encode()
    with pytest.raises(InvalidArgumentError, match="inputs has over 4096 tensors"):
        read_infer_request(body, None)


def reply(array: np.ndarray, datatype: str, *, is_binary: bool) -> InferReply:
    return InferReply("m", "1", None, [OutputTensor("y", datatype, array, is_binary)], array.nbytes)


def test_numbers_that_are_not_finite_are_written_as_the_setting_says() -> None:
    array = np.array([[1, np.nan]], np.float32)
    body, length = write_infer_reply("string", reply(array, "FP32", is_binary=False))
    assert length is None
    assert json.loads(body)["outputs"][0]["data"] == [1.0, "NaN"]
    with pytest.raises(InvalidArgumentError, match="not finite"):
        write_infer_reply("error", reply(array, "FP32", is_binary=False))
    body, length = write_infer_reply("error", reply(array, "FP32", is_binary=True))
    assert length is not None and body[length:] == array.tobytes()


def test_a_scalar_and_an_empty_tensor() -> None:
    for array, data in ((np.array(2, np.int32), [2]), (np.zeros((0, 3), np.int32), [])):
        body, _ = write_infer_reply("string", reply(array, "INT32", is_binary=False))
        output = json.loads(body)["outputs"][0]
        assert (output["shape"], output["data"]) == (list(array.shape), data)
