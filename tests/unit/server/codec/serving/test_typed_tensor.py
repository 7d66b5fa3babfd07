"""TensorProtos in the form of TensorFlow Serving, read back by protobuf and by our decoder."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import protos as pb
from runtime.api import VALUE_FIELD, DataType, dtypes, tensor_from_proto
from runtime.errors import UnimplementedError
from server.codec.serving import typed_tensor
from server.codec.serving.typed_tensor import tensor_parts, varints

ARRAYS = [
    np.array([1.5, -0.0, np.inf], np.float32),
    np.array([[1e300], [np.nan]]),
    np.array([0, 1, -1, 127, 128, -(1 << 31), (1 << 31) - 1], np.int32),
    np.array([-128, 127], np.int8),
    np.array([0, 255], np.uint8),
    np.array([-32768, 32767], np.int16),
    np.array([65535, 0], np.uint16),
    np.array([0, -1, -(1 << 63), (1 << 63) - 1], np.int64),
    np.array([0, (1 << 32) - 1], np.uint32),
    np.array([0, (1 << 64) - 1], np.uint64),
    np.array([[True, False], [False, True]]),
    np.array([1 + 2j, -3j], np.complex64),
    np.array([1 + 2j, -3j], np.complex128),
    np.array([1.5, -2], np.float16),
    np.array([1.5, -2], ml_dtypes.bfloat16),
    np.array([1.5, -2], ml_dtypes.float8_e5m2),
    np.array([1, -2], ml_dtypes.int4),
    np.array([b"a", b"", b"\xff" * 300], object),
    np.float32(7),
    np.array(b"text", object),
    np.empty((0, 3), np.float32),
    np.empty((2, 0), np.int64),
]
IDS = [f"{np.asarray(array).dtype}{list(np.asarray(array).shape)}" for array in ARRAYS]


def written(array: np.ndarray, *, as_content: bool) -> pb.TensorProto:
    array = np.asarray(array)
    parts = tensor_parts(array, dtypes.from_numpy(array.dtype), as_content=as_content)
    return pb.TensorProto.FromString(b"".join(parts))


@pytest.mark.parametrize("as_content", [False, True])
@pytest.mark.parametrize("array", ARRAYS, ids=IDS)
def test_what_is_written_is_read_back(array: np.ndarray, as_content: bool) -> None:
    array = np.asarray(array)
    proto = written(array, as_content=as_content)
    data_type = dtypes.from_numpy(array.dtype)
    assert proto.dtype == data_type
    assert proto.HasField("tensor_shape")
    is_content = as_content and data_type is not DataType.STRING and array.size > 0
    assert bool(proto.tensor_content) is is_content
    factor = 2 if array.dtype.kind == "c" else 1
    count = len(getattr(proto, VALUE_FIELD[data_type]))
    assert count == (0 if is_content else array.size * factor)
    back = tensor_from_proto(proto)
    assert back.shape == array.shape and back.dtype == array.dtype
    if array.dtype == object:
        assert back.tolist() == array.tolist()
    else:
        assert back.tobytes() == array.tobytes()


def test_large_tensors_are_written_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed_tensor, "_SLICE_VALUES", 7)
    array = np.arange(-50, 50, dtype=np.int64)
    assert list(written(array, as_content=False).int64_val) == array.tolist()
    assert len(tensor_parts(array, DataType.INT64, as_content=False)) > 10


def test_a_type_of_the_graph_that_numpy_does_not_have_is_kept() -> None:
    parts = tensor_parts(np.array([1, -1], np.int8), DataType.QINT8, as_content=False)
    proto = pb.TensorProto.FromString(b"".join(parts))
    assert proto.dtype == DataType.QINT8 and list(proto.int_val) == [1, -1]


def test_a_resource_has_no_value() -> None:
    with pytest.raises(UnimplementedError, match="resource has no value on the wire"):
        tensor_parts(np.array(object()), DataType.RESOURCE, as_content=False)


def test_varints_are_those_of_protobuf() -> None:
    generator = np.random.default_rng(7)
    for bits in range(64):
        values = generator.integers(0, 1 << bits, 20, np.int64, endpoint=True) if bits < 63 else (
            np.array([-(1 << 63), -1, (1 << 63) - 1])
        )  # fmt: skip
        message = pb.TensorProto(int64_val=values.tolist()).SerializeToString()
        assert message.endswith(varints(values)), bits
