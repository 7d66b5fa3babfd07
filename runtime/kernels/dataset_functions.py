"""Datasets that call functions of the graph: map, flat map, filter, scan, reduce.

TF: tensorflow/core/kernels/data/{map,flat_map,filter,scan,take_while,reduce}_dataset_op.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.dataset import UNKNOWN, Caller, Dataset, Element, EndOfSequence, Next
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import KernelDef, OpKernelContext
from runtime.kernels.datasets import as_dataset

Types = tuple[DataType, ...]


def map_dataset(
    input_dataset: Any,
    *captured: Any,
    f: NameAttrList,
    output_types: Types,
    preserve_cardinality: bool,
) -> Dataset:
    """MapDataset: a function of every element."""
    source = as_dataset(input_dataset)

    def open_(caller: Caller) -> Next:
        upstream = source.open(caller)
        return lambda: caller.call(f, *upstream(), *captured)

    cardinality = source.cardinality if preserve_cardinality else UNKNOWN
    return Dataset(open_, cardinality, output_types)


def parallel_map_dataset(
    input_dataset: Any,
    *inputs: Any,
    f: NameAttrList,
    output_types: Types,
    preserve_cardinality: bool,
) -> Dataset:
    """ParallelMapDataset and V2: MapDataset; the last input says how many calls at once."""
    return map_dataset(
        input_dataset,
        *inputs[:-1],
        f=f,
        output_types=output_types,
        preserve_cardinality=preserve_cardinality,
    )


def flat_map_dataset(
    input_dataset: Any, *captured: Any, f: NameAttrList, output_types: Types
) -> Dataset:
    """FlatMapDataset: the elements of the datasets that a function makes."""
    source = as_dataset(input_dataset)

    def open_(caller: Caller) -> Next:
        upstream = source.open(caller)
        current: Next | None = None

        def next_element() -> Element:
            nonlocal current
            while True:
                if current is None:
                    made = caller.call(f, *upstream(), *captured)
                    current = as_dataset(made[0]).open(caller)
                try:
                    return current()
                except EndOfSequence:
                    current = None

        return next_element

    return Dataset(open_, UNKNOWN, output_types)


def _is_true(outcome: Element, function: NameAttrList) -> bool:
    if len(outcome) != 1 or np.ndim(outcome[0]) or np.asarray(outcome[0]).dtype != np.bool_:
        raise InvalidArgumentError(f"The predicate {function.name} must return a scalar bool")
    return bool(outcome[0])


def filter_dataset(
    input_dataset: Any, *captured: Any, predicate: NameAttrList, output_types: Types
) -> Dataset:
    """FilterDataset: the elements for which a function is true."""
    source = as_dataset(input_dataset)

    def open_(caller: Caller) -> Next:
        upstream = source.open(caller)

        def next_element() -> Element:
            while True:
                element = upstream()
                if _is_true(caller.call(predicate, *element, *captured), predicate):
                    return element

        return next_element

    return Dataset(open_, UNKNOWN, output_types)


def take_while_dataset(
    input_dataset: Any, *captured: Any, predicate: NameAttrList, output_types: Types
) -> Dataset:
    """TakeWhileDataset: the elements before the first for which a function is false."""
    source = as_dataset(input_dataset)

    def open_(caller: Caller) -> Next:
        upstream, is_over = source.open(caller), False

        def next_element() -> Element:
            nonlocal is_over
            element = upstream() if not is_over else ()
            if is_over or not _is_true(caller.call(predicate, *element, *captured), predicate):
                is_over = True
                raise EndOfSequence
            return element

        return next_element

    return Dataset(open_, UNKNOWN, output_types)


def scan_dataset(
    input_dataset: Any,
    *inputs: Any,
    f: NameAttrList,
    Tstate: Types,  # noqa: N803 # the attribute's name
    output_types: Types,
    preserve_cardinality: bool,
) -> Dataset:
    """ScanDataset: a function of a state and every element gives the next state and an element."""
    source, size = as_dataset(input_dataset), len(Tstate)
    initial, captured = inputs[:size], inputs[size:]

    def open_(caller: Caller) -> Next:
        upstream, state = source.open(caller), initial

        def next_element() -> Element:
            nonlocal state
            results = caller.call(f, *state, *upstream(), *captured)
            state = results[:size]
            return results[size:]

        return next_element

    cardinality = source.cardinality if preserve_cardinality else UNKNOWN
    return Dataset(open_, cardinality, output_types)


def reduce_dataset(
    context: OpKernelContext,
    input_dataset: Any,
    *inputs: Any,
    f: NameAttrList,
    Tstate: Types,  # noqa: N803 # the attribute's name
) -> Element:
    """ReduceDataset: the state after a function of it and every element."""
    caller, size = Caller(context), len(Tstate)
    upstream = as_dataset(input_dataset).open(caller)
    state, captured = inputs[:size], inputs[size:]
    while True:
        try:
            element = upstream()
        except EndOfSequence:
            return state
        state = caller.call(f, *state, *element, *captured)


KERNELS = (
    KernelDef("FilterDataset", filter_dataset),
    KernelDef("FlatMapDataset", flat_map_dataset),
    KernelDef("MapDataset", map_dataset),
    KernelDef("ParallelMapDataset", parallel_map_dataset),
    KernelDef("ParallelMapDatasetV2", parallel_map_dataset),
    KernelDef("ReduceDataset", reduce_dataset),
    KernelDef("ScanDataset", scan_dataset),
    KernelDef("TakeWhileDataset", take_while_dataset),
)
