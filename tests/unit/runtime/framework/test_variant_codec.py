"""Variants in files: TensorFlow's bytes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.foundation.errors import DataLossError, UnimplementedError
from runtime.framework.dtypes import DataType
from runtime.framework.ragged_tensor_variant import RaggedTensorVariant
from runtime.framework.resources.tensor_list import TensorList
from runtime.framework.variant_codec import variants_from_proto, variants_to_proto

# What TensorFlow 2.21 wrote for a sparse tensor, and for a ragged one of two rows.
SPARSE = (
    b'&!"\n\022tensorflow::Tensor\032\020\010\t\022\010\022\002\010\001\022\002\010\002R\002\000\001'
    b"\n\022tensorflow::Tensor\032\013\010\t\022\004\022\002\010\001R\001\000"
    b"\n\022tensorflow::Tensor\032\014\010\t\022\004\022\002\010\002R\002\002\003"
)
RAGGED = (
    b"2\n\023RaggedTensorVariant\032\r\010\t\022\004\022\002\010\003R\003\000\001\002"
    b"\032\014\010\t\022\004\022\002\010\002R\002\000\001"
)


def message(content: bytes, *sizes: int) -> pb.TensorProto:
    proto = pb.TensorProto(tensor_content=content)
    proto.dtype = DataType.VARIANT.value
    proto.tensor_shape.SetInParent()
    for size in sizes:
        proto.tensor_shape.dim.add(size=size)
    return proto


def test_a_sparse_tensor_as_tensorflow_writes_it() -> None:
    indices, values, shape = variants_from_proto(message(SPARSE, 3))
    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[0, 1]], [0], [2, 3])


def test_a_ragged_tensor_as_tensorflow_writes_it() -> None:
    ragged = variants_from_proto(message(RAGGED))
    assert [each.tolist() for each in ragged.nested_splits] == [[0, 1, 2]]
    assert ragged.values.tolist() == [0, 1]


def test_what_is_written_is_read() -> None:
    ragged = RaggedTensorVariant((np.int64([0, 2]),), np.array([b"a", b""], object))
    given = np.empty((2, 1), object)
    given[:, 0] = [ragged, np.float32([1, 2])]
    (first,), (second,) = variants_from_proto(variants_to_proto(given))
    assert first.nested_splits[0].tolist() == [0, 2]
    assert first.values.tolist() == [b"a", b""]
    assert (second.dtype, second.tolist()) == (np.float32, [1, 2])


@pytest.mark.parametrize(
    ("content", "text"),
    [(SPARSE[:-1], "3 variants need 105 bytes, got 104"), (b"\xff", "malformed variable-length")],
)
def test_content_that_is_cut_off(content: bytes, text: str) -> None:
    with pytest.raises(DataLossError, match=text):
        variants_from_proto(message(content, 3))


def test_variants_that_live_in_one_process() -> None:
    held: Any = TensorList(DataType.FLOAT, (), ())
    with pytest.raises(UnimplementedError, match="A variant that holds a TensorList cannot be"):
        variants_to_proto(held)
    content = RAGGED.replace(b"RaggedTensorVariant", b"tensorflow::Unknown")
    with pytest.raises(UnimplementedError, match="of type 'tensorflow::Unknown' cannot be read"):
        variants_from_proto(message(content))
