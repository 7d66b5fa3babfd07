"""A body of raw bytes as the only input."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import tensor_to_proto
from runtime.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from server.codec.inference_protocol.infer_request import (
    InferRequest,
    ReceivedInput,
    raw_elements,
)
from server.inference_protocol.input_arrays import input_arrays
from server.models.signature import Signature


def signature(*shapes: list[int] | None, data_type: DataType = DataType.FLOAT) -> Signature:
    """A signature with an input for each shape."""
    definition = pb.SignatureDef()
    for index, shape in enumerate(shapes):
        info = definition.inputs[f"x{index}"]
        info.name, info.dtype = f"x{index}:0", data_type
        if shape is None:
            info.tensor_shape.unknown_rank = True
        for size in shape or ():
            info.tensor_shape.dim.add(size=size)
    return Signature("s", definition)


def raw(count: int) -> InferRequest:
    return InferRequest(raw_body=np.arange(count, dtype="<f4").tobytes())


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (None, (6,)),
        ([-1], (6,)),
        ([-1, 3], (2, 3)),
        ([-1, -1, 3], (1, 2, 3)),
        ([6], (6,)),
    ],
)
def test_the_variable_dimension_follows_from_the_length(
    shape: list[int] | None, expected: tuple[int, ...]
) -> None:
    assert input_arrays(raw(6), signature(shape))["x0"].shape == expected


def test_what_cannot_be_one_input() -> None:
    with pytest.raises(InvalidArgumentError, match="a model with one input; it has 2"):
        input_arrays(raw(1), signature([1], [1]))
    with pytest.raises(InvalidArgumentError, match="too many variable dimensions"):
        input_arrays(raw(6), signature([3, -1, -1]))
    with pytest.raises(InvalidArgumentError, match="Expected 12 bytes for shape"):
        input_arrays(raw(4), signature([3]))


def test_a_string_is_the_whole_body() -> None:
    request = InferRequest(raw_body=b"\xffabc")
    found = input_arrays(request, signature([-1, 1], data_type=DataType.STRING))["x0"]
    assert found.tolist() == [[b"\xffabc"]]
    with pytest.raises(InvalidArgumentError, match="has many elements"):
        input_arrays(request, signature([2], data_type=DataType.STRING))


def test_a_missing_input_has_its_default() -> None:
    definition = pb.SignatureDef()
    for name in ("a", "b"):
        definition.inputs[name].name = f"{name}:0"
        definition.inputs[name].dtype = DataType.FLOAT
    definition.defaults["b"].CopyFrom(tensor_to_proto(np.float32(7)))
    read = raw_elements(np.float32(1).tobytes())
    request = InferRequest(inputs=[ReceivedInput("a", "FP32", [1], read)])
    found = input_arrays(request, Signature("s", definition))
    assert (found["a"].tolist(), found["b"].tolist()) == ([1.0], 7.0)


def test_an_empty_fixed_dimension_takes_no_bytes() -> None:
    assert input_arrays(raw(0), signature([-1, 0]))["x0"].shape == (0, 0)
