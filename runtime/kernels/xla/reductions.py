"""XlaReduce and XlaVariadicReduce: tensors are reduced by a function of scalars.

Neighbours are joined in pairs, so that a call of the function joins many. The function must be
associative, as the compiler requires too.

TF: tensorflow/compiler/tf2xla/kernels/xla_reduce_op.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.running_task import check_task
from runtime.framework.attr_value import NameAttrList
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.kernels.xla.attributes import check_dimensions, others
from runtime.kernels.xla.computations import Computation


def _reduced(
    context: OpKernelContext,
    inputs: Sequence[np.ndarray],
    inits: Sequence[np.ndarray],
    dimensions: Sequence[int],
    reducer: NameAttrList,
) -> list[np.ndarray]:
    shape = np.shape(inputs[0])
    if any(np.shape(each) != shape for each in inputs):
        raise InvalidArgumentError(
            f"Inputs must have the same shape, got {[list(np.shape(each)) for each in inputs]}"
        )
    if any(np.ndim(each) for each in inits):
        raise InvalidArgumentError("init_value must be a scalar")
    check_dimensions("dimensions_to_reduce", dimensions, len(shape))
    kept = others(len(shape), dimensions)
    result_shape = [shape[each] for each in kept]
    count = int(np.prod([shape[each] for each in dimensions], dtype=np.int64))
    rows = [
        np.asarray(each).transpose([*dimensions, *kept]).reshape(count, *result_shape)
        for each in inputs
    ]
    combine = Computation(context, reducer)
    while count > 1:
        check_task()
        even = count // 2 * 2
        joined = combine(*(each[0:even:2] for each in rows), *(each[1:even:2] for each in rows))
        rest = [each[even:] for each in rows]
        rows = [np.concatenate(pair) for pair in zip(joined, rest, strict=True)]
        count = len(rows[0])
    begin = [np.full(result_shape, each) for each in inits]
    if not count or not rows[0].size:
        return begin
    return [np.asarray(each) for each in combine(*begin, *(each[0] for each in rows))]


def xla_reduce(
    context: OpKernelContext,
    array: np.ndarray,
    init_value: np.ndarray,
    *,
    dimensions_to_reduce: Sequence[int],
    reducer: NameAttrList,
) -> np.ndarray:
    """XlaReduce: one tensor, by a function of two scalars."""
    (result,) = _reduced(context, [array], [init_value], dimensions_to_reduce, reducer)
    return result


def xla_variadic_reduce(
    context: OpKernelContext,
    *inputs_and_inits: np.ndarray,
    dimensions_to_reduce: Sequence[int],
    reducer: NameAttrList,
) -> list[np.ndarray]:
    """XlaVariadicReduce and V2: several tensors of one shape together.

    The function takes so far joined values of all tensors, then the next ones.
    """
    count = len(inputs_and_inits) // 2
    inputs, inits = inputs_and_inits[:count], inputs_and_inits[count:]
    return _reduced(context, inputs, inits, dimensions_to_reduce, reducer)


KERNELS = (
    KernelDef("XlaReduce", xla_reduce, expensive=True),
    KernelDef("XlaVariadicReduce", xla_variadic_reduce, expensive=True),
    KernelDef("XlaVariadicReduceV2", xla_variadic_reduce, expensive=True),
)
