"""Gradient functions of sparse matrices in the CSR form, which are handles of type VARIANT.

The gradient of a sparse matrix is a sparse matrix with elements at the same places.

TF: tensorflow/python/ops/linalg/sparse/sparse_csr_matrix_grad.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runtime.framework.dtypes import DataType
from runtime.graph.gradients.elementwise_gradients import GradientFunction, Gradients
from runtime.graph.gradients.gradient_nodes import GradientNodes, type_of
from runtime.graph.gradients.matrix_nodes import adjoint, columns
from runtime.graph.node import Endpoint, Node


class _Elements(NamedTuple):
    """The elements of a sparse matrix: `indices` `[n, rank]`, `values` `[n]`, `shape` `[rank]`."""

    indices: Endpoint
    values: Endpoint
    shape: Endpoint


def _elements(ops: GradientNodes, matrix: Endpoint, dtype: DataType) -> _Elements:
    return _Elements(*ops.CSRSparseMatrixToSparseTensor(matrix, type=dtype))


# --- conversions ----------------------------------------------------------------------------------


def _from_dense(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.CSRSparseMatrixToDense(grads[0], type=type_of(node.inputs[0])), None]


def _to_dense(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    indices, _, shape = _elements(ops, node.inputs[0], type_of(grads[0]))
    return [ops.SparseTensorToCSRSparseMatrix(indices, ops.GatherNd(grads[0], indices), shape)]


def _from_elements(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [None, _elements(ops, grads[0], type_of(node.inputs[1])).values, None]


def _to_elements(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    return [ops.SparseTensorToCSRSparseMatrix((node, 0), grads[1], (node, 2))]


def _transpose(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    attrs = {name: node.attr(name) for name in ("conjugate", "type")}
    return [ops.SparseMatrixTranspose(grads[0], **attrs)]


# --- products -------------------------------------------------------------------------------------


def _turned(ops: GradientNodes, x: Endpoint, transpose: bool, conjugate: bool) -> Endpoint:
    """Return dense matrices, transposed and conjugated or not."""
    x = adjoint(ops, x) if transpose else x  # conjugates too
    return ops.conjugate(x) if transpose != conjugate else x


def _dense_product(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SparseMatrixMatMul: return the gradients of A (sparse) and B (dense) in C = op(A) op(B).

    The gradient of op(A) is dC op(B)ᴴ; only its elements at the places of A are computed.
    """
    (a, b), dy = node.inputs, grads[0]
    dtype = type_of(b)
    flips = {name: bool(node.attr(f"transpose_{name}") or node.attr(f"adjoint_{name}"))
             for name in "ab"}  # fmt: skip
    is_adjoint = {name: bool(node.attr(f"adjoint_{name}")) for name in "ab"}
    dy = ops.conjugate(dy) if node.attr("conjugate_output") else dy
    dy = _turned(ops, dy, True, False) if node.attr("transpose_output") else dy
    indices, _, shape = _elements(ops, a, dtype)
    right = ops.conjugate(_turned(ops, b, flips["b"], is_adjoint["b"]))
    last, before = columns(ops, indices, -1, None), columns(ops, indices, -2, -1)
    batch = columns(ops, indices, None, -2)
    row, column = (last, before) if flips["a"] else (before, last)
    rows = ops.GatherNd(dy, ops.ConcatV2([batch, row], ops.indices(1)))
    others = ops.GatherNd(right, ops.ConcatV2([batch, column], ops.indices(1)))
    values = ops.Sum(ops.Mul(rows, others), ops.indices([1]))
    values = ops.conjugate(values) if is_adjoint["a"] else values
    da = ops.SparseTensorToCSRSparseMatrix(indices, values, shape)
    is_plain_transpose = flips["a"] and not is_adjoint["a"]
    if is_plain_transpose:
        db = ops.conjugate(ops.SparseMatrixMatMul(a, ops.conjugate(dy)))
    else:
        db = ops.SparseMatrixMatMul(a, dy, adjoint_a=not flips["a"])
    return [da, _turned(ops, db, flips["b"], is_adjoint["b"])]


def _sparse_product(ops: GradientNodes, node: Node, grads: Sequence[Endpoint]) -> Gradients:
    """SparseMatrixSparseMatMul: return the gradients of A and B in C = op(A) op(B)."""
    (a, b), dtype = node.inputs, node.attr("type")

    def turned(x: Endpoint, name: str) -> Endpoint:  # op(x); its own inverse
        is_adjoint = node.attr(f"adjoint_{name}")
        if not is_adjoint and not node.attr(f"transpose_{name}"):
            return x
        output: Endpoint = ops.SparseMatrixTranspose(x, conjugate=is_adjoint, type=dtype)
        return output

    by_a = ops.SparseMatrixSparseMatMul(grads[0], turned(b, "b"), adjoint_b=True, type=dtype)
    by_b = ops.SparseMatrixSparseMatMul(turned(a, "a"), grads[0], adjoint_a=True, type=dtype)
    return [
        _at_places_of(ops, a, turned(by_a, "a"), dtype),
        _at_places_of(ops, b, turned(by_b, "b"), dtype),
    ]


def _at_places_of(
    ops: GradientNodes, pattern: Endpoint, matrix: Endpoint, dtype: DataType
) -> Endpoint:
    """Return the elements of `matrix` at the places of the elements of `pattern`."""
    wanted, given = _elements(ops, pattern, dtype), _elements(ops, matrix, dtype)
    steps = ops.Cumprod(wanted.shape, ops.indices(0), exclusive=True, reverse=True)

    def places(indices: Endpoint) -> Endpoint:
        output: Endpoint = ops.Sum(ops.Mul(indices, steps), ops.indices([1]))
        return output

    sought, known = places(wanted.indices), places(given.indices)
    axis = ops.indices(0)
    found = ops.LowerBound(ops.ExpandDims(known, axis), ops.ExpandDims(sought, axis))
    found = ops.Reshape(found, ops.indices([-1]))
    keys = ops.ConcatV2([known, ops.constant([-1], DataType.INT64)], axis)
    padded = ops.ConcatV2([given.values, ops.constant([0], dtype)], axis)
    values = ops.GatherV2(padded, found, axis)
    is_there = ops.Equal(ops.GatherV2(keys, found, axis), sought)
    values = ops.SelectV2(is_there, values, ops.ZerosLike(values))
    output: Endpoint = ops.SparseTensorToCSRSparseMatrix(wanted.indices, values, wanted.shape)
    return output


SPARSE_MATRIX_GRADIENTS: dict[str, GradientFunction] = {
    "DenseToCSRSparseMatrix": _from_dense,
    "CSRSparseMatrixToDense": _to_dense,
    "SparseTensorToCSRSparseMatrix": _from_elements,
    "CSRSparseMatrixToSparseTensor": _to_elements,
    "SparseMatrixTranspose": _transpose,
    "SparseMatrixMatMul": _dense_product,
    "SparseMatrixSparseMatMul": _sparse_product,
}
