"""Ops that return their input, constants and placeholders.

TF: tensorflow/core/kernels/{identity_op,identity_n_op,constant_op,no_op}.cc
"""

from __future__ import annotations

from typing import NoReturn

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue


def identity(value: TensorValue) -> TensorValue:
    """Identity, and every other op that only returns its input."""
    return value


def guarantee_const(value: TensorValue) -> TensorValue:
    """GuaranteeConst: the input; raises InvalidArgumentError for a variable's handle."""
    if isinstance(value, ResourceHandle):
        raise InvalidArgumentError("Input tensor cannot be a resource variable handle.")
    return value


def identity_n(*values: TensorValue) -> tuple[TensorValue, ...]:
    """IdentityN: the list of input tensors."""
    return values


def no_op() -> None:
    """NoOp: no outputs; the node exists only for its control edges."""


def const(*, value: TensorValue) -> TensorValue:
    """Const: the value of its attribute."""
    return value


def placeholder(
    context: OpKernelContext, *, dtype: DataType, shape: tuple[int, ...] | None
) -> NoReturn:
    """Placeholder: raise InvalidArgumentError, since it runs only if no value was fed."""
    known = f" and shape {shape_text(shape)}" if shape else ""
    raise InvalidArgumentError(
        f"You must feed a value for placeholder tensor '{context.node.name}' "
        f"with dtype {dtype.tf_name}{known}"
    )


KERNELS = (
    KernelDef("Const", const),
    KernelDef("Copy", identity),
    KernelDef("CopyHost", identity),
    KernelDef("GuaranteeConst", guarantee_const),
    KernelDef("Identity", identity),
    KernelDef("IdentityN", identity_n),
    KernelDef("NoOp", no_op),
    KernelDef("Placeholder", placeholder),
    KernelDef("PlaceholderV2", placeholder),
    KernelDef("PlaceholderWithDefault", identity),
    KernelDef("PreventGradient", identity),
    KernelDef("RefIdentity", identity),
    KernelDef("Snapshot", identity),
    KernelDef("StopGradient", identity),
)
