"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple: 0 if outputs are views.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.array.list_memory import LISTS
from runtime.kernels.memory_sizes import (
    STRING,
    VIEW,
    dense,
    elements,
    itemsize,
    largest_in,
    nonzero_in,
    number,
    numbers_in,
    shape_of,
    size_of,
    volume,
)

V = TensorValue
INDEX = np.dtype(np.int64).itemsize  # numpy indexes, sorts and counts with 64-bit integers


def _dynamic_partition(data: V, partitions: V, *, num_partitions: int) -> int:
    return 2 * size_of(data) + 3 * INDEX * elements(partitions) + num_partitions * VIEW


def _dynamic_stitch(*indices_and_data: V) -> int:
    half = len(indices_and_data) // 2
    indices, data = indices_and_data[:half], indices_and_data[half:]
    rows = max(0, *(largest_in(each) + 1 for each in indices if elements(each)), 0)
    inner = shape_of(data[0])[len(shape_of(indices[0])) :]
    gathered = 2 * size_of(*data) + INDEX * elements(*indices)
    return dense((rows, *inner), itemsize(data[0])) + gathered


def _fill(dims: V, value: V) -> int:
    return dense(numbers_in(dims), itemsize(value))


def _first(value: V) -> float:
    array: np.ndarray = np.asarray(value)
    return float(array.item(0))


def _range(start: V, limit: V, delta: V) -> int:
    first, last, step = (_first(each) for each in (start, limit, delta))
    steps = abs((last - first) / step) if step else 0.0
    return (math.ceil(min(steps, 1e18)) + 1) * (INDEX + itemsize(start))


def _lin_space(start: V, stop: V, num: V) -> int:
    return number(num) * (INDEX + 3 * itemsize(start))


def _gather(params: V, indices: V) -> int:
    return _gather_v2(params, indices, np.array(0), batch_dims=0)


def _gather_v2(params: V, indices: V, axis: V, *, batch_dims: int) -> int:
    shape, dim = shape_of(params), number(axis)
    dim += len(shape) if dim < 0 else 0
    batch = batch_dims + len(shape_of(indices)) if batch_dims < 0 else batch_dims
    taken = (*shape[:dim], *shape_of(indices)[batch:], *shape[dim + 1 :])
    return dense(taken, itemsize(params)) + contiguous(params) + 4 * INDEX * elements(indices)


def gather_need(params: V, indices: V, batch_dims: int) -> int:
    """Return what `GatherV2` from the first axis after `batch_dims` allocates."""
    return _gather_v2(params, indices, np.array(batch_dims), batch_dims=batch_dims)


def contiguous(value: V) -> int:
    """Return the bytes of the copy that numpy makes of an array that is not contiguous."""
    is_view = isinstance(value, np.ndarray) and not value.flags.c_contiguous
    return elements(value) * itemsize(value) if is_view else 0


def gather_nd_need(params: V, indices: V) -> int:
    """Return what `GatherNd` allocates."""
    rows, depth = shape_of(indices)[:-1], shape_of(indices)[-1]
    taken = dense((*rows, *shape_of(params)[depth:]), itemsize(params))
    return 2 * taken + 3 * INDEX * elements(indices) + 2 * volume(rows)


def _one_hot(indices: V, depth: V, on_value: V, off_value: V) -> int:
    count = elements(indices)
    return count * number(depth) * itemsize(on_value) + 6 * INDEX * count


def _matrix_diag(
    diagonal: V, k: V = None, num_rows: V = None, num_cols: V = None, padding_value: V = None
) -> int:
    shape, limits = shape_of(diagonal), [0] if k is None else numbers_in(k, 2)
    lower, upper = limits[0], limits[-1]
    rows = -1 if num_rows is None else number(num_rows)
    columns = -1 if num_cols is None else number(num_cols)
    least = (shape[-1] - min(upper, 0), shape[-1] + max(lower, 0))
    if rows == columns == -1:
        rows = columns = max(least)
    batch = shape[:-1] if lower == upper else shape[:-2]
    sizes = (*batch, *(max(pair) for pair in zip((rows, columns), least, strict=True)))
    return dense(sizes, itemsize(diagonal)) + size_of(diagonal) + 6 * INDEX * shape[-1]


def _matrix_diag_part(input: V, *others: V) -> int:
    # the diagonals of a band are padded to the longest: twice the elements of the matrix at most
    return 4 * size_of(input)


def _matrix_band_part(value: V, num_lower: V, num_upper: V) -> int:
    return size_of(value) + volume(shape_of(value)[-2:]) * (3 * INDEX + 4)


def _padded(value: V, paddings: V) -> int:
    margins = numbers_in(paddings)
    sizes = [
        size + before + after
        for size, before, after in zip(shape_of(value), margins[::2], margins[1::2], strict=False)
    ]
    return dense(sizes, itemsize(value)) + 6 * INDEX * max(sizes, default=0)


def _pad_v2(value: V, paddings: V, constant: V) -> int:
    return _padded(value, paddings)


def _mirror_pad(value: V, paddings: V) -> int:
    return 2 * _padded(value, paddings)


def _tile(value: V, multiples: V) -> int:
    counts = numbers_in(multiples)
    pairs = zip(counts, shape_of(value), strict=False)
    return dense([count * size for count, size in pairs], itemsize(value))


def patches_need(
    shape: Sequence[int], width: int, sizes: Sequence[int], strides: Sequence[int],
    rates: Sequence[int], padding: str,
) -> int:  # fmt: skip
    """Return what `patches.patches` allocates for `[batch, …, depth]` of `width` bytes each."""
    batch, *spatial, depth = shape
    counts, padded = [], []
    for length, size, stride, rate in zip(spatial, sizes, strides, rates, strict=True):
        window = (size - 1) * rate + 1
        if padding == "SAME":
            counts.append(-(-length // stride))
            padded.append(max(length, (counts[-1] - 1) * stride + window))
        else:
            counts.append(max((length - window) // stride + 1, 0))
            padded.append(length)
    taken = dense((batch, *counts, math.prod(sizes) * depth), width)
    return taken + (dense((batch, *padded, depth), width) if taken else 0)


def _image_patches(
    images: V, *, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str
) -> int:
    sizes, steps, holes = (each[1:-1] for each in (ksizes, strides, rates))
    return patches_need(shape_of(images), itemsize(images), sizes, steps, holes, padding)


def _volume_patches(
    volumes: V, *, ksizes: Sequence[int], strides: Sequence[int], padding: str
) -> int:
    sizes, steps = ksizes[1:-1], strides[1:-1]
    return patches_need(shape_of(volumes), itemsize(volumes), sizes, steps, (1, 1, 1), padding)


def _scattered(indices: V, updates: V) -> int:
    return 6 * size_of(updates) + 8 * INDEX * elements(indices)


def _scatter_nd(indices: V, updates: V, shape: V) -> int:
    return dense(numbers_in(shape), itemsize(updates)) + _scattered(indices, updates)


def _tensor_scatter(tensor: V, indices: V, updates: V) -> int:
    return size_of(tensor) + _scattered(indices, updates)


def _broadcast_to(value: V, shape: V) -> int:
    return dense(numbers_in(shape), itemsize(value))


def _empty(shape: V, *, dtype: DataType) -> int:
    return dense(numbers_in(shape), dtype.numpy)


def _strided_slice_grad(shape: V, begin: V, end: V, strides: V, gradient: V) -> int:
    return dense(numbers_in(shape), itemsize(gradient))


def _sorted(value: V, k: V = None) -> int:
    return elements(value) * (4 * itemsize(value) + 5 * INDEX)


def _space_to_batch_nd(value: V, block_shape: V, paddings: V) -> int:
    margins, shape = numbers_in(paddings), shape_of(value)
    sizes = [
        size + before + after
        for size, before, after in zip(shape[1:], margins[::2], margins[1::2], strict=False)
    ]
    return 2 * dense((shape[0], *sizes, *shape[1 + len(sizes) :]), itemsize(value))


def _space_to_batch(value: V, paddings: V) -> int:
    return _space_to_batch_nd(value, None, paddings)


def _diag(diagonal: V) -> int:
    return elements(diagonal) ** 2 * itemsize(diagonal) + size_of(diagonal)


def _reverse_sequence(value: V, seq_lengths: V, *, seq_dim: int) -> int:
    steps = shape_of(value)[seq_dim]
    return 3 * size_of(value) + 5 * INDEX * steps * elements(seq_lengths)


def _unique(value: V, axis: V = None) -> int:
    is_text = isinstance(value, np.ndarray) and value.dtype.hasobject
    return elements(value) * (12 * INDEX + 4 * itemsize(value) + (4 * STRING if is_text else 0))


def _list_diff(first: V, second: V) -> int:
    return elements(first) * (10 * INDEX + 6 * itemsize(first)) + elements(second) * (
        4 * INDEX + 4 * itemsize(first)
    )


def _where(condition: V) -> int:
    return nonzero_in(condition) * (2 * INDEX * len(shape_of(condition))) + elements(condition)


def _unravel_index(indices: V, dims: V) -> int:
    return elements(indices) * (elements(dims) * itemsize(dims) + 6 * INDEX)


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    **LISTS,
    "DynamicPartition": _dynamic_partition,
    "DynamicStitch": _dynamic_stitch,
    "ParallelDynamicStitch": _dynamic_stitch,
    "Fill": _fill,
    "Range": _range,
    "LinSpace": _lin_space,
    "Gather": _gather,
    "GatherV2": _gather_v2,
    "GatherNd": gather_nd_need,
    "OneHot": _one_hot,
    **dict.fromkeys(
        ("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "BatchMatrixDiag"), _matrix_diag
    ),
    **dict.fromkeys(
        ("BatchMatrixDiagPart", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"),
        _matrix_diag_part,
    ),
    **dict.fromkeys(("MatrixBandPart", "BatchMatrixBandPart"), _matrix_band_part),
    "Pad": _padded,
    "PadV2": _pad_v2,
    "MirrorPad": _mirror_pad,
    "Tile": _tile,
    "ExtractImagePatches": _image_patches,
    "ExtractVolumePatches": _volume_patches,
    "ScatterNd": _scatter_nd,
    **dict.fromkeys(
        (
            "ScatterNdNonAliasingAdd", "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin",
            "TensorScatterSub", "TensorScatterUpdate",
        ),
        _tensor_scatter,
    ),
    "BroadcastTo": _broadcast_to,
    "Empty": _empty,
    "StridedSliceGrad": _strided_slice_grad,
    **dict.fromkeys(("ApproxTopK", "TopK", "TopKV2"), _sorted),
    "SpaceToBatchND": _space_to_batch_nd,
    "SpaceToBatch": _space_to_batch,
    "Diag": _diag,
    "ReverseSequence": _reverse_sequence,
    **dict.fromkeys(
        ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"), _unique
    ),
    "ListDiff": _list_diff,
    "Where": _where,
    "UnravelIndex": _unravel_index,
}  # fmt: skip

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(
        (
            "CompositeTensorVariantFromComponents", "CompositeTensorVariantToComponents", "Const",
            "HostConst",
            "Copy", "CopyHost", "DeepCopy", "EmptyTensorList", "EmptyTensorMap", "EnsureShape",
            "GuaranteeConst", "Identity", "IdentityN", "NoOp", "Placeholder", "PlaceholderV2",
            "PlaceholderWithDefault", "PreventGradient", "Rank", "RefIdentity", "Reverse",
            "ReverseV2", "Shape", "ShapeN", "Size", "Slice", "Snapshot", "Split", "SplitV",
            "StopGradient", "StridedSlice", "TensorListElementShape", "TensorListLength",
            "TensorListPushBack", "TensorMapSize", "Transpose", "Unpack",
        ),
        0,
    ),
    **dict.fromkeys(
        (
            "Concat", "ConcatV2", "ConjugateTranspose", "DiagPart", "ExpandDims", "OnesLike",
            "Pack", "ParallelConcat", "Reshape", "Squeeze", "TensorStridedSliceUpdate",
            "ZerosLike",
        ),
        1,
    ),
    **dict.fromkeys(
        (
            "BatchToSpace", "BatchToSpaceND", "DepthToSpace", "MatrixSetDiag", "MatrixSetDiagV2",
            "MatrixSetDiagV3", "BatchMatrixSetDiag", "Roll", "SpaceToDepth",
            "TensorMapHasKey", "TensorMapLookup",
        ),
        2,
    ),
    **dict.fromkeys(
        (
            "InplaceAdd", "InplaceSub", "InplaceUpdate", "MirrorPadGrad",
        ),
        4,
    ),
    **dict.fromkeys(("BroadcastArgs", "ConcatOffset", "InvertPermutation", "NthElement"), 8),
}  # fmt: skip
