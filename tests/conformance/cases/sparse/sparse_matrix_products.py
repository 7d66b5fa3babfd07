"""Products of sparse matrices; sparse Cholesky factors with a given permutation."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import DataType, from_numpy
from tests.conformance.case import Case, Graph, Step

RNG = np.random.default_rng(12)
TYPES = (np.float32, np.float64, np.complex64, np.complex128)


def numbers(shape: tuple[int, ...], dtype: type, density: float = 0.4) -> np.ndarray:
    """Random numbers, most of which are 0."""
    imaginary = 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else 0
    values = (RNG.normal(size=shape) + imaginary) * (RNG.random(shape) < density)
    return values.astype(dtype)


def variant(graph: Graph, dense: np.ndarray) -> Any:
    return graph.add("DenseToCSRSparseMatrix", dense, np.argwhere(dense))[0]


def dense_again(graph: Graph, sparse: Any, dtype: np.dtype, name: str) -> Case:
    """Fetch a sparse result as a dense matrix, and its number of entries."""
    data_type = from_numpy(dtype)
    dense = graph.add("CSRSparseMatrixToDense", sparse, type=data_type)[0]
    count = graph.add("SparseMatrixNNZ", sparse)[0]
    return Case(name, graph.graph_def, (Step({}, (dense[0], count[0])),))


def product(name: str, left: np.ndarray, right: np.ndarray, **attrs: Any) -> Case:
    graph = Graph()
    inputs = variant(graph, left), variant(graph, right)
    attrs = {"type": from_numpy(left.dtype), **attrs}
    result = graph.add("SparseMatrixSparseMatMul", *inputs, **attrs)[0]
    return dense_again(graph, result, left.dtype, f"product_{name}")


def products(dtype: type) -> list[Case]:
    turns = ("", "transpose", "adjoint")
    made = []
    for turn_a in turns:
        for turn_b in turns:
            for batch in ((), (3,), (1,)):
                left = numbers((*batch, *((4, 5) if turn_a == "" else (5, 4))), dtype)
                batch_b = (2,) if batch == (1,) else batch
                right = numbers((*batch_b, *((5, 3) if turn_b == "" else (3, 5))), dtype)
                attrs = {f"{turn}_{side}": True for turn, side in ((turn_a, "a"), (turn_b, "b"))
                         if turn}  # fmt: skip
                name = f"{np.dtype(dtype)}_{turn_a}_{turn_b}_{len(left.shape)}_{batch_b}"
                made.append(product(name.replace(" ", ""), left, right, **attrs))
    return made


def cholesky(name: str, matrix: np.ndarray, order: Any) -> Case:
    graph = Graph()
    data_type = from_numpy(matrix.dtype)
    permutation = np.array(order, np.int32)
    made = graph.add(
        "SparseMatrixSparseCholesky", variant(graph, matrix), permutation, type=data_type
    )[0]
    return dense_again(graph, made, matrix.dtype, f"cholesky_{name}")


def definite(dtype: type, *batch: int) -> np.ndarray:
    matrix = numbers((*batch, 6, 6), dtype, 0.2)
    lower = np.tril(matrix, -1) + 5 * np.eye(6)
    return np.asarray(lower + np.conjugate(np.tril(matrix, -1)).swapaxes(-1, -2), dtype)


F64 = np.float64
SQUARE = np.diag([1.0, 2, 3])
ORDERS = np.stack([RNG.permutation(6) for _ in range(3)])
CANCELLING = np.array([[2.0, 0, -1], [0, 0, 0]]), np.array([[0.0, 3], [0, 0], [0, 6]])
CASES = (
    *(made for t in TYPES for made in products(t)),
    product("cancelling", *CANCELLING),
    product("full", RNG.normal(size=(2, 20, 30)), RNG.normal(size=(2, 30, 20))),
    product("nothing", np.zeros((2, 3)), np.zeros((3, 2))),
    product("other_sizes", np.ones((2, 3)), np.ones((2, 3))),
    product("other_ranks", np.ones((2, 3)), np.ones((1, 3, 2))),
    product("other_batches", np.ones((2, 2, 3)), np.ones((3, 3, 2))),
    product("both_ways", np.ones((2, 2)), np.ones((2, 2)), transpose_a=True, adjoint_a=True),
    product("other_type", np.ones((2, 2)), np.ones((2, 2)), type=DataType.FLOAT),
    *(cholesky(f"{np.dtype(t)}", definite(t), ORDERS[0]) for t in TYPES),
    *(cholesky(f"batch_{np.dtype(t)}", definite(t, 3), ORDERS) for t in TYPES),
    cholesky("lower_triangle_counts", np.tril(definite(F64)), ORDERS[1]),
    cholesky("not_square", np.ones((2, 3)), [0, 1]),
    cholesky("zero", np.zeros((2, 2)), [0, 1]),
    cholesky("not_definite", np.array([[1.0, 2], [2, 1]]), [0, 1]),
    cholesky("short_order", SQUARE, [0, 1]),
    cholesky("other_rank", SQUARE, [[0, 1, 2]]),
)
