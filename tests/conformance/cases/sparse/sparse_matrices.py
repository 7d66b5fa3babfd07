"""Sparse matrices as variants: conversions, components, products."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.framework.dtypes import from_numpy
from tests.conformance.case import Case, Graph, Step

TYPES = (np.float32, np.float64, np.complex64, np.complex128)
ENTRIES = np.array([[0, 0], [0, 2], [1, 1], [3, 0]], np.int64)
BATCH_ENTRIES = np.array([[0, 0, 0], [0, 3, 2], [1, 1, 1]], np.int64)
RNG = np.random.default_rng(11)
MATRIX, BATCH = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 4, 3))
BOTH = ((MATRIX, ENTRIES), (BATCH, BATCH_ENTRIES))


def numbers(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    imaginary = 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else 0
    return (RNG.normal(size=shape) + imaginary).astype(dtype)


def sparse(matrix: np.ndarray, entries: np.ndarray, op: str, *rest: Any, **attrs: Any) -> Case:
    """`op` of a sparse matrix made from `entries` of `matrix`, and of the inputs `rest`."""
    graph = Graph()
    # TensorFlow's shape inference requires known ranks.
    dense = graph.placeholder(matrix.dtype, "dense", matrix.shape)
    where = graph.placeholder(entries.dtype, "where", entries.shape)
    variant = graph.add("DenseToCSRSparseMatrix", dense, where)[0]
    outputs = graph.add(op, variant, *rest, name="result", **attrs)
    if op in ("Conj", "SparseMatrixTranspose"):
        data_type = from_numpy(matrix.dtype)
        outputs = graph.add(
            "CSRSparseMatrixToDense", outputs[0], type=data_type, name="dense_again"
        )
    step = Step({"dense:0": matrix, "where:0": entries}, tuple(name for name, _ in outputs))
    label = f"{op}_{matrix.dtype}_{matrix.ndim}_{sorted(attrs)}_{len(entries)}"
    for operand in rest:
        label += f"_{np.asarray(operand).shape}_{np.asarray(operand).ravel()[:1]}"
    return Case(label.replace(" ", ""), graph.graph_def, (step,))


def from_tensor(values: np.ndarray, entries: np.ndarray, sizes: list[int]) -> Case:
    graph = Graph()
    variant = graph.add("SparseTensorToCSRSparseMatrix", entries, values, np.int64(sizes))[0]
    data_type = from_numpy(values.dtype)
    output, _ = graph.add("CSRSparseMatrixToDense", variant, type=data_type, name="result")[0]
    name = f"SparseTensorToCSRSparseMatrix_{sizes}_{values.size}".replace(" ", "")
    return Case(name, graph.graph_def, (Step({}, (output,)),))


def products() -> list[Case]:
    shapes: tuple[tuple[dict[str, bool], tuple[int, int]], ...] = (
        ({}, (3, 5)), ({"transpose_a": True}, (4, 2)), ({"adjoint_a": True}, (4, 2)),
        ({"transpose_b": True}, (5, 3)), ({"adjoint_b": True}, (5, 3)),
        ({"transpose_output": True}, (3, 2)), ({"conjugate_output": True}, (3, 2)),
    )  # fmt: skip
    return [
        sparse(numbers(matrix.shape, t), entries, "SparseMatrixMatMul",
               numbers((*matrix.shape[:-2], *shape), t), **attrs)
        for t in TYPES
        for matrix, entries in BOTH
        for attrs, shape in shapes
    ]  # fmt: skip


CASES = (
    *(
        sparse(numbers(matrix.shape, t), entries, op, type=from_numpy(np.dtype(t)))
        for t in TYPES
        for matrix, entries in BOTH
        for op in (
            "CSRSparseMatrixToDense", "CSRSparseMatrixToSparseTensor", "SparseMatrixTranspose",
        )
    ),
    *(
        sparse(numbers(matrix.shape, t), entries, "Conj")
        for t in TYPES
        for matrix, entries in BOTH
    ),
    *(
        sparse(matrix, entries, "CSRSparseMatrixComponents", np.int32(index),
               type=from_numpy(matrix.dtype))
        for matrix, entries in BOTH
        for index in (0, 1)
    ),
    *(sparse(matrix, entries, "SparseMatrixNNZ") for matrix, entries in BOTH),
    sparse(MATRIX, ENTRIES[:0], "CSRSparseMatrixToDense", type=from_numpy(MATRIX.dtype)),
    from_tensor(np.array([1.5, 2, 3, 4]), ENTRIES, [4, 3]),
    from_tensor(np.array([1.5, 2, 3]), BATCH_ENTRIES, [2, 4, 3]),
    *products(),
)  # fmt: skip
