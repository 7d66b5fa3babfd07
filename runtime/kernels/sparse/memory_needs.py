"""What the kernels of this room allocate.

`MEMORY_NEEDS` has the bound of each op that may need more than a small multiple of its inputs (see
`KernelDef.memory`); for all others `INPUT_MULTIPLES` has that multiple.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from runtime.framework.dtypes import DataType
from runtime.framework.op_kernel import MemoryNeed
from runtime.framework.ragged_tensor_variant import RaggedTensorVariant
from runtime.framework.tensor_value import TensorValue
from runtime.kernels.memory_sizes import (
    STRING,
    VIEW,
    broadcast_shape,
    dense,
    elements,
    itemsize,
    largest_in,
    longest_in,
    number,
    numbers_in,
    shape_of,
    size_of,
    text_in,
    volume,
)
from runtime.kernels.sparse.memory_of_matrices import MATRICES

V = TensorValue
INDEX = 8


def _of_each(bytes_each: int) -> MemoryNeed:
    """Return the bound of a kernel that needs `bytes_each` for each element of its inputs."""

    def need(*inputs: V) -> int:
        return elements(*inputs) * bytes_each + 6 * size_of(*inputs)

    return need


def _to_dense(indices: V, output_shape: V, values: V, default_value: V) -> int:
    result = dense(numbers_in(output_shape), itemsize(values))
    return result + 6 * INDEX * elements(indices) + 2 * size_of(values)


def _reduced(indices: V, values: V, shape: V, axes: V, *, keep_dims: bool) -> int:
    sizes = numbers_in(shape)
    volume(sizes)  # which the kernel refuses beyond int64
    rank = len(sizes)
    gone = {axis % rank for axis in np.unique(np.asarray(axes)).tolist()} if rank else set()
    kept = [size for axis, size in enumerate(sizes) if axis not in gone]
    sparse = _reduced_sparse(indices, values, shape, axes, keep_dims=keep_dims)
    return dense(kept, itemsize(values)) + sparse


def _reduced_sparse(indices: V, values: V, _shape: V, axes: V, *, keep_dims: bool) -> int:
    return elements(indices, values) * 10 * INDEX + 8 * INDEX * elements(axes)


def _dense_matmul(
    indices: V, values: V, shape: V, dense_: V, *, adjoint_a: bool, adjoint_b: bool
) -> int:
    rows = numbers_in(shape)[int(adjoint_a)]
    columns = shape_of(dense_)[int(not adjoint_b)]
    width = max(itemsize(values), itemsize(dense_))
    count = elements(values)
    products = (max(rows, 0) + 4 * count) * columns * width
    return products + count * 16 * INDEX + 2 * size_of(dense_)


def _mat_mul(first: V, second: V, *, transpose_a: bool, transpose_b: bool) -> int:
    rows, columns = shape_of(first)[int(transpose_a)], shape_of(second)[int(not transpose_b)]
    return 4 * (2 * rows * columns + 3 * elements(first, second))


def _fill_rows(indices: V, values: V, dense_shape: V, default_value: V) -> int:
    rows = max(number(np.ravel(np.asarray(dense_shape))[:1]), 0)
    return _filled(rows, (shape_of(indices) or (0, 1))[-1], indices, values)


def _fill_ragged_rows(value_rowids: V, values: V, nrows: V, default_value: V) -> int:
    return _filled(max(number(nrows), 0), 1, value_rowids, values)


def _filled(rows: int, rank: int, indices: V, values: V) -> int:
    every = rows + elements(values)
    return every * (10 * INDEX + 3 * rank * INDEX + 4 * itemsize(values)) + 2 * size_of(indices)


def _edit_distance(
    hypothesis_indices: V, hypothesis_values: V, hypothesis_shape: V, truth_indices: V,
    truth_values: V, truth_shape: V,
) -> int:  # fmt: skip
    pairs = zip(numbers_in(hypothesis_shape)[:-1], numbers_in(truth_shape)[:-1], strict=True)
    groups = volume(max(pair) for pair in pairs)
    count = elements(hypothesis_values, truth_values)
    # a group's sequence is as long as the longest of all, and no longer than its values
    longest = max(elements(hypothesis_values), elements(truth_values)) + 1
    names = STRING + 20 * INDEX
    return (
        groups * (min(longest, count + 1) * 6 * INDEX + 10 * INDEX)
        + count * names
        + 4 * size_of(hypothesis_indices, truth_indices)
    )


def _combinations(columns: Sequence[tuple[V, int]], batch: int) -> int:
    """Return how many combinations of features a cross may have: the product of row lengths.

    Each column is (values, values of its longest row).
    """
    return batch * math.prod(longest for _, longest in columns)


def _crossed(columns: Sequence[tuple[V, int]], batch: int) -> int:
    count = _combinations(columns, batch)
    text = sum(longest_in(values) + 3 for values, _ in columns) if columns else 0
    is_text = any(text_in(values) for values, _ in columns)
    each = (
        (8 + 4 * len(columns)) * INDEX + 4 * STRING + (2 * text if is_text else 24 * len(columns))
    )
    values = sum(elements(values) * (STRING + 400) for values, _ in columns)
    return count * each + values + batch * 8 * INDEX * (len(columns) + 2)


def _row_length(indices: V) -> int:
    """Return how many values the row of a sparse matrix with the most values has."""
    array = np.asarray(indices)
    if array.ndim != 2 or not array.size or len(array) > 1 << 22:
        return len(array) if array.ndim else 0
    return int(np.unique(array[:, 0], return_counts=True)[1].max())


def _sparse_cross(*inputs: V, N: int) -> int:
    sparse = [(inputs[N + each], _row_length(inputs[each])) for each in range(N)]
    rest = [each for each in inputs[3 * N :] if len(shape_of(each)) == 2]
    sizes = [numbers_in(inputs[2 * N + each]) for each in range(N)]
    batches = [size[0] for size in sizes if size] + [shape_of(each)[0] for each in rest]
    columns = [*sparse, *((each, shape_of(each)[1]) for each in rest)]
    return _crossed(columns, max(batches, default=0))


def _ragged_cross(*inputs: V, Nsparse: int, ragged_values_types: Sequence[DataType]) -> int:
    count = len(ragged_values_types)
    ragged = [
        (inputs[each], int(np.diff(np.asarray(inputs[count + each])).max(initial=0)))
        for each in range(count)
    ]
    rest = inputs[2 * count :]
    sparse = [(rest[Nsparse + each], _row_length(rest[each])) for each in range(Nsparse)]
    others = [(each, shape_of(each)[1]) for each in rest[3 * Nsparse :]]
    batches = [elements(inputs[count + each]) - 1 for each in range(count)]
    batches += [
        number(np.ravel(np.asarray(rest[2 * Nsparse + each]))[:1]) for each in range(Nsparse)
    ]
    batches += [shape_of(each)[0] for each, _ in others]
    return _crossed([*ragged, *sparse, *others], max(batches, default=0))


def _ragged_gather(*nested_splits_values_indices: V) -> int:
    *splits, values, indices = nested_splits_values_indices
    longest, rows = 1, elements(indices)
    result = rows * 6 * INDEX * max(len(shape_of(indices)), 1)
    for each in splits:
        lengths = np.diff(np.ravel(np.asarray(each)))
        result += 5 * size_of(each)
        longest *= max(int(lengths.max(initial=0)), 0)
        result += rows * longest * 6 * INDEX + 8 * rows * INDEX
    row = size_of(values) // max(shape_of(values)[0], 1)
    return result + 2 * rows * longest * row


def _ragged_range(starts: V, limits: V, deltas: V, *, Tsplits: DataType) -> int:
    start, limit, delta = (
        np.ravel(np.asarray(each, np.float64)) for each in (starts, limits, deltas)
    )
    with np.errstate(all="ignore"):
        spans = np.nan_to_num((limit - start) / delta, nan=0, posinf=1e18, neginf=0)
    rows = max(start.size, limit.size, delta.size)
    if not start.size * limit.size * delta.size:
        return rows * 20 * INDEX
    total = float(np.broadcast_to(np.maximum(spans, 0), (rows,)).sum()) + rows
    if total > np.iinfo(Tsplits.numpy).max + rows:
        return rows * 20 * INDEX  # the kernel raises
    return int(min(total, 1e19)) * (10 * INDEX + itemsize(starts)) + rows * 20 * INDEX


def _ragged_to_sparse(*nested_splits_and_values: V) -> int:
    *splits, values = nested_splits_and_values
    rank = len(splits) + len(shape_of(values))
    return elements(values) * rank * 4 * INDEX + 20 * INDEX * elements(*splits) + size_of(values)


def _ragged_to_tensor(
    shape: V, values: V, default_value: V, *partitions: V, row_partition_types: Sequence[str]
) -> int:
    wanted = numbers_in(shape) if len(shape_of(shape)) else []
    kinds = list(row_partition_types)
    given = list(partitions)
    first = elements(given[0]) - 1
    if kinds[0] == "FIRST_DIM_SIZE":
        first = number(given[0])
        kinds, given = kinds[1:], given[1:]
    sizes = [first, *map(_width, given, kinds), *shape_of(values)[1:]]
    known = [
        size if place >= len(wanted) or wanted[place] < 0 else wanted[place]
        for place, size in enumerate(sizes)
    ]
    # splits may name more values than there are
    rows = max(elements(values), largest_in(*given)) + elements(*given) + max(first, 0)
    return 2 * dense(known, itemsize(values)) + rows * 16 * INDEX + 3 * size_of(values)


def _width(partition: V, kind: str) -> int:
    array = np.ravel(np.asarray(partition))
    if kind == "ROW_SPLITS":
        return max(int(np.diff(array).max(initial=0)), 0)
    ends = np.flatnonzero(np.diff(array, append=-1))
    return int(np.diff(ends, prepend=-1).max(initial=0))


def _to_variant(*nested_splits_and_values: V, batched_input: bool) -> int:
    *splits, values = nested_splits_and_values
    if not batched_input:
        return VIEW + 2 * size_of(*splits)
    rows = elements(splits[0]) if splits else (shape_of(values) or (0,))[0]
    return rows * (VIEW + STRING) * (len(splits) + 2) + 3 * size_of(*splits)


def _variants(encoded: V) -> list[RaggedTensorVariant]:
    found = encoded.ravel().tolist() if isinstance(encoded, np.ndarray) else [encoded]
    return [each for each in found if isinstance(each, RaggedTensorVariant)]


def _from_variant(encoded: V) -> int:
    held = sum(size_of(*each.nested_splits, each.values) for each in _variants(encoded))
    return 3 * held + elements(encoded) * 12 * INDEX


def _variant_gradient(
    encoded: V, row_splits: V, dense_values_shape: V, *, Tvalues: DataType
) -> int:
    wanted = numbers_in(dense_values_shape)
    held = sum(size_of(each.values) for each in _variants(encoded))
    inner = dense(wanted[1:], Tvalues.numpy)
    zeros = 2 * inner * (largest_in(row_splits) + 1)
    return dense(wanted, Tvalues.numpy) + 2 * held + zeros + 2 * size_of(row_splits)


def _set_operation(*inputs: V, groups: int) -> int:
    return elements(*inputs) * 40 * INDEX + groups * 6 * INDEX


def _dense_to_dense(set1: V, set2: V) -> int:
    return _set_operation(set1, set2, groups=volume(shape_of(set1)[:-1]))


def _dense_to_sparse(set1: V, indices: V, values: V, shape: V) -> int:
    return _set_operation(set1, indices, values, groups=volume(shape_of(set1)[:-1]))


def _sparse_to_sparse(
    indices1: V, values1: V, shape1: V, indices2: V, values2: V, shape2: V
) -> int:  # fmt: skip
    # groups up to the last one that has an element are counted
    groups = volume(numbers_in(shape1)[:-1])
    return _set_operation(indices1, values1, indices2, values2, groups=groups)


def _set_size(indices: V, values: V, shape: V) -> int:
    return _set_operation(indices, values, groups=volume(numbers_in(shape)[:-1]))


def _serialized_rows(indices: V, values: V, shape: V) -> int:
    rows = max(number(np.ravel(np.asarray(shape))[:1]), 0)
    return rows * (3 * (2 * STRING + VIEW) + 60 * elements(shape)) + 8 * size_of(indices, values)


def _deserialized(serialized: V) -> int:
    arrays = serialized.ravel().tolist() if isinstance(serialized, np.ndarray) else []
    held = sum(size_of(each) for each in arrays if isinstance(each, np.ndarray))
    # a message may say less than it means: a shape, and the one value that fills it
    return 6 * held + 10 * size_of(serialized) + len(arrays) * (VIEW + 60 * INDEX)


def _many_rows(sparse_indices: V, sparse_values: V, sparse_shape: V) -> int:
    rows = max(number(np.ravel(np.asarray(sparse_shape))[:1]), 0)
    return rows * (4 * VIEW + STRING) + 4 * size_of(sparse_indices)


def _sliced(split_dim: V, *parts: V, num_split: int) -> int:
    return (
        num_split * (8 * VIEW + 4 * INDEX)
        + 4 * num_split * elements(parts[1])
        + 4 * size_of(*parts)
    )


def _cwise(indices: V, values: V, shape: V, dense_: V) -> int:
    broadcast = volume(broadcast_shape(shape_of(values)))
    return broadcast * 6 * max(itemsize(values), itemsize(dense_)) + 3 * size_of(indices)


MEMORY_NEEDS: dict[str, MemoryNeed] = {
    **MATRICES,
    "SparseToDense": _to_dense,
    **dict.fromkeys(("SparseReduceMax", "SparseReduceSum"), _reduced),
    **dict.fromkeys(("SparseReduceMaxSparse", "SparseReduceSumSparse"), _reduced_sparse),
    "SparseTensorDenseMatMul": _dense_matmul,
    "SparseMatMul": _mat_mul,
    "SparseFillEmptyRows": _fill_rows,
    "RaggedFillEmptyRows": _fill_ragged_rows,
    "EditDistance": _edit_distance,
    **dict.fromkeys(("SparseCross", "SparseCrossHashed", "SparseCrossV2"), _sparse_cross),
    "RaggedCross": _ragged_cross,
    "RaggedGather": _ragged_gather,
    "RaggedRange": _ragged_range,
    "RaggedTensorToSparse": _ragged_to_sparse,
    "RaggedTensorToTensor": _ragged_to_tensor,
    "RaggedTensorToVariant": _to_variant,
    "RaggedTensorFromVariant": _from_variant,
    "RaggedTensorToVariantGradient": _variant_gradient,
    "DenseToDenseSetOperation": _dense_to_dense,
    "DenseToSparseSetOperation": _dense_to_sparse,
    "SparseToSparseSetOperation": _sparse_to_sparse,
    "SetSize": _set_size,
    "SerializeManySparse": _serialized_rows,
    **dict.fromkeys(("DeserializeManySparse", "DeserializeSparse"), _deserialized),
    "AddManySparseToTensorsMap": _many_rows,
    "SparseSplit": _sliced,
    **dict.fromkeys(("SparseDenseCwiseAdd", "SparseDenseCwiseDiv", "SparseDenseCwiseMul"), _cwise),
    **dict.fromkeys(
        (
            "DenseCountSparseOutput", "RaggedCountSparseOutput", "SparseAdd", "SparseAddGrad",
            "SparseConcat", "SparseCountSparseOutput", "SparseReorder", "SparseReshape",
            "SparseSliceGrad", "SparseSoftmax", "SparseSparseMaximum", "SparseSparseMinimum",
        ),
        _of_each(12 * INDEX),
    ),
}  # fmt: skip

INPUT_MULTIPLES: dict[str, int] = {
    **dict.fromkeys(("AddSparseToTensorsMap", "TakeManySparseFromTensorsMap"), 1),
    **dict.fromkeys(
        (
            "RaggedFillEmptyRowsGrad", "SerializeSparse", "SparseFillEmptyRowsGrad",
            "SparseSlice", "SparseTensorDenseAdd",
        ),
        8,
    ),
}  # fmt: skip
