"""Composite tensors (ragged, sparse, user-defined), held as variants.

Each variant has the components of one composite tensor and its type spec.

TF: tensorflow/core/kernels/composite_tensor_ops.cc, composite_tensor_variant.h
"""

from __future__ import annotations

import dataclasses

from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class CompositeTensorVariant:
    """The components of a composite tensor, the dtypes of the components, and the type spec."""

    components: tuple[TensorValue, ...]
    types: tuple[DataType, ...]
    type_spec: pb.TypeSpecProto


def composite_tensor_variant_from_components(
    *components: TensorValue,
    metadata: str,
    Tcomponents: tuple[DataType, ...],  # noqa: N803 # the attribute's name
) -> CompositeTensorVariant:
    """CompositeTensorVariantFromComponents: pack the `components` into one scalar variant."""
    return CompositeTensorVariant(components, Tcomponents, _type_spec(metadata))


def composite_tensor_variant_to_components(
    encoded: TensorValue,
    *,
    metadata: str,
    Tcomponents: tuple[DataType, ...],  # noqa: N803 # the attribute's name
) -> tuple[TensorValue, ...]:
    """CompositeTensorVariantToComponents: return the components of the first variant in `encoded`.

    Raises InvalidArgumentError if `encoded` holds no composite tensor, or if the number or the
    dtypes of its components differ from `Tcomponents`.
    """
    _type_spec(metadata)
    array = box(encoded)
    variant = array.item(0) if array.size else None
    if not isinstance(variant, CompositeTensorVariant):
        raise InvalidArgumentError(
            "The input `encoded` is not a valid CompositeTensorVariant tensor, got "
            f"{type(variant).__name__} in a tensor of shape {list(array.shape)}"
        )
    if len(variant.components) != len(Tcomponents):
        raise InvalidArgumentError(
            f"Encoded value has {len(variant.components)} tensor components; expected "
            f"{len(Tcomponents)} components based on type_spec"
        )
    for index, (found, expected) in enumerate(zip(variant.types, Tcomponents, strict=True)):
        if found != expected:
            raise InvalidArgumentError(
                f"Tensor component {index} had dtype DT_{found.name}; "
                f"expected dtype DT_{expected.name}"
            )
    return variant.components


def _type_spec(metadata: str) -> pb.TypeSpecProto:
    try:
        return pb.TypeSpecProto.FromString(raw_bytes(metadata))
    except DecodeError:
        raise InvalidArgumentError("Error parsing metadata") from None


KERNELS = (
    KernelDef("CompositeTensorVariantFromComponents", composite_tensor_variant_from_components),
    KernelDef("CompositeTensorVariantToComponents", composite_tensor_variant_to_components),
)
