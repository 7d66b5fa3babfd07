"""Rules for documented differences of factorisations (docs/kernel_differences.md)."""

from __future__ import annotations

import numpy as np

from runtime.framework.tensor_codec import tensor_from_proto
from tests.conformance.case import Answer, Case
from tools.oracle_comparison.rules_of_difference import Answers, _answered, same_shapes
from tools.oracle_comparison.rules_of_values import not_finite


def same_eigenpairs(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The eigenvalues agree up to their order, and this runtime's eigenvectors fit them.

    Without vectors, TensorFlow leaves the second output unset.
    """
    matrix = _matrix_of(case, "Eig")
    if matrix is None or not np.isfinite(matrix).all() or not same_shapes(case, ours, theirs):
        return False
    close = 2e-3 if matrix.dtype in (np.float32, np.complex64) else 1e-6
    values, want = ours[0].values[0], theirs[0].values[0]  # type: ignore[union-attr]
    if values.shape != matrix.shape[:-1]:
        return False
    largest = max(float(np.abs(want).max(initial=0)), 1e-30)
    for one, other in zip(
        values.reshape(-1, values.shape[-1] or 1),
        want.reshape(-1, want.shape[-1] or 1),
        strict=True,
    ):
        left = other.tolist()
        for value in one.tolist():
            nearest = min(left, key=lambda each: abs(each - value))
            if abs(nearest - value) > close * largest:
                return False
            left.remove(nearest)
    if len(ours[0].values) < 2 or ours[0].values[1].shape != matrix.shape:  # type: ignore[union-attr]
        return True
    vectors = ours[0].values[1]  # type: ignore[union-attr]
    rest = matrix @ vectors - vectors * values[..., None, :]
    return bool(np.allclose(np.linalg.norm(vectors, axis=-2), 1, close, close)) and bool(
        np.abs(rest).max(initial=0) <= close * max(largest, float(np.abs(matrix).max(initial=0)))
    )


def _matrix_of(case: Case, op: str) -> np.ndarray | None:
    """Return the first input of the op's node if there is one step; None if it is no source."""
    node = next((each for each in case.graph.node if each.op == op), None)
    if node is None or len(case.steps) != 1:
        return None
    fed = {key.split(":")[0]: value for key, value in case.steps[0].feeds.items()}
    constants = {
        each.name: tensor_from_proto(each.attr["value"].tensor)
        for each in case.graph.node
        if each.op == "Const"
    }
    return {**constants, **fed}.get(node.input[0].split(":")[0])


def dependent_columns(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The matrix has dependent columns, so Q is not unique; the products QR agree."""
    matrix = _matrix_of(case, "Qr")
    if matrix is None or not np.isfinite(matrix).all() or not same_shapes(case, ours, theirs):
        return False
    if not matrix.size or not _is_singular(matrix) or len(theirs[0].values) != 2:
        return False
    wide = np.complex128 if matrix.dtype.kind == "c" else np.float64
    (q, r), (other_q, other_r) = (
        (each.astype(wide) for each in answer.values)  # type: ignore[union-attr]
        for answer in (ours[0], theirs[0])
    )
    return bool(np.allclose(q @ r, other_q @ other_r, 1e-4, 1e-4 * float(np.abs(r).max(initial=0))))


def normal_equations(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """`fast` is set, and the squared condition number leaves fewer digits than are compared."""
    matrix = _matrix_of(case, "MatrixSolveLs")
    node = next((each for each in case.graph.node if each.op == "MatrixSolveLs"), None)
    if matrix is None or node is None or not node.attr["fast"].b:
        return False
    if not matrix.size or not np.isfinite(matrix).all():
        return False
    spectrum = np.linalg.svd(matrix.astype(np.complex128), compute_uv=False)
    condition = spectrum.max(axis=-1) / np.maximum(spectrum.min(axis=-1), 1e-300)
    return bool((condition.max() ** 2 * np.finfo(matrix.dtype).eps) > 1e-5)


def no_logarithm(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """The matrix is singular and has no logarithm: the answers depend on rounding."""
    matrix = _matrix_of(case, "MatrixLogarithm")
    return (
        matrix is not None
        and same_shapes(case, ours, theirs)
        and bool(np.isfinite(matrix).all())
        and _is_singular(matrix)
    )


def lost_in_both(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """NaN or infinities are fed, and every output of both contains NaN or infinities."""
    return not_finite(case, ours, theirs) and all(
        not np.isfinite(got).all() and not np.isfinite(want).all()
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def _is_singular(matrix: np.ndarray) -> bool:
    """Return whether a matrix of the batch is singular within the precision of its type."""
    wide = matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)
    spectrum = np.linalg.svd(wide, compute_uv=False)
    least = 10 * float(np.finfo(matrix.dtype).eps)
    return bool((spectrum.min(axis=-1) <= least * spectrum.max(axis=-1)).any())


def refused_of_nan(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """TensorFlow refuses a singular matrix, or one for which this runtime returns NaN."""
    words = "Input is not invertible."
    matrix = _matrix_of(case, "Lu")
    finite = matrix is not None and matrix.size > 0 and bool(np.isfinite(matrix).all())
    if matrix is not None and finite and _is_singular(matrix):
        return _answered(ours) and any(words in answer.message for answer in theirs)
    return (
        _answered(ours)
        and any(words in answer.message for answer in theirs)
        and any(np.isnan(value).any() for answer in ours for value in answer.values)  # type: ignore[union-attr]
    )
