"""Functions that datasets apply to elements, with the tensors they capture.

A function runs in the step that asks for the element, which need not be the step that made the
dataset.

TF: tensorflow/core/data/captured_function.h (CapturedFunction)
"""

from __future__ import annotations

import dataclasses

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

_ITS_OWN = (OutOfRangeError, CancelledError)  # errors that mean something to the iterator


@dataclasses.dataclass(frozen=True, slots=True)
class CapturedFunction:
    """A function and its last arguments; `metadata` names the transformation in
    messages; without it errors stay as they are."""

    function: NameAttrList
    captures: tuple[TensorValue, ...] = ()
    metadata: str = ""

    def __call__(self, context: OpKernelContext, *arguments: TensorValue) -> list[TensorValue]:
        """The outputs for some arguments; the function's errors as they are."""
        return context.call_function(self.function, *arguments, *self.captures)

    def with_error_context(
        self, context: OpKernelContext, prefix: str, *arguments: TensorValue
    ) -> list[TensorValue]:
        """The outputs; errors tell the transformation and the iterator called `prefix`."""
        try:
            return self(context, *arguments)
        except _ITS_OWN:
            raise
        except OpError as error:
            if not self.metadata:
                raise
            raise type(error)(
                f"Error in user-defined function passed to {_name(self.metadata)} transformation "
                f"with iterator: {prefix}: {error.message_without_node}",
                error.node,
            ) from None

    def truth(self, context: OpKernelContext, prefix: str, *arguments: TensorValue) -> bool:
        """The outcome of a predicate; InvalidArgumentError unless it is one bool."""
        outputs = self.with_error_context(context, prefix, *arguments)
        output = np.asarray(outputs[0]) if len(outputs) == 1 else None
        if output is None or output.ndim or output.dtype != np.bool_:
            raise InvalidArgumentError("Filter predicate `f` must return a scalar bool.")
        return bool(output)

    def dataset(self, context: OpKernelContext, prefix: str, *arguments: TensorValue) -> Dataset:
        """The dataset that a function makes of an element."""
        outputs = self.with_error_context(context, prefix, *arguments)
        if len(outputs) != 1:
            raise InvalidArgumentError("`f` must return a single scalar of dtype DT_VARIANT.")
        return as_dataset(outputs[0])

    def iterate(
        self, context: OpKernelContext, prefix: str, index: int, *arguments: TensorValue
    ) -> DatasetIterator:
        """An iterator of the dataset that a function makes of the element number `index`."""
        return self.dataset(context, prefix, *arguments).iterate(context, f"{prefix}[{index}]")

    def scalar_int64(self, context: OpKernelContext, name: str, *arguments: TensorValue) -> int:
        """The one number that a function gives; InvalidArgumentError for anything else."""
        outputs = self(context, *arguments)
        output = np.asarray(outputs[0]) if len(outputs) == 1 else None
        if output is None or output.ndim or output.dtype != np.int64:
            raise InvalidArgumentError(f"`{name}` must return a scalar int64.")
        return int(output)


def _name(metadata: str) -> str:
    """The transformation's name in the serialised metadata of a dataset op."""
    raw = raw_bytes(metadata)
    if len(raw) < 2 or raw[0] != 0x0A:  # field 1, length-delimited
        return ""
    return raw[2 : 2 + raw[1]].decode("utf-8", "replace")


def check_output_count(outputs: list[TensorValue], expected: int) -> None:
    """Refuse a state function that gives too few values."""
    if len(outputs) < expected:
        raise InternalError(
            f"Expected a function with at least {expected} outputs, got {len(outputs)}"
        )
