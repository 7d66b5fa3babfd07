"""Source datasets, made from tensors, numbers or functions.

TF: tensorflow/core/kernels/data/{tensor,tensor_slice,sparse_tensor_slice}_dataset_op.cc,
{range,generator}_dataset_op.cc
"""

from __future__ import annotations

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.data.captured_function import CapturedFunction
from runtime.framework.data.dataset import (
    INFINITE,
    Dataset,
    DatasetIterator,
    Element,
    IndexIterator,
    State,
    scalar_argument,
    wrapped,
)
from runtime.framework.data.iterator_resource import check_shapes
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.framework.partial_shapes import PartialShape
from runtime.framework.shapes import shape_text
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.boxing import box
from runtime.kernels.data.element_components import row
from runtime.kernels.sparse.sparse_tensor_checks import built_shape


class IndexedDataset(Dataset):
    """A source dataset with random access."""

    @property
    def has_random_access(self) -> bool:
        """Always true."""
        return True

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the elements in the order of their indices."""
        return IndexIterator(self)


class TensorDataset(IndexedDataset):
    """TensorDataset: one element, whose components are the given tensors."""

    kind = "Tensor"

    def __init__(
        self,
        *components: TensorValue,
        Toutput_types: tuple[DataType, ...],  # noqa: N803 # the attribute's name
        output_shapes: tuple[PartialShape, ...],
    ) -> None:
        super().__init__(Toutput_types, tuple(box(each).shape for each in components))
        check_shapes(self.output_shapes, output_shapes)
        self._components = components

    @property
    def cardinality(self) -> int:
        """Always 1."""
        return 1

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the only element, which consists of the given tensors."""
        return self._components


class TensorSliceDataset(IndexedDataset):
    """TensorSliceDataset: the slices of the given tensors along their first dimension."""

    kind = "TensorSlice"

    def __init__(
        self,
        *components: TensorValue,
        Toutput_types: tuple[DataType, ...],  # noqa: N803 # the attribute's name
        output_shapes: tuple[PartialShape, ...],
    ) -> None:
        self._components = [box(component) for component in components]
        super().__init__(Toutput_types, tuple(each.shape[1:] for each in self._components))
        if any(not component.ndim for component in self._components):
            raise InvalidArgumentError("All components must be at least 1-dimensional")
        if len({len(component) for component in self._components}) > 1:
            raise InvalidArgumentError(
                "All components must have the same size in the 0th dimension"
            )
        check_shapes(self.output_shapes, output_shapes)

    @property
    def cardinality(self) -> int:
        """The size of the first dimension of the tensors."""
        return len(self._components[0])

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the slices of the tensors at `index`."""
        return tuple(row(component, index) for component in self._components)


class ListDataset(IndexedDataset):
    """ListDataset: the elements whose components are given as one flat list."""

    kind = "List"

    def __init__(
        self,
        *tensors: TensorValue,
        output_types: tuple[DataType, ...],
        output_shapes: tuple[PartialShape, ...],
    ) -> None:
        super().__init__(output_types, output_shapes)
        width = len(output_types)
        if len(tensors) % width:
            raise InvalidArgumentError(
                f"{len(tensors)} tensors are no elements of {width} components"
            )
        self._elements = [tensors[at : at + width] for at in range(0, len(tensors), width)]

    @property
    def cardinality(self) -> int:
        """The number of elements given."""
        return len(self._elements)

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the element at `index`."""
        return self._elements[index]


class SparseTensorSliceDataset(IndexedDataset):
    """SparseTensorSliceDataset: slices of a sparse tensor, each as (indices, values, shape)."""

    kind = "SparseTensorSlice"

    def __init__(
        self,
        indices: np.ndarray,
        values: np.ndarray,
        dense_shape: np.ndarray,
        *,
        Tvalues: DataType,  # noqa: N803 # the attribute's name
    ) -> None:
        _check_parts(indices, values, dense_shape)
        rank = int(dense_shape.size)
        super().__init__(
            (DataType.INT64, Tvalues, DataType.INT64), ((-1, rank - 1), (-1,), (rank - 1,))
        )
        groups = np.concatenate(([-1], indices[:, 0]))
        if (groups[1:] < groups[:-1]).any():
            raise UnimplementedError(
                "The SparseTensor must be ordered in the batch dimension; handling arbitrarily "
                "ordered input is not currently supported."
            )
        built_shape(dense_shape)
        if groups[1:].size and groups[1] < 0:
            shown = _returned_entries(groups[1:])
            indices, values = indices[shown], values[shown]
        self._indices, self._values, self._dense_shape = indices, values, dense_shape
        self._count = int(dense_shape[0])

    @property
    def cardinality(self) -> int:
        """The size of the first dimension of the sparse tensor."""
        return self._count

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return (indices, values, shape) of the slice at `index` of the first dimension."""
        start, limit = np.searchsorted(self._indices[:, 0], (index, index + 1)).tolist()
        return self._indices[start:limit, 1:], self._values[start:limit], self._dense_shape[1:]


def _returned_entries(groups: np.ndarray) -> np.ndarray:
    """Return a mask of the entries that TensorFlow returns if the first slice's index is negative.

    TensorFlow examines one slice per position and drops a slice whose index is below the position.
    """
    position, shown = 0, []
    for group in np.unique(groups).tolist():
        if group < position:
            position += 1
        else:
            shown.append(group)
            position = group + 1
    return np.isin(groups, shown)


def _check_parts(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> None:
    for name, given, rank, kind in (
        ("indices", indices, 2, "matrix"),
        ("values", values, 1, "vector"),
        ("shape", shape, 1, "vector"),
    ):
        if given.ndim != rank:
            raise InvalidArgumentError(
                f"Input {name} must be a {kind}. Got: {shape_text(given.shape)}"
            )
    for part, nth, axis, size in (
        ("values", "first", 0, values.size),
        ("dimensions", "second", 1, shape.size),
    ):
        if size != indices.shape[axis]:
            raise InvalidArgumentError(
                f"Number of {part} must match {nth} dimension of indices. Got {size} {part}, "
                f"indices shape: {shape_text(indices.shape)}"
            )
    if not shape.size:
        raise InvalidArgumentError("The shape argument requires at least one element.")


class RangeDataset(IndexedDataset):
    """RangeDataset: the numbers from `start` up to but not including `stop`, `step` apart."""

    kind = "Range"

    def __init__(
        self,
        start: np.ndarray,
        stop: np.ndarray,
        step: np.ndarray,
        *,
        output_types: tuple[DataType, ...],
        output_shapes: tuple[PartialShape, ...],
    ) -> None:
        super().__init__(output_types, ((),))
        self.start = scalar_argument(start, "start")
        self.stop = scalar_argument(stop, "stop")
        self.step = scalar_argument(step, "step")
        if not self.step:
            raise InvalidArgumentError("step must be a non-zero integer.")

    @property
    def cardinality(self) -> int:
        """The number of elements; INFINITE if `stop` is the largest int64."""
        if self.stop == np.iinfo(np.int64).max:
            return INFINITE
        return max(0, -(-wrapped(self.stop - self.start) // self.step))

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the number at `index`."""
        return self.element(wrapped(self.start + index * self.step))

    def element(self, number: int) -> Element:
        """Return `number` as an element."""
        return (np.asarray(np.int64(number)).astype(self.output_types[0].numpy),)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the numbers."""
        return _RangeIterator(self)


class _RangeIterator(DatasetIterator):
    """Counts from `start` to `stop`; a number beyond int64 wraps around, as in TensorFlow."""

    state = ("next",)

    def __init__(self, dataset: RangeDataset) -> None:
        self._dataset = dataset
        self.next = dataset.start

    def get_next(self, context: OpKernelContext) -> Element | None:
        number, stop, step = self.next, self._dataset.stop, self._dataset.step
        if number >= stop if step > 0 else number <= stop:
            return None
        self.next = wrapped(number + step)
        return self._dataset.element(number)


class GeneratorDataset(Dataset):
    """GeneratorDataset: the results of calls of `next_func`, until it raises OutOfRangeError."""

    kind = "Generator"

    def __init__(
        self,
        *arguments: TensorValue,
        init_func: NameAttrList,
        next_func: NameAttrList,
        finalize_func: NameAttrList,
        Tinit_func_args: tuple[DataType, ...],  # noqa: N803 # the attribute's name
        Tnext_func_args: tuple[DataType, ...],  # noqa: N803 # the attribute's name
        output_types: tuple[DataType, ...],
        output_shapes: tuple[PartialShape, ...],
        metadata: str,
    ) -> None:
        super().__init__(output_types, output_shapes)
        first = len(Tinit_func_args)
        second = first + len(Tnext_func_args)
        self.init = CapturedFunction(init_func, arguments[:first], metadata)
        self.next = CapturedFunction(next_func, arguments[first:second], metadata)
        self.finalize = CapturedFunction(finalize_func, arguments[second:], metadata)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over a new run of the generator."""
        return _GeneratorIterator(self, prefix)


class _GeneratorIterator(DatasetIterator):
    """Calls `init_func` when the first element is requested and `finalize_func` at the end."""

    def __init__(self, dataset: GeneratorDataset, prefix: str) -> None:
        self._dataset = dataset
        self._prefix = prefix
        self._generator: list[TensorValue] | None = None  # the results of `init_func`
        self._is_finished = False

    def get_next(self, context: OpKernelContext) -> Element | None:
        if self._is_finished:
            return None
        dataset = self._dataset
        if self._generator is None:
            self._generator = dataset.init.with_error_context(context, self._prefix)
        try:
            return tuple(dataset.next.with_error_context(context, self._prefix, *self._generator))
        except OutOfRangeError:
            self._is_finished = True
            dataset.finalize.with_error_context(context, self._prefix, *self._generator)
            return None

    def save(self) -> State:
        raise UnimplementedError("GeneratorDataset does not support checkpointing.")


KERNELS = (
    KernelDef("GeneratorDataset", GeneratorDataset),
    KernelDef("ListDataset", ListDataset),
    KernelDef("RangeDataset", RangeDataset),
    KernelDef("SparseTensorSliceDataset", SparseTensorSliceDataset),
    KernelDef("TensorDataset", TensorDataset),
    KernelDef("TensorSliceDataset", TensorSliceDataset),
)
