"""XlaGather, XlaDynamicSlice, XlaDynamicUpdateSlice, XlaPad, XlaBroadcastHelper and the like."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

import protos as pb
from tests.conformance.case import Case, case

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
SPECIAL = np.array(
    [0.0, -0.0, 1.5, -3.14159, -1e-6, 2049, 3e-5, 0.3, 1e-40, 1e38, 65519, 65520, 70000,
     np.inf, -np.inf, np.nan, 2.0000002],
    np.float32,
)  # fmt: skip


def gather(operand: np.ndarray, indices: Any, sizes: Sequence[int], **numbers: Any) -> Case:
    message = pb.GatherDimensionNumbers(**numbers)
    return case(
        "XlaGather", operand, np.asarray(indices, np.int32), np.array(sizes, np.int32),
        dimension_numbers=message.SerializeToString(), indices_are_sorted=False,
    )  # fmt: skip


def pad(value: np.ndarray, low: Any, high: Any, interior: Any, fill: float = 7.0) -> Case:
    vectors = [np.array(each, np.int32) for each in (low, high, interior)]
    return case("XlaPad", value, np.asarray(fill, value.dtype), *vectors)


def part(starts: Any, sizes: Any) -> Case:
    return case("XlaDynamicSlice", X, np.array(starts, np.int64), np.array(sizes, np.int64))


def update(starts: Any, sizes: Sequence[int]) -> Case:
    return case("XlaDynamicUpdateSlice", X, -np.ones(sizes, np.float32), np.array(starts, np.int32))


def helper(left: Any, right: Any, dims: Sequence[int]) -> Case:
    shapes = [np.ones(each, np.float32) for each in (left, right)]
    return case("XlaBroadcastHelper", *shapes, np.array(dims, np.int32))


def precision(value: np.ndarray, exponent: int, mantissa: int) -> Case:
    return case("XlaReducePrecision", value, exponent_bits=exponent, mantissa_bits=mantissa,
                exact=True)  # fmt: skip


ROWS = {"offset_dims": [1, 2], "collapsed_slice_dims": [0], "start_index_map": [0],
        "index_vector_dim": 1}  # fmt: skip
CASES = (
    gather(X, [[0], [2], [1]], [1, 4, 5], **ROWS),
    gather(X, [[-3], [9]], [1, 4, 5], **ROWS),
    gather(X, [0, 2, 1, 1], [1, 4, 5], **ROWS),
    gather(X, [[0, 1], [2, 4]], [1, 2, 5], offset_dims=[0, 2], collapsed_slice_dims=[0],
           start_index_map=[0, 1], index_vector_dim=1),
    gather(X, [[0, 1], [2, 3], [4, 0]], [2, 4, 2], offset_dims=[1, 2, 3],
           start_index_map=[2, 0], index_vector_dim=1),
    gather(X, [[0, 1, 2], [2, 0, 1]], [1, 1, 3], offset_dims=[0], collapsed_slice_dims=[0, 1],
           start_index_map=[1, 0], index_vector_dim=0),
    gather(X, [[1, 2], [3, 0], [0, 1]], [1, 1, 5], offset_dims=[2], collapsed_slice_dims=[1],
           start_index_map=[1], index_vector_dim=2, operand_batching_dims=[0],
           start_indices_batching_dims=[0]),
    gather(X, 1, [1, 4, 5], offset_dims=[0, 1], collapsed_slice_dims=[0], start_index_map=[0],
           index_vector_dim=0),
    gather(X, np.zeros((0, 1)), [1, 4, 5], **ROWS),
    gather(X, [[0], [2]], [1, 0, 5], **ROWS),
    gather(X.astype(ml_dtypes.bfloat16), [[0], [2]], [1, 4, 5], **ROWS),
    gather(X > 20, [[0], [2]], [1, 4, 5], **ROWS),
    gather(X, [[0], [2]], [1, 4, 6], **ROWS),
    gather(X, [[0], [2]], [2, 4, 5], **ROWS),
    gather(X, [[0, 0], [2, 2]], [1, 4, 5], **ROWS),
    gather(X, [[0], [2]], [1, 4], **ROWS),
    gather(X, [[0], [2]], [1, 4, 5], **{**ROWS, "offset_dims": [1]}),
    gather(X, [[0], [2]], [1, 4, 5], **{**ROWS, "offset_dims": [2, 1]}),
    gather(X, [[0], [2]], [1, 4, 5], **{**ROWS, "start_index_map": [3]}),
    gather(X, [[0], [2]], [1, 4, 5], **{**ROWS, "index_vector_dim": 3}),
    gather(X, [[0], [2]], [1, 4, 5], **{**ROWS, "collapsed_slice_dims": [7]}),
    part([0, 1, 2], [2, 2, 2]),
    part([5, -7, 4], [2, 2, 2]),
    part([0, 0, 0], [3, 0, 5]),
    part([0, 0], [3, 1]),
    part([0, 0, 0], [4, 1, 1]),
    part([0, 0, 0], [-1, 1, 1]),
    update([0, 1, 2], [2, 2, 2]),
    update([5, -7, 4], [2, 2, 2]),
    update([0, 0, 0], [3, 4, 5]),
    update([0, 0, 0], [3, 4, 6]),
    update([0, 0], [3, 4, 5]),
    update([0, 0, 0], [3, 4]),
    pad(X, [1, 0, 2], [0, 1, 2], [0, 0, 0]),
    pad(X, [1, 0, 2], [0, 1, 2], [1, 2, 0]),
    pad(X, [-1, 0, -2], [0, -1, -1], [0, 0, 0]),
    pad(X, [-1, -2, 1], [2, -3, -1], [1, 2, 3]),
    pad(X, [-5, 0, 0], [1, 0, 0], [0, 0, 0]),
    pad(X, [-2, 0, 0], [-2, 0, 0], [0, 0, 0]),
    pad(X[:0], [1, 0, 0], [2, 0, 0], [3, 0, 0]),
    pad(X.astype(np.int32), [1, 0, 0], [2, 0, 0], [3, 0, 0]),
    pad(np.float32(3), [], [], []),
    pad(X, [1, 0], [2, 0, 0], [3, 0, 0]),
    pad(X, [1, 0, 0], [2, 0, 0], [-1, 0, 0]),
    case("XlaPad", X, np.ones(2, np.float32), *[np.zeros(3, np.int32)] * 3),
    helper([2, 3], [2, 3], []),
    helper([2, 3], [], []),
    helper([2, 3, 4], [3], [1]),
    helper([2, 4], [4, 3, 2, 5], [2, 0]),
    helper([2, 4], [4, 3, 2, 5], [0, 2]),
    helper([4, 2], [4, 3, 2, 5], [0, 2]),
    helper([2, 3, 4], [3], []),
    helper([2, 3], [2, 3], [0, 1]),
    helper([2, 3, 4], [3], [3]),
    helper([2, 3, 4], [3], [0, 1]),
    helper([2, 3, 4], [5], [1]),
    *(precision(SPECIAL, *bits) for bits in ((8, 23), (5, 10), (8, 7), (8, 0), (2, 23), (11, 52),
                                             (1, 3), (4, 3), (0, 3), (3, -1))),
    precision(SPECIAL.astype(np.float64) * 1.0000001, 8, 23),
    precision(SPECIAL.astype(ml_dtypes.bfloat16), 5, 3),
    precision(SPECIAL[:8].astype(np.float16), 4, 3),
    case("XlaSharding", X, sharding=b""),
    case("XlaOptimizationBarrier", [X, np.int32(3)]),
    case("XlaSpmdShardToFullShape", X, manual_sharding=b"", full_shape=(3, 4, 5)),
    case("XlaSpmdShardToFullShape", X, manual_sharding=b"", full_shape=(6, 4, 5)),
    case("XlaBroadcastHelper", np.ones((2, 3)), np.ones((1, 3)), np.array([0], np.int32)),
    case("XlaBroadcastHelper", np.ones((2, 3)), np.ones((1, 3)), np.array([0, 6], np.int32)),
    case("XlaBroadcastHelper", np.ones((2, 3)), np.ones((1, 3)), np.array([0, 1], np.int32)),
    case("XlaBroadcastHelper", np.ones((2, 3)), np.ones((2, 3)), np.int32(0)),
    case("XlaSharding", np.array([b"text"], object), sharding=b""),
)  # fmt: skip
