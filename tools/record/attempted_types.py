"""Graphs for element types with which TensorFlow's registered kernels never succeed.

Each does with the type what the recorded cases do with other types. TensorFlow's error is recorded
by tools/record/types_out_of_reach.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case
from tests.conformance.cases.state import stores_of_handles, types_of_handles
from tests.conformance.cases.state.types_of_handles import Moves, moved
from tests.conformance.cases.state.types_of_state import TypedGraph, accumulator

Attempt = Callable[[DataType], Case]
# Types for which only the Apply and Take ops have kernels: the accumulators themselves have
# kernels for half, float and double alone.
WITHOUT_ACCUMULATOR = (
    "int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16 quint16 uint16 "
    "complex128 uint32 uint64"
)


def resource_accumulator(data_type: DataType) -> Case:
    """Return a case that adds a gradient to a resource accumulator and takes the mean."""
    graph = TypedGraph(data_type)
    made = graph.add("ResourceConditionalAccumulator", dtype=data_type, shape=(2,))[0]
    given = (made, np.int64(0), graph.values(1, 4))
    graph.add("ResourceAccumulatorApplyGradient", *given, name="apply")
    mean = graph.add(
        "ResourceAccumulatorTakeGradient", made, np.int32(1), dtype=data_type, control=["apply"]
    )
    return graph.case("resource_accumulator", *mean)


def sparse_accumulator(data_type: DataType) -> Case:
    """Return a case that adds rows to a sparse accumulator and takes the mean."""
    graph = TypedGraph(data_type)
    made = graph.add("SparseConditionalAccumulator", dtype=data_type, shape=(2, 1))[0]
    values = graph.add("Reshape", graph.values(1, 4), np.array([2, 1], np.int32))[0]
    rows, shape = np.array([0, 1], np.int64), np.array([2, 1], np.int64)
    given = (made, np.int64(0), rows, values, shape)
    graph.add("SparseAccumulatorApplyGradient", *given, has_known_shape=True, name="apply")
    mean = graph.add(
        "SparseAccumulatorTakeGradient", made, np.int32(1), dtype=data_type, control=["apply"]
    )
    return graph.case("sparse_accumulator", *mean)


def arg_max(data_type: DataType) -> Case:
    return case("ArgMax", np.eye(3, dtype=np.float32), np.array(1, data_type.numpy), name="ArgMax")


def where(data_type: DataType) -> Case:
    return case("Where", np.eye(3, dtype=data_type.numpy), name="Where")


def decoded(data_type: DataType) -> Case:
    text = np.array([b"ab"], object)
    return case(
        "UnicodeDecodeWithOffsets", text, Tsplits=data_type, input_encoding="UTF-8", name="decoded"
    )


def _of(keys: tuple[str, ...], types: str, attempt: Attempt) -> dict[tuple[str, str], Attempt]:
    return {(key, name): attempt for key in keys for name in types.split()}


def _handles(moves: Moves, pairs: set[tuple[str, DataType]]) -> dict[tuple[str, str], Attempt]:
    return {
        (f"{op}.T", kind.tf_name): functools.partial(moved, op, moves) for op, kind in sorted(pairs)
    }


# (op.attribute, type) → function that makes the case for a type.
ATTEMPTS: dict[tuple[str, str], Attempt] = {
    **_of(
        ("AccumulatorApplyGradient.dtype", "AccumulatorTakeGradient.dtype"),
        WITHOUT_ACCUMULATOR,
        accumulator,
    ),
    **_of(
        ("ResourceAccumulatorApplyGradient.dtype", "ResourceAccumulatorTakeGradient.dtype"),
        WITHOUT_ACCUMULATOR,
        resource_accumulator,
    ),
    **_of(
        ("SparseAccumulatorApplyGradient.dtype", "SparseAccumulatorTakeGradient.dtype"),
        WITHOUT_ACCUMULATOR,
        sparse_accumulator,
    ),
    **_of(("ArgMax.Tidx",), "int16", arg_max),
    **_of(("Where.T",), "half", where),
    **_of(("UnicodeDecodeWithOffsets.Tsplits",), "int32", decoded),
    **_handles(types_of_handles.MOVES, types_of_handles.OUT_OF_REACH),
    **_handles(stores_of_handles.STORES, stores_of_handles.OUT_OF_REACH),
}
