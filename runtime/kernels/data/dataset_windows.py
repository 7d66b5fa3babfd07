"""Datasets of windows: each element contains several neighbouring elements of the input.

TF: tensorflow/core/kernels/data/{window_dataset,window}_op.cc,
tensorflow/core/kernels/data/experimental/sliding_window_dataset_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    UnaryDataset,
    UnaryIterator,
    WindowElements,
    scalar_argument,
)
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.data.element_components import stack


class WindowDataset(UnaryDataset):
    """WindowDataset: for each window, one dataset per component with the values in the window."""

    kind = "Window"

    def __init__(
        self,
        input_dataset: Dataset,
        size: np.ndarray,
        shift: np.ndarray,
        stride: np.ndarray,
        drop_remainder: np.ndarray | bool = True,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        self.size = scalar_argument(size, "size")
        self.shift = scalar_argument(shift, "shift")
        self.stride = scalar_argument(stride, "stride")
        self.drop_remainder = bool(scalar_argument(drop_remainder, "drop_remainder"))
        for name in ("size", "shift", "stride"):
            if getattr(self, name) <= 0:
                raise InvalidArgumentError(f"Window {name} must be greater than zero.")

    @property
    def span(self) -> int:
        """The number of input elements from the first to the last element of a full window."""
        return (self.size - 1) * self.stride + 1

    @property
    def cardinality(self) -> int:
        """The number of windows."""
        available = self.input.cardinality
        if available < 0:
            return available
        if not self.drop_remainder:
            return -(-available // self.shift)
        return max(0, (available - self.span) // self.shift + 1)

    def window(self, elements: list[Element]) -> Element:
        """Return the output element for the input elements of one window."""
        columns = list(zip(*elements, strict=True))
        return tuple(
            WindowElements([(value,) for value in column], (data_type,), (shape,))
            for column, data_type, shape in zip(
                columns, self.input.output_types, self.input.output_shapes, strict=True
            )
        )

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the windows."""
        return _WindowIterator(self, context, prefix)


class SlidingWindowDataset(WindowDataset):
    """SlidingWindowDataset: for each window, one tensor per component with the stacked values."""

    kind = "SlidingWindow"

    def __init__(
        self,
        input_dataset: Dataset,
        window_size: np.ndarray,
        window_shift: np.ndarray,
        window_stride: np.ndarray,
        *,
        drop_remainder: bool,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(
            input_dataset,
            window_size,
            window_shift,
            window_stride,
            drop_remainder,
            output_types=output_types,
            output_shapes=output_shapes,
        )

    @property
    def cardinality(self) -> int:
        """The number of windows as TensorFlow counts them.

        If `drop_remainder` is true, TensorFlow's count disregards that the last window must be
        full.
        """
        available = self.input.cardinality
        if available >= 0 and self.drop_remainder:
            return available // self.shift
        return super().cardinality

    def window(self, elements: list[Element]) -> Element:
        """Return the stacked values of each component."""
        return tuple(stack(values) for values in zip(*elements, strict=True))


class ExperimentalSlidingWindowDataset(SlidingWindowDataset):
    """ExperimentalSlidingWindowDataset: SlidingWindowDataset without windows that are not full."""

    def __init__(
        self,
        input_dataset: Dataset,
        window_size: np.ndarray,
        window_shift: np.ndarray,
        window_stride: np.ndarray,
        *,
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(
            input_dataset,
            window_size,
            window_shift,
            window_stride,
            drop_remainder=True,
            output_types=output_types,
            output_shapes=output_shapes,
        )


class _WindowIterator(UnaryIterator):
    state = ("input", "buffer", "to_skip")

    def __init__(self, dataset: WindowDataset, context: OpKernelContext, prefix: str) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self.buffer: list[Element] = []  # input elements that the next window may need
        self.to_skip = 0  # number of input elements to skip before the next window

    def get_next(self, context: OpKernelContext) -> Element | None:
        dataset = self._dataset
        while len(self.buffer) < dataset.span:
            element = self.next_input(context)
            if element is None:
                break
            if self.to_skip:
                self.to_skip -= 1
            else:
                self.buffer.append(element)
        is_partial = len(self.buffer) < dataset.span
        if not self.buffer or (is_partial and dataset.drop_remainder):
            self.buffer = []
            return None
        window = self.buffer[: dataset.span : dataset.stride]
        self.to_skip = max(0, dataset.shift - len(self.buffer))
        self.buffer = self.buffer[dataset.shift :]
        return dataset.window(window)


def window_op(*inputs: TensorValue, output_types: Types, output_shapes: Shapes) -> WindowElements:
    """WindowOp: return a dataset of the elements whose components are given as one flat list.

    An incomplete element at the end is left out.
    """
    size = len(output_types)
    starts = range(0, len(inputs) // size * size, size)
    elements = [inputs[start : start + size] for start in starts]
    return WindowElements(elements, output_types, output_shapes)


KERNELS = (
    KernelDef("ExperimentalSlidingWindowDataset", ExperimentalSlidingWindowDataset),
    KernelDef("SlidingWindowDataset", SlidingWindowDataset),
    KernelDef("WindowDataset", WindowDataset),
    KernelDef("WindowOp", window_op),
)
