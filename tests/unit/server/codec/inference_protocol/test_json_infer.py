"""Inference requests and responses as JSON with binary data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from runtime.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from server.codec.inference_protocol import json_infer
from server.codec.inference_protocol.datatypes import DATA_TYPES
from server.codec.inference_protocol.infer_request import InferReply, OutputTensor
from server.codec.inference_protocol.json_infer import read_infer_request, write_infer_reply
from server.codec.session.tensor_reader import read_shape


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


READINGS = [
    (DataType.FLOAT, (3,), [1, 2.5, -0.0]),
    (DataType.FLOAT, (2,), [1e300, 0.1]),
    (DataType.FLOAT, (2, 2), [[1, 2], [3, 4]]),
    (DataType.FLOAT, (2, 2), [1, 2, 3, 4]),
    (DataType.FLOAT, (4,), [[1, 2], [3, 4]]),
    (DataType.FLOAT, (0,), []),
    (DataType.FLOAT, (2,), [1.0]),
    (DataType.FLOAT, (2,), [1.0, "NaN"]),
    (DataType.FLOAT, (1,), [True]),
    (DataType.DOUBLE, (2,), [0.1, 1 << 70]),
    (DataType.HALF, (2,), [1e9, 0.1]),
    (DataType.INT8, (2,), [127, -128]),
    (DataType.INT8, (1,), [128]),
    (DataType.INT64, (1,), [1.0]),
    (DataType.UINT64, (1,), [(1 << 64) - 1]),
    (DataType.BOOL, (2,), [True, False]),
    (DataType.BOOL, (1,), [1]),
    (DataType.STRING, (1,), ["a"]),
]


@pytest.mark.parametrize(("data_type", "shape", "data"), READINGS)
def test_a_short_list_is_read_as_any(
    data_type: DataType, shape: tuple[int, ...], data: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome() -> object:
        try:
            array = json_infer._read_data(data, data_type, shape)
        except InvalidArgumentError as error:
            return error.message
        return array.dtype, array.shape, repr(array.tolist())

    short = outcome()
    monkeypatch.setattr(json_infer, "_SHORT_LIST", -1)
    assert short == outcome()


LONG = f"[{'1.5,' * 100_000}1]"
PAIRS = f"[{'[1,2],' * 50_000}[1,2]]"
# What stands in the place of X, and the begin of the message.
LARGE_FAULTS = [
    ('{"inputs":X}', LONG, "inputs has over 4096 tensors"),
    ('{"inputs":[X]}', LONG, "inputs[0] must be an object, got a list"),
    ('{"inputs":[{"name":X}]}', LONG, "inputs[0] must have a name, a string, got a list"),
    ('{"inputs":[{"name":"x","parameters":X}]}', LONG, "Input x: parameters must be an object"),
    ('{"inputs":[{"name":"x","parameters":{"binary_data_size":X}}]}', LONG, "Input x: datatype"),
    ('{"inputs":[{"name":"x","datatype":X}]}', LONG, "Input x: datatype must be a string, got a l"),
    ("shape", LONG, "shape must be a list of non-negative integers, got [1.5, 1.5, "),
    ("shape", PAIRS, "shape must be a list of non-negative integers, got [[1, 2], "),
    ("shape", f'{{"q":{LONG}}}', "shape must be a list of non-negative integers, got {'q': [1.5, "),
    ("data", f'[{{"q":{LONG}}}]', "Expected a number at element 0, got an object {'q': [1.5, 1"),
    ("data", f'{{"q":{LONG}}}', "Expected a number at element 0, got an object {'q': [1.5, 1"),
    ("data", f"[{LONG},{PAIRS}]", "Expected lists of equal length at depth 2, got lengths ["),
    ("data", LONG, "Expected 2 elements for shape [2], got data of shape [100001]"),
    ("BOOL data", LONG, "Expected true or false at element 0, got a number with a fraction 1.5"),
    ("INT32 data", LONG, "Expected an integer at element 0, got a number with a fraction 1.5"),
    ("INT8 data", f"{PAIRS[:-6]}[1,200]]", "200 is out of range for int8: -128 to 127"),
]


@pytest.mark.parametrize(("place", "text", "message"), LARGE_FAULTS)
def test_a_fault_of_a_large_body_is_that_of_a_small_one(
    place: str, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    datatype, _, member = place.rpartition(" ")
    members = {"name": '"x"', "datatype": f'"{datatype}"', "shape": "[2]", "data": "[1,2]"}
    if member in members:
        listed = ",".join(f'"{key}":{value}' for key, value in {**members, member: text}.items())
        body = f'{{"inputs":[{{{listed}}}]}}'.encode()
    else:
        body = place.replace("X", text).encode()

    def fault() -> str:
        with pytest.raises(InvalidArgumentError) as caught:
            data_type = DATA_TYPES[datatype or "FP32"]
            for each in read_infer_request(body, None).inputs:
                each.read(data_type, read_shape(each.shape, data_type))
        return caught.value.message

    large = fault()
    assert large.startswith(message)
    monkeypatch.setattr(json_infer, "LARGE_BODY_BYTES", 1 << 40)
    assert large == fault()


def test_lists_of_a_large_body_that_are_not_numbers_alone_are_read() -> None:
    data = f'[[{"1.250000000," * 30_000}1],[{"1," * 30_000}"NaN"]]'
    body = f'{{"inputs":[{{"name":"x","datatype":"FP32","data":{data}}}]}}'.encode()
    array = read_infer_request(body, None).inputs[0].read(DataType.FLOAT, (2, 30_001))
    assert np.isnan(array[1, -1]) and array[0, -1] == 1


@pytest.mark.parametrize("non_finite", ["string", "token", "null"])
@pytest.mark.parametrize("values", [[0.1, -1e-30, 3e38], [1.0, np.inf, np.nan], []])
@pytest.mark.parametrize("datatype", ["FP32", "FP64"])
def test_a_short_array_is_written_as_any(
    datatype: str, values: list[float], non_finite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.array(values, DATA_TYPES[datatype].numpy)
    short = write_infer_reply(non_finite, reply(array, datatype, is_binary=False))
    monkeypatch.setattr(json_infer, "_SHORT_LIST", -1)
    assert short == write_infer_reply(non_finite, reply(array, datatype, is_binary=False))
