"""Storing sparse tensors in a SparseTensorsMap and taking them back."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType
from tests.conformance.case import Case, Graph, Step

STORE = {"shared_name": "store"}


def i64(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def many_case(name: str, indices: Any, values: Any, shape: Any) -> Case:
    """Store the rows of one tensor, take them in reverse order, then take them again."""
    graph = Graph()
    array = np.array(values, np.float32)
    indices = (
        i64(indices).reshape(len(array), -1) if len(array) else np.empty((0, len(shape)), np.int64)
    )
    added = graph.add("AddManySparseToTensorsMap", indices, array, i64(shape), **STORE)[0]
    backwards = graph.add("ReverseV2", added, np.array([0], np.int32))[0]
    taken = graph.add(
        "TakeManySparseFromTensorsMap", backwards, dtype=DataType.FLOAT, name="result", **STORE
    )
    fetches = tuple(each for each, _ in taken)
    return Case(name, graph.graph_def, (Step({}, fetches), Step({}, fetches)))


def single_case(name: str, shapes: Any, dtype: DataType = DataType.INT64) -> Case:
    """Store one tensor of each shape, with one element, then take them together."""
    graph = Graph()
    handles = [
        graph.add("AddSparseToTensorsMap", i64([[0] * len(shape)]), i64([7]), i64(shape), **STORE)[
            0
        ]
        for shape in shapes
    ]
    packed = graph.add("Pack", handles, axis=0)[0]
    taken = graph.add("TakeManySparseFromTensorsMap", packed, dtype=dtype, name="result", **STORE)
    return Case(name, graph.graph_def, (Step({}, tuple(each for each, _ in taken)),), message=True)


CASES = (
    many_case("rows", [[0, 1], [0, 2], [2, 0]], [1, 2, 3], [3, 4]),
    many_case("cubes", [[0, 1, 0], [1, 2, 1]], [1, 2], [2, 3, 2]),
    many_case("empty", [], [], [2, 3]),
    many_case("rank_1", [[0]], [1], [2]),
    single_case("singles", [(3,), (5,), (4,)]),
    single_case("ranks", [(3,), (5, 2)]),
    single_case("type", [(3,)], DataType.FLOAT),
    *(
        dataclasses.replace(many_case(name, indices, [1, 2], shape), message=True)
        for name, indices, shape in (
            ("out_of_order", [[1, 0], [0, 1]], [3, 4]),
            ("repeated", [[1, 0], [1, 0]], [3, 4]),
            ("out_of_bounds", [[1, 0], [1, 4]], [3, 4]),
            ("negative", [[1, 0], [1, 1]], [3, -4]),
            ("large", [[1, 0], [1, 1]], [3, 2**63 - 1]),
        )
    ),
)
