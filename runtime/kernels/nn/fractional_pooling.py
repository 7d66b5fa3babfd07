"""Pooling over regions of unequal sizes, so that the ratio of sizes need not be an integer.

Rows and columns are divided into regions at random positions, the cuts. The ops return the cuts of
rows and of columns, which are inputs of the gradient ops.

TF: tensorflow/core/kernels/fractional_{pool_common,max_pool_op,avg_pool_op}.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, UnimplementedError
from runtime.framework.allocation import check_allocation
from runtime.framework.op_kernel import KernelDef
from runtime.framework.philox import Philox
from runtime.framework.shapes import shape_text
from runtime.kernels.random.random_distributions import uniform

Regions = list[slice]
Pooled = tuple[np.ndarray, np.ndarray, np.ndarray]


def _pseudo_random_cuts(size: int, regions: int, stream: Philox) -> np.ndarray:
    """Return cuts `[regions + 1]` at regular distances after a random offset, rounded up."""
    alpha = size / regions
    smaller = size // regions
    highest = min((smaller + 2) / alpha - 1, (size + 1 - smaller) / alpha - (regions - 1))
    start = float(uniform(stream, 1, np.dtype(np.float64))[0]) * highest
    cuts = np.ceil(alpha * (np.arange(regions + 1) + start)).astype(np.int64) - 1
    cuts[0], cuts[-1] = 0, size
    return cuts


def _random_cuts(size: int, regions: int, stream: Philox) -> np.ndarray:
    """Return cuts `[regions + 1]` such that region sizes differ by at most 1, in random order."""
    lengths = np.full(regions, size // regions, np.int64)
    lengths[: size % regions] += 1
    words = stream.words(regions).tolist()
    for place in range(regions - 1):
        other = place + words[place] % (regions - place)
        lengths[[place, other]] = lengths[[other, place]]
    return np.concatenate([[0], np.cumsum(lengths)])


def _cuts(size: int, regions: int, stream: Philox, pseudo_random: bool) -> tuple[np.ndarray, int]:
    """Return the cuts `[regions + 1]` and the number of blocks taken from the stream."""
    if pseudo_random:
        return _pseudo_random_cuts(size, regions, stream), 1
    return _random_cuts(size, regions, stream), -(-regions // 4)


def _check_ratio(ratio: Sequence[float], what: str) -> None:
    if len(ratio) != 4:
        raise InvalidArgumentError("pooling_ratio field must specify 4 dimensions")
    if any(each < 1 for each in ratio):
        low = next(each for each in ratio if each < 1)
        raise InvalidArgumentError(f"pooling_ratio cannot be smaller than 1, got: {low:g}")
    if ratio[0] != 1 or ratio[3] != 1:
        raise UnimplementedError(
            f"Fractional {what} pooling is not yet supported on the batch nor channel dimension."
        )


def _pooled_sizes(value: np.ndarray, ratio: Sequence[float]) -> list[int]:
    if value.ndim != 4:
        raise InvalidArgumentError(
            f"value must be 4-dimensional, but got shape {shape_text(value.shape)}"
        )
    sizes = []
    for axis, (size, each) in enumerate(zip(value.shape, ratio, strict=True)):
        if size < each:
            raise InvalidArgumentError(
                f"Pooling ratio is higher than input dimension size for dimension {axis}. "
                f"Input dim size: {size} pooling ratio: {each:g}"
            )
        sizes.append(math.floor(size / each))
    return sizes


def _regions(cuts: np.ndarray, overlapping: bool, size: int) -> Regions:
    """Return the slice of each region; overlapping regions share the element after the cut."""
    ends = np.minimum(cuts[1:] + overlapping, size)
    return [slice(first, end) for first, end in zip(cuts[:-1].tolist(), ends.tolist(), strict=True)]


def _fractional_pool(
    what: str, reduce: Callable[[np.ndarray, Regions, Regions], np.ndarray]
) -> Callable[..., Pooled]:
    def kernel(
        value: np.ndarray,
        *,
        pooling_ratio: Sequence[float],
        pseudo_random: bool,
        overlapping: bool,
        deterministic: bool,
        seed: int,
        seed2: int,
    ) -> Pooled:
        _check_ratio(pooling_ratio, what)
        if not deterministic and (seed or seed2):
            raise InvalidArgumentError("Both seed and seed2 should be 0 if deterministic is false.")
        sizes = _pooled_sizes(value, pooling_ratio)
        stream = Philox.from_seeds(seed, seed2)
        row_cuts, used = _cuts(value.shape[1], sizes[1], stream, pseudo_random)
        column_cuts, _ = _cuts(value.shape[2], sizes[2], stream.skipped(used), pseudo_random)
        rows = _regions(row_cuts, overlapping, value.shape[1])
        columns = _regions(column_cuts, overlapping, value.shape[2])
        return reduce(value, rows, columns), row_cuts, column_cuts

    return kernel


def _pool_max(value: np.ndarray, rows: Regions, columns: Regions) -> np.ndarray:
    """Return the maximum of each region.

    NaN is ignored, and a region of −inf gives the lowest finite number.
    """
    is_integer = value.dtype.kind in "iu"
    lowest = np.iinfo(value.dtype).min if is_integer else np.finfo(value.dtype).min
    strips = [np.fmax.reduce(value[:, each], axis=1, initial=lowest) for each in rows]
    by_row = np.stack(strips, axis=1)
    return np.stack([by_row[:, :, each].max(2) for each in columns], axis=2)


def _pool_average(value: np.ndarray, rows: Regions, columns: Regions) -> np.ndarray:
    by_row = np.stack([value[:, each].sum(1, dtype=value.dtype) for each in rows], axis=1)
    totals = np.stack([by_row[:, :, each].sum(2, dtype=value.dtype) for each in columns], axis=2)
    areas = _areas(rows, columns).astype(value.dtype)[:, :, np.newaxis]
    if value.dtype.kind in "iu":
        rounded_down = totals // areas  # TensorFlow's division rounds to zero
        return np.asarray(rounded_down + ((totals < 0) & (totals % areas != 0)))
    return np.asarray(totals / areas)


def _areas(rows: Regions, columns: Regions) -> np.ndarray:
    heights = np.array([each.stop - each.start for each in rows])
    widths = np.array([each.stop - each.start for each in columns])
    return np.outer(heights, widths)


def _regions_of_cuts(
    name: str, cuts: np.ndarray, size: int, outputs: int, overlapping: bool, more: bool = False
) -> Regions:
    """Return the regions of the cuts that a gradient op is given.

    Raises InvalidArgumentError if the cuts are invalid. If `more` is true, there may be more cuts
    than `outputs` regions need.
    """
    if np.ndim(cuts) != 1 or not cuts.size:
        raise InvalidArgumentError(f"{name}_pooling_sequence must be a vector")
    if cuts.size <= outputs or (cuts.size > outputs + 1 and not more):
        or_more = " or more" if more else ""
        raise InvalidArgumentError(
            f"{name}_pooling_sequence must have {outputs + 1} elements{or_more}, got {cuts.size}"
        )
    cuts = cuts[: outputs + 1]
    regions = _regions(cuts, overlapping, size)
    if cuts[0] < 0 or any(each.stop <= each.start or each.start >= size for each in regions):
        raise InvalidArgumentError(
            f"{name}_pooling_sequence must ascend within the input's size {size}"
        )
    return regions


def fractional_max_pool_grad(
    orig_input: np.ndarray,
    orig_output: np.ndarray,
    out_backprop: np.ndarray,
    row_pooling_sequence: np.ndarray,
    col_pooling_sequence: np.ndarray,
    *,
    overlapping: bool,
) -> np.ndarray:
    """FractionalMaxPoolGrad: return the gradient of FractionalMaxPool with respect to its input.

    Each element of `out_backprop` is added at the first maximum of its region.
    """
    if orig_input.ndim != 4 or orig_output.ndim != 4:
        raise InvalidArgumentError("orig_input and orig_output must be 4-dimensional")
    if out_backprop.shape != orig_output.shape:
        raise InvalidArgumentError(
            f"out_backprop must have orig_output's shape {shape_text(orig_output.shape)}"
        )
    _, height, width, _ = orig_input.shape
    rows = _regions_of_cuts("row", row_pooling_sequence, height, orig_output.shape[1], overlapping)
    columns = _regions_of_cuts(
        "col", col_pooling_sequence, width, orig_output.shape[2], overlapping
    )
    result = np.zeros_like(orig_input)
    batch = np.arange(len(orig_input))[:, np.newaxis]
    channel = np.arange(orig_input.shape[3])
    for row, above in enumerate(rows):
        # Of equal elements, the leftmost one in the topmost row receives the gradient.
        strip = orig_input[:, above]
        for column, beside in enumerate(columns):
            cell = strip[:, :, beside]
            place = _first_largest(cell.reshape(len(cell), -1, cell.shape[3]))
            down, across = np.divmod(place, beside.stop - beside.start)
            target = (batch, above.start + down, beside.start + across, channel)
            if not np.array_equal(orig_input[target], orig_output[:, row, column]):
                raise InvalidArgumentError("tensor_out_dup is not the same as tensor_out")
            np.add.at(result, target, out_backprop[:, row, column])
    return result


def _first_largest(cell: np.ndarray) -> np.ndarray:
    """Return the position of the first maximum along axis 1.

    NaN counts as the maximum if it is the first element, and is ignored elsewhere.
    """
    if cell.dtype.kind != "f":
        return cell.argmax(1)
    place = np.where(np.isnan(cell), -np.inf, cell).argmax(1)
    return np.where(np.isnan(cell[:, 0]), 0, place)


def fractional_avg_pool_grad(
    orig_input_tensor_shape: np.ndarray,
    out_backprop: np.ndarray,
    row_pooling_sequence: np.ndarray,
    col_pooling_sequence: np.ndarray,
    *,
    overlapping: bool,
) -> np.ndarray:
    """FractionalAvgPoolGrad: return the gradient of FractionalAvgPool with respect to its input.

    Each element of `out_backprop` is divided equally among the elements of its region.
    """
    shape = np.ravel(orig_input_tensor_shape).tolist()
    if np.ndim(orig_input_tensor_shape) != 1 or len(shape) != 4:
        raise InvalidArgumentError(
            "original input tensor shape must be1-dimensional and 4 elements"
        )
    if out_backprop.ndim != 4:
        raise InvalidArgumentError("out_backprop must be 4-dimensional")
    check_allocation(shape, out_backprop.dtype)
    if (shape[0], shape[3]) != (out_backprop.shape[0], out_backprop.shape[3]):
        raise InvalidArgumentError("out_backprop must have the input's batch and depth")
    rows, columns = (
        _regions_of_cuts(name, cuts, shape[axis], out_backprop.shape[axis], overlapping, more=True)
        for axis, name, cuts in (
            (1, "row", row_pooling_sequence),
            (2, "col", col_pooling_sequence),
        )
    )
    if out_backprop.dtype.kind in "iu":
        return _shared_integers(shape, out_backprop, rows, columns)
    shares = out_backprop / _areas(rows, columns).astype(out_backprop.dtype)[:, :, np.newaxis]
    by_row = np.zeros((shape[0], shape[1], len(columns), shape[3]), out_backprop.dtype)
    for row, region in enumerate(rows):
        by_row[:, region] += shares[:, row, np.newaxis].astype(out_backprop.dtype)
    result = np.zeros(shape, out_backprop.dtype)
    for column, region in enumerate(columns):
        result[:, :, region] += by_row[:, :, column, np.newaxis]
    return result


def _shared_integers(
    shape: list[int], out_backprop: np.ndarray, rows: Regions, columns: Regions
) -> np.ndarray:
    """Return the gradient of integers: sums of fractions in float64, then rounded towards zero.

    The regions are added in TensorFlow's order, because a sum just below a whole number and that
    number give different integers.
    """
    shares = out_backprop / _areas(rows, columns)[:, :, np.newaxis]
    result = np.zeros(shape)
    for row, above in enumerate(rows):
        for column, beside in enumerate(columns):
            result[:, above, beside] += shares[:, row, column, np.newaxis, np.newaxis]
    return result.astype(out_backprop.dtype)


KERNELS = (
    KernelDef("FractionalAvgPool", _fractional_pool("average", _pool_average)),
    KernelDef("FractionalAvgPoolGrad", fractional_avg_pool_grad),
    KernelDef("FractionalMaxPool", _fractional_pool("max", _pool_max)),
    KernelDef("FractionalMaxPoolGrad", fractional_max_pool_grad),
)
