"""Encoding of variant tensors in files, for variants that hold a tensor or a ragged tensor.

The `tensor_content` of such a TensorProto contains the lengths of all elements as varints, then the
elements, each as a VariantTensorDataProto. A sparse tensor is stored as variants that hold its
tensors. Variants of other types exist in one process only.

TF: tensorflow/core/framework/variant.cc, tensorflow/core/platform/tensor_coding.cc
(EncodeVariantList)
"""

from __future__ import annotations

import math

import numpy as np

import protos as pb
from runtime.foundation.errors import DataLossError, ResourceExhaustedError, UnimplementedError
from runtime.framework.allocation import tensor_limit
from runtime.framework.io.varint import decode_varint, encode_varint
from runtime.framework.ragged_tensor_variant import RaggedTensorVariant
from runtime.framework.tensor_codec import shape_to_proto, tensor_from_proto, tensor_to_proto
from runtime.framework.tensor_value import TensorValue

_TENSOR = "tensorflow::Tensor"
_RAGGED = "RaggedTensorVariant"


def variants_to_proto(value: object) -> pb.TensorProto:
    """Encode a variant tensor as a TensorProto.

    Raises UnimplementedError if a variant holds neither a tensor nor a ragged tensor.
    """
    if isinstance(value, np.ndarray) and value.dtype == object:
        items, shape = list(value.ravel()), value.shape
    else:
        items, shape = [value], ()
    elements = [_encode_variant(item).SerializeToString(deterministic=True) for item in items]
    content = b"".join([*(encode_varint(len(each)) for each in elements), *elements])
    return pb.TensorProto(
        dtype=pb.DT_VARIANT, tensor_shape=shape_to_proto(shape), tensor_content=content
    )


def _encode_variant(item: object) -> pb.VariantTensorDataProto:
    if isinstance(item, RaggedTensorVariant):
        kind, tensors = _RAGGED, [*item.nested_splits, item.values]
    elif isinstance(item, np.ndarray | np.generic):
        kind, tensors = _TENSOR, [np.asarray(item)]
    else:
        raise UnimplementedError(f"A variant that holds a {type(item).__name__} cannot be saved")
    return pb.VariantTensorDataProto(
        type_name=kind, tensors=[tensor_to_proto(each) for each in tensors]
    )


def variants_from_proto(proto: pb.TensorProto) -> TensorValue:
    """Decode a variant tensor to an object array; a scalar to the value that the variant holds.

    Raises DataLossError if the content is not as long as the lengths in it require,
    ResourceExhaustedError if the array would exceed `tensor_limit()`, UnimplementedError if a
    variant holds neither a tensor nor a ragged tensor.
    """
    shape = tuple(dim.size for dim in proto.tensor_shape.dim)
    count = math.prod(shape)
    if not 0 <= count <= tensor_limit() // np.dtype(object).itemsize:
        raise ResourceExhaustedError(f"A tensor of {count} variants is too large")
    content, position = proto.tensor_content, 0
    lengths = []
    for _ in range(count):
        length, position = decode_varint(content, position)
        lengths.append(length)
    if position + sum(lengths) != len(content):
        raise DataLossError(
            f"{count} variants need {sum(lengths)} bytes, got {len(content) - position}"
        )
    result = np.empty(count, object)
    for index, length in enumerate(lengths):
        result[index] = _decode_variant(content[position : position + length])
        position += length
    return result.reshape(shape) if shape else result[0]


def _decode_variant(data: bytes) -> TensorValue:
    element = pb.VariantTensorDataProto.FromString(data)
    tensors = [tensor_from_proto(each, tensor_limit()) for each in element.tensors]
    if element.type_name == _TENSOR and len(tensors) == 1:
        return tensors[0]
    if element.type_name == _RAGGED and tensors:
        return RaggedTensorVariant(tuple(tensors[:-1]), tensors[-1])
    raise UnimplementedError(f"A variant of type {element.type_name!r} cannot be read")
