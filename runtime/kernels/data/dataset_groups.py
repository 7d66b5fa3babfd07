"""Datasets that group elements by key and reduce each group.

TF: tensorflow/core/kernels/data/experimental/{group_by_window,group_by_reducer}_dataset_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import (
    CancelledError,
    InternalError,
    InvalidArgumentError,
    OpError,
)
from runtime.framework.attr_value import NameAttrList
from runtime.framework.data.captured_function import CapturedFunction
from runtime.framework.data.dataset import (
    INFINITE,
    UNKNOWN,
    ConcatenatingIterator,
    Dataset,
    DatasetIterator,
    Element,
    UnaryDataset,
    UnaryIterator,
    WindowElements,
    as_dataset,
)
from runtime.framework.dtypes import Types
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import Shapes
from runtime.framework.tensor_value import TensorValue


class GroupByWindowDataset(UnaryDataset):
    """GroupByWindowDataset: the elements of the datasets to which `reduce_func` maps windows.

    A window consists of elements for which `key_func` returns the same key.
    """

    kind = "GroupByWindow"

    def __init__(
        self,
        input_dataset: Dataset,
        *captures: TensorValue,
        key_func: NameAttrList,
        reduce_func: NameAttrList,
        window_size_func: NameAttrList,
        Tkey_func_other_arguments: Types,  # noqa: N803 # the attribute's name
        Treduce_func_other_arguments: Types,  # noqa: N803 # the attribute's name
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        first = len(Tkey_func_other_arguments)
        second = first + len(Treduce_func_other_arguments)
        self.key = CapturedFunction(key_func, captures[:first])
        self.reduce = CapturedFunction(reduce_func, captures[first:second])
        self.window_size = CapturedFunction(window_size_func, captures[second:])

    @property
    def cardinality(self) -> int:
        """INFINITE if the input is infinite, otherwise UNKNOWN."""
        return INFINITE if self.input.cardinality == INFINITE else UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the reduced windows, in the order in which they become full."""
        return _GroupByWindowIterator(self, context, prefix)


class _GroupByWindowIterator(ConcatenatingIterator):
    state = ("input", "keys", "groups", "sizes", "flushed")

    def __init__(
        self, dataset: GroupByWindowDataset, context: OpKernelContext, prefix: str
    ) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self._prefix = prefix
        # Parallel lists: the keys, the elements of each key's group, and each key's window size.
        self.keys: list[int] = []
        self.groups: list[list[Element]] = []
        self.sizes: list[int] = []
        self.flushed: tuple[int, list[Element]] | None = None  # the key and window of _current

    def choose_next(self, context: OpKernelContext) -> bool:
        self.flushed = None
        slot = self._next_window(context)
        if slot is None:
            return False
        self.flushed = (self.keys[slot], self.groups[slot])
        self.groups[slot] = []
        return True

    def _next_window(self, context: OpKernelContext) -> int | None:
        """Return the index of the next full group.

        At the end of the input, returns the index of the non-empty group with the least key, or
        None if all groups are empty.
        """
        while (element := self.next_input(context)) is not None:
            key = self._dataset.key.scalar_int64(context, "key_func", *element)
            if key not in self.keys:
                self._add_group(context, key)
            slot = self.keys.index(key)
            self.groups[slot].append(element)
            if len(self.groups[slot]) == self.sizes[slot]:
                return slot
        left = [key for key, group in zip(self.keys, self.groups, strict=True) if group]
        return self.keys.index(min(left)) if left else None

    def _add_group(self, context: OpKernelContext, key: int) -> None:
        size = self._dataset.window_size.scalar_int64(context, "window_size_func", np.int64(key))
        if size <= 0:
            raise InvalidArgumentError(f"Window size must be greater than zero, but got {size}.")
        self.keys.append(key)
        self.groups.append([])
        self.sizes.append(size)

    def begin(self, context: OpKernelContext) -> DatasetIterator:
        assert self.flushed is not None
        key, window = self.flushed
        source = self._dataset.input
        elements = WindowElements(window, source.output_types, source.output_shapes)
        outputs = self._reduced(context, key, elements)
        return as_dataset(outputs[0]).iterate(context, self._prefix)

    def _reduced(
        self, context: OpKernelContext, key: int, elements: WindowElements
    ) -> list[TensorValue]:
        """Call the reduce function and return its results.

        Errors other than cancellation, even OutOfRangeError, become InternalError.
        """
        reduce = self._dataset.reduce
        try:
            return reduce(context, np.int64(key), elements)
        except CancelledError:
            raise
        except OpError as error:
            raise InternalError(
                f"\nGot error code {error.code.name} and message: {{\n{error.message}\n}} "
                f"\nfrom running user-defined function {reduce.function.name}: "
            ) from None


class GroupByReducerDataset(UnaryDataset):
    """GroupByReducerDataset: one result for each key, reduced from the elements with that key."""

    kind = "GroupByReducer"

    def __init__(
        self,
        input_dataset: Dataset,
        *captures: TensorValue,
        key_func: NameAttrList,
        init_func: NameAttrList,
        reduce_func: NameAttrList,
        finalize_func: NameAttrList,
        Tkey_func_other_arguments: Types,  # noqa: N803 # the attribute's name
        Tinit_func_other_arguments: Types,  # noqa: N803 # the attribute's name
        Treduce_func_other_arguments: Types,  # noqa: N803 # the attribute's name
        output_types: Types,
        output_shapes: Shapes,
    ) -> None:
        super().__init__(input_dataset, output_types, output_shapes)
        first = len(Tkey_func_other_arguments)
        second = first + len(Tinit_func_other_arguments)
        third = second + len(Treduce_func_other_arguments)
        self.key = CapturedFunction(key_func, captures[:first])
        self.init = CapturedFunction(init_func, captures[first:second])
        self.reduce = CapturedFunction(reduce_func, captures[second:third])
        self.finalize = CapturedFunction(finalize_func, captures[third:])

    @property
    def cardinality(self) -> int:
        """Always UNKNOWN, because the number of keys depends on a function."""
        return UNKNOWN

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the results, in ascending order of the keys."""
        return _GroupByReducerIterator(self, context, prefix)


class _GroupByReducerIterator(UnaryIterator):
    state = ("input", "keys", "states", "position")

    def __init__(
        self, dataset: GroupByReducerDataset, context: OpKernelContext, prefix: str
    ) -> None:
        super().__init__(dataset, context, prefix)
        self._dataset = dataset
        self.keys: list[int] = []
        self.states: list[Element] = []
        self.position = 0  # index in the sorted keys, used after the end of the input

    def get_next(self, context: OpKernelContext) -> Element | None:
        while (element := self.next_input(context)) is not None:
            key = self._dataset.key.scalar_int64(context, "key_func", *element)
            if key not in self.keys:
                self.keys.append(key)
                self.states.append(tuple(self._dataset.init(context, np.int64(key))))
            slot = self.keys.index(key)
            self.states[slot] = tuple(self._dataset.reduce(context, *self.states[slot], *element))
        if self.position == len(self.keys):
            return None
        slot = self.keys.index(sorted(self.keys)[self.position])
        self.position += 1
        return tuple(self._dataset.finalize(context, *self.states[slot]))


KERNELS = (
    KernelDef("ExperimentalGroupByReducerDataset", GroupByReducerDataset),
    KernelDef("ExperimentalGroupByWindowDataset", GroupByWindowDataset),
    KernelDef("GroupByReducerDataset", GroupByReducerDataset),
    KernelDef("GroupByWindowDataset", GroupByWindowDataset),
)
