from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.tensor_codec import tensor_from_proto
from server.codec.json_body import parse_json
from server.codec.json_parts import LARGE_BODY_BYTES
from server.codec.large import array_parts
from server.codec.session import json_steps, tensor_writer
from server.codec.session.json_steps import JsonSteps, read_feeds
from server.codec.session.proto_steps import ProtoSteps
from server.codec.session.step_parts import fetch_types
from server.codec.session.tensor_writer import Encoding
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


def random_values() -> dict[DataType, np.ndarray]:
    floats = np.random.default_rng(0).standard_normal((4, 30, 2)) * 1e14
    special = np.where(floats > 1e14, np.nan, np.where(floats < -1e14, np.inf, floats))
    strings = np.array([b"x", b"\xff", b'"', b""] * 10, object)
    return {
        DataType.FLOAT: floats.astype(np.float32),
        DataType.DOUBLE: special,
        DataType.HALF: (floats / 1e14).astype(np.float16),
        DataType.BFLOAT16: special.astype(ml_dtypes.bfloat16),
        DataType.COMPLEX64: special.astype(np.float32).view(np.complex64),
        DataType.COMPLEX128: floats.view(np.complex128),
        DataType.INT64: floats.astype(np.int64).transpose(2, 1, 0),
        DataType.INT4: (floats / 1e14).astype(np.int8).astype(ml_dtypes.int4),
        DataType.BOOL: floats > 0,
        DataType.STRING: strings,
        DataType.INT32: np.array(7, np.int32),
    }


@pytest.mark.parametrize("encoding", ["json", "b64"])
@pytest.mark.parametrize("non_finite", ["string", "token", "null"])
@pytest.mark.parametrize("report", [None, pb.RunMetadata(), "full"])
def test_a_large_answer_is_written_in_parts_byte_for_byte_as_at_once(
    encoding: Encoding, non_finite: str, report: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if report == "full":
        report = pb.RunMetadata()
        report.step_stats.dev_stats.add(device="cpu")
    values = random_values()
    names = [f"x{number}" for number in range(len(values))]
    step = StepRequest(fetches=names, fetch_types=list(values), metadata=report)
    steps = JsonSteps(encoding, non_finite)
    arrays = list(values.values())
    at_once = [steps.write_run(step, arrays), steps.write_run_callable(step, arrays)]
    monkeypatch.setattr(json_steps, "LARGE_ANSWER_BYTES", 0)
    monkeypatch.setattr(array_parts, "BLOCK_ELEMENTS", 7)
    monkeypatch.setattr(array_parts, "BLOCK_STRINGS", 7)
    written: list[int] = []
    to_bytes = tensor_writer.to_bytes

    def noted(block: np.ndarray, data_type: DataType) -> bytes:
        written.append(block.size)
        return to_bytes(block, data_type)

    monkeypatch.setattr(tensor_writer, "to_bytes", noted)
    assert steps.write_run(step, arrays) == at_once[0]
    assert steps.write_run_callable(step, arrays) == at_once[1]
    assert max(written, default=0) <= 7


def test_a_fetch_that_is_named_twice_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    types = [DataType.FLOAT, DataType.INT32, DataType.FLOAT]
    step = StepRequest(fetches=["x", "any", "x"], fetch_types=types)
    steps, values = JsonSteps("json", "string"), [X, np.arange(3, dtype=np.int32), X]
    at_once = steps.write_run(step, values)
    monkeypatch.setattr(json_steps, "LARGE_ANSWER_BYTES", 0)
    assert steps.write_run(step, values) == at_once


def test_the_first_value_that_is_not_finite_is_named_in_a_large_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_steps, "LARGE_ANSWER_BYTES", 0)
    monkeypatch.setattr(array_parts, "BLOCK_ELEMENTS", 2)
    array = np.array([[1, 2], [3, np.inf]], np.float32)
    step = StepRequest(fetches=["x"], fetch_types=[DataType.FLOAT])
    with pytest.raises(InvalidArgumentError, match=r"not finite, inf at \[1, 1\]"):
        JsonSteps("json", "error").write_run(step, [array])


COUNT = LARGE_BODY_BYTES  # numbers in a large body


@pytest.mark.parametrize("kind", ["run", "partial_run"])
def test_large_feeds_are_read_in_slices(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_steps, "parse_object", pytest.fail)
    feeds = {"x": [[0.5, 1]] * COUNT, "any": {"shape": [2, COUNT], "data": [7] * (2 * COUNT)}}
    step = StepRequest()
    body = {"feeds": feeds, "fetches": ["any"]}
    if kind == "partial_run":
        body["partial_run_handle"] = "h"
    getattr(JsonSteps("json", "string"), f"read_{kind}")(
        json.dumps(body).encode(), step, SimpleNamespace(tensor_info=info)
    )
    assert {name: (array.dtype, array.shape) for name, array in step.feeds.items()} == {
        "x": (np.float32, (COUNT, 2)),
        "any": (np.int32, (2, COUNT)),
    }
    assert step.feeds["x"][-1].tolist() == [0.5, 1] and (step.feeds["any"] == 7).all()


def test_a_fault_in_large_feeds_names_the_element() -> None:
    body = json.dumps({"feeds": {"any": [1] * COUNT + [1.5]}}).encode()
    with pytest.raises(InvalidArgumentError) as refused:
        JsonSteps("json", "string").read_run(body, StepRequest(), SimpleNamespace(tensor_info=info))
    assert refused.value.message == (
        f"Tensor any: Expected an integer at element {COUNT}, got a number with a fraction 1.5"
    )
