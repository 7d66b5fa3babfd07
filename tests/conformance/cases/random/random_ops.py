"""Random ops: with a seed, every step gives the numbers of TensorFlow's sequence."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step, case

FLOATS = (DataType.FLOAT, DataType.DOUBLE, DataType.HALF, DataType.BFLOAT16)
INTS = (DataType.INT32, DataType.INT64)
SHAPE = np.array([3, 7], np.int32)
LONG = np.array([1001], np.int64)
KEY, COUNTER = np.array([0x1234567890ABCDEF], np.uint64), np.array([2**64 - 3, 5], np.uint64)
SEED = np.array([11, -7], np.int64)
LOGITS = np.array([[0.1, 2.0, -1.0], [-np.inf, 0.0, 1.0]], np.float32)


def _thrice(one: Case) -> Case:
    return dataclasses.replace(one, steps=one.steps * 3)


def _seeded() -> Iterator[Case]:
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        for dtype in FLOATS:
            yield _thrice(case(op, SHAPE, dtype=dtype, seed=5, seed2=9))
        yield _thrice(case(op, LONG, dtype=DataType.FLOAT, seed=87654321, seed2=0))
        yield case(op, SHAPE, dtype=DataType.FLOAT, shape_only=True, name=f"{op}_unseeded")
    for dtype in INTS:
        low, high = np.array(-5, dtype.numpy), np.array(1000, dtype.numpy)
        yield _thrice(case("RandomUniformInt", SHAPE, low, high, seed=5, seed2=9))
    yield case("RandomUniformInt", SHAPE, np.int32(3), np.int32(3), message=True)
    yield case("RandomUniform", np.int32(3), dtype=DataType.FLOAT, message=True)
    yield case("RandomUniform", np.array([-1], np.int32), dtype=DataType.FLOAT)
    for value in (np.arange(20), np.arange(24).reshape(6, 4), np.arange(1), np.array(3)):
        yield _thrice(case("RandomShuffle", value.astype(np.int32), seed=3, seed2=4))
    for dtype in INTS:
        one = case("Multinomial", LOGITS, np.int32(9), seed=5, seed2=9, output_dtype=dtype)
        yield _thrice(one)
    yield case("Multinomial", LOGITS, np.int32(-1), message=True)
    yield case("Multinomial", LOGITS[0], np.int32(1))
    alpha = np.array([0.5, 2.0], np.float32)
    yield case("RandomGamma", SHAPE, alpha, seed=1, shape_only=True)
    yield case("RandomPoissonV2", SHAPE, alpha, seed=1, dtype=DataType.INT32, shape_only=True)


def _stateless() -> Iterator[Case]:
    alg = np.int32(1)
    for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"):
        for dtype in FLOATS:
            yield case(op, SHAPE, SEED, dtype=dtype)
            yield case(f"{op}V2", LONG, KEY, COUNTER, alg, dtype=dtype)
    for dtype in (*INTS, DataType.UINT32, DataType.UINT64):
        yield case("StatelessRandomUniformFullInt", SHAPE, SEED, dtype=dtype)
        yield case("StatelessRandomUniformFullIntV2", SHAPE, KEY, COUNTER, alg, dtype=dtype)
        if dtype in INTS:
            bounds = np.array(-3, dtype.numpy), np.array(99, dtype.numpy)
            yield case("StatelessRandomUniformInt", SHAPE, SEED, *bounds)
            yield case("StatelessRandomUniformIntV2", SHAPE, KEY, COUNTER, alg, *bounds)
    yield case("StatelessRandomUniformInt", SHAPE, SEED, np.int32(4), np.int32(3), message=True)
    yield case("StatelessRandomUniform", SHAPE, SEED[:1], dtype=DataType.FLOAT)
    yield case("StatelessRandomUniformV2", SHAPE, KEY, COUNTER, np.int32(9), dtype=DataType.FLOAT)
    yield case("StatelessMultinomial", LOGITS, np.int32(9), SEED)
    yield case("StatelessRandomGetAlg")
    for seed in (SEED, SEED.astype(np.int32), np.array([0, 0], np.int64)):
        yield case("StatelessRandomGetKeyCounter", seed)
        yield case("StatelessRandomGetKeyCounterAlg", seed)
    for rows in (np.arange(9), np.arange(10).reshape(5, 2), np.arange(1)):
        yield case("StatelessShuffle", rows.astype(np.int32), KEY, COUNTER, alg)


def _of_variable() -> Case:
    """Several ops draw from one state variable, and each advances it."""
    graph = Graph()
    state = graph.add("VarHandleOp", dtype=DataType.INT64, shape=(3,), shared_name="s")[0]
    start = np.array([-5, 7, 123456789], np.int64)
    graph.add("AssignVariableOp", state, start, dtype=DataType.INT64, name="init")
    graph.add("ReadVariableOp", state, dtype=DataType.INT64, name="read")
    alg = np.int64(1)
    drawn: list[Any] = []
    for op, dtype in (
        ("StatefulUniform", DataType.FLOAT),
        ("StatefulStandardNormalV2", DataType.DOUBLE),
        ("StatefulTruncatedNormal", DataType.FLOAT),
        ("StatefulUniformFullInt", DataType.UINT32),
    ):
        drawn += graph.add(op, state, alg, SHAPE, dtype=dtype)
    drawn += graph.add("StatefulUniformInt", state, alg, SHAPE, np.int64(2), np.int64(50))
    drawn += graph.add("RngReadAndSkip", state, np.int32(1), np.array(6, np.uint64))
    graph.add("RngSkip", state, alg, np.int64(9), name="skip")
    steps = [Step({}, (), ("init",))]
    for output, _ in drawn:
        steps += [Step({}, (output,)), Step({}, ("read:0",))]
    steps += [Step({}, (), ("skip",)), Step({}, ("read:0",))]
    return Case("variable", graph.graph_def, tuple(steps))


def _of_algorithm(op: str, *arguments: Any, wide: bool = True, **attrs: Any) -> Case:
    """A stateful random op with each algorithm: automatic (3), Philox (1) and others.

    The state is read after each; the last steps use states of a wrong shape.
    """
    graph = Graph()
    state = graph.add("VarHandleOp", dtype=DataType.INT64, shape=None, shared_name="s")[0]
    start = graph.placeholder(DataType.INT64, "start")
    graph.add("AssignVariableOp", state, start, dtype=DataType.INT64, name="init")
    graph.add("ReadVariableOp", state, dtype=DataType.INT64, name="read")
    asked = graph.placeholder(DataType.INT64 if wide else DataType.INT32, "asked")
    outputs = graph.add(op, state, asked, *arguments, name="result", **attrs)
    fetches = tuple(output for output, _ in outputs)
    steps = [Step({"start:0": np.array([5, 6, 7])}, (), ("init",))]
    for algorithm in (3, 1, 2, 0, 4, [1]):
        number = np.array(algorithm, np.int64 if wide else np.int32)
        steps += [Step({"asked:0": number}, fetches, ("result",)), Step({}, ("read:0",))]
    for short in ([5, 6], [[5, 6, 7]]):
        steps.append(Step({"start:0": np.array(short)}, (), ("init",)))
        steps.append(Step({"asked:0": number.ravel()[0]}, fetches, ("result",)))
    return Case(f"{op}_algorithms", graph.graph_def, tuple(steps), message=True)


def _algorithms() -> Iterator[Case]:
    for op in ("StatefulUniform", "StatefulTruncatedNormal", "StatefulStandardNormalV2"):
        yield _of_algorithm(op, SHAPE, dtype=DataType.FLOAT)
    yield _of_algorithm("StatefulUniformFullInt", SHAPE, dtype=DataType.UINT32)
    yield _of_algorithm("StatefulUniformInt", SHAPE, np.int64(2), np.int64(50))
    counts = np.full(3, 40.0, np.float32), np.array([0.5], np.float32)
    binomial = _of_algorithm("StatefulRandomBinomial", SHAPE[:1], *counts, dtype=DataType.INT32)
    # messages differ for a state that is too short
    yield dataclasses.replace(binomial, message=False)
    yield _of_algorithm("RngSkip", np.int64(9))
    yield _of_algorithm("RngReadAndSkip", np.array(6, np.uint64), wide=False)


CASES = (*_seeded(), *_stateless(), _of_variable(), *_algorithms())
