"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple.
"""

from __future__ import annotations

import math

import numpy as np

from runtime.framework.broadcast_memory import broadcast_need
from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import (
    PHILOX_WORD,
    broadcast_elements,
    broadcast_text,
    dense,
    elements,
    in_blocks,
    itemsize,
    largest_in,
    number,
    numbers_in,
    shape_of,
    size_of,
    volume,
)

V = TensorValue
DOUBLE = 8  # bytes; special functions compute in float64, sorts and counts in int64
NUMBER = 40  # a Python number and its place in a list


def _add(x: V, y: V) -> int:
    if isinstance(x, bytes) or (isinstance(x, np.ndarray) and x.dtype.hasobject):
        return broadcast_text(x, y)
    return broadcast_need(x, y)


def _composed(x: V, y: V) -> int:
    # up to four arrays of the result's shape; half types are computed in float32
    return broadcast_elements(x, y) * (4 * max(itemsize(x), 4) + 4) + 4 * elements(x, y)


def _compared(x: V, y: V) -> int:
    return 2 * broadcast_elements(x, y)


def _select(condition: V, t: V, e: V) -> int:
    return 2 * broadcast_elements(condition, t, e) * itemsize(t) + 2 * elements(condition)


def _select_rows(condition: V, t: V, e: V) -> int:
    # a vector may select whole rows
    return 2 * max(elements(t), elements(e)) * itemsize(t) + 2 * elements(condition)


def _mean(input: V, reduction_indices: V) -> int:
    dtype = getattr(input, "dtype", None)
    if dtype is not None and dtype.kind in "iu":
        return elements(input) * 4 * DOUBLE
    return 6 * size_of(input)


def _complex(real: V, imag: V) -> int:
    return 2 * broadcast_elements(real, imag) * itemsize(real)


def _special(arrays: int) -> MemoryNeed:
    """Return the bound of a kernel that has `arrays` temporaries in float64."""

    def need(*inputs: V) -> int:
        count = broadcast_elements(*inputs)
        first = shape_of(inputs[0])
        if any(shape_of(each) != first for each in inputs):  # not computed block by block
            return count * DOUBLE * (arrays + 2)
        return 2 * size_of(*inputs) + count * DOUBLE + in_blocks(count, DOUBLE, arrays)

    return need


def _whole(arrays: int) -> MemoryNeed:
    """Return the bound of a kernel with `arrays` temporaries in float64 of the whole shape."""

    def need(*inputs: V) -> int:
        return broadcast_elements(*inputs) * DOUBLE * arrays

    return need


def _cast(x: V, *, SrcT: DataType, DstT: DataType) -> int:
    if SrcT == DstT:
        return 0
    return elements(x) * (DstT.numpy.itemsize + 4) + size_of(x)


def _truncated_cast(x: V, *, SrcT: DataType, DstT: DataType, Truncate: bool) -> int:
    return _cast(x, SrcT=SrcT, DstT=DstT) + (3 * size_of(x) if Truncate else 0)


def _gradient(y: V, dy: V) -> int:
    return elements(y) * max(itemsize(y), 4) * 6 + size_of(dy)


def _nearest_neighbors(points: V, centers: V, k: V) -> int:
    rows, count = (shape_of(each)[0] for each in (points, centers))
    block = min(rows * count, max(1 << 22, count))
    found = rows * min(max(number(k), 0), count)
    return found * 24 + 40 * block + 3 * size_of(centers) + 3 * size_of(points)


def _kmc2(distances: V, seed: V) -> int:
    return elements(distances) * (PHILOX_WORD + 32)


def _kmeans(points: V, num_to_sample: V, seed: V, num_retries_per_sample: V) -> int:
    retries, wanted = number(num_retries_per_sample), max(number(num_to_sample), 1)
    candidates = 1 + (retries if retries >= 0 else int(2 + math.log(wanted)))
    rows = shape_of(points)[0]
    return (
        candidates * (4 * DOUBLE + NUMBER) + 4 * size_of(points) + rows * 6 * DOUBLE + 40 * wanted
    )


def _arg(input: V, dimension: V) -> int:
    size = shape_of(input)[number(dimension)]
    # numpy copies an input whose last axis is not the one that is searched
    every = elements(input) * (3 * itemsize(input) + 2)
    return elements(input) // max(size, 1) * 4 * DOUBLE + every


def _fft_real(input: V, fft_length: V) -> int:
    lengths = numbers_in(fft_length)
    shape = shape_of(input)
    outer = shape[: len(shape) - len(lengths)]
    return 2 * dense((*outer, *(max(each, 0) + 2 for each in lengths)), 16) + 10 * size_of(input)


def _bucketize(input: V) -> int:
    return elements(input) * 4 * DOUBLE


def _counts(rows: int, size: V, values: V, weights: V) -> int:
    cells = rows * max(number(size), 0)
    return (
        cells * (2 * itemsize(weights) + DOUBLE) + elements(values) * 9 * DOUBLE + size_of(weights)
    )


def _bincount(values: V, size: V, weights: V) -> int:
    return _counts(1, size, values, weights)


def _dense_bincount(values: V, size: V, weights: V) -> int:
    shape = shape_of(values)
    return _counts(shape[0] if len(shape) > 1 else 1, size, values, weights)


def _ragged_bincount(splits: V, values: V, size: V, weights: V) -> int:
    return _counts(max(elements(splits) - 1, 0), size, values, weights) + DOUBLE * elements(splits)


def _sparse_bincount(indices: V, values: V, dense_shape: V, size: V, weights: V) -> int:
    shape = numbers_in(dense_shape)
    rows = shape[0] if len(shape) > 1 else 1
    return _counts(max(rows, 0), size, values, weights) + 2 * size_of(indices)


def _histogram(values: V, value_range: V, nbins: V, *, dtype: DataType) -> int:
    bins = max(number(nbins), 0)
    return bins * (DOUBLE + dtype.numpy.itemsize) + elements(values) * 6 * DOUBLE


def _bound(sorted_inputs: V, values: V) -> int:
    wide = 4 * elements(sorted_inputs, values) + 2 * size_of(sorted_inputs, values)
    return elements(values) * 3 * DOUBLE + wide


def _isotonic(input: V, *, output_dtype: DataType) -> int:
    return elements(input) * (6 * DOUBLE + 4 * NUMBER + output_dtype.numpy.itemsize)


def segment_need(rows: int, data: V, taken: int, ids: int) -> int:
    """Return what `segment_math.reduce_rows` allocates, and three results of its size.

    `rows` of data's inner shape result; `taken` rows are read, with `ids` numbers of segments.
    """
    shape = shape_of(data)
    inner = math.prod(shape[1:])
    width = _sum_width(data)
    volume((rows, inner))  # which the kernel refuses beyond int64
    return 3 * rows * (inner * width + DOUBLE) + 5 * taken * inner * width + ids * 9 * DOUBLE


def _sum_width(data: V) -> int:
    """Return the bytes of a number while it is summed: half types are summed in float32."""
    return 4 if itemsize(data) == 2 else itemsize(data)


def _segment(data: V, segment_ids: V) -> int:
    rows = largest_in(segment_ids) + 1 if elements(segment_ids) else 0
    return segment_need(rows, data, shape_of(data)[0], elements(segment_ids))


def _unsorted_segment(data: V, segment_ids: V, num_segments: V) -> int:
    rank = len(shape_of(segment_ids))
    inner, count = math.prod(shape_of(data)[rank:]), max(number(num_segments), 0)
    volume((count, inner, _sum_width(data)))  # which the kernel refuses beyond int64
    width, ids = _sum_width(data), elements(segment_ids)
    return 2 * count * inner * width + 5 * ids * inner * width + ids * 9 * DOUBLE


def _sparse_segment(data: V, indices: V, segment_ids: V, num_segments: V = None) -> int:
    found = largest_in(segment_ids) + 1 if elements(segment_ids) else 0
    rows = found if num_segments is None else max(number(num_segments), 0)
    return segment_need(rows, data, elements(indices), elements(segment_ids))


def _sparse_segment_grad(grad: V, indices: V, segment_ids: V, output_dim0: V) -> int:
    count, ids = max(number(output_dim0), 0), elements(segment_ids)
    return segment_need(count, grad, 2 * ids, 2 * ids) + 6 * size_of(grad)


def _sparse_segment_grad_v2(grad: V, indices: V, segment_ids: V, dense_output_dim0: V) -> int:
    ids = elements(segment_ids)
    return segment_need(ids, grad, 2 * ids, 3 * ids) + 6 * size_of(grad)


_SPARSE_SEGMENTS = [f"SparseSegment{kind}" for kind in ("Mean", "SqrtN", "Sum")]

MEMORY_NEEDS: dict[str, MemoryNeed] = {
    "Add": _add,
    **dict.fromkeys(
        (
            "AddV2", "Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "Maximum",
            "Minimum", "Mul", "NextAfter", "RealDiv", "RightShift", "Sub",
        ),
        broadcast_need,
    ),
    **dict.fromkeys(
        (
            "Div", "DivNoNan", "FloorDiv", "FloorMod", "Mod", "MulNoNan", "Pow",
            "SquaredDifference", "TruncateDiv", "TruncateMod", "Xdivy", "Xlog1py", "Xlogy",
        ),
        _composed,
    ),
    **dict.fromkeys(
        (
            "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "LogicalAnd", "LogicalOr",
            "NotEqual",
        ),
        _compared,
    ),
    "Select": _select_rows,
    "SelectV2": _select,
    "Complex": _complex,
    **dict.fromkeys(("Igamma", "Igammac", "Zeta"), _special(30)),
    "Betainc": _special(50),
    **dict.fromkeys(("Digamma", "Erfinv", "Lgamma", "Ndtri"), _special(16)),
    **dict.fromkeys(
        (
            "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselK0",
            "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1",
        ),
        _special(24),
    ),
    **dict.fromkeys(("IgammaGradA", "Polygamma", "RandomGammaGrad"), _whole(40)),
    **dict.fromkeys(("Dawsn", "Expint", "FresnelCos", "FresnelSin", "Spence"), _whole(16)),
    "Cast": _truncated_cast,
    **dict.fromkeys(
        ("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"),
        _gradient,
    ),
    "NearestNeighbors": _nearest_neighbors,
    "KMC2ChainInitialization": _kmc2,
    "KmeansPlusPlusInitialization": _kmeans,
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg),
    "Mean": _mean,
    **dict.fromkeys(
        ("IRFFT", "IRFFT2D", "IRFFT3D", "RFFT", "RFFT2D", "RFFT3D"), _fft_real
    ),
    "Bucketize": _bucketize,
    "Bincount": _bincount,
    "DenseBincount": _dense_bincount,
    "RaggedBincount": _ragged_bincount,
    "SparseBincount": _sparse_bincount,
    "HistogramFixedWidth": _histogram,
    "LowerBound": _bound,
    "UpperBound": _bound,
    "IsotonicRegression": _isotonic,
    **{f"Segment{kind}": _segment for kind in ("Max", "Mean", "Min", "Prod", "Sum")},
    **{f"UnsortedSegment{kind}": _unsorted_segment for kind in ("Max", "Min", "Prod", "Sum")},
    **dict.fromkeys(_SPARSE_SEGMENTS, _sparse_segment),
    **{f"{op}WithNumSegments": _sparse_segment for op in _SPARSE_SEGMENTS},
    **{f"{op}Grad": _sparse_segment_grad for op in _SPARSE_SEGMENTS},
    **{f"{op}GradV2": _sparse_segment_grad_v2 for op in _SPARSE_SEGMENTS},
}  # fmt: skip

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(
        (
            "All", "Any", "Bitcast", "CheckNumerics", "ComplexAbs", "Conj", "Imag", "IsFinite",
            "IsInf", "IsNan", "LogicalNot", "Real", "ToBool",
        ),
        1,
    ),
    **dict.fromkeys(
        (
            "Abs", "Acos", "Acosh", "Angle", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos",
            "Cosh", "Exp", "Expm1", "Floor", "Inv", "Invert", "Log", "Log1p", "Neg",
            "PopulationCount", "Reciprocal", "Rint", "Round", "Sign", "Sin", "Sinh", "Sqrt",
            "Square", "Tan", "Tanh", "AccumulateNV2", "AddN", "ApproximateEqual",
        ),
        2,
    ),
    **dict.fromkeys(
        (
            "CheckNumericsV2", "ClipByValue", "Cumprod", "Cumsum", "CumulativeLogsumexp",
            "L2Loss", "Max", "Min", "Sum",
        ),
        5,
    ),
    **dict.fromkeys(("EuclideanNorm", "Prod", "Rsqrt", "Sigmoid", "FFT", "FFT2D", "FFT3D",
        "IFFT", "IFFT2D", "IFFT3D"), 8),
    **dict.fromkeys(("BroadcastGradientArgs", "Erf", "Erfc"), 16),
}  # fmt: skip
