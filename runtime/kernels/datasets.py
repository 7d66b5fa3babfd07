"""Datasets: sources, and what selects, joins, orders and batches their elements.

TF: tensorflow/core/kernels/data/{tensor_slice,range,batch,repeat,take,skip,zip,…}_dataset_op.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.dataset import (
    INFINITE,
    UNKNOWN,
    Caller,
    Dataset,
    Element,
    EndOfSequence,
    Next,
)
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef
from runtime.framework.shapes import shape_text
from runtime.kernels.boxing import box
from runtime.kernels.tensor_lists import rows, stacked

Types = tuple[DataType, ...]


def as_dataset(value: Any) -> Dataset:
    """A variant tensor as the dataset in it; InvalidArgumentError for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Dataset):
        raise InvalidArgumentError("Tensor must be a Dataset object.")
    return value


def from_elements(elements: list[Element], output_types: Types) -> Dataset:
    """A dataset of elements that are there already."""

    def open_(caller: Caller) -> Next:
        remaining = iter(elements)

        def next_element() -> Element:
            for element in remaining:
                return element
            raise EndOfSequence

        return next_element

    return Dataset(open_, len(elements), output_types)


def tensor_dataset(*components: Any, Toutput_types: Types) -> Dataset:  # noqa: N803
    """TensorDataset: one element."""
    return from_elements([components], Toutput_types)


def tensor_slice_dataset(*components: Any, Toutput_types: Types) -> Dataset:  # noqa: N803
    """TensorSliceDataset: the rows of the components."""
    arrays = [box(each) for each in components]
    for array in arrays:
        if not array.ndim:
            raise InvalidArgumentError("All components must be at least 1-dimensional")
        if len(array) != len(arrays[0]):
            raise InvalidArgumentError(
                "All components must have the same size in the 0th dimension"
            )
    return from_elements(list(zip(*map(rows, arrays), strict=True)), Toutput_types)


def range_dataset(start: Any, stop: Any, step: Any, *, output_types: Types) -> Dataset:
    """RangeDataset: start, start + step, … before stop."""
    if not int(step):
        raise InvalidArgumentError("step must be a non-zero integer.")
    numbers, dtype = range(int(start), int(stop), int(step)), output_types[0].numpy

    def open_(caller: Caller) -> Next:
        remaining = iter(numbers)

        def next_element() -> Element:
            for number in remaining:
                return (np.array(number, dtype),)
            raise EndOfSequence

        return next_element

    return Dataset(open_, len(numbers), output_types)


def batch_dataset(
    input_dataset: Any, batch_size: Any, drop_remainder: Any, *, output_types: Types
) -> Dataset:
    """BatchDatasetV2: consecutive elements, stacked."""
    source, size, drops = as_dataset(input_dataset), int(batch_size), bool(drop_remainder)
    if size <= 0:
        raise InvalidArgumentError("Batch size must be greater than zero.")

    def open_(caller: Caller) -> Next:
        upstream = source.open(caller)

        def next_element() -> Element:
            elements: list[Element] = []
            try:
                while len(elements) < size:
                    elements.append(upstream())
            except EndOfSequence:
                if drops or not elements:
                    raise
            return _stack(elements, output_types)

        return next_element

    count = source.cardinality
    if count >= 0:
        count = count // size if drops else -(-count // size)
    return Dataset(open_, count, output_types)


def _stack(elements: list[Element], output_types: Types) -> Element:
    columns = list(zip(*elements, strict=True))
    for component, items in enumerate(columns):
        first = np.shape(box(items[0]))
        for index, item in enumerate(items):
            shape = np.shape(box(item))
            if shape != first:
                raise InvalidArgumentError(
                    f"Cannot batch tensors with different shapes in component {component}. "
                    f"First element had shape {shape_text(first)} and element {index} had shape "
                    f"{shape_text(shape)}."
                )
    return tuple(
        stacked(list(items), np.shape(box(items[0])), dtype)
        for items, dtype in zip(columns, output_types, strict=True)
    )


def repeat_dataset(input_dataset: Any, count: Any) -> Dataset:
    """RepeatDataset: the dataset `count` times; without end when negative."""
    source, times = as_dataset(input_dataset), int(count)

    def open_(caller: Caller) -> Next:
        upstream, left = source.open(caller), times

        def next_element() -> Element:
            nonlocal upstream, left
            is_fresh = False
            while left:
                try:
                    return upstream()
                except EndOfSequence:
                    if is_fresh:  # a dataset without elements, again and again
                        raise
                    left -= 1
                    upstream, is_fresh = source.open(caller), True
            raise EndOfSequence

        return next_element

    if times < 0:
        total = 0 if source.cardinality == 0 else INFINITE
    else:
        total = source.cardinality * times if source.cardinality >= 0 else source.cardinality
    return Dataset(open_, total if times else 0, source.output_types)


def take_dataset(input_dataset: Any, count: Any) -> Dataset:
    """TakeDataset: the first `count` elements; all when negative."""
    source, limit = as_dataset(input_dataset), int(count)
    if limit < 0:
        return source

    def open_(caller: Caller) -> Next:
        upstream, left = source.open(caller), limit

        def next_element() -> Element:
            nonlocal left
            if left <= 0:
                raise EndOfSequence
            element = upstream()
            left -= 1
            return element

        return next_element

    known = source.cardinality
    total = limit if known == INFINITE else min(known, limit)
    return Dataset(open_, total, source.output_types)


def skip_dataset(input_dataset: Any, count: Any) -> Dataset:
    """SkipDataset: all but the first `count` elements; none when negative."""
    source, skipped = as_dataset(input_dataset), int(count)
    if skipped < 0:
        return from_elements([], source.output_types)

    def open_(caller: Caller) -> Next:
        upstream, left = source.open(caller), skipped

        def next_element() -> Element:
            nonlocal left
            while left:
                left -= 1
                upstream()
            return upstream()

        return next_element

    known = source.cardinality
    total = max(known - skipped, 0) if known >= 0 else known
    return Dataset(open_, total, source.output_types)


def zip_dataset(*input_datasets: Any, output_types: Types) -> Dataset:
    """ZipDataset: the components of an element of each, as long as all have one."""
    sources = [as_dataset(each) for each in input_datasets]

    def open_(caller: Caller) -> Next:
        upstreams = [source.open(caller) for source in sources]
        return lambda: tuple(value for upstream in upstreams for value in upstream())

    known = [source.cardinality for source in sources]
    finite = [each for each in known if each != INFINITE]
    total = UNKNOWN if UNKNOWN in known else min(finite, default=INFINITE)
    return Dataset(open_, total, output_types)


def concatenate_dataset(input_dataset: Any, another_dataset: Any) -> Dataset:
    """ConcatenateDataset: the elements of one, then those of the other."""
    first, second = as_dataset(input_dataset), as_dataset(another_dataset)

    def open_(caller: Caller) -> Next:
        upstreams = [second.open(caller), first.open(caller)]

        def next_element() -> Element:
            while upstreams:
                try:
                    return upstreams[-1]()
                except EndOfSequence:
                    upstreams.pop()
            raise EndOfSequence

        return next_element

    known = (first.cardinality, second.cardinality)
    if INFINITE in known:
        total = INFINITE
    else:
        total = UNKNOWN if UNKNOWN in known else sum(known)
    return Dataset(open_, total, first.output_types)


def shard_dataset(input_dataset: Any, num_shards: Any, index: Any) -> Dataset:
    """ShardDataset: every `num_shards`-th element, from `index` on."""
    source, shards, first = as_dataset(input_dataset), int(num_shards), int(index)
    if shards <= 0:
        raise InvalidArgumentError(
            f"Number of shards must be greater than zero (currently num_shards = {shards})."
        )
    if not 0 <= first < shards:
        raise InvalidArgumentError(
            f"Index must be between 0 and {shards - 1} (currently index = {first})."
        )

    def open_(caller: Caller) -> Next:
        upstream, position = source.open(caller), -1

        def next_element() -> Element:
            nonlocal position
            while True:
                element = upstream()
                position += 1
                if position % shards == first:
                    return element

        return next_element

    known = source.cardinality
    total = len(range(first, known, shards)) if known >= 0 else known
    return Dataset(open_, total, source.output_types)


def same_dataset(input_dataset: Any, *others: Any) -> Dataset:
    """Datasets that only say how to run: prefetching, options, a model."""
    return as_dataset(input_dataset)


def dataset_cardinality(input_dataset: Any) -> np.int64:
    """DatasetCardinality: how many elements; −1 without end, −2 unknown."""
    return np.int64(as_dataset(input_dataset).cardinality)


KERNELS = (
    KernelDef("BatchDatasetV2", batch_dataset),
    KernelDef("ConcatenateDataset", concatenate_dataset),
    KernelDef("DatasetCardinality", dataset_cardinality),
    KernelDef("ModelDataset", same_dataset),
    KernelDef("OptionsDataset", same_dataset),
    KernelDef("PrefetchDataset", same_dataset),
    KernelDef("RangeDataset", range_dataset),
    KernelDef("RepeatDataset", repeat_dataset),
    KernelDef("ShardDataset", shard_dataset),
    KernelDef("SkipDataset", skip_dataset),
    KernelDef("TakeDataset", take_dataset),
    KernelDef("TensorDataset", tensor_dataset),
    KernelDef("TensorSliceDataset", tensor_slice_dataset),
    KernelDef("ZipDataset", zip_dataset),
)
