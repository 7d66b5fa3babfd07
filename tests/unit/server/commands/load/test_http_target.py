import ml_dtypes
import numpy as np
import orjson
import pytest

from runtime.errors import InvalidArgumentError
from server.codec.inference_protocol.json_infer import read_infer_request
from server.commands.load.http_connection import Answer
from server.commands.load.http_target import failed, infer_parts, predict_body

INPUTS = {
    "x": np.array([[1.5, 2]], np.float32),
    "half": np.array([0.5], ml_dtypes.bfloat16),
    "s": np.array([b"a", b"\xff"], object),
    "flag": np.array(True),
}


def test_a_predict_body_has_the_inputs_in_columns():
    assert orjson.loads(predict_body("sig", INPUTS)) == {
        "signature_name": "sig",
        "inputs": {"x": [[1.5, 2.0]], "half": [0.5], "s": ["a", {"b64": "/w=="}], "flag": True},
    }
    with pytest.raises(InvalidArgumentError, match="use --protocol=grpc"):
        predict_body("sig", {"z": np.array(1j)})


@pytest.mark.parametrize("signature", ["serving_default", "other"])
def test_an_inference_request_is_what_the_server_reads(signature):
    header, content = infer_parts(signature, INPUTS)
    request = read_infer_request(header + content, str(len(header)).encode())
    assert request.parameters["binary_data_output"] is True
    assert request.parameters.get("signature_name", "serving_default") == signature
    read = {each.name: each for each in request.inputs}
    assert {name: list(each.shape) for name, each in read.items()} == {
        "x": [1, 2], "half": [1], "s": [2], "flag": [],
    }  # fmt: skip
    assert {name: each.datatype for name, each in read.items()} == {
        "x": "FP32", "half": "BF16", "s": "BYTES", "flag": "BOOL",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (404, b'{"error": "no model", "code": "NOT_FOUND"}', "NOT_FOUND", "no model"),
        (400, b'{"error": "wrong"}', "HTTP 400", "wrong"),
        (502, b"<html>bad gateway", "HTTP 502", "<html>bad gateway"),
        (500, b"[1]", "HTTP 500", "[1]"),
        (500, b"x" * 1000, "HTTP 500", "x" * 300),
    ],
)
def test_failures_name_code_and_message(status, body, code, message):
    failure = failed(Answer(status, body))
    assert (failure.code, failure.message, failure.lost) == (code, message, False)
