"""BatchFunction: a function for which TensorFlow joins the inputs of concurrent steps.

Here every step calls the function on its own inputs, which gives the same results. Requests are
batched by the server instead, if its batching options are set.

TF: tensorflow/core/kernels/batch_kernels.cc
"""

from __future__ import annotations

import itertools

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Deferred, KernelDef, OpKernelContext
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box


def batch_function(
    context: OpKernelContext,
    *inputs: TensorValue,
    f: NameAttrList,
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    allowed_batch_sizes: tuple[int, ...],
    enable_large_batch_splitting: bool,
    Tin: tuple[DataType, ...],  # noqa: N803 # the attribute's name
    Tout: tuple[DataType, ...],  # noqa: N803
) -> list[TensorValue] | Deferred:
    """BatchFunction: call `f` with `inputs`, which are the batched and the captured tensors."""
    _check_allowed_sizes(allowed_batch_sizes, max_batch_size, enable_large_batch_splitting)
    sizes = []
    for each in inputs[: len(Tin)]:
        shape = box(each).shape
        if not shape:
            raise InvalidArgumentError("Batching input tensors must have at least one dimension")
        sizes.append(shape[0])
    if len(set(sizes)) > 1:
        raise InvalidArgumentError(
            "Batching input tensors supplied in a given op invocation must have equal "
            "0th-dimension size"
        )
    if sizes and not sizes[0]:
        # As in TensorFlow, the function is not called for an empty batch: each output is then an
        # empty vector.
        return [np.zeros(0, each.numpy) for each in Tout]
    largest = allowed_batch_sizes[-1] if allowed_batch_sizes else max_batch_size
    if num_batch_threads > 0:
        _check_queue(max_batch_size, largest, batch_timeout_micros, enable_large_batch_splitting)
    else:
        _check_adaptive_queue(max_batch_size, largest, enable_large_batch_splitting)
    if sizes and sizes[0] > max_batch_size >= 0:
        limit = "maximum input batch" if num_batch_threads > 0 else "max input task"
        raise InvalidArgumentError(
            f"Task size {sizes[0]} is larger than {limit} size {max_batch_size}"
        )
    return context.start_function(f, *inputs)


def _check_allowed_sizes(allowed: tuple[int, ...], max_batch_size: int, may_split: bool) -> None:
    if any(one >= two for one, two in itertools.pairwise(allowed)):
        raise InvalidArgumentError("allowed_batch_sizes entries must be monotonically increasing")
    if allowed and not may_split and allowed[-1] != max_batch_size:
        raise InvalidArgumentError(
            "final entry in allowed_batch_sizes must equal max_batch_size when "
            "enable_large_batch_splitting is False"
        )


def _check_queue(max_batch_size: int, largest: int, timeout_micros: int, may_split: bool) -> None:
    """Raise InvalidArgumentError if the attributes are invalid for a fixed number of threads.

    A negative `max_batch_size` means that there is no limit.
    """
    if not max_batch_size:
        raise InvalidArgumentError("input_batch_size_limit must be positive; was 0")
    if timeout_micros < 0:
        raise InvalidArgumentError(
            f"batch_timeout_micros must be non-negative; was {timeout_micros}"
        )
    if may_split and 0 <= max_batch_size < largest:
        raise InvalidArgumentError(
            "When enable_large_batch_splitting is true, input_batch_size_limit must be greater "
            f"than or equal to max_execution_batch_size.1{max_batch_size}{largest}"
        )


def _check_adaptive_queue(max_batch_size: int, largest: int, may_split: bool) -> None:
    """Raise InvalidArgumentError if the attributes are invalid for an adaptive thread count."""
    if largest <= 0:
        raise InvalidArgumentError(f"max_batch_size must be positive; was {largest}")
    if may_split and max_batch_size < largest:
        raise InvalidArgumentError(
            "max_input_task_size must be larger than or equal to max_batch_size;got "
            f"max_input_task_size as {max_batch_size} and max_batch_size as {largest}"
        )


KERNELS = (KernelDef("BatchFunction", batch_function, asynchronous=True),)
