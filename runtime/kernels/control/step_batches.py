"""Batch, Unbatch and UnbatchGrad: parts of a graph that run once for several concurrent steps.

TF: tensorflow/core/kernels/batch_kernels.cc
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.op_kernel import Deferred, KernelDef, OpKernelContext
from runtime.framework.resource_manager import Resource, private_name
from runtime.framework.resources.step_batches import (
    StepBatcher,
    StepGradientBatcher,
    StepUnbatcher,
    parts_of,
)
from runtime.framework.shapes import shape_text

R = TypeVar("R", bound=Resource)


def _resource(
    context: OpKernelContext,
    container: str,
    shared_name: str,
    kind: type[R],
    make: Callable[[], R],
) -> R:
    """Return the resource named `shared_name`, which `make` creates at its first use.

    If `shared_name` is empty, the node has a resource of its own.
    """

    def find() -> R:
        name = shared_name or private_name(context.node.name)
        return context.resources.look_up_or_create(container, kind, name, make)

    found: R = context.kernel_state(find)
    return found


def check_rows(tensors: Sequence[np.ndarray]) -> None:
    """Raise InvalidArgumentError if a tensor is a scalar or the numbers of rows differ."""
    if not all(map(np.ndim, tensors)):
        raise InvalidArgumentError("Batching input tensors must have at least one dimension.")
    if len({len(each) for each in tensors}) > 1:
        raise InvalidArgumentError(
            "Batching input tensors supplied in a given op invocation must have equal "
            "0th-dimension size."
        )


def batch(
    context: OpKernelContext,
    *in_tensors: np.ndarray,
    max_batch_size: int,
    batch_timeout_micros: int,
    allowed_batch_sizes: tuple[int, ...],
    container: str,
    shared_name: str,
) -> Deferred | tuple[np.ndarray, ...]:
    """Batch: join the rows of `in_tensors` with the rows of concurrent steps; see StepBatcher.

    Returns (batched tensors…, batch_index `[steps, 3]`, id). The last step of a batch gets the rows
    of all steps; the other steps get no rows.
    """
    if batch_timeout_micros < 0:
        raise InvalidArgumentError(
            f"batch_timeout_micros must be non-negative; was {batch_timeout_micros}"
        )
    sizes = allowed_batch_sizes
    if any(size >= following for size, following in itertools.pairwise(sizes)):
        raise InvalidArgumentError("allowed_batch_sizes entries must be monotonically increasing")
    if sizes and sizes[-1] != max_batch_size:
        raise InvalidArgumentError("final entry in allowed_batch_sizes must equal max_batch_size")
    check_rows(in_tensors)
    batcher = _resource(
        context,
        container,
        shared_name,
        StepBatcher,
        lambda: StepBatcher(max_batch_size, batch_timeout_micros, sizes),
    )
    if in_tensors and not len(in_tensors[0]):
        # A step without rows joins no batch. As in TensorFlow, all its outputs are empty vectors.
        nothing = [np.zeros(0, each.dtype) for each in in_tensors]
        return *nothing, np.zeros(0, np.int64), np.zeros(0, np.int64)
    return batcher.add(in_tensors, context.cancellation)


def _check_index(batched: np.ndarray, index: np.ndarray, key: np.ndarray) -> None:
    if np.ndim(key):
        raise InvalidArgumentError(f"Input id should be scalar; Got: {shape_text(np.shape(key))}.")
    if not np.ndim(batched):
        raise InvalidArgumentError("The batched tensor must have at least one dimension.")
    if np.size(index) and (np.ndim(index) != 2 or index.shape[1] != 3):
        raise InvalidArgumentError(
            f"batch_index must have shape [steps, 3], got {shape_text(np.shape(index))}"
        )


def _check_parts(batched: np.ndarray, index: np.ndarray) -> None:
    if not np.ndim(batched) or np.ndim(index) != 2:
        raise InvalidArgumentError(
            f"Expected rows and an index [steps, 3], got shapes {shape_text(np.shape(batched))} "
            f"and {shape_text(np.shape(index))}"
        )
    if len(index) > len(batched):
        raise InvalidArgumentError(
            "Wrong shape for index tensor. Expected 0th dimension size to be no greater than "
            f"{len(batched)}; Got: {len(index)}."
        )
    if index.shape[1] != 3:
        raise InvalidArgumentError(
            "Wrong shape for index tensor. Expected 1st dimension size to be 3 ; "
            f"Got: {index.shape[1]}."
        )
    sizes = index[:, 2] - index[:, 1]
    if sizes.min(initial=0) < 0 or sizes.sum() > len(batched):
        raise InvalidArgumentError(
            f"batch_index names {sizes.tolist()} rows of {len(batched)}, "
            "expected none below 0 and no more than there are"
        )


def unbatch(
    context: OpKernelContext,
    batched_tensor: np.ndarray,
    batch_index: np.ndarray,
    id: np.ndarray,  # TensorFlow's name for this input
    *,
    timeout_micros: int,
    container: str,
    shared_name: str,
) -> np.ndarray | Deferred:
    """Unbatch: return this step's rows of a batched tensor.

    One step of the batch supplies `batched_tensor`; the other steps of the batch wait for it.
    """
    _check_parts(batched_tensor, batch_index)
    if np.ndim(id):
        raise InvalidArgumentError(f"Input id should be scalar; Got: {shape_text(np.shape(id))}.")
    parts = parts_of(batched_tensor, batch_index)
    found = _resource(
        context, container, shared_name, StepUnbatcher, lambda: StepUnbatcher(timeout_micros)
    )
    return found.exchange(parts, int(id), context.cancellation)


def unbatch_grad(
    context: OpKernelContext,
    original_input: np.ndarray,
    batch_index: np.ndarray,
    grad: np.ndarray,
    id: np.ndarray,  # TensorFlow's name for this input
    *,
    container: str,
    shared_name: str,
) -> np.ndarray | Deferred:
    """UnbatchGrad: return the gradients of all steps of a batch in the step that has the batch.

    Every other step of the batch gets no rows.
    """
    _check_index(grad, batch_index, id)
    keys = None
    if np.size(original_input):
        if not np.size(batch_index):
            raise InvalidArgumentError("batch_index is empty while the tensor isn't.")
        keys = np.asarray(batch_index)[:, 0].tolist()
    found = _resource(context, container, shared_name, StepGradientBatcher, StepGradientBatcher)
    return found.add(grad, int(id), keys, context.cancellation)


KERNELS = (
    KernelDef("Batch", batch, asynchronous=True),
    KernelDef("Unbatch", unbatch, asynchronous=True),
    KernelDef("UnbatchGrad", unbatch_grad, asynchronous=True),
)
