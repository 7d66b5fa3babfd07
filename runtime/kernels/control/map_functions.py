"""MapDefun, which calls a function for each slice of its arguments.

TF: tensorflow/core/kernels/data/map_defun_op.cc
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from runtime.foundation.errors import InternalError, InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dtypes import DataType, Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape, Shapes, is_compatible, is_fully_defined
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box, unbox


def map_defun(
    context: OpKernelContext,
    *arguments_and_captured: TensorValue,
    Targuments: Types,  # noqa: N803 # the attribute's name
    output_types: Types,
    output_shapes: Shapes,
    f: NameAttrList,
) -> list[np.ndarray]:
    """MapDefun: return the outputs of `f` for each slice of the arguments, stacked.

    Arguments are `[n, …]`; `f` is called n times, one call after the other, with the slices and the
    captured inputs. An output is `[n, *shape]`, where `shape` is that of the first result if
    `output_shapes` does not have it.

    Raises InvalidArgumentError if an argument is a scalar, if their first dimensions differ, or if
    a result has another type or shape than expected, InternalError if there are no results and the
    shape of an output is not known.
    """
    if len(output_shapes) != len(output_types):
        raise InvalidArgumentError("Length of output_shapes and output_types must match.")
    arguments = [box(each) for each in arguments_and_captured[: len(Targuments)]]
    captured = arguments_and_captured[len(Targuments) :]
    count = _batch_size(arguments)
    stacks = [_Stack(count, *each) for each in zip(output_types, output_shapes, strict=True)]
    for index in range(count):
        context.cancellation.check()
        slices = [unbox(each[index, ...]) for each in arguments]
        results = context.call_function(f, *slices, *captured)
        if len(results) != len(stacks):
            raise InvalidArgumentError("Mismatch in number of function outputs.")
        for number, (stack, result) in enumerate(zip(stacks, results, strict=True)):
            stack.put(number, index, box(result))
    return [stack.tensor(context.node.name, number) for number, stack in enumerate(stacks)]


class _Stack:
    """One output, which is allocated when its shape is known."""

    def __init__(self, count: int, kind: DataType, shape: PartialShape) -> None:
        self._count = count
        self._kind = kind
        self._shape = shape
        self._tensor = self._allocated(shape) if is_fully_defined(shape) else None

    def _allocated(self, shape: tuple[int, ...]) -> np.ndarray:
        check_allocation((self._count, *shape), self._kind.numpy)
        return np.empty((self._count, *shape), self._kind.numpy)

    def put(self, number: int, index: int, result: np.ndarray) -> None:
        """Store a result of output `number` at `index`."""
        if result.dtype != self._kind.numpy:
            raise InvalidArgumentError(
                f"Mismatch in function return type and expected output type for output: {number}"
            )
        if not is_compatible(self._shape, result.shape):
            raise InvalidArgumentError(
                f"Mismatch in function retval shape, {shape_text(result.shape)}, and expected "
                f"output shape, {shape_text(self._shape)}."
            )
        if self._tensor is None:
            self._shape = result.shape
            self._tensor = self._allocated(result.shape)
        self._tensor[index, ...] = result

    def tensor(self, node: str, number: int) -> np.ndarray:
        """Return output `number` of `node`."""
        if self._tensor is None:
            raise InternalError(f"Missing {number}-th output from {{{{node {node}}}}}")
        return self._tensor


def _batch_size(arguments: Sequence[np.ndarray]) -> int:
    size = 0
    for index, argument in enumerate(arguments):
        if not argument.ndim:
            raise InvalidArgumentError(
                f"All inputs must have rank at least 1. Input {index} has a rank of 0."
            )
        if index and len(argument) != size:
            raise InvalidArgumentError(
                f"All inputs must have the same dimension 0. Input {index} has leading dimension "
                f"{len(argument)}, while all previous inputs have leading dimension {size}"
            )
        size = len(argument)
    return size


KERNELS = (KernelDef("MapDefun", map_defun),)
