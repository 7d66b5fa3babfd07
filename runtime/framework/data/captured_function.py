"""Functions that datasets apply to elements, with the tensors that each function captures.

A function runs in the step that requests the element, which need not be the step that created the
dataset.

TF: tensorflow/core/data/captured_function.h (CapturedFunction)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from runtime.foundation.errors import (
    CancelledError,
    InternalError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
)
from runtime.framework.attr_value import NameAttrList, raw_bytes
from runtime.framework.data.dataset import Dataset, DatasetIterator, as_dataset
from runtime.framework.op_kernel import OpKernelContext
from runtime.framework.tensor_value import TensorValue

# Errors that are raised unchanged: an iterator's caller recognizes by their classes that the
# sequence has ended or that the step was cancelled.
_ITERATION_ERRORS = (OutOfRangeError, CancelledError)


@dataclasses.dataclass(frozen=True, slots=True)
class CapturedFunction:
    """A function and the tensors that it captures, which are passed after the caller's arguments.

    `metadata` is the serialised metadata of the dataset's node; error messages take the name of the
    transformation from it. If `metadata` is empty, errors are raised unchanged.
    """

    function: NameAttrList
    captures: tuple[TensorValue, ...] = ()
    metadata: str = ""

    def held(self) -> tuple[int, Iterable[object]]:
        """Return the captured tensors."""
        return 0, self.captures

    def __call__(self, context: OpKernelContext, *arguments: TensorValue) -> list[TensorValue]:
        """Call the function and return its outputs; its errors are raised unchanged."""
        return context.call_function(self.function, *arguments, *self.captures)

    def with_error_context(
        self, context: OpKernelContext, prefix: str, *arguments: TensorValue
    ) -> list[TensorValue]:
        """Call the function and return its outputs.

        If the function fails, the message names the transformation and the iterator, whose name is
        `prefix`.
        """
        try:
            return self(context, *arguments)
        except _ITERATION_ERRORS:
            raise
        except OpError as error:
            if not self.metadata:
                raise
            name = _transformation_name(self.metadata)
            raise type(error)(
                f"Error in user-defined function passed to {name} transformation "
                f"with iterator: {prefix}: {error.message_without_node}",
                error.node,
            ) from None

    def truth(self, context: OpKernelContext, prefix: str, *arguments: TensorValue) -> bool:
        """Call the function, which is a predicate, and return its result.

        Raises InvalidArgumentError if the function does not return exactly one scalar bool.
        """
        outputs = self.with_error_context(context, prefix, *arguments)
        output = np.asarray(outputs[0]) if len(outputs) == 1 else None
        if output is None or output.ndim or output.dtype != np.bool_:
            raise InvalidArgumentError("Filter predicate `f` must return a scalar bool.")
        return bool(output)

    def dataset(self, context: OpKernelContext, prefix: str, *arguments: TensorValue) -> Dataset:
        """Call the function and return the dataset that it returns.

        Raises InvalidArgumentError if the function does not return exactly one dataset.
        """
        outputs = self.with_error_context(context, prefix, *arguments)
        if len(outputs) != 1:
            raise InvalidArgumentError("`f` must return a single scalar of dtype DT_VARIANT.")
        return as_dataset(outputs[0])

    def iterate(
        self, context: OpKernelContext, prefix: str, index: int, *arguments: TensorValue
    ) -> DatasetIterator:
        """Return an iterator over the dataset that the function returns for `arguments`.

        `index` is the position of this dataset among the datasets that the function has returned;
        it becomes part of the iterator's name.
        """
        return self.dataset(context, prefix, *arguments).iterate(context, f"{prefix}[{index}]")

    def scalar_int64(self, context: OpKernelContext, name: str, *arguments: TensorValue) -> int:
        """Call the function and return its result as a number.

        Raises InvalidArgumentError, whose message calls the function `name`, if the function does
        not return exactly one scalar int64.
        """
        outputs = self(context, *arguments)
        output = np.asarray(outputs[0]) if len(outputs) == 1 else None
        if output is None or output.ndim or output.dtype != np.int64:
            raise InvalidArgumentError(f"`{name}` must return a scalar int64.")
        return int(output)


def _transformation_name(metadata: str) -> str:
    """Return the transformation's name in `metadata`, or an empty string if there is none."""
    raw = raw_bytes(metadata)
    if len(raw) < 2 or raw[0] != 0x0A:  # 0x0A is the protobuf tag of a string in field 1
        return ""
    return raw[2 : 2 + raw[1]].decode("utf-8", "replace")


def check_output_count(outputs: list[TensorValue], expected: int) -> None:
    """Raise InternalError if a function returned fewer than `expected` outputs."""
    if len(outputs) < expected:
        raise InternalError(
            f"Expected a function with at least {expected} outputs, got {len(outputs)}"
        )
