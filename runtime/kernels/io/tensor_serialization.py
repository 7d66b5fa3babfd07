"""Kernels of ParseTensor and SerializeTensor, which convert tensors from and to TensorProtos.

TF: tensorflow/core/kernels/parse_tensor_op.cc
"""

from __future__ import annotations

import base64

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import tensor_limit
from runtime.framework.dtypes import DataType, from_number
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.framework.string_tensor import as_strings, scalar_string, string_tensor
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.framework.tensor_value import TensorValue


def parse_tensor(serialized: np.ndarray, *, out_type: DataType) -> TensorValue:
    """ParseTensor: return the tensor of a serialized TensorProto."""
    serialized = as_strings(serialized)
    if serialized.ndim:
        raise InvalidArgumentError(
            f"Expected `serialized` to be a scalar, got shape: {shape_text(serialized.shape)}"
        )
    text = scalar_string(serialized)
    try:
        proto = pb.TensorProto.FromString(text)
    except DecodeError:
        shown = base64.b64encode(text).decode()
        raise InvalidArgumentError(
            f"Could not parse `serialized` as TensorProto, base64: {shown}"
        ) from None
    found, _ = from_number(proto.dtype)
    if found is not out_type:
        raise InvalidArgumentError(
            f"Type mismatch between parsed tensor ({found.tf_name}) and dtype ({out_type.tf_name})"
        )
    if out_type is DataType.VARIANT and len(proto.variant_val) == 1:
        return proto.variant_val[0]  # serialize_tensor writes a variant in this form
    return tensor_from_proto(proto, tensor_limit())


def serialize_tensor(tensor: TensorValue, *, T: DataType) -> np.ndarray:  # noqa: N803
    """SerializeTensor: serialize `tensor` as a TensorProto.

    The only variants that can be serialized are the states of iterators.
    """
    value = tensor.item() if isinstance(tensor, np.ndarray) and tensor.size == 1 else tensor
    if isinstance(value, pb.VariantTensorDataProto):
        variant = pb.TensorProto(dtype=pb.DT_VARIANT, variant_val=[value])
        variant.tensor_shape.SetInParent()
        return string_tensor([variant.SerializeToString(deterministic=True)], ())
    proto = tensor_to_proto(np.asarray(tensor, T.numpy), T)
    return string_tensor([proto.SerializeToString(deterministic=True)], ())


KERNELS = (
    KernelDef("ParseTensor", parse_tensor),
    KernelDef("SerializeTensor", serialize_tensor),
)
