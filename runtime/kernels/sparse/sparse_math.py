"""Kernels for arithmetic between two sparse tensors, or a sparse and a dense tensor.

TF: tensorflow/core/kernels/sparse_{tensor_dense_add,tensor_dense_matmul,add,dense_binary_op_shared,
softmax,sparse_binary_op_shared,reduce,matmul}_op.cc
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.register_types import NUMBER_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.math.row_runs import combine_runs, run_starts, stable_order
from runtime.kernels.sparse.sparse_structure import Sparse, flat_positions, index_rows
from runtime.kernels.sparse.sparse_tensor_checks import (
    check_bounds,
    check_sparse,
    check_sparse_tensor,
)


def sparse_tensor_dense_add(
    indices: np.ndarray, values: np.ndarray, shape: np.ndarray, dense: np.ndarray
) -> np.ndarray:
    """SparseTensorDenseAdd: add a sparse and a dense tensor of the same shape; the sum is dense."""
    _check_addends(indices, values, shape)
    if shape.size != dense.ndim:
        raise InvalidArgumentError(
            f"Two operands have different ranks; received: {shape.size} and {dense.ndim}"
        )
    for axis, (ours, theirs) in enumerate(zip(shape.tolist(), dense.shape, strict=True)):
        if ours != theirs:
            raise InvalidArgumentError(
                f"Dimension {axis} does not equal (no broadcasting is supported): "
                f"sparse side {ours} vs dense side {theirs}"
            )
    outside = (indices < 0) | (indices >= shape)
    if outside.any():
        row, axis = np.argwhere(outside)[0].tolist()
        raise InvalidArgumentError(
            f"Sparse tensor has an invalid index on dimension {axis}: a_indices({row},{axis}) = "
            f"{indices[row, axis]}, dense tensor shape: {' '.join(map(str, dense.shape))}"
        )
    result = dense.copy()
    np.add.at(result, tuple(indices.T), values)
    return result


def _check_addends(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> None:
    _check_ranks("a", indices, values, shape)
    for one, two in ((indices.shape[0], len(values)), (indices.shape[1], shape.size)):
        if one != two:
            raise InvalidArgumentError(f"Dimensions {one} and {two} are not compatible")


def _check_ranks(name: str, indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> None:
    """Raise InvalidArgumentError unless `indices` is a matrix and the other two are vectors."""
    if indices.ndim != 2:
        raise InvalidArgumentError(
            f"Input {name}_indices should be a matrix but received shape: "
            f"{shape_text(indices.shape)}"
        )
    if values.ndim != 1 or shape.ndim != 1:
        raise InvalidArgumentError(
            f"Inputs {name}_values and {name}_shape should be vectors but received shapes: "
            f"{shape_text(values.shape)} and {shape_text(shape.shape)}"
        )


def sparse_tensor_dense_matmul(
    indices: np.ndarray,
    values: np.ndarray,
    shape: np.ndarray,
    dense: np.ndarray,
    *,
    adjoint_a: bool,
    adjoint_b: bool,
) -> np.ndarray:
    """SparseTensorDenseMatMul: multiply a sparse matrix [m, k] by a dense matrix [k, n].

    If `adjoint_a` or `adjoint_b` is true, that matrix is first replaced by its adjoint.
    """
    if dense.ndim != 2:
        raise InvalidArgumentError("Tensor 'b' is not a matrix")
    if shape.shape != (2,):
        raise InvalidArgumentError("Tensor 'a_shape' must have 2 elements")
    check_sparse(indices, values, shape)
    rows, columns = indices[:, int(adjoint_a)], indices[:, int(not adjoint_a)]
    outer, inner = (int(shape[int(adjoint_a)]), int(shape[int(not adjoint_a)]))
    right = dense.conj().T if adjoint_b else dense
    if inner != right.shape[0]:
        raise InvalidArgumentError(
            "Cannot multiply A and B because inner dimension does not match: "
            f"{inner} vs. {right.shape[0]}.  Did you forget a transpose?  "
            f"Dimensions of A: [{shape[0]}, {shape[1]}).  "
            f"Dimensions of B: {shape_text(dense.shape)}"
        )
    _check_matmul_indices(columns, inner, "k", int(not adjoint_a))
    _check_matmul_indices(rows, outer, "m", int(adjoint_a))
    check_allocation((outer, right.shape[1]), values.dtype)
    check_allocation((len(values), right.shape[1]), values.dtype)
    factors = values.conj() if adjoint_a else values
    result = np.zeros((outer, right.shape[1]), values.dtype)
    if not result.size or not len(values):
        return result
    order = stable_order(rows, outer)
    ordered = rows[order]
    starts = run_starts(ordered)
    products = right[columns[order]]
    products = np.multiply(products, factors[order, None], dtype=values.dtype)
    result[ordered[starts]] = combine_runs(np.add, products, None, starts, values.dtype)
    return result


def _check_matmul_indices(given: np.ndarray, limit: int, name: str, column: int) -> None:
    outside = (given < 0) | (given >= limit)
    if outside.any():
        first = int(outside.argmax())
        raise InvalidArgumentError(
            f"{name} ({given[first]}) from index[{first},{column}] out of bounds (>={limit})"
        )


def sparse_add(
    a_indices: np.ndarray,
    a_values: np.ndarray,
    a_shape: np.ndarray,
    b_indices: np.ndarray,
    b_values: np.ndarray,
    b_shape: np.ndarray,
    thresh: np.ndarray,
) -> Sparse:
    """SparseAdd: add two sparse tensors.

    If both have an element at a position, and the magnitude of the sum is below `thresh`, the sum
    is dropped.
    """
    if thresh.ndim:
        raise InvalidArgumentError(
            f"The magnitude threshold must be a scalar: got shape {shape_text(thresh.shape)}"
        )
    if not a_shape.size or not b_shape.size:
        raise InvalidArgumentError("Tesors must not be empty")
    _check_pair(a_indices, a_values, a_shape, b_indices, b_values, b_shape)
    positions, first, second, in_both = _aligned(a_indices, a_values, b_indices, b_values, a_shape)
    sums = first + second
    kept = (np.abs(sums) >= thresh) | ~in_both
    if not kept.all():
        positions, sums = positions[kept], sums[kept]
    return index_rows(positions, a_shape.tolist()), sums, a_shape


def sparse_add_grad(
    backprop_val_grad: np.ndarray,
    a_indices: np.ndarray,
    b_indices: np.ndarray,
    sum_indices: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """SparseAddGrad: return the gradients with respect to the elements of a and of b.

    The gradient is 0 if SparseAdd dropped the sum to which the element belongs.
    """
    for name, indices in (("a", a_indices), ("b", b_indices), ("sum", sum_indices)):
        if indices.ndim != 2:
            raise InvalidArgumentError(
                f"{name}_indices should be a matrix but received shape {shape_text(indices.shape)}"
            )
    if backprop_val_grad.shape != sum_indices.shape[:1]:
        raise InvalidArgumentError(
            "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): "
            f"got {backprop_val_grad.size} and {len(sum_indices)}"
        )
    if not a_indices.shape[1] == b_indices.shape[1] == sum_indices.shape[1]:
        raise InvalidArgumentError(
            "The densified operands should have the same ndims; for A, B, Sum got: "
            f"{a_indices.shape[1]}, {b_indices.shape[1]}, {sum_indices.shape[1]}"
        )
    # the rank is 0, so all indices are equal; gradients are matched by their order
    if not sum_indices.shape[1]:
        return _resized(backprop_val_grad, a_indices), _resized(backprop_val_grad, b_indices)
    together = np.concatenate([sum_indices, a_indices, b_indices])
    places = np.unique(together, axis=0, return_inverse=True)[1].reshape(-1)
    gradients = np.zeros(len(together), backprop_val_grad.dtype)
    count = len(sum_indices)
    gradients[places[:count]] = backprop_val_grad
    found = gradients[places[count:]]
    return found[: len(a_indices)], found[len(a_indices) :]


def _resized(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the first `len(rows)` elements of `values`, followed by zeros if there are fewer."""
    result = np.zeros(len(rows), values.dtype)
    result[: len(values)] = values[: len(rows)]
    return result


def _check_pair(
    a_indices: np.ndarray,
    a_values: np.ndarray,
    a_shape: np.ndarray,
    b_indices: np.ndarray,
    b_values: np.ndarray,
    b_shape: np.ndarray,
) -> None:
    check_sparse(a_indices, a_values, a_shape)
    check_sparse(b_indices, b_values, b_shape)
    if a_shape.size != b_shape.size:
        raise InvalidArgumentError(
            "Operands do not have the same ranks; got shapes: "
            f"{shape_text(a_shape.tolist())} and {shape_text(b_shape.tolist())}"
        )
    for axis, (one, two) in enumerate(zip(a_shape.tolist(), b_shape.tolist(), strict=True)):
        if one != two:
            raise InvalidArgumentError(
                f"Operands' shapes do not match: got {one} and {two} for dimension {axis}"
            )
    check_bounds(a_indices, a_shape)
    check_bounds(b_indices, b_shape)


def _aligned(
    a_indices: np.ndarray,
    a_values: np.ndarray,
    b_indices: np.ndarray,
    b_values: np.ndarray,
    shape: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return both operands at every position at which at least one of them has an element.

    The results are (positions, ascending; values of a there; values of b there; whether both have
    an element there). An operand without an element at a position has the value 0.
    """
    every = np.concatenate([flat_positions(a_indices, shape), flat_positions(b_indices, shape)])
    order = np.argsort(every, kind="stable")  # this is a merge if both operands are sorted
    starts = run_starts(every[order]) if len(every) else np.empty(0, np.int64)
    place = np.empty(len(every), np.int64)
    place[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(every)))
    own, other = np.split(place, [len(a_values)])
    first, second = (np.zeros(len(starts), a_values.dtype) for _ in range(2))
    first[own], second[other] = a_values, b_values
    in_first, in_second = (np.zeros(len(starts), bool) for _ in range(2))
    in_first[own] = in_second[other] = True
    return every[order[starts]], first, second, in_first & in_second


def _sparse_sparse_cwise(
    combine: Callable[..., np.ndarray],
) -> Callable[..., tuple[np.ndarray, ...]]:
    def kernel(
        a_indices: np.ndarray,
        a_values: np.ndarray,
        a_shape: np.ndarray,
        b_indices: np.ndarray,
        b_values: np.ndarray,
        b_shape: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        if not a_shape.size or not b_shape.size:
            raise InvalidArgumentError("Tensors must not be empty")
        _check_pair(a_indices, a_values, a_shape, b_indices, b_values, b_shape)
        positions, first, second, _ = _aligned(a_indices, a_values, b_indices, b_values, a_shape)
        return index_rows(positions, a_shape.tolist()), combine(first, second)

    return kernel


def _sparse_dense_cwise(combine: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Make the kernel of a SparseDenseCwise op.

    The kernel applies `combine` to the sparse values and the elements of the dense tensor at the
    same indices.
    """

    def kernel(
        indices: np.ndarray, values: np.ndarray, shape: np.ndarray, dense: np.ndarray
    ) -> np.ndarray:
        check_sparse(indices, values, shape)
        sizes = shape.tolist()
        check_bounds(indices, shape)
        fits = dense.ndim <= len(sizes) and all(
            one in (1, two) for one, two in zip(dense.shape[::-1], sizes[::-1], strict=False)
        )
        if not fits:
            raise InvalidArgumentError(
                "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible "
                f"shapes: {shape_text(sizes)} vs. {shape_text(dense.shape)}"
            )
        if not 1 <= len(sizes) <= 5:
            raise InvalidArgumentError(
                "Only tensors with ranks between 1 and 5 are currently supported.  "
                f"Tensor rank: {len(sizes)}"
                if sizes
                else "The shape argument requires at least one element."
            )
        aligned = indices[:, len(sizes) - dense.ndim :]
        where = tuple(
            np.zeros_like(column) if size == 1 else column
            for column, size in zip(aligned.T, dense.shape, strict=True)
        )
        picked = dense[where] if dense.ndim else np.broadcast_to(dense, values.shape)
        return combine(values, picked)

    return kernel


def _divide(values: np.ndarray, divisors: np.ndarray) -> np.ndarray:
    if (divisors == 0).any():
        raise InvalidArgumentError(
            "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero "
        )
    if values.dtype.kind not in "iu":
        return np.asarray(values / divisors)
    # Division rounds towards zero, as in C++.
    return np.asarray((values - np.fmod(values, divisors)) // divisors)


def sparse_softmax(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """SparseSoftmax: compute the softmax along the last dimension.

    Only elements that are present take part.
    """
    _check_ranks("sp", indices, values, shape)
    if shape.size < 2:
        sizes = ",".join(map(str, shape.tolist()))
        raise InvalidArgumentError(f"Input should have rank >= 2, but received shape: {sizes}")
    check_sparse_tensor(indices, values, shape)
    check_bounds(indices, shape)
    if not len(values):
        return values
    groups = flat_positions(indices[:, :-1], shape[:-1])
    order = np.argsort(groups, kind="stable")
    begins = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lengths = np.diff(np.append(begins, len(groups)))
    ordered = values[order]
    shifted = np.exp(ordered - np.repeat(np.maximum.reduceat(ordered, begins), lengths))
    result = np.empty_like(values)
    result[order] = shifted / np.repeat(np.add.reduceat(shifted, begins), lengths)
    return result


def sparse_matmul(
    first: np.ndarray,
    second: np.ndarray,
    *,
    transpose_a: bool,
    transpose_b: bool,
) -> np.ndarray:
    """SparseMatMul: multiply two dense matrices, which may contain many zeros, in float32."""
    for name, given in (("a", first), ("b", second)):
        if given.ndim != 2:
            raise InvalidArgumentError(f"{name} is not a matrix")
    left = first.T if transpose_a else first
    right = second.T if transpose_b else second
    if left.shape[1] != right.shape[0]:
        raise InvalidArgumentError(
            f"Matrix size incompatible: a: {shape_text(first.shape)}, b: {shape_text(second.shape)}"
        )
    check_allocation((left.shape[0], right.shape[1]), np.float32)
    return np.asarray(left.astype(np.float32) @ right.astype(np.float32))


KERNELS = (
    KernelDef("SparseAdd", sparse_add),
    KernelDef("SparseAddGrad", sparse_add_grad, {"T": NUMBER_TYPES}),
    KernelDef("SparseDenseCwiseAdd", _sparse_dense_cwise(np.add)),
    KernelDef("SparseDenseCwiseDiv", _sparse_dense_cwise(_divide)),
    KernelDef("SparseDenseCwiseMul", _sparse_dense_cwise(np.multiply)),
    KernelDef("SparseMatMul", sparse_matmul, expensive=True),
    KernelDef("SparseSoftmax", sparse_softmax),
    KernelDef("SparseSparseMaximum", _sparse_sparse_cwise(np.maximum)),
    KernelDef("SparseSparseMinimum", _sparse_sparse_cwise(np.minimum)),
    KernelDef("SparseTensorDenseAdd", sparse_tensor_dense_add),
    KernelDef("SparseTensorDenseMatMul", sparse_tensor_dense_matmul, expensive=True),
)
