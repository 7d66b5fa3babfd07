"""Kernels that count values in bins, or find the places of values among sorted boundaries.

TF: tensorflow/core/kernels/{bincount_op.cc,bucketize_op.cc,histogram_op.cc,searchsorted_op.cc}
"""

from __future__ import annotations

import itertools

import numpy as np

from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.allocation import check_allocation
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import Kernel, KernelDef
from runtime.framework.register_types import REAL_NUMBER_TYPES
from runtime.framework.shapes import shape_text
from runtime.kernels.sparse.sparse_tensor_checks import check_bounds, check_sparse

NEGATIVE_INPUT = "Input arr must be non-negative!"


def bucketize(input: np.ndarray, *, boundaries: tuple[float, ...]) -> np.ndarray:
    """Bucketize: return, for each value, the number of `boundaries` ≤ the value.

    A NaN counts as larger than all boundaries.
    """
    if any(low > high for low, high in itertools.pairwise(boundaries)):
        raise InvalidArgumentError("Expected sorted boundaries")
    edges = np.array(boundaries, np.float32)
    return np.searchsorted(edges, input, side="right").astype(np.int32)


def _bin_count(size: np.ndarray) -> int:
    if np.ndim(size):
        raise InvalidArgumentError(f"Shape must be rank 0 but is rank {np.ndim(size)}")
    if size < 0:
        raise InvalidArgumentError(f"size ({size}) must be non-negative")
    return int(size)


def _count_rows(
    rows: np.ndarray | int,
    num_rows: int,
    values: np.ndarray,
    bins: int,
    weights: np.ndarray,
    binary_output: bool,
) -> np.ndarray:
    """Return how often each value 0 … bins − 1 occurs in each row: `[num_rows, bins]`.

    `rows` gives the row of each value. Values ≥ `bins` are ignored. If there are `weights`, they
    are added up. If `binary_output` is set, the result is 1 for every value that occurs.
    """
    check_allocation((num_rows, bins), weights.dtype)
    inside = values < bins
    cells = (rows * bins + values)[inside]
    counts = np.zeros(num_rows * bins, weights.dtype)
    if binary_output:
        counts[cells] = 1
    elif weights.size:
        np.add.at(counts, cells, np.ravel(weights)[inside])
    else:
        counts += np.bincount(cells, minlength=counts.size).astype(weights.dtype)
    return counts.reshape(num_rows, bins)


def bincount(arr: np.ndarray, size: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Bincount: return how often each of the numbers 0 … size − 1 occurs.

    If there are `weights`, return the sum of the weights of each number instead.
    """
    bins = _bin_count(size)
    if weights.size and weights.size != arr.size:
        raise InvalidArgumentError("Input indices and weights must have the same size.")
    values = np.ravel(arr).astype(np.int64)
    if (values < 0).any():
        raise InvalidArgumentError(NEGATIVE_INPUT)
    return _count_rows(0, 1, values, bins, weights, binary_output=False)[0]


def dense_bincount(
    input: np.ndarray, size: np.ndarray, weights: np.ndarray, *, binary_output: bool
) -> np.ndarray:
    """DenseBincount: return `bincount` of a vector, or of each row of a matrix: `[rows, size]`."""
    bins = _bin_count(size)
    if input.ndim > 2:
        raise InvalidArgumentError(f"Shape must be at most rank 2 but is rank {input.ndim}")
    if weights.size and weights.shape != input.shape:
        raise InvalidArgumentError(
            "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it "
            f"acts as all weights equal to 1. Received {shape_text(weights.shape)}"
        )
    values = np.ravel(input).astype(np.int64)
    if values.size and values.min() < 0:
        if input.ndim < 2:
            raise InvalidArgumentError(NEGATIVE_INPUT)
        first = values[values < 0][0]
        raise InvalidArgumentError(
            f"Input 'in' must be non-negative! Negative input value found: {first}"
        )
    if input.ndim < 2:
        return _count_rows(0, 1, values, bins, weights, binary_output)[0]
    rows = np.repeat(np.arange(input.shape[0]), input.shape[1])
    return _count_rows(rows, input.shape[0], values, bins, weights, binary_output)


def ragged_bincount(
    splits: np.ndarray,
    values: np.ndarray,
    size: np.ndarray,
    weights: np.ndarray,
    *,
    binary_output: bool,
) -> np.ndarray:
    """RaggedBincount: return `bincount` of each row of a ragged matrix: `[rows, size]`."""
    bins = _bin_count(size)
    if splits.ndim != 1 or not splits.size:
        raise InvalidArgumentError("Splits must be non-empty")
    if splits[0] != 0:
        raise InvalidArgumentError(f"Splits must start with 0, not with {splits[0]}")
    if splits[-1] != values.size:
        raise InvalidArgumentError(
            f"Splits must end with the number of values, got {splits[-1]} instead of {values.size}"
        )
    # TensorFlow ignores weights beyond the number of values.
    if weights.size and weights.size < values.size:
        raise InvalidArgumentError("Input indices and weights must have the same size.")
    numbers = np.ravel(values).astype(np.int64)
    if (numbers < 0).any():
        raise InvalidArgumentError("Input must be non-negative")
    # A value's row is the one before the first split beyond it, also where splits descend.
    highest = np.maximum.accumulate(splits)
    rows = np.searchsorted(highest, np.arange(numbers.size), side="right") - 1
    used = np.ravel(weights)[: values.size]
    return _count_rows(rows, splits.size - 1, numbers, bins, used, binary_output)


def sparse_bincount(
    indices: np.ndarray,
    values: np.ndarray,
    dense_shape: np.ndarray,
    size: np.ndarray,
    weights: np.ndarray,
    *,
    binary_output: bool,
) -> np.ndarray:
    """SparseBincount: return `bincount` of a sparse vector, or of each row of a sparse matrix.

    Negative values of a matrix are ignored; in a vector they are refused.
    """
    if np.ndim(size):
        raise InvalidArgumentError(f"Shape must be rank 0 but is rank {np.ndim(size)}")
    check_sparse(indices, values, dense_shape)
    check_bounds(indices, dense_shape)
    bins = _bin_count(size)
    if not dense_shape.size:
        raise InvalidArgumentError("Expected a sparse vector or matrix, got a sparse scalar")
    # If the input is a matrix, TensorFlow ignores weights beyond the number of values.
    too_few = weights.size < values.size
    if weights.size and (too_few or (dense_shape.size == 1 and weights.size > values.size)):
        raise InvalidArgumentError("Input indices and weights must have the same size.")
    numbers = np.ravel(values).astype(np.int64)
    if dense_shape.size == 1 and (numbers < 0).any():
        raise InvalidArgumentError(NEGATIVE_INPUT)
    numbers = np.where(numbers < 0, bins, numbers)
    if dense_shape.size == 1:
        return _count_rows(0, 1, numbers, bins, weights, binary_output)[0]
    rows, num_rows = indices[:, 0], int(dense_shape[0])
    used = np.ravel(weights)[: values.size]
    return _count_rows(rows, num_rows, numbers, bins, used, binary_output)


def histogram_fixed_width(
    values: np.ndarray, value_range: np.ndarray, nbins: np.ndarray, *, dtype: DataType
) -> np.ndarray:
    """HistogramFixedWidth: count the values in `nbins` equal bins of `value_range`.

    Values outside of the range are counted in the first or the last bin.
    """
    if value_range.shape != (2,):
        raise InvalidArgumentError("value_range should be a vector of 2 elements.")
    if np.ndim(nbins):
        raise InvalidArgumentError("nbins should be a scalar.")
    low, high = value_range
    if not low < high:
        raise InvalidArgumentError(
            "value_range should satisfy value_range[0] < value_range[1], but got "
            f"'[{low:g}, {high:g}]'"
        )
    bins = int(nbins)
    if bins <= 0:
        raise InvalidArgumentError(f"nbins should be a positive number, but got '{bins}'")
    check_allocation((bins,), dtype.numpy)
    numbers = np.ravel(values).astype(np.float64)
    if np.isnan(numbers).any():
        raise InvalidArgumentError("Histogram values must not contain NaN")
    step = (float(high) - float(low)) / bins
    places = np.clip(np.floor((numbers - float(low)) / step), 0, bins - 1).astype(np.int64)
    return np.bincount(places, minlength=bins).astype(dtype.numpy)


def _search(side: str) -> Kernel:
    """Return the kernel of LowerBound (`side` "left") or UpperBound (`side` "right").

    For each value the kernel returns a place in the row of `sorted_inputs`. The row stays sorted if
    the value is inserted there. LowerBound returns the first such place, UpperBound the last.
    """

    def kernel(sorted_inputs: np.ndarray, values: np.ndarray, *, out_type: DataType) -> np.ndarray:
        for name, each in (("sorted_inputs", sorted_inputs), ("values", values)):
            if each.ndim != 2:
                raise InvalidArgumentError(
                    f"Shape must be rank 2 but is rank {each.ndim} for `{name}` argument"
                )
        if sorted_inputs.shape[0] != values.shape[0]:
            raise InvalidArgumentError("Leading dim_size of both tensors must match.")
        places = np.empty(values.shape, out_type.numpy)
        # In bfloat16 numpy would misplace infinity; the values are therefore widened.
        wide = np.result_type(values.dtype, np.float32) if values.dtype.kind in "fV" else None
        lines, numbers = np.asarray(sorted_inputs, wide), np.asarray(values, wide)
        for row, (line, wanted) in enumerate(zip(lines, numbers, strict=True)):
            places[row] = np.searchsorted(line, wanted, side=side)  # type: ignore[call-overload]
        if side == "left":  # no number is less than NaN
            places[values != values] = 0
        return places

    kernel.__name__ = kernel.__qualname__ = f"{side}_bound"
    return kernel


KERNELS: tuple[KernelDef, ...] = (
    KernelDef("Bucketize", bucketize),
    KernelDef("Bincount", bincount),
    KernelDef("DenseBincount", dense_bincount),
    KernelDef("RaggedBincount", ragged_bincount),
    KernelDef("SparseBincount", sparse_bincount),
    KernelDef("HistogramFixedWidth", histogram_fixed_width),
    KernelDef("LowerBound", _search("left"), {"T": REAL_NUMBER_TYPES}),
    KernelDef("UpperBound", _search("right"), {"T": REAL_NUMBER_TYPES}),
)
