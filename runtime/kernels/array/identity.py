"""Kernels of constants, placeholders and ops that return their inputs unchanged.

TF: tensorflow/core/kernels/{identity_op,identity_n_op,constant_op,no_op}.cc
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType, from_numpy
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue


def identity(value: TensorValue) -> TensorValue:
    """Identity, and every other op that only passes a value on: return `value`."""
    return value


def guarantee_const(value: TensorValue) -> TensorValue:
    """GuaranteeConst: return `value`.

    Raises InvalidArgumentError if `value` is the handle of a resource variable.
    """
    if isinstance(value, ResourceHandle):
        raise InvalidArgumentError("Input tensor cannot be a resource variable handle.")
    return value


def identity_n(*values: TensorValue) -> tuple[TensorValue, ...]:
    """IdentityN: return the list of input tensors."""
    return values


def no_op() -> None:
    """NoOp: return nothing; the node exists only for its control edges."""


def const(*, value: TensorValue) -> TensorValue:
    """Const: return the attribute `value`."""
    return value


def placeholder(
    context: OpKernelContext, *, dtype: DataType, shape: tuple[int, ...] | None
) -> NoReturn:
    """Placeholder: raise InvalidArgumentError, because it runs only if no value was fed."""
    known = f" and shape {shape_text(shape)}" if shape else ""
    raise InvalidArgumentError(
        f"You must feed a value for placeholder tensor '{context.node.name}' "
        f"with dtype {dtype.tf_name}{known}"
    )


def host_const(*, value: TensorValue, dtype: DataType) -> TensorValue:
    """HostConst: return `value`; raise InvalidArgumentError if it is not a `dtype`."""
    found = from_numpy(value.dtype) if isinstance(value, np.ndarray | np.generic) else dtype
    if found != dtype:
        raise InvalidArgumentError(
            f"Type mismatch between value ({found.tf_name}) and dtype ({dtype.tf_name})"
        )
    return value


KERNELS = (
    KernelDef("Const", const),
    KernelDef("Copy", identity),
    KernelDef("HostConst", host_const),
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
