"""Kernels for the diagonals and bands of the matrices in the last two dimensions.

A band k = (lower, upper) consists of the diagonals with the indices lower … upper. It is stored as
`[…, diagonals, longest]`, with the uppermost diagonal first. Diagonals that are shorter than the
longest one are padded; `align` says whether they stand at the left or at the right.

TF: tensorflow/core/kernels/linalg/{matrix_diag_op.cc,matrix_set_diag_op.cc,matrix_band_part_op.cc}
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import POD_TYPES
from runtime.framework.shapes import shape_text

V2_ALIGN = "LEFT_LEFT"  # MatrixDiagV2, MatrixDiagPartV2, MatrixSetDiagV2 have no other one


def _check_rank(name: str, value: np.ndarray, rank: int) -> None:
    if np.ndim(value) < rank:
        raise InvalidArgumentError(
            f"{name} must be at least {rank}-dim, received shape: {shape_text(np.shape(value))}"
        )


def _band_limits(
    k: np.ndarray | int, none: str = "Expected diag_index to have at least 1 element"
) -> tuple[int, int]:
    """Return (lower, upper) of the band `k`, which holds one or two numbers.

    Raises InvalidArgumentError for any other `k`; `none` is the message if `k` is empty.
    """
    if np.ndim(k) > 1:
        raise InvalidArgumentError(
            f"diag_index must be a scalar or vector, received shape: {shape_text(np.shape(k))}"
        )
    if not np.size(k):
        raise InvalidArgumentError(none)
    if np.size(k) > 2:
        raise InvalidArgumentError(
            f"diag_index must have only one or two elements, received {np.size(k)} elements."
        )
    limits = np.ravel(k)
    return int(limits[0]), int(limits[-1])


def _check_order(lower: int, upper: int) -> None:
    if lower > upper:
        raise InvalidArgumentError(
            f"lower_diag_index must not be larger than upper_diag_index: {lower} > {upper}"
        )


def _check_within(lower: int, upper: int, rows: int, columns: int, end: str) -> None:
    for name, index, stop in (("lower", lower, end), ("upper", upper, "")):
        # The main diagonal exists even if a matrix has no rows or columns.
        if index and not -rows < index < columns:
            raise InvalidArgumentError(
                f"{name}_diag_index is out of bound: {index}{stop} It must be between "
                f"{-rows} and {columns}"
            )
    _check_order(lower, upper)


def _length(index: int, rows: int, columns: int) -> int:
    return max(0, min(rows + min(index, 0), columns - max(index, 0)))


def _longest(lower: int, upper: int, rows: int, columns: int) -> int:
    return min(rows + min(upper, 0), columns - max(lower, 0))


def _diagonals(
    lower: int, upper: int, rows: int, columns: int, longest: int, align: str
) -> Iterator[tuple[int, slice, np.ndarray, np.ndarray]]:
    """Yield, for each diagonal of the band, where it stands in the band and in the matrix.

    Yields (row in the band, slice of that row that is not padding, matrix rows, matrix columns) per
    diagonal. The uppermost diagonal comes first.
    """
    above, _, below = align.partition("_")
    for place, index in enumerate(range(upper, lower - 1, -1)):
        length = _length(index, rows, columns)
        side = above if index >= 0 else below
        start = longest - length if side == "RIGHT" else 0
        along = np.arange(length)
        yield place, slice(start, start + length), along - min(index, 0), along + max(index, 0)


def matrix_diag_part(
    input: np.ndarray,
    k: np.ndarray | int = 0,
    padding_value: np.ndarray | int = 0,
    *,
    align: str = V2_ALIGN,
) -> np.ndarray:
    """Return the diagonals of the band `k` of each matrix in `input`.

    Returns `[…, diagonals, longest]`, or `[…, longest]` if the band has one diagonal.
    """
    _check_rank("input", input, 2)
    lower, upper = _band_limits(k)
    rows, columns = input.shape[-2:]
    _check_within(lower, upper, rows, columns, ".")
    longest = _longest(lower, upper, rows, columns)
    shape = (*input.shape[:-2], upper - lower + 1, longest)
    check_allocation(shape, input.dtype)
    result = np.full(shape, np.reshape(padding_value, ()), input.dtype)
    for place, part, i, j in _diagonals(lower, upper, rows, columns, longest, align):
        result[..., place, part] = input[..., i, j]
    return result[..., 0, :] if lower == upper else result


def matrix_diag_part_v1(input: np.ndarray) -> np.ndarray:
    """MatrixDiagPart: return the main diagonals of the matrices in `input` `[…, m, n]`."""
    return matrix_diag_part(input)


def matrix_diag_part_v2(input: np.ndarray, k: np.ndarray, padding_value: np.ndarray) -> np.ndarray:
    """MatrixDiagPartV2: return `matrix_diag_part` with shorter diagonals at the left."""
    return matrix_diag_part(input, k, padding_value)


def matrix_diag_part_v3(
    input: np.ndarray, k: np.ndarray, padding_value: np.ndarray, *, align: str
) -> np.ndarray:
    """MatrixDiagPartV3: return `matrix_diag_part` with shorter diagonals aligned by `align`."""
    return matrix_diag_part(input, k, padding_value, align=align)


def _as_band(diagonal: np.ndarray, lower: int, upper: int) -> np.ndarray:
    """Return `diagonal` as `[…, diagonals, longest]`, also if it holds only one diagonal."""
    return diagonal[..., np.newaxis, :] if lower == upper else diagonal


def _output_size(
    num_rows: np.ndarray | int, num_cols: np.ndarray | int, least_rows: int, least_columns: int
) -> tuple[int, int]:
    for name, value in (("num_rows", num_rows), ("num_cols", num_cols)):
        if np.ndim(value):
            raise InvalidArgumentError(f"{name} must be a scalar")
    rows, columns = int(num_rows), int(num_cols)
    if rows == columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if rows < least_rows:
        raise InvalidArgumentError("The number of rows is too small.")
    if columns < least_columns:
        raise InvalidArgumentError("The number of columns is too small.")
    if rows != least_rows and columns != least_columns:
        raise InvalidArgumentError(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, "
            "and diagonal."
        )
    return rows, columns


def matrix_diag(
    diagonal: np.ndarray,
    k: np.ndarray | int = 0,
    num_rows: np.ndarray | int = -1,
    num_cols: np.ndarray | int = -1,
    padding_value: np.ndarray | int = 0,
    *,
    align: str = V2_ALIGN,
) -> np.ndarray:
    """Return matrices `[…, rows, columns]` that have the given diagonals.

    All elements outside the band `k` are `padding_value`.
    """
    _check_rank("diagonal", diagonal, 1)
    lower, upper = _band_limits(k)
    _check_order(lower, upper)
    if lower < upper:
        _check_rank("diagonal", diagonal, 2)
        if diagonal.shape[-2] != upper - lower + 1:
            raise InvalidArgumentError(
                "The number of diagonals provided in the input does not match the "
                "lower_diag_index and upper_diag_index range."
            )
    if np.ndim(padding_value):
        raise InvalidArgumentError("padding_value must be a scalar")
    longest = diagonal.shape[-1]
    rows, columns = _output_size(
        num_rows, num_cols, longest - min(upper, 0), longest + max(lower, 0)
    )
    band = _as_band(diagonal, lower, upper)
    shape = (*band.shape[:-2], rows, columns)
    check_allocation(shape, diagonal.dtype)
    result = np.full(shape, np.reshape(padding_value, ()), diagonal.dtype)
    for place, part, i, j in _diagonals(lower, upper, rows, columns, longest, align):
        result[..., i, j] = band[..., place, part]
    return result


def matrix_diag_v1(diagonal: np.ndarray) -> np.ndarray:
    """MatrixDiag: return square matrices with the main diagonals `diagonal`, zero elsewhere."""
    return matrix_diag(diagonal)


def matrix_diag_v2(
    diagonal: np.ndarray,
    k: np.ndarray,
    num_rows: np.ndarray,
    num_cols: np.ndarray,
    padding_value: np.ndarray,
) -> np.ndarray:
    """MatrixDiagV2: return `matrix_diag` with shorter diagonals at the left."""
    return matrix_diag(diagonal, k, num_rows, num_cols, padding_value)


def matrix_diag_v3(
    diagonal: np.ndarray,
    k: np.ndarray,
    num_rows: np.ndarray,
    num_cols: np.ndarray,
    padding_value: np.ndarray,
    *,
    align: str,
) -> np.ndarray:
    """MatrixDiagV3: return `matrix_diag` with shorter diagonals aligned by `align`."""
    return matrix_diag(diagonal, k, num_rows, num_cols, padding_value, align=align)


def matrix_set_diag(
    input: np.ndarray, diagonal: np.ndarray, k: np.ndarray | int = 0, *, align: str = V2_ALIGN
) -> np.ndarray:
    """Return `input` with the diagonals of the band `k` replaced by `diagonal`."""
    _check_rank("input", input, 2)
    _check_rank("diagonal", diagonal, 1)
    lower, upper = _band_limits(k, "diag_index must have at least one element")
    rows, columns = input.shape[-2:]
    _check_within(lower, upper, rows, columns, "")
    longest = _longest(lower, upper, rows, columns)
    count = upper - lower + 1
    expected = (*input.shape[:-2], *((count,) if count > 1 else ()), longest)
    if diagonal.shape != expected:
        raise InvalidArgumentError(
            "Either first dimensions of diagonal don't match input.shape[:-2], or "
            "diagonal.shape[:-1] is not equal to the longests diagonal in range "
            f"[lower_diag_index:upper_diag_index].\nInput shape: {shape_text(input.shape)}\n"
            f"Diagonal shape: {shape_text(diagonal.shape)}\n"
            f"Expected diagonal shape: {shape_text(expected)}"
        )
    band = _as_band(diagonal, lower, upper)
    result = input.copy()
    for place, part, i, j in _diagonals(lower, upper, rows, columns, longest, align):
        result[..., i, j] = band[..., place, part]
    return result


def matrix_set_diag_v1(input: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """MatrixSetDiag: return `input` with the main diagonals replaced by `diagonal`."""
    return matrix_set_diag(input, diagonal)


def matrix_set_diag_v2(input: np.ndarray, diagonal: np.ndarray, k: np.ndarray) -> np.ndarray:
    """MatrixSetDiagV2: return `matrix_set_diag` with shorter diagonals at the left."""
    return matrix_set_diag(input, diagonal, k)


def matrix_set_diag_v3(
    input: np.ndarray, diagonal: np.ndarray, k: np.ndarray, *, align: str
) -> np.ndarray:
    """MatrixSetDiagV3: return `matrix_set_diag` with shorter diagonals aligned by `align`."""
    return matrix_set_diag(input, diagonal, k, align=align)


def matrix_band_part(input: np.ndarray, num_lower: np.ndarray, num_upper: np.ndarray) -> np.ndarray:
    """MatrixBandPart: keep the diagonals −num_lower … num_upper and set all others to zero.

    A negative `num_lower` keeps everything below the main diagonal, a negative `num_upper`
    everything above.
    """
    _check_rank("input", input, 2)
    rows, columns = input.shape[-2:]
    for name, value, size, side in (
        ("num_lower", num_lower, rows, "rows"),
        ("num_upper", num_upper, columns, "columns"),
    ):
        if np.ndim(value):
            raise InvalidArgumentError(
                f"{name} must be scalar, got shape {shape_text(value.shape)}"
            )
        if value > size:
            raise InvalidArgumentError(
                f"{name} must be negative or less or equal to number of {side} ({size}) "
                f"got: {value}"
            )
    if num_lower == np.iinfo(np.int64).min:
        num_lower = np.zeros_like(
            num_lower
        )  # TensorFlow's row - num_lower overflows: the effect is as if 0
    offset = np.arange(columns) - np.arange(rows)[:, np.newaxis]
    inside = ((num_lower < 0) | (-offset <= num_lower)) & ((num_upper < 0) | (offset <= num_upper))
    return np.where(inside, input, np.zeros((), input.dtype))


FUNCTIONS: dict[str, Kernel] = {
    "MatrixBandPart": matrix_band_part,
    "MatrixDiag": matrix_diag_v1,
    "MatrixDiagV2": matrix_diag_v2,
    "MatrixDiagV3": matrix_diag_v3,
    "MatrixDiagPart": matrix_diag_part_v1,
    "MatrixDiagPartV2": matrix_diag_part_v2,
    "MatrixDiagPartV3": matrix_diag_part_v3,
    "MatrixSetDiag": matrix_set_diag_v1,
    "MatrixSetDiagV2": matrix_set_diag_v2,
    "MatrixSetDiagV3": matrix_set_diag_v3,
}

# The ops had these names before GraphDef version 14; old graphs still use them.
BATCH_NAMES: dict[str, Kernel] = {
    "BatchMatrixBandPart": matrix_band_part,
    "BatchMatrixDiag": matrix_diag_v1,
    "BatchMatrixDiagPart": matrix_diag_part_v1,
    "BatchMatrixSetDiag": matrix_set_diag_v1,
}

KERNELS: tuple[KernelDef, ...] = tuple(
    KernelDef(op, function, {"T": POD_TYPES}) for op, function in (FUNCTIONS | BATCH_NAMES).items()
)
