"""Gamma, Poisson and binomial samples of a seed in several runs, and their gradients.

Binomial samples equal TensorFlow's where trials · probability is at least 10.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType, from_numpy
from tests.conformance.case import Case, Graph, Step, case, from_producer

FLOATS = (np.float16, np.float32, np.float64)
SHAPE, FULL = np.array([40, 5], np.int32), np.array([20, 2, 3], np.int64)
ALPHA = np.array([[0.05, 0.7, 1.0], [1.5, 8.0, 2000.0]])
RATE = np.array([[0.0, 0.7, 9.5], [10.0, 33.5, 1200.0]])
COUNTS, PROBS = np.array([[40.0], [3000.0]]), np.array([0.3, 0.5, 0.7])
SEED = np.array([11, -7], np.int64)
KEY, COUNTER = np.array([0x1234567890ABCDEF], np.uint64), np.array([2**64 - 3, 5], np.uint64)
PHILOX = np.array(1, np.int32)
A = np.array([0.1, 1, 5, 100, 1e5, 1e-3, 0.5, 3, 50, 0, -1, 2, 2, 5, 5])
X = np.array([0.05, 2, 7, 90, 100100, 1e-3, 40, 0.001, 55, 1, 1, -1, 0, 50, 5.9])


def thrice(made: Case) -> Case:
    return dataclasses.replace(made, steps=made.steps * 3)


def stateful(dtype: DataType) -> Case:
    """Return a case of StatefulRandomBinomial with its state in a variable."""
    graph = Graph()
    handle = graph.add("VarHandleOp", dtype=DataType.INT64, shape=(3,), shared_name="s")[0]
    graph.add("AssignVariableOp", handle, np.array([5, 6, 7], np.int64), name="init")
    inputs = (handle, np.array(1, np.int64), FULL.astype(np.int32), COUNTS, PROBS)
    graph.add("StatefulRandomBinomial", *inputs, dtype=dtype, name="result")
    steps = (Step({}, (), ("init",)), Step({}, ("result:0",)))
    return Case(f"StatefulRandomBinomial_{dtype.name}", graph.graph_def, steps)


def gradient(op: str, a: np.ndarray, x: np.ndarray, t: type, tolerance: float) -> Case:
    return case(op, a.astype(t), x.astype(t), tolerance=tolerance)


def one_by_one(op: str) -> list[Case]:
    """Return a case per value, so that the tolerance is relative to that value."""
    return [gradient(op, A[i : i + 1], X[i : i + 1], np.float64, 1e-6) for i in range(len(A))]


def stateless(op: str, parameter: Any, shape: np.ndarray = FULL, **attrs: Any) -> Case:
    return case(op, shape, SEED, parameter, message=True, **attrs)


CASES = (
    *(thrice(case("RandomGamma", SHAPE, ALPHA.astype(t), seed=3, seed2=4)) for t in FLOATS),
    *(
        thrice(case("RandomPoissonV2", SHAPE, RATE.astype(t), seed=3, seed2=4, dtype=out))
        for t in FLOATS
        for out in (DataType.FLOAT, DataType.INT64)
    ),
    thrice(case("RandomPoissonV2", SHAPE, np.array([5, 60], np.int32), seed=3,
                dtype=DataType.HALF)),
    case("RandomPoissonV2", SHAPE, np.array([-1.0, 3.0]), seed=3, dtype=DataType.DOUBLE),
    from_producer(24, case("RandomPoisson", SHAPE, RATE.astype("f"), seed=3, seed2=4)),
    *(stateless("StatelessRandomGammaV2", ALPHA.astype(t)) for t in FLOATS),
    stateless("StatelessRandomGammaV2", np.float64(2.5), SHAPE),
    stateless("StatelessRandomGammaV2", ALPHA[:, :2]),
    stateless("StatelessRandomGammaV2", ALPHA[:, :0], np.array([4, 2, 0], np.int32)),
    *(
        case("StatelessRandomGammaV3", FULL, KEY, COUNTER, PHILOX, ALPHA.astype(t))
        for t in FLOATS
    ),
    *(
        stateless("StatelessRandomPoisson", RATE.astype(t), dtype=from_numpy(np.dtype(out)))
        for t in FLOATS
        for out in (*FLOATS, np.int32, np.int64)
        if t is out or (out is not np.float16 and t is not np.float64)
    ),
    stateless("StatelessRandomPoisson", np.array([-1.0, 0, 3]), dtype=DataType.INT32),
    stateless("StatelessRandomPoisson", RATE[:, :2], dtype=DataType.INT32),
    *(
        case("StatelessRandomBinomial", FULL, SEED, COUNTS.astype(t), PROBS.astype(t),
             dtype=DataType.INT64)
        for t in FLOATS
    ),
    case("StatelessRandomBinomial", FULL, SEED, np.float64(9), PROBS, dtype=DataType.FLOAT,
         shape_only=True),
    case("StatelessRandomBinomial", SHAPE, SEED, np.array([5.0, 0, -1, 3, 7]),
         np.array([0, 0.3, 0.3, 1, 1]), dtype=DataType.INT32),
    case("StatelessRandomBinomial", FULL, SEED, COUNTS, PROBS[:2], dtype=DataType.FLOAT,
         message=True),
    case("StatelessRandomBinomial", FULL, SEED, np.ones(3), np.ones(4), dtype=DataType.FLOAT,
         message=True),
    stateful(DataType.FLOAT), stateful(DataType.INT64),
    *one_by_one("RandomGammaGrad"), *one_by_one("IgammaGradA"),
    gradient("RandomGammaGrad", A[:4], X[:4], np.float32, 1e-4),
    gradient("IgammaGradA", A[:4], X[:4], np.float32, 1e-4),
    gradient("IgammaGradA", A[:2, None], X[:3], np.float32, 1e-4),
    gradient("RandomGammaGrad", A[:2], X[:3], np.float32, 1e-4),
    *(
        case(op, np.int32([46902, 51188, 34063, 59195]), np.ones((4,) * 5, np.float32),
             message=True)
        for op in ("RandomGamma", "RandomPoissonV2")
    ),
)  # fmt: skip
