"""BatchFunction: a function for which TensorFlow joins the inputs of concurrent steps.

Here every step calls the function on its own inputs: the answers are the same, and joining
requests is the server's work (its batching options), not the graph's.

TF: tensorflow/core/kernels/batch_kernels.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Deferred, KernelDef, OpKernelContext


def batch_function(
    context: OpKernelContext,
    *inputs: Any,
    f: NameAttrList,
    max_batch_size: int,
    enable_large_batch_splitting: bool,
    Tin: tuple[DataType, ...],  # noqa: N803 # the attribute's name
) -> list[Any] | Deferred:
    """BatchFunction: `f` of the batched inputs and what it captured."""
    sizes = []
    for each in inputs[: len(Tin)]:
        if not np.ndim(each):
            raise InvalidArgumentError("Batching input tensors must have at least one dimension")
        sizes.append(np.shape(each)[0])
    if len(set(sizes)) > 1:
        raise InvalidArgumentError(
            "Batching input tensors supplied in a given op invocation must have equal "
            "0th-dimension size"
        )
    if not enable_large_batch_splitting and sizes and sizes[0] > max_batch_size:
        raise InvalidArgumentError(
            f"Task size {sizes[0]} is larger than maximum input batch size {max_batch_size}"
        )
    return context.start_function(f, *inputs)


KERNELS = (KernelDef("BatchFunction", batch_function, asynchronous=True),)
