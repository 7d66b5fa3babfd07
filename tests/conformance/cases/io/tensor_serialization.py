"""ParseTensor and SerializeTensor."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.tensor_codec import tensor_to_proto
from tests.conformance.case import Case, Graph, Step, as_tensor, case

VALUES = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array(["a", b"\xff\x00", ""], object),
    np.int64(-5),
    np.array([True, False]),
    np.array([1.5, 2], np.float16),
    np.array([1.5, 2], ml_dtypes.bfloat16),
    np.array([1 + 2j], np.complex64),
    np.empty((0, 2), np.uint8),
]


def round_trip(value: object) -> Case:
    """SerializeTensor, then ParseTensor of its output."""
    array = as_tensor(value)
    graph = Graph()
    given = graph.placeholder(from_numpy(array.dtype), "given")
    text = graph.add("SerializeTensor", given)[0]
    parsed = graph.add("ParseTensor", text, out_type=from_numpy(array.dtype))[0]
    name = f"round_trip_{array.dtype}_{array.ndim}"
    return Case(name, graph.graph_def, (Step({given[0]: array}, (parsed[0],)),))


def serialized(value: object) -> bytes:
    return tensor_to_proto(as_tensor(value)).SerializeToString(deterministic=True)


CASES = (
    *(round_trip(value) for value in VALUES),
    *(
        case("ParseTensor", serialized(value), out_type=from_numpy(as_tensor(value).dtype))
        for value in VALUES
    ),
    case("ParseTensor", serialized(1.5), out_type=DataType.INT32, message=True),
    case("ParseTensor", [serialized(1.5)], out_type=DataType.FLOAT, message=True),
    case("ParseTensor", b"\xff\xff", out_type=DataType.FLOAT, message=True),
    case("ParseTensor", "", out_type=DataType.FLOAT),
    case("SerializeTensor", 3, name="serialize", shape_only=True),
)
