"""Bucketize, the bincounts, HistogramFixedWidth, LowerBound and UpperBound."""

from __future__ import annotations

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, case

NAN, INF = np.nan, np.inf
NO_WEIGHTS = np.zeros(0, np.float32)
WEIGHTS = (np.int32, np.int64, np.float32, np.float64)
ROWS = np.array([[1, 1, 0], [0, 7, 2]], np.int32)
SPLITS = np.array([0, 2, 2, 3], np.int64)
INDICES = np.array([[0, 0], [0, 1], [1, 0]], np.int64)
DENSE_SHAPE = np.array([3, 2], np.int64)
SORTED = np.array([[1, 2, 2, 3], [0, 1, 1, 9]])
WANTED = np.array([[2, 0], [1, 10]])


def bucketize() -> list[Case]:
    edges = [0.0, 1.5, 10.0]
    return [
        *(case("Bucketize", np.array([-1, 0, 1, 9, 10, 11], t), boundaries=edges) for t in WEIGHTS),
        case("Bucketize", np.array([[NAN, INF, -INF, 1.5]], np.float32), boundaries=edges),
        case("Bucketize", np.float32(5), boundaries=edges),
        case("Bucketize", np.array([1], np.float32), boundaries=[]),
        case("Bucketize", np.array([16777217], np.int32), boundaries=[16777216.0]),
        case("Bucketize", np.array([1], np.float32), boundaries=[3.0, 1.0], message=True),
    ]


def dense() -> list[Case]:
    three, vector = np.int32(3), np.array([1, 1, 5], np.int32)
    cases = [
        case(op, vector, three, np.zeros(0, t))
        for op in ("Bincount", "DenseBincount")
        for t in WEIGHTS
    ]
    cases += [
        case(op, vector, three, np.array([1, 2, 4], t))
        for op in ("Bincount", "DenseBincount")
        for t in WEIGHTS
    ]
    cases += [
        case("DenseBincount", ROWS, three, weights, binary_output=binary)
        for weights in (NO_WEIGHTS, ROWS.astype(np.float32))
        for binary in (False, True)
    ]
    for op in ("Bincount", "DenseBincount"):
        cases += [
            case(op, np.int32(1), three, NO_WEIGHTS),
            case(op, np.zeros(0, np.int32), three, NO_WEIGHTS),
            case(op, vector, np.int32(0), NO_WEIGHTS),
            case(op, vector, np.int32(-3), NO_WEIGHTS, message=True),
            case(op, -vector, three, NO_WEIGHTS, message=True),
            case(op, vector, three, np.ones(1, np.float32), message=True),
            case(op, vector, [3], NO_WEIGHTS),
        ]
    return [
        *cases,
        case("Bincount", ROWS, three, NO_WEIGHTS),
        case("DenseBincount", vector.astype(np.int64), np.int64(3), NO_WEIGHTS),
        case("DenseBincount", -ROWS, three, NO_WEIGHTS),
        case("DenseBincount", ROWS[None], three, NO_WEIGHTS),
        case("DenseBincount", np.zeros((0, 2), np.int32), three, NO_WEIGHTS),
    ]


def ragged_and_sparse() -> list[Case]:
    values, three = np.array([1, 1, 0], np.int32), np.int32(3)
    weights = np.array([1, 2, 3], np.float32)
    cases = []
    for binary in (False, True):
        for each in (NO_WEIGHTS, weights):
            cases += [
                case("RaggedBincount", SPLITS, values, three, each, binary_output=binary),
                case(
                    "SparseBincount",
                    INDICES,
                    values,
                    DENSE_SHAPE,
                    three,
                    each,
                    binary_output=binary,
                ),
            ]
    for splits in ([1, 2, 2, 3], [0, 2, 2, 4], []):
        array = np.array(splits, np.int64)
        cases.append(case("RaggedBincount", array, values, three, NO_WEIGHTS, message=True))
    vector = np.array([[0], [1]], np.int64), np.array([1, 1], np.int32), np.array([3], np.int64)
    far = np.array([[7, 0]], np.int64), np.array([1], np.int32), DENSE_SHAPE
    return [
        *cases,
        case("RaggedBincount", np.array([0, 2, -2, 3], np.int64), values, three, weights),
        case("RaggedBincount", SPLITS, values - 1, three, NO_WEIGHTS, message=True),
        case("RaggedBincount", np.array([0], np.int64), values[:0], three, NO_WEIGHTS),
        *(
            case(
                "RaggedBincount",
                splits,
                values[: splits[-1]],
                three,
                weights,
                name=f"RaggedBincount_more_weights_{name}",
            )
            for name, splits, weights in (
                ("vector", SPLITS, np.arange(9, dtype="f")),
                ("matrix", SPLITS, np.arange(4, dtype="f").reshape(2, 2)),
                ("empty", SPLITS * 0, np.arange(2, dtype="f")),
            )
        ),
        case("SparseBincount", *vector, three, NO_WEIGHTS),
        case("SparseBincount", INDICES, values - 1, DENSE_SHAPE, three, NO_WEIGHTS),
        case("SparseBincount", INDICES, values + 2, DENSE_SHAPE, three, NO_WEIGHTS),
        case("SparseBincount", *far, three, NO_WEIGHTS, message=True),
        case("SparseBincount", INDICES, values[:2], DENSE_SHAPE, three, NO_WEIGHTS, message=True),
        case(
            "SparseBincount", INDICES, values, DENSE_SHAPE, np.int32(-3), NO_WEIGHTS, message=True
        ),
        case("SparseBincount", INDICES, values, DENSE_SHAPE[:1], three, NO_WEIGHTS, message=True),
        case(
            "SparseBincount",
            INDICES,
            values,
            DENSE_SHAPE,
            three,
            np.arange(9, dtype="f"),
            name="SparseBincount_more_weights",
        ),
        case(
            "SparseBincount",
            *vector,
            three,
            np.arange(9, dtype="f"),
            message=True,
            name="SparseBincount_vector_more_weights",
        ),
        case(
            "SparseBincount",
            INDICES,
            values[:, None],
            DENSE_SHAPE,
            three,
            NO_WEIGHTS,
            name="SparseBincount_column",
            message=True,
        ),
    ]


def histograms() -> list[Case]:
    values = np.array([-1, 0, 1.5, 2, 5, 15])
    five = np.int32(5)
    bad = (
        ([5.0, 0.0], five),
        ([5.0], five),
        ([0.0, 5.0], np.int32(0)),
        ([0.0, 5.0], [5]),
    )
    return [
        *(
            case("HistogramFixedWidth", values.astype(t), np.array([0, 5], t), five, dtype=dtype)
            for t in WEIGHTS
            for dtype in (DataType.INT32, DataType.INT64)
        ),
        *(
            case("HistogramFixedWidth", [1.0], value_range, bins, message=True)
            for value_range, bins in bad
        ),
        case("HistogramFixedWidth", np.array([NAN], np.float32), [0.0, 5.0], five, message=True),
    ]


def bounds() -> list[Case]:
    cases = []
    for op in ("LowerBound", "UpperBound"):
        cases += [
            case(op, SORTED.astype(t), WANTED.astype(t), name=f"{op}_{np.dtype(t)}")
            for t in (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8)
        ]
        cases += [
            case(op, SORTED, WANTED, out_type=DataType.INT64),
            case(op, np.array([[1.0, 2.0]]), np.array([[NAN, INF, -INF]])),
            case(op, np.zeros((2, 0), np.float32), np.ones((2, 1), np.float32)),
            case(op, np.ones(2, np.float32), np.ones((2, 1), np.float32)),
            case(op, np.ones((2, 2), np.float32), np.ones((3, 1), np.float32)),
        ]
    return cases


CASES: tuple[Case, ...] = (
    *bucketize(),
    *dense(),
    *ragged_and_sparse(),
    *histograms(),
    *bounds(),
)
