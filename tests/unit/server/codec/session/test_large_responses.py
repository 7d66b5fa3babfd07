"""Large tensors in responses: the same messages as small ones, with fewer copies."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import protos as pb
from runtime.api import DataType, tensor_from_proto
from server.codec.session import large_responses
from server.codec.session.proto_steps import write_run_callable, write_run_step
from server.steps.step_request import StepRequest

VALUES = [
    np.arange(12, dtype=np.float32).reshape(3, 4).T,  # not contiguous
    np.float64(2.5),
    np.array([b"a", b"bc"], object),
    np.arange(300, dtype=ml_dtypes.bfloat16),
    np.broadcast_to(np.int8(7), (2, 5)),
    np.zeros((0, 3), np.int32),
    np.array([[True], [False]]),
]


def step(**fields: object) -> StepRequest:
    names = [f"y:{index}" for index in range(len(VALUES))]
    return StepRequest(fetches=names, metadata=pb.RunMetadata(), **fields)


@pytest.fixture(params=[1, 1 << 20], ids=["large", "small"])
def _bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_responses, "LARGE_BYTES", request.param)


def assert_equal(found: pb.TensorProto, value: np.ndarray) -> None:
    read = tensor_from_proto(found)
    assert read.dtype == value.dtype and read.shape == value.shape
    assert read.tolist() == value.tolist()


@pytest.mark.usefixtures("_bounds")
def test_a_response_has_every_tensor():
    response = pb.RunStepResponse.FromString(write_run_step(step(), VALUES))
    assert [each.name for each in response.tensor] == step().fetches
    assert response.HasField("metadata")
    for found, value in zip(response.tensor, VALUES, strict=True):
        assert_equal(found.tensor, np.asarray(value))


@pytest.mark.usefixtures("_bounds")
def test_a_callable_s_response_has_every_tensor():
    response = pb.RunCallableResponse.FromString(write_run_callable(step(), VALUES))
    assert response.HasField("metadata")
    for found, value in zip(response.fetch, VALUES, strict=True):
        assert_equal(found, np.asarray(value))


@pytest.mark.usefixtures("_bounds")
def test_the_element_type_is_that_of_the_fetch():
    types = (DataType.QINT8,)
    request = StepRequest(fetches=["q:0"], fetch_types=types, metadata=pb.RunMetadata())
    response = pb.RunStepResponse.FromString(write_run_step(request, [np.int8([1, 2])]))
    assert response.tensor[0].tensor.dtype == pb.DT_QINT8


def test_a_long_content_has_a_long_length(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(large_responses, "LARGE_BYTES", 1)
    value = np.arange(100_000)
    request = StepRequest(fetches=["y:0"], metadata=pb.RunMetadata())
    response = pb.RunStepResponse.FromString(write_run_step(request, [value]))
    assert_equal(response.tensor[0].tensor, value)
