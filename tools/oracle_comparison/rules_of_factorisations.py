"""When answers about a matrix differ as docs/kernel_differences.md says."""

from __future__ import annotations

import numpy as np

from runtime.framework.tensor_codec import tensor_from_proto
from tests.conformance.case import Answer, Case
from tools.oracle_comparison.rules_of_difference import Answers, _answered, same_shapes
from tools.oracle_comparison.rules_of_values import not_finite


def same_eigenpairs(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """Both give the eigenvalues of the matrix, in some order, and here the vectors fit them.

    Without vectors the second output is whatever was in memory.
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
    """What the op's node is given, if that is fed or a constant, in the only step."""
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
    """Columns that depend on others: any basis of the rest will do, but the product agrees."""
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
    """The square of the matrix's condition leaves less digits than are compared."""
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
    """A singular matrix has no logarithm: both answer with that of their rounding of zero."""
    matrix = _matrix_of(case, "MatrixLogarithm")
    return (
        matrix is not None
        and same_shapes(case, ours, theirs)
        and bool(np.isfinite(matrix).all())
        and _is_singular(matrix)
    )


def lost_in_both(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """NaN or infinities fed: both answer with such numbers, in the same rows or columns or all."""
    return not_finite(case, ours, theirs) and all(
        not np.isfinite(got).all() and not np.isfinite(want).all()
        for mine, other in zip(ours, theirs, strict=True)
        for got, want in zip(mine.values, other.values, strict=True)  # type: ignore[union-attr]
    )


def _is_singular(matrix: np.ndarray) -> bool:
    """Whether a matrix has rows that depend on each other, as far as its type can tell."""
    wide = matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)
    spectrum = np.linalg.svd(wide, compute_uv=False)
    least = 10 * float(np.finfo(matrix.dtype).eps)
    return bool((spectrum.min(axis=-1) <= least * spectrum.max(axis=-1)).any())


def refused_of_nan(case: Case, ours: Answers, theirs: list[Answer]) -> bool:
    """TensorFlow calls a matrix with NaN, or a singular one, not invertible or not by rounding."""
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
