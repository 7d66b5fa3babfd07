"""Kernels of the conditional accumulator ops, dense and sparse.

A conditional accumulator sums gradients and, when there are enough, returns their mean or sum. It
drops a stale gradient, whose local step is earlier than the global step of the accumulator. The ops
of version 1 declare a handle as a reference to a string, the later ops as a resource; here both are
ResourceHandles.

TF: tensorflow/core/kernels/conditional_accumulator_op.cc, conditional_accumulator_base_op.cc,
sparse_conditional_accumulator_op.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Deferred, Kernel, KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.resource_manager import ResourceHandle
from runtime.framework.resource_op_kernel import resource_handle
from runtime.framework.resources.conditional_accumulator import (
    ConditionalAccumulator,
    DenseConditionalAccumulator,
    Outputs,
    SparseConditionalAccumulator,
    SparseGradient,
)
from runtime.framework.shapes import shape_text
from runtime.kernels.state.resource_variables import as_handle

Accumulator = ConditionalAccumulator[Any]


def _creation_kernel(kind: type[Accumulator]) -> Kernel:
    def kernel(
        context: OpKernelContext,
        *,
        dtype: DataType,
        shape: PartialShape,
        container: str,
        shared_name: str,
        reduction_type: str,
    ) -> ResourceHandle:
        return resource_handle(
            context,
            container,
            shared_name,
            ConditionalAccumulator,
            lambda name: kind(name, dtype, shape, reduction_type == "MEAN"),
        )

    return kernel


def _look_up(
    context: OpKernelContext,
    handle: ResourceHandle,
    kind: type[Accumulator] = ConditionalAccumulator,
    dtype: DataType | None = None,
) -> Accumulator:
    """Return the accumulator that `handle` refers to.

    Raises InvalidArgumentError if the accumulator is not an instance of `kind`, or if `dtype` is
    given and is not the dtype of the accumulator.
    """
    handle = as_handle(handle)
    found = context.resources.look_up(handle.container, ConditionalAccumulator, handle.name)
    if not isinstance(found, kind):
        raise InvalidArgumentError(
            f"Expected a {kind.__name__}, but '{found.name}' is a {type(found).__name__}"
        )
    if dtype not in (None, found.dtype):
        raise InvalidArgumentError(
            f"Accumulator '{found.name}' has type {found.dtype.tf_name}, not {dtype.tf_name}"
        )
    return found


def _scalar(name: str, value: np.ndarray) -> int:
    if np.ndim(value):
        raise InvalidArgumentError(
            f"Argument {name} must be scalar, but had bad shape {shape_text(np.shape(value))}"
        )
    return int(value)


def apply_gradient(
    context: OpKernelContext,
    handle: ResourceHandle,
    local_step: np.ndarray,
    gradient: np.ndarray,
    *,
    dtype: DataType,
) -> None:
    """AccumulatorApplyGradient: add `gradient` to the sum, unless `local_step` is stale."""
    found = _look_up(context, handle, DenseConditionalAccumulator, dtype)
    found.apply(_scalar("local_step", local_step), np.asarray(gradient))


def sparse_apply_gradient(
    context: OpKernelContext,
    handle: ResourceHandle,
    local_step: np.ndarray,
    gradient_indices: np.ndarray,
    gradient_values: np.ndarray,
    gradient_shape: np.ndarray,
    *,
    dtype: DataType,
    has_known_shape: bool,
) -> None:
    """SparseAccumulatorApplyGradient: add rows to the sum, unless `local_step` is stale."""
    found = _look_up(context, handle, SparseConditionalAccumulator, dtype)
    step = _scalar("local_step", local_step)
    if found.is_stale(step):
        return
    indices, values = np.asarray(gradient_indices), np.asarray(gradient_values)
    sizes = np.ravel(gradient_shape).tolist()
    if indices.ndim != 1:
        raise InvalidArgumentError(
            f"Input indices should be vector but received shape: {shape_text(indices.shape)}"
        )
    if not values.ndim:
        raise InvalidArgumentError("Values cannot be 0-dimensional.")
    if len(indices) != len(values):
        raise InvalidArgumentError(
            f"Expected {len(indices)} non-empty input values, got {len(values)}"
        )
    if has_known_shape:
        _check_sizes(found.shape, sizes)
    found.apply(step, SparseGradient(indices, values, np.ones(len(indices), np.int64)))


def _check_sizes(expected: PartialShape, sizes: list[int]) -> None:
    """Raise InvalidArgumentError unless `sizes`, a gradient's shape, fit the shape `expected`."""
    wanted = list(expected or ())
    if len(sizes) < len(wanted):
        raise InvalidArgumentError(
            f"Shape mismatch: expected shape rank at least {len(wanted)}, got {len(sizes)}"
        )
    for axis, (want, size) in enumerate(zip(wanted, sizes, strict=False)):
        if want not in (-1, size):
            raise InvalidArgumentError(
                f"Shape mismatch: expected shape dim {axis} to be {want}, got {size}"
            )


def _take_gradient_kernel(kind: type[Accumulator]) -> Kernel:
    def kernel(
        context: OpKernelContext,
        handle: ResourceHandle,
        num_required: np.ndarray,
        *,
        dtype: DataType,
    ) -> Outputs | Deferred:
        found = _look_up(context, handle, kind, dtype)
        required = _scalar("num_required", num_required)
        if required <= 0:
            raise InvalidArgumentError(
                f"Argument num_required must be positive, but was {required}"
            )
        return found.take(required, context.cancellation)

    return kernel


def num_accumulated(context: OpKernelContext, handle: ResourceHandle) -> np.int32:
    """AccumulatorNumAccumulated: return the number of gradients in the sum."""
    return np.int32(_look_up(context, handle).count)


def set_global_step(
    context: OpKernelContext, handle: ResourceHandle, new_global_step: np.ndarray
) -> None:
    """AccumulatorSetGlobalStep: set the global step.

    Gradients whose local step is earlier are dropped from now on.
    """
    step = _scalar("num_required", new_global_step)  # TensorFlow's message uses this name
    _look_up(context, handle).set_global_step(step)


_TYPES = {"dtype": (DataType.HALF, DataType.FLOAT, DataType.DOUBLE)}
_DENSE, _SPARSE = DenseConditionalAccumulator, SparseConditionalAccumulator

KERNELS = (
    *(
        kernel
        for prefix in ("", "Resource")
        for kernel in (
            KernelDef(f"{prefix}AccumulatorApplyGradient", apply_gradient),
            KernelDef(f"{prefix}AccumulatorNumAccumulated", num_accumulated),
            KernelDef(f"{prefix}AccumulatorSetGlobalStep", set_global_step),
            KernelDef(
                f"{prefix}AccumulatorTakeGradient", _take_gradient_kernel(_DENSE), asynchronous=True
            ),
            KernelDef(f"{prefix}ConditionalAccumulator", _creation_kernel(_DENSE), _TYPES),
        )
    ),
    KernelDef("SparseAccumulatorApplyGradient", sparse_apply_gradient),
    KernelDef("SparseAccumulatorTakeGradient", _take_gradient_kernel(_SPARSE), asynchronous=True),
    KernelDef("SparseConditionalAccumulator", _creation_kernel(_SPARSE), _TYPES),
)
